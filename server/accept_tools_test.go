package server_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// answersPlainly is a model that says "Answer." in each turn.
func answersPlainly() *fake {
	return &fake{turn: func(int, *lathe.Request) lathe.Message { return says(lathe.Text{Text: "Answer."}) }}
}

// A tool that only code may call is not offered to a model on a wire without code execution, and `async` is not sent to a
// model whose result the run waits for: both are listed as ignored.
func TestToolsThatTheServerCannotServeAreLeftOut(t *testing.T) {
	t.Parallel()
	const code = `"name":"inner","allowed_callers":["code_execution_20260120"]`
	for _, tc := range []struct{ path, body, ignored, tools string }{
		{"/v1/messages", `"max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tools":[{` + code + `,"input_schema":{"type":"object"}},{"name":"outer","allowed_callers":["direct","code_execution_20260120"],"input_schema":{"type":"object"}}]`,
			"tools.inner", "outer"},
		{"/v1/responses", `"input":"Hi","tools":[{"type":"function","name":"inner","allowed_callers":["programmatic"]},{"type":"function","name":"outer","async":true}]`,
			"tools.inner tools.outer.async", "outer"},
		{"/v1/responses", `"input":"Hi","tools":[{"type":"function","name":"outer","async":false}]`, "", "outer"},
		{"/v1/messages", `"max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tool_choice":{"type":"tool","name":"inner"},"tools":[{` + code + `,"input_schema":{"type":"object"}}]`, "400", ""},
		{"/v1/messages", `"max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tool_choice":{"type":"any"},"tools":[{` + code + `,"input_schema":{"type":"object"}}]`, "400", ""},
	} {
		model := answersPlainly()
		f := serve(t, &setting{model: model, tools: []lathe.Tool{}})
		resp, text := f.do("POST", tc.path, `{"model":"sim/demo","lathe":{"tools":[]},`+tc.body+`}`)
		if tc.ignored == "400" {
			if resp.StatusCode != 400 || len(model.reqs) > 0 {
				t.Errorf("%s: %d %s", tc.body, resp.StatusCode, text)
			}
			continue
		}
		var tools []string
		for _, tool := range model.reqs[0].Tools {
			if tool.Owner == lathe.OwnerClient || tool.Name == "inner" || tool.Name == "outer" {
				tools = append(tools, tool.Name)
			}
		}
		if got := strings.Join(resp.Header["X-Lathe-Ignored"], " "); resp.StatusCode != 200 || got != tc.ignored || strings.Join(tools, " ") != tc.tools {
			t.Errorf("%s: %d, ignored %q, tools %v: %s", tc.body, resp.StatusCode, got, tools, text)
		}
	}
}

// The summary of a compaction that a vendor's server made reaches a model on another wire as a message of the user.
func TestCompactionOfVendorOnAnotherWire(t *testing.T) {
	t.Parallel()
	model := answersPlainly()
	f := serve(t, &setting{model: model})
	resp, text := f.do("POST", "/v1/messages", `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"Hi"},`+
		`{"role":"assistant","content":[{"type":"compaction","content":"Ann has a dog."},{"type":"text","text":"Yes."}]},{"role":"user","content":"Its name?"}]}`)
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	var sent []string
	for _, m := range model.reqs[0].Messages {
		sent = append(sent, string(m.Role)+": "+m.Text())
	}
	if got := strings.Join(sent, "\n"); !strings.Contains(got, "user: Summary") || !strings.Contains(got, "Ann has a dog.\nassistant: Yes.") {
		t.Errorf("the model was sent\n%s", got)
	}
}

// A whole answer has the reasoning of all turns, as its stream has, if the last turn has no text.
func TestWholeAnswerHasReasoningOfTurnsWithoutText(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/v1/chat/completions":                    `"messages":[{"role":"user","content":"Hi"}]`,
		"/v1/messages":                            `"max_tokens":9,"messages":[{"role":"user","content":"Hi"}]`,
		"/v1/responses":                           `"input":"Hi"`,
		"/v1beta/models/sim/demo:generateContent": `"contents":[{"role":"user","parts":[{"text":"Hi"}]}]`,
	} {
		for _, first := range []string{"", "Hello."} {
			for _, json := range []bool{false, true} {
				for _, stream := range []bool{false, true} {
					model := &fake{turn: func(n int, _ *lathe.Request) lathe.Message {
						if n == 1 {
							return says(lathe.Reasoning{Text: "First thought."}, lathe.Text{Text: first}, calls("c1", "calculator", `{"expression":"1+1"}`))
						}
						return says(lathe.Reasoning{Text: "Second thought."})
					}}
					f := serve(t, &setting{model: model})
					own, to := body, path
					switch {
					case strings.Contains(path, "generateContent"):
						if json {
							continue
						}
						if stream {
							to = strings.Replace(path, "generateContent", "streamGenerateContent", 1)
						}
						own += `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`
					default:
						own += `,"model":"sim/demo"`
						if stream {
							own += `,"stream":true`
						}
						if json && strings.Contains(path, "chat") {
							own += `,"response_format":{"type":"json_object"}`
						} else if json {
							continue
						}
					}
					resp, text := f.do("POST", to, "{"+own+"}")
					for _, thought := range []string{"First thought.", "Second thought."} {
						if resp.StatusCode != 200 || !strings.Contains(text, thought) {
							t.Errorf("%s, first %q, json %v, stream %v: %d, no %q in %s", path, first, json, stream, resp.StatusCode, thought, text)
						}
					}
				}
			}
		}
	}
}
