package httptool

// This file encodes arguments for the parts of a request, in the styles of OpenAPI. The value ["a","b"] of the parameter p becomes
//
//	in a path    a,b (simple)   .a,b (label)   ;p=a,b (matrix)   .a.b and ;p=a;p=b if exploded
//	in a query   p=a,b (form)   p=a%20b (spaceDelimited)   p=a%7Cb (pipeDelimited)   p=a and p=b if exploded
//	in a header  a,b
//
// and {"k":"v"} becomes k,v; k=v if exploded; p%5Bk%5D=v in the style deepObject.

import (
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
)

// badArgument returns an error for the model. why is a fixed text.
func badArgument(name, why string) error {
	return tool.Fail(lathe.CodeInvalidArguments, "%s %s", name, why)
}

// scalar returns the text of a JSON string, number or boolean; null is "". ok is false for objects and arrays.
func scalar(raw []byte) (string, bool) {
	switch raw[0] {
	case '{', '[':
		return "", false
	case '"':
		return rawjson.Text(raw), true
	case 'n':
		return "", true
	default:
		return string(raw), true // a number with its digits
	}
}

// A flat is an argument without nested values: a scalar, or a list or an object of scalars.
type flat struct {
	kind  byte     // [, { or, for a scalar, any other byte
	text  string   // of a scalar
	items []string // of a list
	pairs []pair   // of an object
}

// A pair is a member of an object of scalars.
type pair struct{ key, value string }

// flatten returns an argument as a flat. The error is for the model.
func (p *Parameter) flatten(raw []byte) (flat, error) {
	f := flat{kind: raw[0]}
	f.text, _ = scalar(raw)
	nested := false
	for e := range rawjson.Elements(raw) {
		s, ok := scalar(e)
		nested = nested || !ok
		f.items = append(f.items, s)
	}
	for k, v := range rawjson.Members(raw) {
		s, ok := scalar(v)
		nested = nested || !ok
		f.pairs = append(f.pairs, pair{rawjson.Text(k), s})
	}
	if nested {
		return f, errNested(p.Name)
	}
	return f, nil
}

func errNested(name string) error {
	return badArgument(name, "is nested too deeply: its lists and objects hold plain values only")
}

