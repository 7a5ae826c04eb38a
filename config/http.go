package config

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// Egress says where the requests of tools may go, besides the servers that the tools name.
type Egress struct {
	Private          []string // prefixes, addresses, host names
	RedirectHosts    []string
	MaxRedirects     int
	MaxResponseBytes int
}

// An HTTPTool is a tool that is one HTTP request.
type HTTPTool struct {
	Description string
	Method      string
	URL         Ref
	Parameters  map[string]*HTTPParameter
	Body        string // json, form, multipart, text: how the parameters of the body are sent
	Effect      lathe.Effect
	Call        HTTPCall
}

// HTTPCall is what the tools of both kinds say of each call.
type HTTPCall struct {
	Allowlist   []string
	Headers     map[string]Ref
	Query       map[string]Ref
	Cookies     map[string]Ref
	Bearer      Ref
	Basic       Ref // user:password
	OAuth       OAuth
	Timeout     time.Duration // 0: that of all tools
	CacheTTL    time.Duration
	Concurrency int     // 0: no limit
	Rate        float64 // calls a second; 0: no limit
	MaxAttempts int
}

// An HTTPParameter is an argument of an [HTTPTool] and the place of the request where it goes.
type HTTPParameter struct {
	In            string // path, query, header, cookie, body
	As            string // its name in the request; empty: its own
	Description   string
	Required      bool
	Schema        json.RawMessage // an object; nil: a string
	Style         string          // empty: that of the place
	Explode       *bool           // nil: that of the style
	AllowReserved bool
}

// An OpenAPI names the operations of a document that are tools.
type OpenAPI struct {
	File       string // as it is written
	Path       string // of the file, from where the program runs
	SHA256     string // of the file; empty: any
	Server     Ref
	Operations []string // by operationId
	Tags       []string
	Prefix     string
	Allowlists map[string][]string // by operationId, before Call.Allowlist
	Effects    map[string]lathe.Effect
	Security   map[string]Ref // by name of the security scheme
	Call       HTTPCall
}

// keys returns the rows of one HTTP tool, bound to t.
func (t *HTTPTool) keys() []key {
	rows := []key{
		{"description", "", text(&t.Description), "What the tool does, for the model.", "summary"},
		{"method", "GET", words(&t.Method, "GET=get", "HEAD=head", "POST=post", "PUT=put", "PATCH=patch", "DELETE=delete"), "Method of the request.", "verb"},
		{"url", "", reference(&t.URL, isURL), "Address of the request; `{name}` in its path stands for a parameter. May be a reference. What is private needs `tools.egress.private`.", "endpoint uri address"},
		{"parameters", "", group(&t.Parameters, "argument name", isArgument, (*HTTPParameter).keys), "The arguments of the tool. A model fills these and nothing else of the request.", "params arguments args"},
		{"body", "json", words(&t.Body, "json", "form=urlencoded", "multipart", "text=plain"), "How the parameters in the body are sent: as members of a JSON object or a form, or, with one parameter, as text.", "content_type"},
		{"effect", "", effect(&t.Effect), "What the request does; default: `read_only` for GET and HEAD, else `writes`.", "effects"},
	}
	return append(rows, t.Call.keys()...)
}

// keys returns the rows that HTTP tools and documents share.
func (c *HTTPCall) keys() []key {
	rows := []key{
		{"allowlist", "", names(&c.Allowlist), "Fields of the answer that the model may see, as dotted paths; `[\"*\"]` for all. Required.", "allow fields show"},
		{"headers", "", table(&c.Headers, "header name", "text, may be a reference", isHeaderName, newHeader), "Further headers of the request.", "extra_headers"},
		{"query", "", table(&c.Query, "name", "text, may be a reference", isArgument, newHeader), "Further parts of the query, such as a key.", ""},
		{"cookies", "", table(&c.Cookies, "name", "text, may be a reference", isHeaderName, newHeader), "Cookies of the request.", "cookie"},
		{"bearer", "", reference(&c.Bearer, isKey), "Token of the header `Authorization: Bearer`, as a reference.", "token key api_key"},
		{"basic", "", reference(&c.Basic, isKey), "`user:password` of the header `Authorization: Basic`, as a reference.", "password"},
		{"timeout", "", duration(&c.Timeout, 0), "Time of one call, its retries included. Default: `tool_calling.tool_timeout`.", ""},
		{"cache_ttl", "", duration(&c.CacheTTL, 0), "Time for which equal calls are answered from the cache, where the tool only reads.", "cache"},
		{"concurrency", "0", count(&c.Concurrency, 0, maxCount), "Calls at once; `0`: no limit.", ""},
		{"rate", "0", rate(&c.Rate), "Calls a second, of all runs together; one more is answered `rate_limited`. `0`: no limit.", "rps requests_per_second rate_limit"},
		{"max_attempts", "3", count(&c.MaxAttempts, 1, 10), "Requests of one call, the first one included; a tool that writes is never tried again.", "retries max_retries"},
	}
	return append(rows, c.OAuth.apiKeys()...)
}

