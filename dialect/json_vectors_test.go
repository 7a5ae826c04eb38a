package dialect_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// jsonVectorFormats says which dialect reads the vectors of a format.
var jsonVectorFormats = map[string]string{
	"hermes": "hermes", "hermes-json": "hermes", "qwen3 (hermes json)": "hermes", "qwen3-vl (hermes json)": "hermes",
	"qwen (hermes json)": "hermes", "llama3-json": "llama3-json", "json": "llama3-json",
	"mistral-pre-v11": "mistral", "mistral-v11": "mistral", "mistral-v13": "mistral", "mistral": "mistral",
	"cogito (deepseek-v3 style, llama base)": "deepseek-v3", "deepseek-v3": "deepseek-v3", "deepseek-v3.1": "deepseek-v3.1",
	"kimi-k2": "kimi-k2", "command-r7b/a": "command-r7b", "cohere": "command-r7b", "granite-3.0": "granite",
	"granite-3.1": "granite", "phi4-mini": "phi4-mini", "xlam": "xlam",
}

// A jsonVector is one record of the files of vectors.
type jsonVector struct {
	ID, Format, Kind, Input, Thinking string
	Think                             *bool
	Malformed                         bool
	InitFlags                         struct{ HasThinkingSupport bool } `json:"init_flags"`
	Tools                             []struct {
		Name       string
		Parameters json.RawMessage
		Function   struct {
			Name       string
			Parameters json.RawMessage
		}
	}
	Expect struct {
		Content  *string
		Thinking *string
		Error    *string
		Calls    []struct {
			ID            string
			Name          string
			Arguments     any
			ArgumentsText *string `json:"arguments_text"`
		}
		// The form of smg-tool-parser.
		Count *int
		Names map[string]string
		Args  map[string][]struct {
			Path  []any
			Value any
		}
		NormalText *string `json:"normal_text"`
	}
}

var quotedName = regexp.MustCompile(`"name"\s*:\s*"([^"]+)"`)

func (v *jsonVector) options() *dialect.Options {
	o := &dialect.Options{}
	add := func(name string, schema json.RawMessage) {
		if name != "" {
			o.Tools = append(o.Tools, &lathe.ToolSpec{Name: name, Schema: schema})
		}
	}
	for _, t := range v.Tools {
		add(t.Name, t.Parameters)
		add(t.Function.Name, t.Function.Parameters)
	}
	if len(v.Tools) == 0 {
		for _, m := range quotedName.FindAllStringSubmatch(v.Input, -1) {
			add(m[1], nil)
		}
	}
	opens := strings.HasPrefix(v.Input, "<think>") && !strings.Contains(v.Format, "-vl")
	if !opens && (v.Think != nil && *v.Think || v.InitFlags.HasThinkingSupport) {
		o.Prefix = "<think>"
		if v.Format == "mistral-v13" {
			o.Prefix = "[THINK]"
		}
	}
	if v.Format == "cohere" && strings.Contains(v.Input, "<|END_THINKING|>") && strings.HasPrefix(v.ID, "ollama") {
		o.Prefix = "<|START_THINKING|>"
	}
	return o
}

