package dialect_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// taggedFormats are the names that the sets have for our dialects.
var taggedFormats = map[string]string{
	"qwen3-coder":                              "qwen3-coder",
	"qwen3.5 (qwen3-coder xml + think)":        "qwen3-coder",
	"nemotron3-nano (qwen3-coder xml + think)": "qwen3-coder",
	"glm-4.5":                              "glm",
	"glm-4.6":                              "glm",
	"glm-4.7":                              "glm",
	"glm4-glm45":                           "glm",
	"glm4-glm47":                           "glm",
	"longcat":                              "glm",
	"laguna":                               "laguna",
	"minimax-m2":                           "minimax-m2",
	"deepseek-v3.2":                        "deepseek-dsml",
	"deepseek-v4":                          "deepseek-dsml",
	"deepseek-dsml-v32":                    "deepseek-dsml",
	"gemma4":                               "gemma4",
	"functiongemma":                        "functiongemma",
	"glimmer":                              "glimmer",
	"lfm2":                                 "lfm2",
	"olmo3 (pythonic)":                     "olmo3",
	"olmo3 (pythonic in <function_calls>)": "olmo3",
	"olmo3-think":                          "olmo3",
	"pythonic":                             "pythonic",
	"llama-pythonic":                       "lfm2",
}

// A formatVector is one record of the sets of other projects' parsers.
type formatVector struct {
	ID        string
	Format    string
	Input     string
	Think     *bool
	InitFlags map[string]any `json:"init_flags"`
	Malformed bool
	Thinking  *string
	Tools     []struct {
		Name       string
		Parameters json.RawMessage
		Function   *struct {
			Name       string
			Parameters json.RawMessage
		}
	}
	Expect struct {
		Calls []struct {
			Name      string
			Arguments map[string]any
		}
		Content  *string
		Thinking *string
		Error    *string
		Count    *int
		Names    map[string]string
		Args     map[string][]struct {
			Path  []any
			Value any
		}
		NormalText *string `json:"normal_text"`
	}
}

