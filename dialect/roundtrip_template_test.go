package dialect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// The chat templates of models write calls in ways that the writers of this package do not: values as Python prints
// them, keys without quotes. Models were trained on these texts.

// templateKeys are keys with punctuation that templates write as they stand.
var templateKeys = []string{"a", "b_2", "a-b", "a.b", "$ref", "@type", "a/b", "a*", "#id", "x?", "a+b", "a:b", "ключ", "null", "12", "True", "~a", "a|b", "50%", "a&b", "a;b", "it's", `a"b`, `a\\b`}

// genTemplateArguments returns an object whose keys, at every level, are of keys.
func genTemplateArguments(keys []string, texts *rapid.Generator[string]) *rapid.Generator[string] {
	var value func(depth int) *rapid.Generator[string]
	object := func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			var members []string
			for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 4, rapid.ID[string]).Draw(t, "keys") {
				members = append(members, string(rawjson.AppendQuote(nil, k))+":"+value(depth).Draw(t, "value"))
			}
			return "{" + strings.Join(members, ",") + "}"
		})
	}
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kinds := 3
			if depth > 0 {
				kinds = 5
			}
			switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
			case 0:
				return string(rawjson.AppendQuote(nil, texts.Draw(t, "text")))
			case 1:
				return rapid.SampledFrom([]string{"0", "-7", "9007199254740993", "-123456789012345678901234567890", "1.5", "-0.0", "1e+16", "2.5e-10"}).Draw(t, "number")
			case 2:
				return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
			case 3:
				return "[" + strings.Join(rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list"), ",") + "]"
			}
			return object(depth-1).Draw(t, "object")
		})
	}
	return object(2)
}

// textWithout returns texts that hold none of the marks.
func textWithout(marks ...string) *rapid.Generator[string] {
	return genText.Filter(func(s string) bool {
		return !slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(s, m) })
	})
}

