package sim

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A parameter is one property of a tool's schema, with the keywords that the demo model uses.
type parameter struct {
	name     string
	kind     string // expression, zone, place, url, email or path; else the type of the schema
	required bool
	enum     []string // only the values that are strings
	fallback string   // the JSON of the default; "" if none exists
	items    string   // the type of an array's elements
	schema   []byte
}

// parameters returns the properties of an object schema, in the order of the schema; nil if it is invalid.
func parameters(schema []byte) []parameter {
	if len(schema) == 0 || rawjson.Check(schema, rawjson.Limits{}) != nil {
		return nil
	}
	required := map[string]bool{}
	for e := range rawjson.Elements(rawjson.At(schema, "required")) {
		required[rawjson.Text(e)] = true
	}
	var out []parameter
	for key, raw := range rawjson.Members(rawjson.At(schema, "properties")) {
		p := parameter{name: rawjson.Text(key), schema: raw}
		p.required = required[p.name]
		p.read(raw)
		p.kind = kindOf(p)
		out = append(out, p)
	}
	return out
}

func (p *parameter) read(raw []byte) {
	types := rawjson.At(raw, "type")
	p.kind = rawjson.Text(types)
	for e := range rawjson.Elements(types) {
		if s := rawjson.Text(e); s != "null" && p.kind == "" {
			p.kind = s
		}
	}
	for v := range rawjson.Elements(rawjson.At(raw, "enum")) {
		if v[0] == '"' {
			p.enum = append(p.enum, rawjson.Text(v))
		}
	}
	p.fallback = string(rawjson.At(raw, "default"))
	p.items = rawjson.TextAt(raw, "items", "type")
}

// kindOf returns the kind of a parameter: for strings it depends on the parameter's name.
func kindOf(p parameter) string {
	if p.kind != "string" && p.kind != "" {
		return p.kind
	}
	n := strings.ToLower(p.name)
	switch {
	case strings.Contains(n, "expr") || n == "formula":
		return "expression"
	case strings.Contains(n, "zone") || n == "tz":
		return "zone"
	case n == "city" || n == "place" || strings.Contains(n, "location") || n == "country" || n == "town":
		return "place"
	case strings.Contains(n, "url") || strings.Contains(n, "uri"):
		return "url"
	case strings.Contains(n, "email"):
		return "email"
	case strings.Contains(n, "path") || n == "file" || n == "filename":
		return "path"
	}
	return "string"
}

// isText reports whether the value of a parameter is a string.
func (p *parameter) isText() bool {
	return !slices.Contains([]string{"number", "integer", "object", "array", "boolean"}, p.kind)
}

// fillArguments returns the arguments for t as a JSON object, filled from a clause of the prompt. If the clause contains a JSON object,
// that object is returned.
func fillArguments(t *lathe.ToolSpec, clause string) string {
	if i := strings.IndexByte(clause, '{'); i >= 0 {
		if end, err := rawjson.Scan([]byte(clause), i); err == nil {
			return clause[i:end]
		}
	}
	return string(fillObject(t.Schema, &source{clause: clause, numbers: numbersIn(clause), quoted: quotedIn(clause)}, 0))
}

// A source contains the values that a clause offers. Each number and quotation is used once.
type source struct {
	clause  string
	numbers []string
	quoted  []string
}

const maxFillDepth = 4

func fillObject(schema []byte, src *source, depth int) []byte {
	object := wire.JSON("{")
	for _, p := range parameters(schema) {
		if v, ok := src.value(&p, depth); ok {
			object = object.Val(p.name, v)
		}
	}
	return object.Lit("}")
}

// value returns the JSON value of p. ok is false if p is left out: the clause offers no value and p is optional.
func (s *source) value(p *parameter, depth int) (raw []byte, ok bool) {
	switch {
	case len(p.enum) > 0:
		return s.choice(p)
	case p.isText():
		return s.text(p)
	case p.kind == "boolean":
		return p.defaultOr("true")
	case p.kind == "array":
		return s.array(p)
	case p.kind == "object" && p.required && depth < maxFillDepth:
		return fillObject(p.schema, s, depth+1), true
	case p.kind == "object":
		return p.defaultOr("{}")
	}
	return s.number(p)
}

// defaultOr returns the default of a required parameter or, if it has none, value. ok is false if the parameter is optional.
func (p *parameter) defaultOr(value string) (raw []byte, ok bool) {
	return []byte(cmp.Or(p.fallback, value)), p.required
}

// choice returns the value of an enumeration that the clause contains, or the first one if p is required.
func (s *source) choice(p *parameter) (raw []byte, ok bool) {
	for _, e := range p.enum {
		if e != "" && strings.Contains(strings.ToLower(s.clause), strings.ToLower(e)) {
			return rawjson.AppendQuote(nil, e), true
		}
	}
	return rawjson.AppendQuote(nil, p.enum[0]), p.required
}

// text returns the value of a string: what the clause gives under its name, or has of its kind, or a quotation, or what the clause is about.
func (s *source) text(p *parameter) (raw []byte, ok bool) {
	value, found := s.named(p.name)
	if !found {
		value = s.ofKind(p.kind)
		found = value != ""
	}
	if !found && p.kind == "zone" {
		return p.defaultOr(`"UTC"`)
	}
	if !found && len(s.quoted) > 0 {
		value, s.quoted, found = s.quoted[0], s.quoted[1:], true
	}
	if !found {
		value = subject(s.clause)
	}
	return rawjson.AppendQuote(nil, value), found || p.required
}