func formatVectors(t *testing.T, set string) []formatVector {
	t.Helper()
	data, err := os.ReadFile(testdata.Dir(t, "toolcall-vectors", set))
	if err != nil {
		t.Fatal(err)
	}
	var out []formatVector
	for line := range strings.Lines(string(data)) {
		var v formatVector
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func (v *formatVector) options(name string) *dialect.Options {
	o := &dialect.Options{}
	for _, tool := range v.Tools {
		spec := &lathe.ToolSpec{Name: tool.Name, Schema: tool.Parameters}
		if tool.Function != nil {
			spec = &lathe.ToolSpec{Name: tool.Function.Name, Schema: tool.Function.Parameters}
		}
		o.Tools = append(o.Tools, spec)
	}
	if o.Tools == nil && (name == "pythonic" || name == "lfm2") {
		for _, c := range v.Expect.Calls {
			o.Tools = append(o.Tools, &lathe.ToolSpec{Name: c.Name})
		}
		for _, n := range v.Expect.Names {
			o.Tools = append(o.Tools, &lathe.ToolSpec{Name: n})
		}
		if v.Expect.Count != nil && *v.Expect.Count > 0 && len(v.Expect.Names) == 0 {
			front, _, _ := strings.Cut(v.Input, "(")
			o.Tools = append(o.Tools, &lathe.ToolSpec{Name: strings.Trim(front, "[")})
		}
	}
	thinks := v.Expect.Thinking != nil && *v.Expect.Thinking != ""
	opened := v.on("maybeThinkingOpenAtBOL") || v.on("allowLeadingThinkOpenTag") || v.on("allowLeadingThinkOpen")
	if (opened && (thinks || strings.Contains(v.Input, "</think>")) || v.Format == "olmo3-think" && strings.Contains(v.Input, "</think>")) &&
		!strings.HasPrefix(v.Input, "<think>") {
		o.Prefix = "<think>"
	}
	if v.Format == "glm-4.6" && thinks {
		o.Prefix = "<think>"
	}
	if name == "gemma4" && v.on("thinkingEnabled") && strings.Contains(v.Input, "<channel|>") && !strings.Contains(v.Input, "<|channel>") {
		o.Prefix = "<|channel>thought\n"
	}
	return o
}

// on reports whether the other parser was started with the flag.
func (v *formatVector) on(flag string) bool {
	b, _ := v.InitFlags[flag].(bool)
	return b
}

// hidesThinking reports whether the other parser was configured to drop reasoning, which is not part of the format.
func (v *formatVector) hidesThinking() bool {
	_, enabled := v.InitFlags["thinkingEnabled"]
	_, emits := v.InitFlags["emitThinking"]
	return enabled && !v.on("thinkingEnabled") || emits && !v.on("emitThinking") || v.on("thinkingSuppressed")
}

// differ reports how what was said differs from what the set expects.
func (v *formatVector) differ(deltas []lathe.Delta) string {
	var c dialect.Collector
	c.AddAll(deltas)
	m := c.Message()
	var thinking strings.Builder
	var calls []lathe.ToolCall
	text := ""
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			if !p.Commentary {
				text += p.Text
			}
		case lathe.Reasoning:
			thinking.WriteString(p.Text)
		case lathe.ToolCall:
			if p.ParseError == "" && !p.Incomplete {
				calls = append(calls, p)
			}
		}
	}
	values := make([]map[string]any, len(calls))
	for i, call := range calls {
		if err := json.Unmarshal([]byte(call.Arguments), &values[i]); err != nil {
			return "arguments that are no JSON object: " + call.Arguments
		}
	}
	x := &v.Expect
	want := len(x.Calls)
	if x.Count != nil {
		want = *x.Count
	}
	if len(calls) != want {
		return "number of calls"
	}
	for i, w := range x.Calls {
		if calls[i].Name != w.Name {
			return "name " + calls[i].Name
		}
		if !reflect.DeepEqual(values[i], w.Arguments) {
			return "arguments " + calls[i].Arguments
		}
	}
	for i, call := range calls {
		n := string(rune('0' + i))
		if name := x.Names[n]; name != "" && name != call.Name {
			return "name " + call.Name
		}
		for _, a := range x.Args[n] {
			var at any = values[i]
			for _, step := range a.Path {
				switch s := step.(type) {
				case string:
					o, _ := at.(map[string]any)
					at = o[s]
				case float64:
					l, _ := at.([]any)
					if int(s) >= len(l) {
						return "path"
					}
					at = l[int(s)]
				}
			}
			if !reflect.DeepEqual(at, a.Value) {
				return "arguments " + call.Arguments
			}
		}
	}
	if x.Error != nil {
		if len(c.Failures()) == 0 && !strings.Contains(dialecttest.Format(deltas), "incomplete") {
			return "no failure"
		}
		return ""
	}
	if v.Malformed {
		return ""
	}
	// How much white space around content is kept is each project's own choice.
	content := x.Content
	if content == nil {
		content = x.NormalText
	}
	if content != nil && strings.TrimSpace(*content) != strings.TrimSpace(text) && (x.NormalText == nil || !strings.HasPrefix(strings.TrimSpace(text), strings.TrimSpace(*content))) {
		return "content " + text
	}
	think := x.Thinking
	if v.Thinking != nil {
		think = v.Thinking
	}
	if think != nil && !v.hidesThinking() && strings.TrimSpace(*think) != strings.TrimSpace(thinking.String()) {
		return "thinking " + thinking.String()
	}
	return ""
}

