package httptool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/secret"
)

// A Definition describes a tool that makes one HTTP request for each call. URL and Allowlist are required. Name, Description, Timeout,
// CacheTTL, Concurrency, Rate, Backend and Origin have the meaning of the fields of [lathe.ToolSpec] with these names.
type Definition struct {
	Name        string
	Description string
	Method      string // "": GET
	// URL is the URL without a query. {NAME} in its path is replaced by the parameter of that name.
	URL        string
	Parameters []Parameter
	// Body is the media type in which the parameters with In InBody are sent: application/json (the default),
	// application/x-www-form-urlencoded, multipart/form-data or text/plain. Types that end in +json are sent as JSON.
	Body string
	// Defs are schemas that the schemas of parameters refer to as #/$defs/NAME.
	Defs map[string]json.RawMessage

	Credentials Credentials
	// OAuth says that the HTTP client adds a token to requests. Credentials must then contain no Authorization header.
	OAuth  bool
	Scopes []string // OAuth scopes of the token, from an imported document
	// Effect, if undeclared, is ReadOnly for GET and HEAD, and Writes for other methods.
	Effect      lathe.Effect
	Allowlist   []string // as [lathe.ToolSpec].Allowlist; "http_status" of errors is always shown
	Timeout     time.Duration
	CacheTTL    time.Duration
	Concurrency int
	Rate        float64
	Backend     string
	Origin      string
	// Imported says that the schemas come from a third party. Parts that Lathe cannot check, such as a pattern in another language, are
	// then left to the server ([lathe.ToolSpec].UncheckedParts) instead of being an error.
	Imported bool

	document described // data from a document without a field above
}

// described is data of an operation in a document that other definitions do not have.
type described struct {
	warnings []string
	answers  map[string]*view // what is shown of answers, by status, such as 200, 4XX and DEFAULT
}

// Warnings returns texts that explain why hardly any call can satisfy the schema of an imported operation; nil: none. [New] makes the tool
// nevertheless.
func (d *Definition) Warnings() []string { return d.document.warnings }

// A Place is the part of an HTTP request in which a parameter is sent.
type Place string

// The places of a parameter.
const (
	InPath   Place = "path"
	InQuery  Place = "query"
	InHeader Place = "header"
	InCookie Place = "cookie"
	InBody   Place = "body"
)

// A Parameter is an argument of the tool and says where in the request its value is sent. [New] returns an error if a credential or another
// parameter has the same name in the same place, and for a header that identifies the client or carries a credential, such as Cookie.
type Parameter struct {
	Name        string // name of the argument
	As          string // name in the request; "": as Name
	In          Place
	Description string
	Required    bool            // always true if In is InPath
	Schema      json.RawMessage // a JSON Schema object; nil: {"type":"string"}
	// Style is the OpenAPI style: simple, label or matrix in a path; form, spaceDelimited, pipeDelimited or deepObject in a query; simple
	// in a header; form in a cookie. "": simple in a path or header, otherwise form.
	Style         string
	Explode       *bool // as in OpenAPI; nil: true for form and deepObject, otherwise false
	AllowReserved bool  // in a query: reserved characters that cannot change its structure are not escaped
	// Content, if not "", is the media type (JSON or text) in which the value is encoded; Style is not used then.
	Content string
	// Whole says that the value is the whole body instead of a member of it. It must then be the only parameter with In InBody.
	Whole bool
	// Parts configure how members of the value are encoded, by name, if Whole is set and Body is a form.
	Parts map[string]Part
}

// A Part configures how one member of a form is encoded. Style, Explode and AllowReserved are as in [Parameter]. The zero value is the
// default encoding.
type Part struct {
	Content       string // media type of a part of multipart/form-data, or of a form value that is JSON
	Style         string // as [Parameter].Style
	Explode       *bool
	AllowReserved bool
}

// Credentials are secrets by the name of the header, query parameter or cookie. They are added to each request to the origin of the tool's
// URL and are sent to no other origin. The model cannot set them. Secrets of at least 6 bytes are removed from responses.
type Credentials struct {
	Headers, Query, Cookies map[string]secret.Secret
}

