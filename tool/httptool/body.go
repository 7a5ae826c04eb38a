package httptool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Media types of request bodies.
const (
	typeJSON      = "application/json"
	typeForm      = "application/x-www-form-urlencoded"
	typeMultipart = "multipart/form-data"
	typeText      = "text/plain"
)

// mediaType returns the media type without parameters in lower case, or "" if s is not valid.
func mediaType(s string) string {
	t, _, err := mime.ParseMediaType(s)
	if err != nil {
		return ""
	}
	return t
}

func isJSON(s string) bool {
	t := mediaType(s)
	return t == typeJSON || strings.HasSuffix(t, "+json")
}

func isText(s string) bool { return strings.HasPrefix(mediaType(s), "text/") }

// body returns the body and the Content-Type of the request; nil if it has no body.
func (t *httpTool) body(args map[string][]byte) (b []byte, contentType string, err error) {
	var whole *Parameter
	var present []*Parameter
	for i := range t.def.Parameters {
		p := &t.def.Parameters[i]
		if p.In != InBody || args[p.Name] == nil {
			continue
		}
		present = append(present, p)
		if p.Whole {
			whole = p
		}
	}
	if len(present) == 0 {
		return nil, "", nil
	}
	switch typ := t.def.Body; {
	case isJSON(typ):
		if whole != nil {
			return rawjson.AppendCompact(nil, args[whole.Name]), typ, nil
		}
		return jsonBody(present, args), typ, nil
	case isText(typ):
		s, ok := scalar(args[present[0].Name])
		if !ok {
			return nil, "", badArgument(present[0].Name, "is sent as text and must be a plain value")
		}
		return []byte(s), textType(typ), nil
	}
	fields, err := formFields(whole, present, args)
	if err != nil {
		return nil, "", err
	}
	if mediaType(t.def.Body) == typeForm {
		return urlencoded(fields)
	}
	return multiparted(fields)
}

func textType(typ string) string {
	if _, params, err := mime.ParseMediaType(typ); err == nil && params["charset"] == "" {
		return typ + "; charset=utf-8"
	}
	return typ
}

func jsonBody(present []*Parameter, args map[string][]byte) []byte {
	b := []byte{'{'}
	for i, p := range present {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendQuote(b, p.wireName()), ':')
		b = rawjson.AppendCompact(b, args[p.Name])
	}
	return append(b, '}')
}

// A field is a member of a form.
type field struct {
	p   *Parameter
	raw []byte
}

// formFields returns the members of the form: those of the one whole value, or the parameters.
func formFields(whole *Parameter, present []*Parameter, args map[string][]byte) ([]field, error) {
	var out []field
	if whole == nil {
		for _, p := range present {
			out = append(out, field{p, args[p.Name]})
		}
		return out, nil
	}
	raw := args[whole.Name]
	if raw[0] != '{' {
		return nil, badArgument(whole.Name, "is sent as a form and must be an object")
	}
	for k, v := range rawjson.Members(raw) {
		name := rawjson.Text(k)
		part := whole.Parts[name]
		p := &Parameter{Name: whole.Name + "." + name, As: name, In: InBody, Style: part.Style, Explode: part.Explode, AllowReserved: part.AllowReserved, Content: part.Content}
		if p.Style == "" {
			p.Style = "form"
		}
		p.setExplode()
		out = append(out, field{p, v})
	}
	return out, nil
}

// urlencoded encodes the fields as a form. An object is encoded as JSON unless the parameter specifies another encoding.
func urlencoded(fields []field) ([]byte, string, error) {
	taken := map[string]bool{}
	for _, f := range fields {
		taken[f.p.wireName()] = true
	}
	var parts []string
	for _, f := range fields {
		p := *f.p
		if p.Content == "" && f.raw[0] == '{' && p.Style == "form" {
			p.Content = typeJSON
		}
		ps, err := p.queryParts(f.raw, url.QueryEscape, taken)
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, ps...)
	}
	return []byte(strings.Join(parts, "&")), typeForm, nil
}

// multiparted encodes the fields as text parts, an array as one part per item. The boundary is a hash of the content, so that it does not
// occur in the content and is the same in every attempt.
func multiparted(fields []field) ([]byte, string, error) {
	type part struct{ name, typ, value string }
	var parts []part
	sum := sha256.New()
	add := func(p *Parameter, raw []byte) {
		typ := cmp.Or(p.Content, typeText)
		if p.Content == "" && (raw[0] == '{' || raw[0] == '[') {
			typ = typeJSON
		}
		value := string(rawjson.AppendCompact(nil, raw))
		if s, ok := scalar(raw); ok && !isJSON(typ) {
			value = s
		}
		fmt.Fprintf(sum, "%d %s %d %s ", len(p.wireName()), p.wireName(), len(value), value)
		parts = append(parts, part{p.wireName(), typ, value})
	}
	for _, f := range fields {
		if f.raw[0] == '[' && !isJSON(f.p.Content) {
			for e := range rawjson.Elements(f.raw) {
				add(f.p, e)
			}
			continue
		}
		add(f.p, f.raw)
	}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	if err := w.SetBoundary("lathe-" + hex.EncodeToString(sum.Sum(nil)[:16])); err != nil {
		return nil, "", err
	}
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", `form-data; name="`+quotedEscapes.Replace(p.name)+`"`)
		if p.typ != typeText {
			h.Set("Content-Type", p.typ)
		}
		pw, err := w.CreatePart(h)
		if err == nil {
			_, err = pw.Write([]byte(p.value))
		}
		if err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return buf.Bytes(), w.FormDataContentType(), nil
}

// quotedEscapes escapes a name in a form as specified for multipart/form-data in WHATWG HTML.
var quotedEscapes = strings.NewReplacer("\"", "%22", "\r", "%0D", "\n", "%0A")
