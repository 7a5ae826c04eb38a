package preset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/transform"
)

// documented are the defaults of the settings of runs.
var documented = map[string]string{
	"tool_use_mode": "relaxed", "tool_failure_policy": "fatal", "tool_choice": "auto", "parallel_tool_calls": "unset", "fix_empty_final": "true",
	"fix_empty_final_user_text": lathe.DefaultFixEmptyFinalText, "fix_empty_final_disable_tools": "true", "fallback_retry_count": "0",
}

// What a provider or a model needs never changes a documented default of a run, but for the one
// model that cannot use tools. Of all other keys a patch sets what its table row says, and no more.
func TestForKeepsDocumentedDefaults(t *testing.T) {
	t.Parallel()
	connection := []string{"label", "base_url", "wire"}
	compat := []string{"response_transforms", "tool_call_transforms"}
	more := map[string][]string{"deepseek": {"message_transforms", "reasoning_field"}, "gemini": {"message_transforms"}, "mistral": {"include_usage"}}
	models := map[string][]string{
		"": nil, "gpt-5": nil, "deepseek-reasoner": {"message_transforms"}, "my-REASONER": {"message_transforms"}, "deepseek/deepseek-chat": {"message_transforms"},
		"google/gemini-3-pro": {"message_transforms"}, "google/gemma-3": nil, "minimax/minimax-m2": nil, "minimax/minimax-m2-her": {"supports_tools"}, "qwen/qwen3-coder": nil,
	}
	for _, profile := range known().Profiles {
		for model, modelKeys := range models {
			p, err := For(profile.Name, model)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(); err != nil {
				t.Errorf("%s %s: %v", profile.Name, model, err)
			}
			for _, e := range p.Entries() {
				switch {
				case e.Key == "tool_use_mode" && model == "minimax/minimax-m2-her":
					if e.Value != "disabled" {
						t.Errorf("%s %s: tool_use_mode is %s", profile.Name, model, e.Value)
					}
				case e.Run && e.Value != documented[e.Key]:
					t.Errorf("%s %s: %s is %s, and the documented default %s", profile.Name, model, e.Key, e.Value, documented[e.Key])
				case e.Run:
				case slices.Contains(connection, e.Key), slices.Contains(compat, e.Key), slices.Contains(more[profile.Name], e.Key), slices.Contains(modelKeys, e.Key):
				default:
					t.Errorf("%s %s sets %s, which nothing says", profile.Name, model, e.Key)
				}
			}
		}
	}
}

