package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// textPieces are what the formats give a meaning to, beside plain text.
var textPieces = []string{
	"a", "Zürich", "日本", "🎉", " ", "\n", "\r", "\t", "\u0000", "\u0007", "\u007f", "\u2028", `"`, "'", `\`, `\n`, `\u0041`, "/", "<", ">", "&lt;", "=", ":", ",", ".", "-", "*", "**",
	"{", "}", "[", "]", "(", ")", "`", "```", "{{", "%}", "#", "null", "None", "True", "true", "12", "1e5", "9007199254740993", "-0",
	"</parameter>", "\n</parameter>\n", "</parameter>\n</function>\n</tool_call>", "<parameter=b>", "\n<parameter=b>\n", "</function>", "</tool_call>", "<tool_call>",
	"<|\"|>", "<escape>", "<end_function_call>", "<start_function_call>", "<tool_call|>", "<|tool_call_end|>", "</function_calls>", "</TOOLCALL>", "</seed:tool_call>",
	"</arg_value>", "<arg_key>", "</arg_value>\n</tool_call>", "</invoke>", "</parameter>\n</invoke>\n</minimax:tool_call>", "<｜DSML｜parameter name=\"b\" string=\"true\">", "</｜DSML｜parameter>",
	"</atem:parameter>", "</tool>", "<tool name=\"x\" args>", "[TOOL_CALLS]", "<|call|>", "<|end|>", "<|im_end|>", "<think>", "</think>", "functools[", ">>>",
}

var genText = shared(rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(textPieces), 0, 6).Draw(t, "pieces"), "")
}))

// shared returns g with its description written: rapid writes it at the first use of a generator that holds g, while
// another goroutine that draws from g may read it.
func shared(g *rapid.Generator[string]) *rapid.Generator[string] {
	_ = g.String()
	return g
}

var genNumber = shared(rapid.SampledFrom([]string{"0", "-0", "7", "-12", "9007199254740993", "123456789012345678901234567890", "1.5", "1.0", "-0.0", "1e5", "1E+5", "2.5e-10", "1e400"}))

// quoted returns text as a JSON string, sometimes with escapes that say the same.
func quoted(t *rapid.T, text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	if rapid.Bool().Draw(t, "plain") {
		s = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u2028`, "\u2028").Replace(s)
	}
	return s
}

func genValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return quoted(t, genText.Draw(t, "text"))
		case 1:
			return genNumber.Draw(t, "number")
		case 2:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
		case 3:
			return quoted(t, rapid.SampledFrom([]string{"", "12", "null", "None", "true", "{}", "[1]", `"x"`, "1e5", " 5 ", "\n", "\n\n", "\r\n", "-", "NaN"}).Draw(t, "like"))
		case 4:
			return "[" + strings.Join(rapid.SliceOfN(genValue(depth-1), 0, 3).Draw(t, "list"), rapid.SampledFrom([]string{",", ", "}).Draw(t, "comma")) + "]"
		}
		return genObject(depth-1).Draw(t, "object")
	})
}

func genObject(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		keys := rapid.SliceOfNDistinct(rapid.OneOf(rapid.StringMatching(`[a-z_][a-z0-9_]{0,8}`), genText,
			rapid.SampledFrom([]string{"", "arguments", "input", "name", "parameters", "null", "12", "a.b", "a-b", "a b", "$ref", "@type", "ключ", "**"})), 0, 4,
			func(s string) string { return s }).Draw(t, "keys")
		var members []string
		for _, k := range keys {
			members = append(members, quoted(t, k)+rapid.SampledFrom([]string{":", ": "}).Draw(t, "colon")+genValue(depth).Draw(t, "value"))
		}
		return "{" + strings.Join(members, rapid.SampledFrom([]string{",", ", ", ",\n"}).Draw(t, "comma")) + "}"
	})
}

// valueOf returns the value of JSON text with the digits of its numbers.
func valueOf(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&v); err == nil && d.More() {
		err = fmt.Errorf("more than one value")
	}
	return v, err
}

// schemaOf returns a schema with the type of each member of args.
func schemaOf(t *rapid.T, args string) []byte {
	v, err := valueOf(args)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	types := map[string]any{}
	for k, v := range v.(map[string]any) {
		name := map[string]string{"string": "string", "json.Number": "number", "bool": "boolean", "[]interface {}": "array", "map[string]interface {}": "object", "<nil>": "null"}[fmt.Sprintf("%T", v)]
		types[k] = map[string]any{"type": name}
	}
	if err := json.NewEncoder(&b).Encode(map[string]any{"type": "object", "properties": types}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What the writer of a dialect writes, its parser reads as the same value, whatever the arguments are and however
// the text is cut. Formats without types of their own take them from the tool's schema.
func TestWrittenCallsAreReadAsTheSameValue(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names() {
		if name == "auto" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := lookup(t, name)
			rapid.Check(t, func(rt *rapid.T) {
				args := genObject(2).Draw(rt, "args")
				opts := &dialect.Options{Tools: []*lathe.ToolSpec{{Name: "f", Schema: schemaOf(rt, args)}}, MaxPayloadBytes: 1 << 20}
				if name == "glimmer" {
					opts.Prefix = " to=f<|message|>"
				}
				text := string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "f", Arguments: args}))
				whole := dialecttest.Parse(rt, d.NewParser(opts), text)
				var c dialect.Collector
				c.AddAll(whole)
				m := c.Message()
				calls := m.Calls()
				if len(calls) != 1 || calls[0].ParseError != "" || calls[0].Incomplete || calls[0].Name != "f" || strings.TrimSpace(m.Text()) != "" {
					rt.Fatalf("%s of %s\nis read as %s", text, args, dialecttest.Format(whole))
				}
				got, err := valueOf(calls[0].Arguments)
				want, _ := valueOf(args)
				if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
					rt.Fatalf("%s of %s\nis read as %s (%v)", text, args, calls[0].Arguments, err)
				}
				random := rand.New(rand.NewPCG(1, uint64(len(text))))
				var cuts []int
				for i := 1; i < len(text); i += 1 + random.IntN(4) {
					cuts = append(cuts, i)
				}
				if cut := dialecttest.Parse(rt, d.NewParser(opts), text, cuts...); !slices.Equal(cut, whole) {
					rt.Fatalf("%s cut at %v\nis read as %s", text, cuts, dialecttest.Format(cut))
				}
			})
		})
	}
}
