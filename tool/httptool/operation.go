package httptool

// This file makes the [Definition] of one operation of an OpenAPI document: its parameters, its request body and its credentials.

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/secret"
)

// bodyArgument is the name of the argument for the request body.
const bodyArgument = "body"

// define returns the definition of one operation. It subtracts from left, the remaining amount of maxSchemaBytes.
func (d *Document) define(f pathOperation, o *ImportOptions, left *int) (*Definition, error) {
	name, err := chosenName(f, o)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(f.path, "/") {
		return nil, fmt.Errorf("its path %.100q does not begin with /: it would become part of the host", f.path)
	}
	def := &Definition{
		Name: name, Method: f.method, URL: strings.TrimSuffix(o.Server, "/") + f.path, Effect: o.Effects[f.op.OperationID],
		Allowlist: o.Allowlist, Origin: "openapi:" + o.Source + "#" + f.op.OperationID, Imported: true,
	}
	if own, ok := o.Allowlists[f.op.OperationID]; ok {
		def.Allowlist = own
	}
	def.Description = cmp.Or(cleanText(strings.TrimSpace(f.op.Summary+"\n"+f.op.Description)), f.method+" "+f.path)
	if err := d.authorize(def, f.op, o); err != nil {
		return nil, err
	}
	schemas := newConverter(d, left)
	if err := d.parameters(def, f, schemas); err != nil {
		return nil, err
	}
	if err := d.requestBody(def, f.op, schemas); err != nil {
		return nil, err
	}
	def.Defs, err = schemas.finish()
	def.document.warnings = schemas.warnings
	return def, err
}

// chosenName returns the name of an operation's tool: that in Rename, or one made by toolName.
func chosenName(f pathOperation, o *ImportOptions) (string, error) {
	own, renamed := o.Rename[f.op.OperationID]
	if !renamed {
		return toolName(o.Prefix, f)
	}
	if own == "" || len(own) > text.MaxToolName || own != plainName(own) {
		return "", fmt.Errorf("it is renamed to %.80q, and a tool name has 1 to %d letters, digits, _ and -", own, text.MaxToolName)
	}
	return own, nil
}

// parameters adds the parameters of the operation, and those of its path that the operation does not replace.
func (d *Document) parameters(def *Definition, f pathOperation, schemas *converter) error {
	type where struct{ in, name string }
	var all []*input
	seen := map[where]bool{}
	for i, v := range slices.Concat(f.op.Parameters, f.inherited) {
		inherited := i >= len(f.op.Parameters)
		if v == nil {
			return errors.New("a parameter is not defined")
		}
		one, err := d.input(v)
		if err != nil {
			return err
		}
		at := where{one.In, one.Name}
		switch {
		case !seen[at]:
			all, seen[at] = append(all, one), true
		case !inherited:
			return fmt.Errorf("parameter %q of the %s stands twice", one.Name, one.In)
		}
	}
	names := map[string]bool{bodyArgument: f.op.Body != nil}
	for _, in := range all {
		if filledElsewhere(def, in) {
			continue
		}
		p, err := d.parameter(in, schemas)
		if err == nil {
			err = checkVisible(in.Name)
		}
		if err != nil {
			return fmt.Errorf("parameter %q: %w", in.Name, err)
		}
		p.Name = in.Name
		if names[p.Name] { // a parameter in another place has the same name
			p.Name, p.As = in.In+"_"+in.Name, in.Name
		}
		names[p.Name] = true
		def.Parameters = append(def.Parameters, *p)
	}
	return nil
}

// filledElsewhere reports whether OpenAPI describes the parameter in other parts of the document, or whether a credential or this package
// sets it.
func filledElsewhere(def *Definition, p *input) bool {
	filled := false
	switch Place(p.In) {
	case InHeader:
		filled = hasHeader(slices.AppendSeq([]string{"Accept", "Content-Type", "Authorization", "Idempotency-Key"}, maps.Keys(def.Credentials.Headers)), p.Name)
	case InQuery:
		_, filled = def.Credentials.Query[p.Name]
	case InCookie:
		_, filled = def.Credentials.Cookies[p.Name]
	}
	return filled
}

// parameterBytes is the memory of a parameter besides its texts and its schema, in bytes.
const parameterBytes = 200

// An input is a parameter as in the document.
type input struct {
	Name, In, Description, Style string

	Required, AllowReserved bool
	Explode                 *bool
	Schema                  any            // nil: none
	Content                 map[string]any // by media type
}

// input reads a parameter, or the target of a reference to one.
func (d *Document) input(v any) (*input, error) {
	in, err := d.resolve(v)
	if err != nil {
		return nil, fmt.Errorf("a parameter %w", err)
	}
	var r fields
	p := &input{Name: r.text(in, "name"), In: r.text(in, "in"), Description: r.text(in, "description"), Style: r.text(in, "style"),
		Required: r.boolean(in, "required"), AllowReserved: r.boolean(in, "allowReserved"), Explode: r.choice(in, "explode"), Schema: in["schema"], Content: r.object(in, "content")}
	if r.err != nil {
		return nil, fmt.Errorf("parameter %q: %w", p.Name, r.err)
	}
	return p, nil
}