func TestPresetsAreSparse(t *testing.T) {
	t.Parallel()
	for _, info := range known().Presets {
		p, err := Named(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entries() {
			if e.Run && info.Name != "default_tool_calling" {
				t.Errorf("%s sets %s", info.Name, e.Key)
			}
		}
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", info.Name, err)
		}
		if len(p.Entries()) == 0 {
			t.Errorf("%s sets nothing", info.Name)
		}
		if _, err := transform.New(p.Transforms(), nil); err != nil {
			t.Errorf("%s: %v", info.Name, err)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		patches []string
		want    string
	}{
		{"nothing", nil, `{}`},
		{"last wins", []string{`{"tool_use_mode":"enforced","fallback_retry_count":1}`, `{"tool_use_mode":"relaxed"}`}, `{"tool_use_mode":"relaxed","fallback_retry_count":1}`},
		{"false wins, too", []string{`{"fix_empty_final":true}`, `{"fix_empty_final":false}`}, `{"fix_empty_final":false}`},
		{"null leaves", []string{`{"tool_use_mode":"enforced","tool_denylist":["a"],"request_overrides":{"a":1}}`, `{"tool_use_mode":null,"tool_denylist":null,"request_overrides":null}`},
			`{"tool_use_mode":"enforced","tool_denylist":["a"],"request_overrides":{"a":1}}`},
		{"lists unite in order", []string{`{"tool_allowlist":["b","a"],"response_transforms":["assistant_tool_calls_object_to_array"]}`, `{"tool_allowlist":["c","b"]}`},
			`{"tool_allowlist":["b","a","c"],"response_transforms":["assistant_tool_calls_object_to_array"]}`},
		{"an empty list clears", []string{`{"tool_allowlist":["a"]}`, `{"tool_allowlist":[]}`}, `{"tool_allowlist":[]}`},
		{"and what comes after counts", []string{`{"tool_allowlist":["a"]}`, `{"tool_allowlist":[]}`, `{"tool_allowlist":["b"]}`}, `{"tool_allowlist":["b"]}`},
		{"overrides go deep", []string{`{"request_overrides":{"provider":{"order":["a"],"only":["x"]},"top_k":1}}`, `{"request_overrides":{"provider":{"order":["b"]},"seed":2}}`},
			`{"request_overrides":{"provider":{"order":["b"],"only":["x"]},"top_k":1,"seed":2}}`},
		{"an object in place of a value", []string{`{"request_overrides":{"a":1}}`, `{"request_overrides":{"a":{"b":{"c":null,"d":1}}}}`}, `{"request_overrides":{"a":{"b":{"d":1}}}}`},
		{"a value in place of an object", []string{`{"request_overrides":{"a":{"b":1}}}`, `{"request_overrides":{"a":[]}}`}, `{"request_overrides":{"a":[]}}`},
		{"null in overrides leaves", []string{`{"request_overrides":{"a":1,"b":{"c":1}}}`, `{"request_overrides":{"a":null,"b":{"c":null},"n":null}}`}, `{"request_overrides":{"a":1,"b":{"c":1}}}`},
		{"keys in another spelling", []string{`{"request_overrides":{"a":1}}`, `{"request_overrides":{"\u0061":2}}`}, `{"request_overrides":{"a":2}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var patches []*Patch
			for _, s := range tt.patches {
				p, err := parse([]byte(s))
				if err != nil {
					t.Fatal(err)
				}
				patches = append(patches, p, nil)
			}
			before, err := json.Marshal(patches)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(Merge(patches...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, _ := json.Marshal(Merge(Merge(patches...), Merge())); string(again) != string(got) {
				t.Errorf("merged again with nothing: %s", again)
			}
			if after, _ := json.Marshal(patches); string(after) != string(before) {
				t.Error("the patches have changed")
			}
		})
	}
	// A merged patch shares nothing with its sources.
	source, err := parse([]byte(`{"label":"a","tool_denylist":["a"],"request_overrides":{"a":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := Merge(source)
	*m.Label, m.ToolDenylist[0], m.RequestOverrides[2] = "b", "b", 'b'
	if *source.Label != "a" || source.ToolDenylist[0] != "a" || source.RequestOverrides[2] != 'a' {
		t.Error("a source changed with its merged patch")
	}
}

// parse reads the JSON form of a patch, in which null is not set, and checks it.
func parse(b []byte) (*Patch, error) {
	p := &Patch{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, err
	}
	if string(p.RequestOverrides) == "null" {
		p.RequestOverrides = nil
	}
	return p, p.Check()
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"tool_use_mode":"required"}`:                                  `tool_use_mode: unknown value "required"`,
		`{"tool_failure_policy":"strict"}`:                              `tool_failure_policy: unknown value "strict"`,
		`{"tool_choice":"any"}`:                                         `tool_choice: unknown value "any"`,
		`{"fallback_retry_count":-1}`:                                   "fallback_retry_count: -1 is below 0",
		`{"message_transforms":["nope"]}`:                               "message_transforms: no message transform",
		`{"tool_call_transforms":["tool_call_ids_nine_alphanumerics"]}`: "did you mean tool_call_ids_nine_alphanumeric?",
		`{"request_overrides":[]}`:                                      "request_overrides: wants an object",
		`{"request_overrides":{"model":"x"}}`:                           "request_overrides: model cannot be replaced",
		`{"request_overrides":{"messages":[]}}`:                         "messages cannot be replaced",
		`{"request_overrides":{"tools":[]}}`:                            "tools cannot be replaced",
		`{"request_overrides":{"tool_choice":"none"}}`:                  "tool_choice cannot be replaced",
		`{"request_overrides":{"response_format":{}}}`:                  "response_format cannot be replaced",
		`{"request_overrides":{"str\u0065am":false}}`:                   "stream cannot be replaced",
		`{"request_overrides":{"top_k":1,"Model":"x"}}`:                 "model cannot be replaced",
	} {
		_, err := parse([]byte(in))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.60s: got %v, want %q", in, err, want)
		}
	}
}

func TestOtherWordsNameTheRightOne(t *testing.T) {
	t.Parallel()
	for name, right := range map[string]string{
		"volcano": "volcanoengine", "volcano_engine": "volcanoengine", "Volcano-Engine": "volcanoengine", "ark": "volcanoengine", "openai-compatible": "openai",
		"OpenRouter": "openrouter", "open-router": "openrouter", "llama.cpp": "llamacpp", "lm-studio": "lmstudio", "LM Studio": "lmstudio", "Google": "google", "gemini-native": "google", "claude": "anthropic",
		"openroutr": "openrouter", "olama": "ollama", "vLLM": "vllm",
	} {
		if _, err := Profile(name); err == nil || !strings.Contains(err.Error(), right) || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: got %v, want one that names %s", name, err, right)
		}
		if _, err := For(name, "m"); err == nil {
			t.Errorf("%s is taken for a profile", name)
		}
	}
	for name, right := range map[string]string{
		"default": "default_tool_calling", "openrouter": "openrouter_tool_calling", "gemini-openrouter-compat": "gemini_openrouter_compat",
		"openrouter_routing": "request_overrides", "zebra": "(bare_calls, content_tag_tool_call_fallback, ",
	} {
		if _, err := Named(name); err == nil || !strings.Contains(err.Error(), right) {
			t.Errorf("%s: got %v, want one that names %s", name, err, right)
		}
	}
}

// The words that are refused are none of the right ones, and each stands for a right one.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	for other, right := range known().OtherProfiles {
		if _, err := Profile(right); err != nil {
			t.Errorf("%s stands for %s, which is no profile", other, right)
		}
	}
	for other, right := range known().OtherPresets {
		if _, err := Named(right); err != nil && other != "openrouter_routing" {
			t.Errorf("%s stands for %s, which is no preset", other, right)
		}
	}
}

func TestModelDefaults(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"minimax/minimax-m2-her": `{"tool_use_mode":"disabled","supports_tools":false}`,
		"DeepSeek-Reasoner":      `{"message_transforms":["assistant_tool_calls_reasoning_content_empty_if_missing"]}`,
		"deepseek/deepseek-r1":   `{"message_transforms":["assistant_tool_calls_reasoning_content_empty_if_missing"]}`,
		"google/gemini-2.5-pro":  `{"message_transforms":["assistant_tool_calls_signature_skip_validator_if_missing"]}`,
		"gemini-2.5-pro":         `{}`,
		"":                       `{}`,
	} {
		got, err := json.Marshal(modelDefaults(model))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", model, got, err, want)
		}
	}
}

func TestProviderDefaults(t *testing.T) {
	t.Parallel()
	for _, info := range known().Profiles {
		if got := len(providerDefaults(info.Name).Entries()); (got > 0) != (info.Name == "openrouter") {
			t.Errorf("%s has %d keys", info.Name, got)
		}
	}
}

func TestOpenRouterRouting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    Routing
		want string
	}{
		{Routing{}, `{}`},
		{Routing{Route: "fallback", Transforms: []string{}, Only: []string{}, Order: []string{"a", "b"}}, `{"route":"fallback","transforms":[],"provider":{"order":["a","b"]}}`},
		{Routing{Transforms: []string{"middle-out"}, Ignore: []string{"c"}}, `{"transforms":["middle-out"],"provider":{"ignore":["c"]}}`},
	} {
		p := OpenRouterRouting(tt.r)
		if string(p.RequestOverrides) != tt.want || p.Check() != nil {
			t.Errorf("got %s, want %s", p.RequestOverrides, tt.want)
		}
	}
}

func TestReliability(t *testing.T) {
	t.Parallel()
	if p := own("openai_compatible_reliability"); p.ParallelToolCalls != nil || len(p.ResponseTransforms) != 3 {
		t.Errorf("got %+v", p)
	}
}

func TestToolLists(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p    Patch
		want bool
	}{{Patch{}, true}, {Patch{ToolAllowlist: []string{}}, false}, {Patch{ToolAllowlist: []string{"a"}}, true},
		{Patch{ToolAllowlist: []string{"a"}, ToolDenylist: []string{"a"}}, false}, {Patch{ToolDenylist: []string{"b"}}, true}} {
		if got := tt.p.AllowsTool("a"); got != tt.want {
			t.Errorf("%+v: got %v", tt.p, got)
		}
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	p, err := parse([]byte(`{"tool_denylist":[],"request_overrides":{"top_k": 1},"fallback_retry_count":2,"tool_use_mode":"enforced","include_usage":false,"message_transforms":["assistant_tool_calls_content_null_if_blank"]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{"tool_use_mode", "enforced", true}, {"fallback_retry_count", "2", true}, {"include_usage", "false", false}, {"tool_denylist", "", false},
		{"message_transforms", "assistant_tool_calls_content_null_if_blank", false}, {"request_overrides", `{"top_k": 1}`, false}}
	if diff := cmp.Diff(want, p.Entries()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !p.Sets("tool_denylist") || p.Sets("label") || p.Sets("nothing") {
		t.Error("Sets does not say what is set")
	}
	if got := fmt.Sprint(p.Overrides()[0].Name, string(p.Overrides()[0].Value)); got != "top_k1" {
		t.Errorf("overrides: got %s", got)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"tool_use_mode":"relaxed","request_overrides":{"a":{"b":[1,null]}},"tool_denylist":[]}`))
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parse(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(Merge(p, p))
		if err != nil {
			t.Fatal(err)
		}
		q, err := parse(again)
		if err != nil {
			t.Fatalf("%s is read, and %s is not: %v", b, again, err)
		}
		if diff := cmp.Diff(Merge(p), Merge(q)); diff != "" {
			t.Fatalf("merged with itself it differs (-once +twice):\n%s", diff)
		}
	})
}

func ExampleFor() {
	p, err := For("mistral", "mistral-large-latest")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*p.BaseURL, *p.ToolUseMode)
	fmt.Println(p.ToolCallTransforms)
	_, err = For("volcano", "doubao")
	fmt.Println(err)
	// Output:
	// https://api.mistral.ai/v1 relaxed
	// [assistant_tool_calls_arguments_blank_to_empty_object tool_call_ids_nine_alphanumeric]
	// preset: invalid_config: profile "volcano" is called volcanoengine here
}

func ExampleMerge() {
	p, err := Named("openrouter_tool_calling")
	if err != nil {
		fmt.Println(err)
		return
	}
	p = Merge(p, OpenRouterRouting(Routing{Order: []string{"alpha"}}), &Patch{ToolCallTransforms: []string{}})
	fmt.Println(string(p.RequestOverrides), len(p.ToolCallTransforms))
	// Output: {"provider":{"order":["alpha"]}} 0
}