// escape encodes all characters except the unreserved ones and those in keep as %XX.
func escape(s, keep string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~"+keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// reserved are the characters that allowReserved does not escape: the reserved characters that neither begin nor end a part of a query,
// also for servers that split at semicolons.
const reserved = ":/?@!$'()*,"

// escapeHeader encodes the characters of a header value that are not allowed in one line, and those in separators.
func escapeHeader(s, separators string) string {
	var b strings.Builder
	for i, c := range []byte(s) {
		edge := c == ' ' && (i == 0 || i == len(s)-1)
		if c < ' ' || c >= 0x7f || edge || strings.IndexByte(separators, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// join encodes pairs as k=v separated by sep if explode is set, and as k,v separated by commas if not.
func join(ps []pair, explode bool, sep string, esc func(string) string) string {
	between, inner := ",", ","
	if explode {
		between, inner = sep, "="
	}
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = esc(p.key) + inner + esc(p.value)
	}
	return strings.Join(parts, between)
}

func joinItems(list []string, sep string, esc func(string) string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = esc(s)
	}
	return strings.Join(out, sep)
}

// pathValue encodes a value in the style of its parameter, escaped for a segment of a path.
func (p *Parameter) pathValue(raw []byte) (string, error) {
	if p.Content != "" {
		return percent(p.contentValue(raw)), nil
	}
	explode, name := *p.Explode, percent(p.wireName())
	prefix, sep := "", ","
	switch p.Style {
	case "label":
		prefix = "."
		if explode {
			sep = "."
		}
	case "matrix":
		prefix = ";" + name + "="
		if explode {
			sep = ";" + name + "="
		}
	}
	f, err := p.flatten(raw)
	if err != nil {
		return "", err
	}
	switch f.kind {
	case '[':
		if len(f.items) == 0 {
			return "", nil
		}
		return prefix + joinItems(f.items, sep, percent), nil
	case '{':
		if len(f.pairs) == 0 {
			return "", nil
		}
		if p.Style == "matrix" && explode {
			prefix, sep = ";", ";"
		}
		return prefix + join(f.pairs, explode, sep, percent), nil
	}
	if f.text == "" && p.Style == "matrix" {
		return ";" + name, nil
	}
	return prefix + percent(f.text), nil
}

// headerValue encodes a value in the simple style.
func (p *Parameter) headerValue(raw []byte) (string, error) {
	if p.Content != "" {
		return escapeHeader(p.contentValue(raw), ""), nil
	}
	f, err := p.flatten(raw)
	if err != nil {
		return "", err
	}
	part := func(s string) string { return escapeHeader(s, ",=") }
	switch f.kind {
	case '[':
		return joinItems(f.items, ",", part), nil
	case '{':
		return join(f.pairs, *p.Explode, ",", part), nil
	}
	return escapeHeader(f.text, ""), nil
}

// A queryEncoding encodes the parts of one parameter of a query.
type queryEncoding struct {
	name  string              // of the parameter, escaped
	sep   string              // between the items of one part
	value func(string) string // escapes a value
}

// item escapes a value that shares a part with others: a comma in it is not a separator.
func (q *queryEncoding) item(s string) string { return strings.ReplaceAll(q.value(s), ",", "%2C") }

// queryParts encodes a value as parts of a query, or pairs of a cookie or form, each name=value and escaped. The names are that of the
// parameter, or those of the members of an exploded object. esc escapes names, and values unless reserved characters are allowed. taken are
// names that such a member may not have.
func (p *Parameter) queryParts(raw []byte, esc func(string) string, taken map[string]bool) ([]string, error) {
	q := queryEncoding{name: esc(p.wireName()), sep: ",", value: esc}
	if p.Content != "" {
		return []string{q.name + "=" + esc(p.contentValue(raw))}, nil
	}
	if p.AllowReserved {
		q.value = func(s string) string { return escape(s, reserved) }
	}
	switch p.Style {
	case "spaceDelimited":
		q.sep = "%20"
	case "pipeDelimited":
		q.sep = "%7C"
	}
	f, err := p.flatten(raw)
	if err != nil {
		return nil, err
	}
	switch f.kind {
	case '[':
		if p.Style == "deepObject" {
			return nil, errNested(p.Name)
		}
		return p.listParts(f.items, &q), nil
	case '{':
		return p.objectParts(f.pairs, &q, taken)
	}
	return []string{q.name + "=" + q.value(f.text)}, nil
}

func (p *Parameter) listParts(list []string, q *queryEncoding) []string {
	if len(list) == 0 {
		return nil
	}
	if !*p.Explode {
		return []string{q.name + "=" + joinItems(list, q.sep, q.item)}
	}
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = q.name + "=" + q.value(s)
	}
	return parts
}

func (p *Parameter) objectParts(ps []pair, q *queryEncoding, taken map[string]bool) ([]string, error) {
	if len(ps) == 0 {
		return nil, nil
	}
	if !*p.Explode {
		flat := make([]string, 0, 2*len(ps))
		for _, m := range ps {
			flat = append(flat, m.key, m.value)
		}
		return []string{q.name + "=" + joinItems(flat, q.sep, q.item)}, nil
	}
	parts := make([]string, len(ps))
	for i, m := range ps {
		key := percent(m.key)
		if p.Style == "deepObject" {
			if strings.ContainsAny(m.key, "[]") {
				return nil, badArgument(p.Name, "has a member with a bracket in its name")
			}
			key = q.name + "%5B" + key + "%5D"
		} else if m.key != p.wireName() && isTaken(m.key, taken) {
			return nil, badArgument(p.Name, "has a member with the name of another part of the request")
		}
		parts[i] = key + "=" + q.value(m.value)
	}
	return parts, nil
}

// isTaken reports whether a server may read the name as one of taken: some servers ignore case, and some read name[] as a list with that
// name.
func isTaken(name string, taken map[string]bool) bool {
	name, _, _ = strings.Cut(name, "[")
	for t := range taken {
		if strings.EqualFold(name, t) {
			return true
		}
	}
	return false
}

// contentValue encodes a value in the media type of the parameter.
func (p *Parameter) contentValue(raw []byte) string {
	if s, ok := scalar(raw); ok && !isJSON(p.Content) {
		return s
	}
	return string(rawjson.AppendCompact(nil, raw))
}
