package httptool

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/lathe-run/lathe/secret"
)

// bodyArgument is the argument that is the body of a request.
const bodyArgument = "body"

// define describes one operation.
func (d *document) define(f found, o *ImportOptions) (*Definition, error) {
	name, err := toolName(o.Prefix, f.op.OperationID)
	if own, ok := o.Rename[f.op.OperationID]; ok {
		if name, err = toolName("", own); err == nil && name != own {
			err = fmt.Errorf("it is renamed to %.80q, and a tool name has letters, digits, _ and -", own)
		}
	}
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(f.path, "/") {
		return nil, fmt.Errorf("its path %.100q does not begin with /: it would become part of the host", f.path)
	}
	def := &Definition{
		Name: name, Method: f.method, URL: strings.TrimSuffix(o.Server, "/") + f.path, Effect: o.Effects[f.op.OperationID],
		Allowlist: o.Allowlist, Origin: "openapi:" + o.Source + "#" + f.op.OperationID,
	}
	if own, ok := o.Allowlists[f.op.OperationID]; ok {
		def.Allowlist = own
	}
	def.Description = cleanText(strings.TrimSpace(f.op.Summary + "\n" + f.op.Description))
	if def.Description == "" {
		def.Description = f.method + " " + f.path
	}
	if err := d.authorize(def, f.op, o); err != nil {
		return nil, err
	}
	shared := newSharing(d)
	if err := d.parameters(def, f, shared); err != nil {
		return nil, err
	}
	if err := d.requestBody(def, f.op, shared); err != nil {
		return nil, err
	}
	def.Defs, err = shared.finish()
	return def, err
}

// parameters are those of the operation and, where it has none of that name and place, of its path.
func (d *document) parameters(def *Definition, f found, shared *sharing) error {
	var all []*openapi3.Parameter
	add := func(refs openapi3.Parameters, inherited bool) error {
		for _, ref := range refs {
			if ref == nil || ref.Value == nil {
				return errors.New("a parameter is not defined")
			}
			same := func(p *openapi3.Parameter) bool { return p.In == ref.Value.In && p.Name == ref.Value.Name }
			switch has := slices.ContainsFunc(all, same); {
			case has && inherited:
			case has:
				return fmt.Errorf("parameter %q of the %s stands twice", ref.Value.Name, ref.Value.In)
			default:
				all = append(all, ref.Value)
			}
		}
		return nil
	}
	if err := add(f.op.Parameters, false); err != nil {
		return err
	}
	if err := add(f.item.Parameters, true); err != nil {
		return err
	}
	names := map[string]bool{}
	if f.op.RequestBody != nil {
		names[bodyArgument] = true
	}
	for _, in := range all {
		if filledElsewhere(def, in) {
			continue
		}
		p, err := d.parameter(in, shared)
		if err == nil {
			err = checkVisible(in.Name)
		}
		if err != nil {
			return fmt.Errorf("parameter %q: %w", in.Name, err)
		}
		p.Name = in.Name
		if names[p.Name] { // the same name in two places
			p.Name, p.As = in.In+"_"+in.Name, in.Name
		}
		names[p.Name] = true
		def.Parameters = append(def.Parameters, *p)
	}
	return nil
}

// filledElsewhere reports whether a parameter is one that OpenAPI leaves to other parts of the
// document, or that a credential or this package fills.
func filledElsewhere(def *Definition, p *openapi3.Parameter) bool {
	is := func(m map[string]secret.Secret, fold bool) bool {
		for name := range m {
			if name == p.Name || fold && strings.EqualFold(name, p.Name) {
				return true
			}
		}
		return false
	}
	switch p.In {
	case openapi3.ParameterInHeader:
		return slices.ContainsFunc([]string{"Accept", "Content-Type", "Authorization", "Idempotency-Key"}, func(h string) bool { return strings.EqualFold(h, p.Name) }) ||
			is(def.Credentials.Headers, true)
	case openapi3.ParameterInQuery:
		return is(def.Credentials.Query, false)
	case openapi3.ParameterInCookie:
		return is(def.Credentials.Cookies, false)
	default:
		return false
	}
}