// python returns a value as Python prints it.
func python(value []byte) string {
	switch value[0] {
	case 'n':
		return "None"
	case 't':
		return "True"
	case 'f':
		return "False"
	case '"':
		text, _ := rawjson.AppendUnquote(nil, value)
		return pythonString(string(text))
	case '[':
		var list []string
		for v := range rawjson.Elements(value) {
			list = append(list, python(v))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case '{':
		var list []string
		for k, v := range rawjson.Members(value) {
			list = append(list, python(k)+": "+python(v))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	return string(value)
}

// pythonString returns text as repr does.
func pythonString(text string) string {
	quote := '\''
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range text {
		switch {
		case r == quote || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// braces returns a value as the templates of Gemma write it: keys without quotes, strings between marks.
func braces(value []byte, mark string) string {
	switch value[0] {
	case 'n':
		return "None"
	case '"':
		text, _ := rawjson.AppendUnquote(nil, value)
		return mark + string(text) + mark
	case '[':
		var list []string
		for v := range rawjson.Elements(value) {
			list = append(list, braces(v, mark))
		}
		return "[" + strings.Join(list, ",") + "]"
	case '{':
		var list []string
		for k, v := range rawjson.Members(value) {
			key, _ := rawjson.AppendUnquote(nil, k)
			list = append(list, string(key)+":"+braces(v, mark))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	return string(value)
}

// keywords returns the arguments as those of a call in Python.
func keywords(args string, value func([]byte) string) string {
	var list []string
	for k, v := range rawjson.Members([]byte(args)) {
		key, _ := rawjson.AppendUnquote(nil, k)
		list = append(list, string(key)+"="+value(v))
	}
	return strings.Join(list, ", ")
}

// parameters returns the arguments as tags: strings as they stand, other values as value writes them.
func parameters(args, open, shut string, value func([]byte) string) string {
	var b strings.Builder
	for k, v := range rawjson.Members([]byte(args)) {
		key, _ := rawjson.AppendUnquote(nil, k)
		text := value(v)
		if v[0] == '"' {
			raw, _ := rawjson.AppendUnquote(nil, v)
			text = string(raw)
		}
		b.WriteString("<parameter=" + string(key) + ">" + open + text + shut + "</parameter>\n")
	}
	return b.String()
}

func asJSON(v []byte) string { return string(v) }

// asASCII returns JSON as Python's json.dumps writes it.
func asASCII(v []byte) string {
	var b strings.Builder
	for _, r := range string(v) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}

// What the templates of models write is read as the same value.
func TestTemplateCallsAreReadAsTheSameValue(t *testing.T) {
	t.Parallel()
	noColon := slices.DeleteFunc(slices.Clone(templateKeys), func(k string) bool { return strings.Contains(k, ":") })
	keyword := slices.DeleteFunc(slices.Clone(templateKeys), func(k string) bool { return strings.ContainsAny(k, "'\"\\") })
	tags := []string{"parameter", "function", "tool_call", "\r"}
	for _, test := range []struct {
		name, dialect string
		keys          []string
		without       []string // what the form cannot express in a string
		write         func(args string) string
	}{
		{"functiongemma", "functiongemma", noColon, []string{"<escape>"}, func(args string) string {
			return "<start_function_call>call:f" + braces([]byte(args), "<escape>") + "<end_function_call>"
		}},
		{"gemma4", "gemma4", noColon, []string{`<|"|>`}, func(args string) string {
			return "<|tool_call>call:f" + braces([]byte(args), `<|"|>`) + "<tool_call|>"
		}},
		{"lfm2", "lfm2", keyword, nil, func(args string) string {
			return "<|tool_call_start|>[f(" + keywords(args, python) + ")]<|tool_call_end|>"
		}},
		{"lfm2 with JSON objects", "lfm2", keyword, nil, func(args string) string {
			return "<|tool_call_start|>[f(" + keywords(args, func(v []byte) string {
				if v[0] == '{' {
					return string(v)
				}
				return python(v)
			}) + ")]<|tool_call_end|>"
		}},
		{"pythonic", "pythonic", keyword, nil, func(args string) string { return "[f(" + keywords(args, python) + ")]" }},
		{"olmo3", "olmo3", keyword, nil, func(args string) string {
			return "<function_calls>f(" + keywords(args, asJSON) + ")</function_calls>"
		}},
		{"olmo3 in ASCII", "olmo3", keyword, nil, func(args string) string {
			return "<function_calls>\nf(" + keywords(args, asASCII) + ")\n</function_calls>"
		}},
		{"seed-oss", "seed-oss", templateKeys, append(tags[:len(tags):len(tags)], "\n"), func(args string) string {
			return "<seed:tool_call>\n<function=f>\n" + parameters(args, "", "", python) + "</function>\n</seed:tool_call>"
		}},
		{"seed-oss with JSON", "seed-oss", templateKeys, append(tags[:len(tags):len(tags)], "\n"), func(args string) string {
			return "<seed:tool_call>\n<function=f>\n" + parameters(args, "", "", asASCII) + "</function>\n</seed:tool_call>"
		}},
		{"qwen3-coder", "qwen3-coder", templateKeys, tags, func(args string) string {
			return "<tool_call>\n<function=f>\n" + parameters(args, "\n", "\n", python) + "</function>\n</tool_call>"
		}},
		{"nemotron-v2", "nemotron-v2", templateKeys, nil, func(args string) string {
			return `<TOOLCALL>[{"name": "f", "arguments": ` + args + "}]</TOOLCALL>"
		}},
		{"nemotron-v2 in ASCII", "nemotron-v2", templateKeys, nil, func(args string) string {
			return "<TOOLCALL>[\n  {\"name\": \"f\", \"arguments\": " + asASCII([]byte(args)) + "}\n]</TOOLCALL>"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := lookup(t, test.dialect)
			gen := genTemplateArguments(test.keys, textWithout(test.without...))
			rapid.Check(t, func(rt *rapid.T) {
				args := gen.Draw(rt, "args")
				readSame(rt, d, schemaOf(rt, args), test.write(args), args)
			})
		})
	}
}
