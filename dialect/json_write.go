package dialect

import (
	"fmt"
	"slices"
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
	clean, escape := newCleaner(f.reservedMarks), newEscaper(f.reservedMarks)
	return form{
		parser: f.parser,
		clean:  clean,
		layout: func() *callLayout { return f.layout(call) },
		arguments: func(args string) string {
			if rawjson.Check([]byte(args), rawjson.Limits{}) == nil {
				return escape(args)
			}
			return clean(args)
		},
		result: func(r lathe.ToolResult) string {
			r.Content = clean(r.Content)
			if result == "" {
				return tagResult(r)
			}
			return results.fill(f.fields(r.Name, r.CallID), r.Content)
		},
		call: func(c lathe.ToolCall, args string) string {
			return calls.fill(f.fields(c.Name, c.ID), jsonArguments(args))
		},
	}
}

// jsonArguments returns args if it is JSON, else args as a JSON string.
func jsonArguments(args string) string {
	if _, err := rawjson.Scan([]byte(args), 0); err != nil {
		return quoteJSON(args)
	}
	return args
}

// quoteJSON returns text as a JSON string.
func quoteJSON(text string) string { return string(rawjson.AppendQuote(nil, text)) }

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

// A pattern is a text with placeholders. Its elements alternate between fixed text, which may be "", and a placeholder:
// `[{"name": "NAME"}]` becomes `[{"name": `, placeQuotedName, `}]`.
type pattern []string

// The placeholders of a pattern, with the words that stand for them in its text.
const (
	placeQuotedName = "N" // "NAME"
	placeName       = "n" // NAME
	placeQuotedID   = "I" // "ID"
	placeID         = "i" // ID
	placeQuotedText = "T" // "JSON"
	placeText       = "t" // ARGS, TEXT
)

// places surrounds the placeholders in the text of a pattern with zero bytes. Marks that contain NAME, ID or ARGS come first, so that they
// are not read as placeholders.
var places = strings.NewReplacer("[CALL_ID]", "[CALL_ID]", "[ARGS]", "[ARGS]",
	`"NAME"`, "\x00"+placeQuotedName+"\x00", "NAME", "\x00"+placeName+"\x00", `"ID"`, "\x00"+placeQuotedID+"\x00", "ID", "\x00"+placeID+"\x00",
	"ARGS", "\x00"+placeText+"\x00", "TEXT", "\x00"+placeText+"\x00", `"JSON"`, "\x00"+placeQuotedText+"\x00")

func newPattern(text string) pattern { return strings.Split(places.Replace(text), "\x00") }

// fill returns the pattern with the fields and the text in their places.
func (p pattern) fill(c callFields, text string) string {
	out := slices.Clone(p)
	for i := 1; i < len(out); i += 2 {
		switch out[i] {
		case placeQuotedName:
			out[i] = quoteJSON(c.name)
		case placeName:
			out[i] = safeName(c.name)
		case placeQuotedID:
			out[i] = quoteJSON(c.id)
		case placeID:
			out[i] = safeName(c.id)
		case placeQuotedText:
			out[i] = quoteJSON(text)
		default: // placeText
			out[i] = text
		}
	}
	return strings.Join(out, "")
}

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
		return edited(s, func(s string) (n int, by string) {
			n = tokenLen(s)
			if id, _ := set.at(s, ""); id >= 0 {
				n = len(set.list[id])
			}
			if n > 0 {
				by = fmt.Sprintf(`%s\u%04x`, s[:n-1], s[n-1])
			}
			return n, by
		})
	}
}

// newCleaner returns a function that inserts a space into each mark of a text, and into all text of the form of a special token, such as
// `<|im_start|>`, which servers read as that token.
func newCleaner(list func() []string) func(string) string {
	marks := sync.OnceValue(func() *marks { return newMarks(false, list()...) })
	return func(s string) string {
		set := marks()
		return cleanHarmony(edited(s, func(s string) (n int, by string) {
			if id, _ := set.at(s, ""); id >= 0 {
				return 1, s[:1] + " "
			}
			return 0, ""
		}))
	}
}

// mistralForm returns the form of Mistral's dialect. It writes an id only if the id has nine letters and digits.
func mistralForm() form {
	f := jsonForm(mistralFamily, "[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]ARGS",
		`[TOOL_RESULTS]{"content": "JSON", "call_id": "ID"}[/TOOL_RESULTS]`)
	f.layout = func() *callLayout { return mistralFamily.layout("[TOOL_CALLS]NAMEIDARGS") } // ID stands for optionalID
	short, call := newPattern("[TOOL_CALLS]NAME[ARGS]ARGS"), f.call
	f.call = func(c lathe.ToolCall, args string) string {
		if fields := mistralFamily.fields(c.Name, c.ID); fields.id == "" {
			return short.fill(fields, jsonArguments(args))
		}
		return call(c, args)
	}
	return f
}