// TestJSONVectors compares names, arguments, order and content with what other parsers are tested for.
func TestJSONVectors(t *testing.T) {
	t.Parallel()
	ran, differ := map[string]int{}, 0
	for _, file := range []string{"ollama-parsers", "vllm-tool-parsers", "smg-tool-parser", "mlx-lm"} {
		data, err := os.ReadFile(testdata.Dir(t, "toolcall-vectors", file+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var v jsonVector
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			name := jsonVectorFormats[v.Format]
			if name == "" {
				continue
			}
			ran[name]++
			d, _ := dialect.Lookup(name)
			opts := v.options()
			deltas := dialecttest.Check(t, func() dialect.Parser { return d.NewParser(opts) }, opts.Prefix, v.Input)
			problem := v.problem(deltas)
			why, listed := jsonDiffers[v.ID]
			switch {
			case listed && problem == "":
				t.Errorf("%s is read as expected, and is listed as different: %s", v.ID, why)
			case listed:
				differ++
			case problem != "":
				t.Errorf("%s %s: %s\n%q\n%s", v.ID, name, problem, v.Input, dialecttest.Format(deltas))
			}
		}
	}
	total := 0
	for _, n := range ran {
		total += n
	}
	if total != 436 || differ != len(jsonDiffers) {
		t.Errorf("%d vectors of which %d differ, want 436 and %d", total, differ, len(jsonDiffers))
	}
	t.Log(ran)
}

// problem says how the deltas differ from what is expected; "": not at all.
func (v *jsonVector) problem(deltas []lathe.Delta) string {
	var c reading
	c.AddAll(deltas)
	if v.Expect.Count != nil || v.Expect.Names != nil {
		return v.smgProblem(&c)
	}
	if v.Malformed {
		return ""
	}
	if len(c.Calls) != len(v.Expect.Calls) {
		return fmt.Sprintf("%d calls, want %d", len(c.Calls), len(v.Expect.Calls))
	}
	for i, want := range v.Expect.Calls {
		got := c.Calls[i]
		if got.Name != want.Name {
			return fmt.Sprintf("call %d is %q, want %q", i, got.Name, want.Name)
		}
		if want.ID != "" && got.ID != want.ID {
			return fmt.Sprintf("call %d has id %q, want %q", i, got.ID, want.ID)
		}
		if want.ArgumentsText != nil {
			if got.Arguments != *want.ArgumentsText {
				return fmt.Sprintf("call %d has arguments %s, want %s", i, got.Arguments, *want.ArgumentsText)
			}
		} else if value := arguments(got.Arguments); !reflect.DeepEqual(value, want.Arguments) {
			return fmt.Sprintf("call %d has arguments %v, want %v", i, value, want.Arguments)
		}
	}
	if want := v.Expect.Content; want != nil && words(c.Text) != words(*want) && v.Expect.Error == nil {
		return fmt.Sprintf("content %q, want %q", c.Text, *want)
	}
	if want := v.Expect.Thinking; want != nil && words(c.Reasoning) != words(*want) && v.Expect.Error == nil {
		return fmt.Sprintf("thinking %q, want %q", c.Reasoning, *want)
	}
	if v.Thinking != "" && words(c.Reasoning) != words(v.Thinking) {
		return fmt.Sprintf("thinking %q, want %q", c.Reasoning, v.Thinking)
	}
	return ""
}

func (v *jsonVector) smgProblem(c *reading) string {
	if want := v.Expect.Count; want != nil && len(c.Calls) != *want {
		return fmt.Sprintf("%d calls, want %d", len(c.Calls), *want)
	}
	for i, call := range c.Calls {
		key := fmt.Sprint(i)
		if want, ok := v.Expect.Names[key]; ok && want != call.Name {
			return fmt.Sprintf("call %d is %q, want %q", i, call.Name, want)
		}
		for _, arg := range v.Expect.Args[key] {
			value := arguments(call.Arguments)
			for _, step := range arg.Path {
				switch step := step.(type) {
				case string:
					m, _ := value.(map[string]any)
					value = m[step]
				case float64:
					a, _ := value.([]any)
					value = a[int(step)]
				}
			}
			if !reflect.DeepEqual(value, arg.Value) {
				return fmt.Sprintf("call %d: %v is %v, want %v", i, arg.Path, value, arg.Value)
			}
		}
	}
	if want := v.Expect.NormalText; want != nil && words(c.Text) != words(*want) {
		return fmt.Sprintf("content %q, want %q", c.Text, *want)
	}
	return ""
}

// A reading is what deltas say, as an application would take it: calls that can be executed, text
// and reasoning.
type reading struct {
	Calls           []lathe.ToolCall
	Text, Reasoning string
}

func (r *reading) AddAll(deltas []lathe.Delta) {
	var c dialect.Collector
	c.AddAll(deltas)
	m := c.Message()
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			r.Text += p.Text
		case lathe.Reasoning:
			r.Reasoning += p.Text
		case lathe.ToolCall:
			if !p.Incomplete && p.ParseError == "" {
				r.Calls = append(r.Calls, p)
			}
		}
	}
}

// arguments decodes argument text as the runner does: blank is an empty object, and a string that
// holds JSON is unwrapped once.
func arguments(text string) any {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	if s, ok := v.(string); ok {
		var inner any
		if json.Unmarshal([]byte(s), &inner) == nil {
			return inner
		}
	}
	return v
}

// words leaves white space out: parsers differ in what they trim.
func words(s string) string { return strings.Join(strings.Fields(s), "") }

// jsonDiffers lists the vectors whose expectation we do not share, and why.
var jsonDiffers = differs(map[string]string{
	"a closing mark of thinking without an opening one ends thinking that the prompt opened; it is no text": "ollama-0003 ollama-0013 ollama-0014 ollama-0018 ollama-0069 ollama-0457 ollama-0525 ollama-0526 ollama-0527 ollama-0528 ollama-0529",
	"thinking is read whether or not the model is known to think":                                           "ollama-0458 ollama-0462",
	"what was said of a result is text; only its marks are not":                                             "ollama-0006",
	"calls are read whether or not tools were offered":                                                      "ollama-0017",
	"numbers are positions, not ids: they repeat in each turn":                                              "ollama-0021 ollama-0027",
	"a list whose first call is no JSON is not searched for more":                                           "ollama-0026",
	"what cannot be read stays text":                                                                        "ollama-0028 ollama-0070 ollama-0071 vllm-066 vllm-080 vllm-082",
	"text that ends in the beginning of a mark is not lost":                                                 "ollama-0074 ollama-0469 ollama-0489 ollama-0518",
	"text that ends in a bare opening mark is not lost":                                                     "ollama-0473",
	"text after calls is kept":                                                                              "ollama-0077 vllm-117 smg-018 smg-052 smg-073 smg-118 smg-145",
	"the runner answers for tools that are not known":                                                       "ollama-0328",
	"a call inside of open thinking is prose":                                                               "ollama-0420 ollama-0421",
	"thinking is reasoning, not content":                                                                    "vllm-052",
	"words between the mark and the list make it unreadable":                                                "vllm-064",
	"a mark that comes twice opens two lists":                                                               "vllm-065",
	"a call that is cut off is incomplete, and its text is no content":                                      "vllm-071 smg-046 smg-059 smg-071",
	"arguments that are no JSON make no call":                                                               "vllm-079",
	"without its mark it is text":                                                                           "smg-056",
	"brackets around calls stay text where the format has none":                                             "smg-064",
	"text may follow a bare call":                                                                           "smg-093",
	"the name of the call is end":                                                                           "smg-129",
	"the mark that closes may be missing at the end":                                                        "smg-148",
})

func differs(byReason map[string]string) map[string]string {
	out := map[string]string{}
	for why, ids := range byReason {
		for _, id := range strings.Fields(ids) {
			out[id] = why
		}
	}
	return out
}