// ownHeaders are the headers that the transport or this package sets.
var ownHeaders = []string{"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
	"Idempotency-Key", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// trustedHeaders contain credentials, identify the client, or override the method or URL of a request: some servers execute a GET with an
// override header as a DELETE. A parameter must not set them.
var trustedHeaders = []string{"Authorization", "Cookie", "Forwarded", "Proxy-Authenticate", "Proxy-Authorization", "Set-Cookie", "True-Client-Ip",
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Prefix", "X-Forwarded-Proto", "X-Forwarded-Uri", "X-Forwarded-User", "X-Real-Ip",
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url"}

// hasHeader reports whether a list of header names contains a name, in any letter case.
func hasHeader(list []string, name string) bool {
	return slices.ContainsFunc(list, func(h string) bool { return strings.EqualFold(h, name) })
}

func (p *Parameter) wireName() string {
	return cmp.Or(p.As, p.Name)
}

// styles are the styles of a place, the default first.
var styles = map[Place][]string{
	InPath:   {"simple", "label", "matrix"},
	InQuery:  {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
	InHeader: {"simple"},
	InCookie: {"form"},
	InBody:   {"form"},
}

// check validates one parameter and sets its defaults.
func (p *Parameter) check() error {
	known, ok := styles[p.In]
	switch name := p.wireName(); {
	case p.Name == "" || name == "":
		return errors.New("a parameter has no name")
	case !ok:
		return fmt.Errorf("parameter %q: no place %q: path, query, header, cookie or body", p.Name, p.In)
	case (p.In == InHeader || p.In == InCookie) && !httpname.IsToken(name):
		return fmt.Errorf("parameter %q: %q is not a name for a header or cookie", p.Name, name)
	case p.In == InHeader && hasHeader(slices.Concat(ownHeaders, trustedHeaders), name):
		return fmt.Errorf("parameter %q: a model does not fill the header %s", p.Name, http.CanonicalHeaderKey(name))
	case p.Whole && p.In != InBody:
		return fmt.Errorf("parameter %q: only a body is one whole value", p.Name)
	}
	if p.Style == "" {
		p.Style = known[0]
	}
	if !slices.Contains(known, p.Style) {
		return fmt.Errorf("parameter %q: no style %q in %s: %s", p.Name, p.Style, p.In, strings.Join(known, ", "))
	}
	p.setExplode()
	if p.Style == "deepObject" && !*p.Explode {
		return fmt.Errorf("parameter %q: deepObject is always exploded", p.Name)
	}
	if p.Content != "" && !isJSON(p.Content) && !isText(p.Content) {
		return fmt.Errorf("parameter %q: values of type %q are not written", p.Name, p.Content)
	}
	if p.In == InPath {
		p.Required = true
	}
	if len(p.Schema) == 0 {
		p.Schema = json.RawMessage(`{"type":"string"}`)
	}
	if err := rawjson.Check(p.Schema, rawjson.Limits{}); err != nil {
		return fmt.Errorf("parameter %q: schema: %w", p.Name, err)
	}
	p.Schema = rawjson.AppendCompact(nil, p.Schema)
	if c := p.Schema[0]; c != '{' && c != 't' {
		return fmt.Errorf("parameter %q: its schema is not an object", p.Name)
	}
	return nil
}

// setExplode sets the default of Explode.
func (p *Parameter) setExplode() {
	if p.Explode == nil {
		p.Explode = new(p.Style == "form" || p.Style == "deepObject")
	}
}

// check returns an error if a name or value of the credentials is not valid.
func (c *Credentials) check() error {
	for name, v := range c.Headers {
		if !httpname.IsToken(name) || !isFieldValue(v.Reveal()) {
			return fmt.Errorf("the header %q cannot be sent", name)
		}
		if hasHeader(ownHeaders, name) && !strings.EqualFold(name, "Accept") {
			return fmt.Errorf("the header %s is the transport's own", http.CanonicalHeaderKey(name))
		}
	}
	for name, v := range c.Cookies {
		if !httpname.IsToken(name) || !isCookieValue(v.Reveal()) {
			return fmt.Errorf("the cookie %q cannot be sent", name)
		}
	}
	for _, m := range []map[string]secret.Secret{c.Headers, c.Query, c.Cookies} {
		for name, v := range m {
			if v.IsZero() {
				return fmt.Errorf("the credential %q is empty", name)
			}
		}
	}
	return nil
}

func isFieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func isCookieValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`",;\`, r) })
}

// argsSchema returns the schema of the tool's arguments: an object with a property for each parameter. unchecked lists the parts that are
// left to the server.
func (d *Definition) argsSchema() (args json.RawMessage, unchecked []string, err error) {
	quote := func(s string) string { return string(rawjson.AppendQuote(nil, s)) }
	var properties, required []string
	seen := map[string]bool{}
	for i := range d.Parameters {
		p := &d.Parameters[i]
		if seen[p.Name] {
			return nil, nil, fmt.Errorf("two parameters have the name %q: give one of them another Name, and set As to its name in the request", p.Name)
		}
		seen[p.Name] = true
		properties = append(properties, quote(p.Name)+":"+string(describe(p.Schema, p.Description)))
		if p.Required {
			required = append(required, quote(p.Name))
		}
	}
	text := `{"type":"object","properties":{` + strings.Join(properties, ",") + "}"
	if required != nil {
		text += `,"required":[` + strings.Join(required, ",") + "]"
	}
	text += `,"additionalProperties":false`
	if len(d.Defs) > 0 {
		defs, err := json.Marshal(d.Defs) // with sorted names
		if err != nil {
			return nil, nil, fmt.Errorf("shared schemas: %w", err)
		}
		text += `,"$defs":` + string(defs)
	}
	args = json.RawMessage(text + "}")
	if d.Imported {
		args, unchecked = schema.Relax(args)
	}
	return args, unchecked, nil
}

// describe adds the description of a parameter to its schema if the schema has none.
func describe(schema json.RawMessage, text string) []byte {
	if schema[0] != '{' || text == "" || rawjson.At(schema, "description") != nil {
		return schema
	}
	out := rawjson.AppendQuote([]byte(`{"description":`), text)
	if len(schema) > 2 {
		out = append(out, ',')
	}
	return append(out, schema[1:]...)
}