func (d *Document) parameter(in *input, schemas *converter) (*Parameter, error) {
	p := &Parameter{In: Place(in.In), Description: cleanText(in.Description), Required: in.Required, Style: in.Style, Explode: in.Explode, AllowReserved: in.AllowReserved}
	schema := in.Schema
	if len(in.Content) > 0 {
		if len(in.Content) != 1 || schema != nil {
			return nil, errors.New("has more than one form")
		}
		for typ, media := range in.Content {
			form := map[string]any{}
			if media != nil {
				var err error
				if form, err = d.resolve(media); err != nil {
					return nil, fmt.Errorf("%.100q in content %w", typ, err)
				}
			}
			p.Content, p.Style, p.Explode = typ, "", nil
			schema = form["schema"]
		}
	}
	err := schemas.spend(parameterBytes + len(in.Name) + len(p.Description))
	if err == nil {
		p.Schema, err = schemas.convert(schema)
	}
	return p, err
}

// bodyTypes select the media type of a body, the preferred first.
var bodyTypes = []func(string) bool{
	func(t string) bool { return mediaType(t) == typeJSON },
	isJSON,
	func(t string) bool { return mediaType(t) == typeForm },
	func(t string) bool { return mediaType(t) == typeMultipart },
	isText,
}

// requestBody adds the parameter for the body of the operation.
func (d *Document) requestBody(def *Definition, op *operation, schemas *converter) error {
	if op.Body == nil {
		return nil
	}
	in, err := d.resolve(op.Body)
	if err != nil {
		return fmt.Errorf("its body %w", err)
	}
	var r fields
	content := r.object(in, "content")
	offered := slices.Sorted(maps.Keys(content))
	typ := preferredType(offered)
	media, err := d.resolve(content[typ])
	if err != nil {
		return fmt.Errorf("its body is of type %s: JSON, forms and text can be written", strings.Join(offered, ", "))
	}
	p := Parameter{Name: bodyArgument, In: InBody, Whole: true, Description: cleanText(r.text(in, "description")), Required: r.boolean(in, "required")}
	if p.Schema, err = schemas.convert(media["schema"]); err != nil {
		return fmt.Errorf("its body: %w", err)
	}
	if name := d.binaryPart(media["schema"]); name != "" && mediaType(typ) == typeMultipart {
		return fmt.Errorf("its body has the file %q: only text can be sent in parts", name)
	}
	if p.Parts, err = r.parts(media, typ); err != nil {
		return fmt.Errorf("its body: %w", err)
	}
	def.Body, def.Parameters = typ, append(def.Parameters, p)
	return nil
}

// parts returns how the parts of a body of the type typ are encoded, by name. It returns an error for an encoding that is not supported, or else
// the error of r.
func (r *fields) parts(media map[string]any, typ string) (map[string]Part, error) {
	out := map[string]Part{}
	encodings := r.object(media, "encoding")
	for name := range encodings {
		e := r.object(encodings, name)
		if e == nil {
			continue
		}
		part := Part{Content: r.text(e, "contentType"), Style: r.text(e, "style"), Explode: r.choice(e, "explode"), AllowReserved: r.boolean(e, "allowReserved")}
		switch {
		case part.Content != "" && !isJSON(part.Content) && !isText(part.Content):
			return nil, fmt.Errorf("part %q is of type %q: JSON and text can be written", name, part.Content)
		case part.Style != "" && !slices.Contains(styles[InQuery], part.Style):
			return nil, fmt.Errorf("part %q: no style %q in a form", name, part.Style)
		case part.Style != "" && mediaType(typ) == typeForm:
			part.Content = "" // a style takes precedence there
		}
		out[name] = part
	}
	return out, r.err
}

// preferredType returns the first of the types that bodyTypes prefers, or "" if none can be written.
func preferredType(offered []string) string {
	for _, fits := range bodyTypes {
		if i := slices.IndexFunc(offered, fits); i >= 0 {
			return offered[i]
		}
	}
	return ""
}

// binaryPart returns the name of a part that is a file, or "" if none exists.
func (d *Document) binaryPart(schema any) string {
	s, err := d.resolve(schema)
	if err != nil {
		return ""
	}
	props := asObject(s["properties"])
	for name, prop := range text.ByName(props) {
		part, err := d.resolve(prop)
		if err != nil {
			continue
		}
		if items, err := d.resolve(part["items"]); err == nil {
			part = items
		}
		format, _ := part["format"].(string)
		typ, _ := part["contentMediaType"].(string)
		if format == "binary" || typ != "" && !isText(typ) && !isJSON(typ) {
			return name
		}
	}
	return ""
}

