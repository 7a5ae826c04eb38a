package dialect

import (
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// jsonForm makes the form of a family. call says how a call is written: NAME, ID and ARGS stand
// for its parts, "NAME" and "ID" in quotes for JSON strings. result does the same for a result, with
// TEXT for what the tool said; "": as tags do.
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

// jsonArguments returns args where it is JSON, else a JSON string of it.
func jsonArguments(args string) string {
	if _, err := rawjson.Scan([]byte(args), 0); err != nil {
		return string(rawjson.AppendQuote(nil, args))
	}
	return args
}

// callFields are what a pattern writes of a call, but for its text.
type callFields struct{ name, id string }

// fields returns the name, and the id as the family writes ids.
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

// A pattern is text with places for the parts of a call.
type pattern []string

// Marks that hold the words stand first: they are no places.
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

// cleaner returns a function that puts a space into each mark in text that comes from outside, so
// that it is none.
func (f *jsonFamily) cleaner() func(string) string { return newCleaner(f.reservedMarks) }

// reservedMarks returns the marks that text from outside must not hold.
func (f *jsonFamily) reservedMarks() []string {
	var list []string
	for i, text := range f.list {
		if m := f.kinds[i]; m.kind != markOpen || !f.blocks[m.n].quiet {
			list = append(list, text)
		}
	}
	return append(append(list, f.think[0], f.think[1]), f.reserved...)
}

// newEscaper returns a function that writes the last byte of each of the marks in JSON, and that of
// all that has the form of a special token, as an escape. They can only be in strings there, so it
// says the same.
func newEscaper(list func() []string) func(string) string {
	marks := sync.OnceValue(func() *marks { return newMarks(false, list()...) }) // at the first use: most programs write few dialects
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

// newCleaner returns a function that puts a space into each of the marks in a text, and into all
// that has the form of a special token, such as `<|im_start|>`: servers take those for their own.
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

// mistralForm writes an id only where it is one.
func mistralForm() form {
	f := jsonForm(mistralFamily, "[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]ARGS",
		`[TOOL_RESULTS]{"content": "JSON", "call_id": "ID"}[/TOOL_RESULTS]`)
	f.layout = func() *callLayout { return mistralFamily.layout("[TOOL_CALLS]NAMEIDARGS") } // ID is both marks with the id, or one
	short, call := newPattern("[TOOL_CALLS]NAME[ARGS]ARGS"), f.call
	f.call = func(dst []byte, c lathe.ToolCall, args string) []byte {
		if fields := mistralFamily.fields(c.Name, c.ID); fields.id == "" {
			return short.append(dst, fields, jsonArguments(args))
		}
		return call(dst, c, args)
	}
	return f
}