// ofKind returns the part of the clause that is of a kind, such as a place, or "".
func (s *source) ofKind(kind string) string {
	switch kind {
	case "expression":
		return arithmetic(s.clause)
	case "zone":
		return zoneOf(s.clause)
	case "place":
		return placeIn(s.clause)
	}
	return wordOf(kind, s.clause)
}

// number returns the next number in the clause.
func (s *source) number(p *parameter) (raw []byte, ok bool) {
	if len(s.numbers) == 0 {
		return p.defaultOr("0")
	}
	n := s.numbers[0]
	s.numbers = s.numbers[1:]
	if p.kind == "integer" {
		n, _, _ = strings.Cut(n, ".")
	}
	return []byte(n), true
}

// array returns an array of all numbers or all quoted texts that are left in the clause.
func (s *source) array(p *parameter) ([]byte, bool) {
	var values []string
	switch p.items {
	case "number", "integer":
		values, s.numbers = s.numbers, nil
	case "string", "":
		for _, q := range s.quoted {
			values = append(values, quote(q))
		}
		s.quoted = nil
	}
	return []byte("[" + strings.Join(values, ",") + "]"), len(values) > 0 || p.required
}

// named returns the value in `name=value`, `name: value` or `name "value"` in the clause.
func (s *source) named(name string) (string, bool) {
	i := 0
	for i < len(s.clause) && !hasFoldPrefix(s.clause[i:], name) {
		i++
	}
	isFound := hasFoldPrefix(s.clause[i:], name)
	if !isFound || i > 0 && isWord(rune(s.clause[i-1])) {
		return "", false
	}
	rest := strings.TrimLeft(s.clause[i+len(name):], " ")
	switch {
	case rest == "":
		return "", false
	case rest[0] == '=' || rest[0] == ':':
		rest = strings.TrimLeft(rest[1:], " ")
	case rest[0] != '"':
		return "", false
	}
	if rest != "" && rest[0] == '"' {
		if j := strings.IndexByte(rest[1:], '"'); j >= 0 {
			return rest[1 : 1+j], true
		}
	}
	if j := strings.IndexAny(rest, " ,"); j >= 0 {
		rest = rest[:j]
	}
	return rest, rest != ""
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

var number = lazy.Regexp(`(-?)0*([0-9]+(?:\.[0-9]+)?)`)

// numbersIn returns the numbers in a clause as JSON numbers, in order. A minus is a sign at the beginning and after a space, = or (.
func numbersIn(clause string) []string {
	var out []string
	for _, m := range number().FindAllStringSubmatchIndex(clause, -1) {
		sign, digits := clause[m[2]:m[3]], clause[m[4]:m[5]]
		last, _ := utf8.DecodeLastRuneInString(clause[:m[0]])
		next, _ := utf8.DecodeRuneInString(clause[m[1]:])
		switch {
		case isWord(next), sign == "" && isWord(last):
			continue
		case m[0] > 0 && !strings.ContainsRune(" =(", last):
			sign = ""
		}
		out = append(out, sign+digits)
	}
	return out
}

// quotedIn returns the texts in double quotes or backquotes, in order.
func quotedIn(clause string) []string {
	var out []string
	for {
		i := strings.IndexAny(clause, "\"`")
		if i < 0 {
			return out
		}
		text, rest, closed := strings.Cut(clause[i+1:], clause[i:i+1])
		if !closed {
			return out
		}
		out, clause = append(out, text), rest
	}
}

var expression = lazy.Regexp(`[-(.0-9][-+*/%^(). 0-9]*`)

// arithmetic returns the longest arithmetic expression in a clause; "" if the clause has no operator.
func arithmetic(clause string) string {
	s := strings.NewReplacer(" times ", " * ", " plus ", " + ", " minus ", " - ", " divided by ", " / ", "×", "*", "÷", "/", "−", "-").Replace(clause)
	best := ""
	for _, e := range expression().FindAllString(s, -1) {
		e = strings.TrimRight(e, " .+-*/%^(")
		if strings.ContainsFunc(e, unicode.IsDigit) && strings.ContainsAny(strings.TrimLeft(e, "-"), "+-*/%^") && len(e) > len(best) {
			best = e
		}
	}
	return best
}

// placeIn returns the capitalised words after "in", "for", "at", "of" or "to"; "" if none exist.
func placeIn(clause string) string {
	ws := strings.Fields(clause)
	for i, w := range ws {
		switch strings.ToLower(w) {
		case "in", "for", "at", "of", "to":
			var name []string
			for _, n := range ws[i+1:] {
				r := []rune(n)
				if !unicode.IsUpper(r[0]) {
					break
				}
				name = append(name, strings.Trim(n, ",.?!"))
			}
			if len(name) > 0 {
				return strings.Join(name, " ")
			}
		}
	}
	return ""
}

// wordOf returns the first word of a clause that is a URL, an email address or a path; "" for other kinds.
func wordOf(kind, clause string) string {
	for w := range strings.FieldsSeq(clause) {
		w = strings.Trim(w, ",;?!\"'")
		switch kind {
		case "url":
			if strings.Contains(w, "://") {
				return w
			}
		case "email":
			if strings.Contains(w, "@") {
				return w
			}
		case "path":
			if strings.ContainsAny(w, "/.") && len(w) > 1 {
				return strings.TrimSuffix(w, ".")
			}
		}
	}
	return ""
}

// subject returns the clause without the words at its beginning that only ask.
func subject(clause string) string {
	ws := strings.Fields(clause)
	for len(ws) > 1 && asking()[strings.ToLower(strings.Trim(ws[0], ",'"))] {
		ws = ws[1:]
	}
	return strings.Join(ws, " ")
}

var asking = wordSet(`what what's who where when how is are the do does can could would you please tell me about show
give find search look up for get fetch read us a an`)