func (d *document) parameter(in *openapi3.Parameter, shared *sharing) (*Parameter, error) {
	p := &Parameter{In: Place(in.In), Description: cleanText(in.Description), Required: in.Required, Style: in.Style, Explode: in.Explode, AllowReserved: in.AllowReserved}
	schema := in.Schema
	if len(in.Content) > 0 {
		if len(in.Content) != 1 || schema != nil {
			return nil, errors.New("has more than one form")
		}
		for typ, media := range in.Content {
			p.Content, p.Style, p.Explode = typ, "", nil
			if media != nil {
				schema = media.Schema
			}
		}
	}
	var err error
	p.Schema, err = shared.schema(schema)
	return p, err
}

// bodyTypes are the media types of bodies, the one that is preferred first.
var bodyTypes = []func(string) bool{
	func(t string) bool { return mediaType(t) == typeJSON },
	isJSON,
	func(t string) bool { return mediaType(t) == typeForm },
	func(t string) bool { return mediaType(t) == typeMultipart },
	isText,
}

func (d *document) requestBody(def *Definition, op *openapi3.Operation, shared *sharing) error {
	if op.RequestBody == nil || op.RequestBody.Value == nil {
		return nil
	}
	in := op.RequestBody.Value
	offered := slices.Sorted(maps.Keys(in.Content))
	typ := ""
	for _, fits := range bodyTypes {
		if i := slices.IndexFunc(offered, fits); i >= 0 && typ == "" {
			typ = offered[i]
		}
	}
	media := in.Content[typ]
	if media == nil {
		return fmt.Errorf("its body is of type %s: JSON, forms and text can be written", strings.Join(offered, ", "))
	}
	p := Parameter{Name: bodyArgument, In: InBody, Whole: true, Description: cleanText(in.Description), Required: in.Required, Parts: map[string]Part{}}
	var err error
	if p.Schema, err = shared.schema(media.Schema); err != nil {
		return fmt.Errorf("its body: %w", err)
	}
	if mediaType(typ) == typeMultipart {
		if name := binaryPart(media); name != "" {
			return fmt.Errorf("its body has the file %q: only text can be sent in parts", name)
		}
	}
	for name, e := range media.Encoding {
		if e == nil {
			continue
		}
		if e.ContentType != "" && !isJSON(e.ContentType) && !isText(e.ContentType) {
			return fmt.Errorf("its body: part %q is of type %q: JSON and text can be written", name, e.ContentType)
		}
		part := Part{Content: e.ContentType, Style: e.Style, Explode: e.Explode, AllowReserved: e.AllowReserved}
		if mediaType(typ) == typeForm && e.Style != "" {
			part.Content = "" // a style comes first there
		}
		if part.Style != "" && !slices.Contains(styles[InQuery], part.Style) {
			return fmt.Errorf("its body: part %q: no style %q in a form", name, part.Style)
		}
		p.Parts[name] = part
	}
	def.Body = typ
	def.Parameters = append(def.Parameters, p)
	return nil
}

// binaryPart returns the name of a part that is a file.
func binaryPart(media *openapi3.MediaType) string {
	if media.Schema == nil || media.Schema.Value == nil {
		return ""
	}
	props := media.Schema.Value.Properties
	for _, name := range slices.Sorted(maps.Keys(props)) {
		s := props[name].Value
		if s != nil && s.Items != nil && s.Items.Value != nil {
			s = s.Items.Value
		}
		if s != nil && (s.Format == "binary" || s.ContentMediaType != "" && !isText(s.ContentMediaType) && !isJSON(s.ContentMediaType)) {
			return name
		}
	}
	return ""
}

func (d *document) scheme(name string) *openapi3.SecurityScheme {
	if d.Components == nil || d.Components.SecuritySchemes[name] == nil {
		return nil
	}
	return d.Components.SecuritySchemes[name].Value
}