// keys returns the rows of one parameter, bound to p.
func (p *HTTPParameter) keys() []key {
	return []key{
		{"in", "query", words(&p.In, "path", "query", "header", "cookie", "body"), "Where the value goes.", "place location"},
		{"as", "", word(&p.As), "Its name in the request. Default: its own.", "name rename"},
		{"description", "", text(&p.Description), "What it means, for the model.", ""},
		{"required", "false", boolean(&p.Required), "Whether the model must give it; those in the path are.", ""},
		{"schema", "", object(&p.Schema), "Its JSON Schema; `{}` is any value. Default `{type: string}`.", ""},
		{"style", "", optional(&p.Style, "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"), "How lists and objects are written, as in OpenAPI. Default: `simple` in path and header, `form` in query and cookie.", ""},
		{"explode", "unset", unsetOrBool(&p.Explode), "Whether each item is written on its own. Default: with `form` and `deepObject`.", ""},
		{"allow_reserved", "false", boolean(&p.AllowReserved), "Leave reserved characters of a query value as they are, as far as they do not change what the query says.", ""},
	}
}

// keys returns the rows of one document, bound to o.
func (o *OpenAPI) keys() []key {
	rows := []key{
		{"file", "", filePath(&o.File, &o.Path), "The document, OpenAPI 3.0 or 3.1, JSON or YAML. A relative path starts at the configuration file.", "path document spec"},
		{"sha256", "", hexSum(&o.SHA256), "SHA-256 of the document, in hex: another one is refused. `lathe tools doctor` says what it is now.", "digest checksum pin"},
		{"server", "", reference(&o.Server, isURL), "Address before the paths of the document. May be a reference. The servers that the document names are not used.", "base_url url"},
		{"operations", "", names(&o.Operations), "The operations that are tools, by `operationId`. None is unless it or a tag of it is named.", "include allow"},
		{"tags", "", names(&o.Tags), "Tags whose operations are tools.", ""},
		{"prefix", "", word(&o.Prefix), "Stands before the names of the tools, which are the `operationId`s.", ""},
		{"allowlists", "", table(&o.Allowlists, "operationId", "list of paths, separated by commas", isName, newPaths), "Allowlists of single operations; they come before `allowlist`.", ""},
		{"effects", "", table(&o.Effects, "operationId", "`read_only`, `idempotent` or `writes`", isName, newEffect), "Effects of single operations; default: `read_only` for GET and HEAD, else `writes`.", "effect"},
		{"security", "", table(&o.Security, "security scheme", "reference", isName, newKey), "Credentials, by name of the document's security scheme: a key, a token, or `user:password`.", "credentials auth"},
	}
	return append(rows, o.Call.keys()...)
}

// rate is a number of calls a second, such as 0.5.
func rate(p *float64) value {
	textFn := func() string { return strconv.FormatFloat(*p, 'g', -1, 64) }
	return &fn{what: "number", textFn: textFn, setFn: func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0) || f > 1e6 {
			return errors.New("is calls a second: a number from 0 to 1000000, such as 0.5")
		}
		*p = f
		return nil
	}}
}

// hexSum is a SHA-256 in hex, or nothing.
func hexSum(p *string) value {
	v := text(p).(*fn)
	v.what = "64 hex digits"
	v.setFn = func(s string) error {
		s = strings.ToLower(s)
		if b, err := hex.DecodeString(s); s != "" && (err != nil || len(b) != 32) {
			return errors.New("a SHA-256 has 64 hex digits")
		}
		*p = s
		return nil
	}
	return v
}

// optional is one of a few words, or nothing.
func optional(p *string, options ...string) value {
	v := words(p, options...).(*fn)
	set := v.setFn
	v.setFn = func(s string) error {
		if s != "" {
			return set(s)
		}
		*p = ""
		return nil
	}
	return v
}

// effect reads an effect; nothing is the one that the method implies.
func effect(p *lathe.Effect) value {
	v := vocabulary{words: []string{"read_only", "idempotent", "writes"}, others: [][2]string{{"read", "read_only"}, {"readonly", "read_only"}, {"write", "writes"}}}
	textFn := func() string {
		if *p == lathe.EffectUndeclared {
			return ""
		}
		return p.String()
	}
	return &fn{str: true, what: v.String(), textFn: textFn, setFn: func(s string) error {
		if err := v.check(s); s != "" && err != nil {
			return err
		}
		*p = map[string]lathe.Effect{"read_only": lathe.ReadOnly, "idempotent": lathe.Idempotent, "writes": lathe.Writes}[s]
		return nil
	}}
}

func newEffect(p *lathe.Effect) value { return effect(p) }
func newPaths(p *[]string) value      { return names(p) }
func newKey(p *Ref) value             { return reference(p, isKey) }

// pathValue is a file: as it is written, and with the folder from which relative paths start.
type pathValue struct{ written, path *string }

func filePath(written, path *string) referrer { return pathValue{written, path} }

func (v pathValue) kind() string { return "path" }
func (v pathValue) text() string { return *v.written }

func (v pathValue) set(s string) error {
	*v.written, *v.path = s, s
	return nil
}

func (v pathValue) resolve(r *resolver) error {
	if strings.Contains(*v.written, "${") {
		return errors.New("references ${…} are not read in paths")
	}
	if *v.written != "" && !filepath.IsAbs(*v.written) {
		*v.path = filepath.Join(r.dir, *v.written)
	}
	return nil
}

// addresses is a list of hosts and prefixes; the egress guard looks at them.
func addresses(p *[]string) lister { return listValue{p, isName} }

// isArgument takes the names that arguments and query parts may have.
func isArgument(s string) error {
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("a name has 1 to 64 printable ASCII characters")
	}
	return nil
}
