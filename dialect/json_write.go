package dialect

import (
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// jsonForm returns the form of a family. call is the pattern of a call, in which NAME, ID and ARGS stand for its parts, and "NAME" and
// "ID" in quotes for JSON strings. result is the pattern of a tool result, in which TEXT stands for its content; "" selects the form of
// the dialect tags.
func jsonForm(f *jsonFamily, call, result string) form {
	calls, results := newPattern(call), newPattern(result)
	clean, escape := f.cleaner(), newEscaper(f.reservedMarks)
	out := form{
		clean:  clean,
		layout: func() *callLayout { return f.layout(call) },
		arguments: func(args string) string {
			if rawjson.Check([]byte(args), rawjson.Limits{}) == nil {
				return escape(args)
			}
			return clean(args)
		},
		result: func(dst []byte, r lathe.ToolResult) []byte {
			r.Content = clean(r.Content)
			return appendTagResult(dst, r)
		},
		call: func(dst []byte, c lathe.ToolCall, args string) []byte {
			return calls.append(dst, f.fields(c.Name, c.ID), jsonArguments(args))
		},
	}
	if result != "" {
		out.result = func(dst []byte, r lathe.ToolResult) []byte {
			return results.append(dst, f.fields(r.Name, r.CallID), clean(r.Content))
		}
	}
	return out
}

// jsonArguments returns args if it is JSON, else args as a JSON string.
func jsonArguments(args string) string {
	if _, err := rawjson.Scan([]byte(args), 0); err != nil {
		return string(rawjson.AppendQuote(nil, args))
	}
	return args
}

// callFields are the parts of a call that a pattern contains, except its text.
type callFields struct{ name, id string }

// fields returns the name, and the id in the form that the family requires; "" if none exists in that form.
func (f *jsonFamily) fields(name, id string) callFields {
	switch f.id {
	case idLate:
		if len(id) != 9 || strings.Trim(id, idLetters) != "" {
			id = ""
		}
	case idInName:
		if !strings.HasPrefix(id, "functions."+name+":") {
			id = "functions." + name + ":0"
		}
	}
	return callFields{name, id}
}

// A pattern is a text with placeholders. Its elements alternate between fixed text and a placeholder.
type pattern []string

// Marks that contain NAME, ID or ARGS come first, so that they are not read as placeholders.
var places = strings.NewReplacer("[CALL_ID]", "[CALL_ID]", "[ARGS]", "[ARGS]", `"NAME"`, "\x00N\x00", "NAME", "\x00n\x00", `"ID"`, "\x00I\x00", "ID", "\x00i\x00",
	"ARGS", "\x00t\x00", "TEXT", "\x00t\x00", `"JSON"`, "\x00T\x00")

func newPattern(text string) pattern { return strings.Split(places.Replace(text), "\x00") }

func (p pattern) append(dst []byte, c callFields, text string) []byte {
	for i, s := range p {
		switch {
		case i%2 == 0:
			dst = append(dst, s...)
		case s == "N":
			dst = rawjson.AppendQuote(dst, c.name)
		case s == "n":
			dst = appendName(dst, c.name)
		case s == "I":
			dst = rawjson.AppendQuote(dst, c.id)
		case s == "i":
			dst = appendName(dst, c.id)
		case s == "T":
			dst = rawjson.AppendQuote(dst, text)
		default:
			dst = append(dst, text...)
		}
	}
	return dst
}

// cleaner returns a function that inserts a space into each reserved mark of text from outside, so that no parser reads it as a mark.
func (f *jsonFamily) cleaner() func(string) string { return newCleaner(f.reservedMarks) }

// reservedMarks returns the marks that must be escaped in text from outside when a prompt is written.
func (f *jsonFamily) reservedMarks() []string {
	var list []string
	for i, text := range f.list {
		if m := f.kinds[i]; m.kind != markOpen || !f.blocks[m.n].quiet {
			list = append(list, text)
		}
	}
	return append(append(list, f.think[0], f.think[1]), f.reserved...)
}

// newEscaper returns a function that escapes marks and special tokens in JSON: it replaces the last byte of each by its \u00XX escape. In
// JSON they can only be inside strings, so the value is unchanged. list returns the marks.
func newEscaper(list func() []string) func(string) string {
	marks := sync.OnceValue(func() *marks { return newMarks(false, list()...) }) // built at the first use, because most programs write few dialects
	return func(s string) string {
		set := marks()
		var b strings.Builder
		from := 0
		for i := 0; i < len(s); i++ {
			n := tokenLen(s[i:])
			if id, _ := set.at(s[i:], ""); id >= 0 {
				n = len(set.list[id])
			}
			if n == 0 {
				continue
			}
			last := i + n - 1
			b.WriteString(s[from:last])
			b.WriteString(`\u00`)
			b.WriteByte("0123456789abcdef"[s[last]>>4])
			b.WriteByte("0123456789abcdef"[s[last]&15])
			from, i = last+1, last
		}
		if from == 0 {
			return s
		}
		b.WriteString(s[from:])
		return b.String()
	}
}

// newCleaner returns a function that inserts a space into each mark of a text, and into all text of the form of a special token, such as
// `<|im_start|>`, which servers read as that token.
func newCleaner(list func() []string) func(string) string {
	marks := sync.OnceValue(func() *marks { return newMarks(false, list()...) })
	return func(s string) string {
		set := marks()
		var b strings.Builder
		from := 0
		for i := set.index(s, 0); i < len(s); i = set.index(s, i+1) {
			if id, _ := set.at(s[i:], ""); id >= 0 {
				b.WriteString(s[from : i+1])
				b.WriteByte(' ')
				from = i + 1
			}
		}
		if from == 0 {
			return cleanHarmony(s)
		}
		b.WriteString(s[from:])
		return cleanHarmony(b.String())
	}
}

// mistralForm returns the form of Mistral's dialect. It writes an id only if the id has nine letters and digits.
func mistralForm() form {
	f := jsonForm(mistralFamily, "[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]ARGS",
		`[TOOL_RESULTS]{"content": "JSON", "call_id": "ID"}[/TOOL_RESULTS]`)
	f.layout = func() *callLayout { return mistralFamily.layout("[TOOL_CALLS]NAMEIDARGS") } // ID stands for optionalID
	short, call := newPattern("[TOOL_CALLS]NAME[ARGS]ARGS"), f.call
	f.call = func(dst []byte, c lathe.ToolCall, args string) []byte {
		if fields := mistralFamily.fields(c.Name, c.ID); fields.id == "" {
			return short.append(dst, fields, jsonArguments(args))
		}
		return call(dst, c, args)
	}
	return f
}