// authorize takes the first of the operation's security requirements for which there are credentials.
func (d *document) authorize(def *Definition, op *openapi3.Operation, o *ImportOptions) error {
	def.Credentials = Credentials{Headers: maps.Clone(o.Credentials.Headers), Query: maps.Clone(o.Credentials.Query), Cookies: maps.Clone(o.Credentials.Cookies)}
	wanted := d.Security
	def.OAuth = o.OAuth && !d.wantsTokens()
	if op.Security != nil {
		wanted = *op.Security
	}
	if len(wanted) == 0 {
		return nil
	}
	var ways []string
	open := false
	for _, req := range wanted {
		names := slices.Sorted(maps.Keys(req))
		if len(names) == 0 {
			open = true
			continue
		}
		ways = append(ways, strings.Join(names, " and "))
		byToken := func(name string) bool { return o.OAuth && o.Security[name].IsZero() && acceptsToken(d.scheme(name)) }
		if slices.ContainsFunc(names, func(n string) bool { return o.Security[n].IsZero() && !byToken(n) }) {
			continue
		}
		for _, name := range names {
			if byToken(name) {
				def.OAuth, def.Scopes = true, scopes(d.scheme(name), req[name], def.Scopes)
				continue
			}
			if err := def.Credentials.add(d.scheme(name), o.Security[name]); err != nil {
				return fmt.Errorf("security scheme %q: %w", name, err)
			}
		}
		return nil
	}
	if open {
		return nil
	}
	return fmt.Errorf("needs a credential: %s%s", strings.Join(ways, ", or "), d.tokenAdvice(wanted))
}

// tokenAdvice returns where the document says that tokens are issued, for the author of the configuration.
func (d *document) tokenAdvice(wanted openapi3.SecurityRequirements) string {
	for _, req := range wanted {
		for _, name := range slices.Sorted(maps.Keys(req)) {
			s := d.scheme(name)
			if s == nil || s.Type != "oauth2" && s.Type != "openIdConnect" {
				continue
			}
			where := s.OpenIdConnectUrl
			if f := s.Flows; where == "" && f != nil {
				for _, flow := range []*openapi3.OAuthFlow{f.AuthorizationCode, f.ClientCredentials} {
					if where == "" && flow != nil {
						where = flow.TokenURL
					}
				}
			}
			if where != "" {
				return fmt.Sprintf("; oauth gets tokens for %s (the document says, at %.200q)", name, where)
			}
			return "; oauth gets tokens for " + name
		}
	}
	return ""
}

// acceptsToken reports whether the credential of a scheme is a token.
func acceptsToken(s *openapi3.SecurityScheme) bool {
	return s != nil && (s.Type == "oauth2" || s.Type == "openIdConnect" || s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"))
}

// wantsTokens reports whether a scheme of the document does.
func (d *document) wantsTokens() bool {
	if d.Components == nil {
		return false
	}
	for name := range d.Components.SecuritySchemes {
		if acceptsToken(d.scheme(name)) {
			return true
		}
	}
	return false
}

// scopes adds those that a requirement names: of other schemes the same place means something else.
func scopes(s *openapi3.SecurityScheme, named, have []string) []string {
	for _, scope := range named {
		if s.Type != "http" && !slices.Contains(have, scope) {
			have = append(have, scope)
		}
	}
	return have
}

// add puts a credential where its scheme says.
func (c *Credentials) add(s *openapi3.SecurityScheme, v secret.Secret) error {
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
	case s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"), s.Type == "oauth2", s.Type == "openIdConnect":
		put(&c.Headers, "Authorization", Bearer(v))
	default:
		return fmt.Errorf("credentials of the kind %s %s cannot be sent", s.Type, s.Scheme)
	}
	return nil
}

// Bearer returns the value of the Authorization header for a token.
func Bearer(token secret.Secret) secret.Secret { return secret.New("Bearer " + token.Reveal()) }

// Basic returns the value of the Authorization header for user:password.
func Basic(pair secret.Secret) secret.Secret {
	return secret.New("Basic " + base64.StdEncoding.EncodeToString([]byte(pair.Reveal())))
}