// authorize sets the credentials for the first of the operation's security requirements that o can meet.
func (d *Document) authorize(def *Definition, op *operation, o *ImportOptions) error {
	def.Credentials = Credentials{Headers: maps.Clone(o.Credentials.Headers), Query: maps.Clone(o.Credentials.Query), Cookies: maps.Clone(o.Credentials.Cookies)}
	var r fields
	wanted := r.requirements(d.root, "security")
	if r.err != nil {
		return r.err
	}
	def.OAuth = o.OAuth && !d.wantsTokens() // a document without token schemes does not say which operations need the token
	if op.secured {
		wanted = op.Security
	}
	if len(wanted) == 0 {
		return nil
	}
	var unmet []string
	open := false // one of the requirements is empty: a request without credentials is accepted
	for _, req := range wanted {
		if len(req) == 0 {
			open = true
			continue
		}
		names := slices.Sorted(maps.Keys(req))
		lacks := func(name string) bool { return o.Security[name].IsZero() && !d.byToken(name, o) }
		if !slices.ContainsFunc(names, lacks) {
			return d.meet(def, req, o)
		}
		unmet = append(unmet, strings.Join(names, " and "))
	}
	if open {
		return nil
	}
	return fmt.Errorf("needs a credential: %s%s", strings.Join(unmet, ", or "), d.tokenAdvice(wanted))
}

// byToken reports whether the token of the HTTP client satisfies a security scheme.
func (d *Document) byToken(name string, o *ImportOptions) bool {
	return o.OAuth && o.Security[name].IsZero() && acceptsToken(d.scheme(name))
}

// meet sets the credentials for a requirement.
func (d *Document) meet(def *Definition, req requirement, o *ImportOptions) error {
	for name, wanted := range text.ByName(req) {
		if d.byToken(name, o) {
			def.OAuth, def.Scopes = true, scopes(d.scheme(name), wanted, def.Scopes)
			continue
		}
		if err := def.Credentials.add(d.scheme(name), o.Security[name]); err != nil {
			return fmt.Errorf("security scheme %q: %w", name, err)
		}
	}
	return nil
}

// tokenAdvice returns a text with the place where the document says that tokens are issued, for the author of the configuration.
func (d *Document) tokenAdvice(wanted []requirement) string {
	for _, req := range wanted {
		for name := range text.ByName(req) {
			s := d.scheme(name)
			if s == nil || s.Type != "oauth2" && s.Type != "openIdConnect" {
				continue
			}
			if where := cmp.Or(s.discovery, s.tokens); where != "" {
				return fmt.Sprintf("; oauth gets tokens for %s (the document says, at %.200q)", name, where)
			}
			return "; oauth gets tokens for " + name
		}
	}
	return ""
}

// acceptsToken reports whether the credential of the scheme is a token.
func acceptsToken(s *securityScheme) bool {
	return s != nil && (s.Type == "oauth2" || s.Type == "openIdConnect" || s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"))
}

// wantsTokens reports whether a scheme of the document accepts a token.
func (d *Document) wantsTokens() bool {
	for name := range asObject(asObject(d.root["components"])["securitySchemes"]) {
		if acceptsToken(d.scheme(name)) {
			return true
		}
	}
	return false
}

// scopes returns have with the scopes of a requirement added. For schemes of type http the list has another meaning and is ignored.
func scopes(s *securityScheme, named, have []string) []string {
	for _, scope := range named {
		if s.Type != "http" && !slices.Contains(have, scope) {
			have = append(have, scope)
		}
	}
	return have
}

// add adds a credential in the place that its scheme defines.
func (c *Credentials) add(s *securityScheme, v secret.Secret) error {
	put := func(m *map[string]secret.Secret, name string, v secret.Secret) {
		if *m == nil {
			*m = map[string]secret.Secret{}
		}
		(*m)[name] = v
	}
	switch {
	case s == nil:
		return errors.New("is not defined in the document")
	case s.Type == "apiKey" && s.In == "header":
		put(&c.Headers, s.Name, v)
	case s.Type == "apiKey" && s.In == "query":
		put(&c.Query, s.Name, v)
	case s.Type == "apiKey" && s.In == "cookie":
		put(&c.Cookies, s.Name, v)
	case s.Type == "http" && strings.EqualFold(s.Scheme, "basic"):
		put(&c.Headers, "Authorization", Basic(v))
	case acceptsToken(s):
		put(&c.Headers, "Authorization", Bearer(v))
	default:
		return fmt.Errorf("credentials of the kind %s %s cannot be sent", s.Type, s.Scheme)
	}
	return nil
}

// Bearer returns the value "Bearer TOKEN" of an Authorization header.
func Bearer(token secret.Secret) secret.Secret { return secret.New("Bearer " + token.Reveal()) }

// Basic returns the value "Basic BASE64" of an Authorization header for the pair user:password.
func Basic(pair secret.Secret) secret.Secret {
	return secret.New("Basic " + base64.StdEncoding.EncodeToString([]byte(pair.Reveal())))
}