func TestTaggedVectors(t *testing.T) {
	t.Parallel()
	passed, differed, n := map[string]int{}, 0, 0
	for _, set := range []string{"ollama-parsers.jsonl", "vllm-tool-parsers.jsonl", "smg-tool-parser.jsonl", "mlx-lm.jsonl"} {
		for _, v := range formatVectors(t, set) {
			name, ok := taggedFormats[v.Format]
			if !ok {
				continue
			}
			d, ok := dialect.Lookup(name)
			if !ok {
				continue
			}
			t.Run(v.ID, func(t *testing.T) {
				opts := v.options(name)
				deltas := dialecttest.Check(t, func() dialect.Parser { return d.NewParser(opts) }, opts.Prefix, v.Input)
				why := v.differ(deltas)
				n++
				_, listed := taggedDiffers[v.ID]
				switch {
				case why != "" && !listed:
					t.Errorf("%s: %q\n%s\n%s", name, v.Input, why, dialecttest.Format(deltas))
				case why == "" && listed:
					t.Errorf("%s: %q agrees, but is listed as different", name, v.Input)
				case why == "":
					passed[name]++
				default:
					differed++
				}
			})
		}
	}
	if differed != len(taggedDiffers) || n != taggedVectors {
		t.Errorf("%d vectors of which %d differ, want %d and %d", n, differed, taggedVectors, len(taggedDiffers))
	}
	t.Log(passed)
}

// taggedVectors counts the vectors of our dialects.
const taggedVectors = 453

// taggedDiffers lists the vectors whose expectation we do not share, and why.
var taggedDiffers = map[string]string{
	"ollama-0139": mends, "ollama-0140": mends, "ollama-0141": mends, "ollama-0143": mends, "ollama-0155": mends,
	"ollama-0206": mends, "ollama-0207": mends, "ollama-0208": mends, "ollama-0225": mends,
	"ollama-0180": cutOff, "vllm-146": cutOff, "smg-107": cutOff, "ollama-0428": cutOff, "ollama-0445": cutOff,
	"ollama-0201": duplicate,
	"ollama-0204": stringFirst,
	"ollama-0215": noSchema, "ollama-0216": noSchema, "ollama-0217": noSchema, "ollama-0453": noSchema, "ollama-0454": noSchema,
	"ollama-0455": noSchema, "ollama-0456": noSchema, "vllm-139": noSchema, "vllm-140": noSchema, "smg-101": noSchema, "smg-111": noSchema,
	"smg-102":     "entities are text: the templates do not write them",
	"mlx-24":      "the schema says that it is a string: the quotes are part of it",
	"ollama-0220": noMark, "ollama-0221": noMark, "ollama-0222": noMark, "ollama-0227": noMark, "ollama-0228": noMark,
	"ollama-0229": noMark, "ollama-0230": noMark, "mlx-13": noMark,
	"ollama-0224": "another name is not taken for that of a tool",
	"ollama-0175": "the marks are unmistakable: a tool that is not known is answered as such",
	"ollama-0173": "the call was said before the text after it came",
	"ollama-0246": thinking, "ollama-0352": thinking, "ollama-0402": thinking,
	"ollama-0288": thinkEnd, "ollama-0335": thinkEnd, "ollama-0406": thinkEnd,
	"ollama-0550": lost, "vllm-143": "the thinking is content there", "vllm-145": lost,
	"vllm-046": firstBad, "vllm-047": firstBad,
}

const (
	mends       = "the broken call is mended there by guessing; here it is cut off, a parse error, or the text as it stands"
	cutOff      = "a call that the text's end cuts off is incomplete, and its text is not content; text is never dropped"
	duplicate   = "the last of two equal parameters counts there; here the call cannot be read"
	stringFirst = "where a string is allowed, the value is one"
	noSchema    = "without a schema, JSON is taken for what it is; there numbers, or lists and objects, stay strings"
	noMark      = "a call without its marks; or words behind a mark"
	thinking    = "a call inside of thinking that was not closed is part of it"
	thinkEnd    = "a closing mark alone ends the thinking that the prompt opened"
	lost        = "text is lost there"
	firstBad    = "a list that begins with what is no call of a known tool is text"
)
