package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
)

var servedWires = map[lathe.Wire]wire.Served{lathe.WireOpenAIChat: openai.Served{}, lathe.WireResponses: responses.Codec{}, lathe.WireMessages: messages.Codec{}, lathe.WireGemini: gemini.Codec{}}

// destinationModel returns a model whose server answers with a word, and the bodies that the server received.
func destinationModel(t *testing.T, w lathe.Wire, kind, name string) (*provider.Chat, func() string) {
	t.Helper()
	var body string
	m, err := provider.New(w, name, &provider.Options{BaseURL: "http://models.example", Server: provider.Server{Kind: kind}, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
		req, bad := servedWires[w].ParseRequest(b)
		if bad != nil {
			return nil, bad
		}
		answer := wire.AppendAnswer(nil, servedWires[w], &wire.Answer{AnswerHead: wire.AnswerHead{ID: "1", Model: "m", Created: 1, Request: req},
			Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "ok"}}}}})
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(answer))), Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return m, func() string { return body }
}

// A schemaTool is a tool of this server with any schema.
type schemaTool struct{ spec lathe.ToolSpec }

func (t *schemaTool) Spec() *lathe.ToolSpec { return &t.spec }

func (*schemaTool) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{}, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Requests of clients of each wire reach a model server in the form that it takes, and the answer lists what was changed.
func TestRequestsFitTheirDestination(t *testing.T) {
	t.Parallel()
	const turn = `{"role":"user","content":"hi"}`
	long := strings.Repeat("u", 150)
	for _, c := range []struct {
		name        string
		wire        lathe.Wire
		kind, model string
		tool        string // schema of a tool of this server
		path, body  string // the rest of the request after its model
		has, hasNot string // in what the server receives
		dropped     string
	}{
		{"a schema without properties", lathe.WireOpenAIChat, "openai", "m", `{"type":"object"}`, "chat/completions", `"messages":[` + turn + `]`, `"parameters":{"type":"object","properties":{}}`, "", ""},
		{"a union at the root", lathe.WireOpenAIChat, "openai", "m", `{"type":"object","oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`, "chat/completions", `"messages":[` + turn + `]`, `"properties":{"a":{},"b":{}}`, "oneOf", ".schema.oneOf"},
		{"no parameters", lathe.WireResponses, "", "m", "", "chat/completions", `"messages":[` + turn + `],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`, `"parameters":{"type":"object","properties":{}}`, "", ""},
		{"an array without items", lathe.WireResponses, "openai", "m", "", "messages", `"max_tokens":99,"messages":[` + turn + `],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"l":{"type":"array"}}}}]`, `"l":{"type":"array","items":{}}`, "", ""},
		{"a reference with a title", lathe.WireGemini, "", "m", "", "messages", `"max_tokens":99,"messages":[` + turn + `],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"o":{"$ref":"#/$defs/O","title":"T","default":{}}},"$defs":{"O":{"type":"object"}}}}]`, `"o":{"$ref":"#/$defs/O"}`, "", ".schema.properties.o.title"},
		{"a long user", lathe.WireOpenAIChat, "openai", "m", "", "messages", `"max_tokens":99,"metadata":{"user_id":"` + long + `"},"messages":[` + turn + `]`, `"user":"`, long[:65], "user"},
		{"a long user at OpenRouter", lathe.WireOpenAIChat, "openrouter", "m", "", "responses", `"user":"` + long + `","input":"hi"`, `"user":"`, long[:129], "user"},
		{"one token", lathe.WireResponses, "openai", "m", "", "messages", `"max_tokens":1,"messages":[` + turn + `]`, `"max_output_tokens":16`, "", "sampling.max_tokens"},
		{"five stop sequences", lathe.WireOpenAIChat, "openai", "m", "", "messages", `"max_tokens":99,"stop_sequences":["1","2","3","4","5"],"messages":[` + turn + `]`, `"stop":["1","2","3","4"]`, "", "sampling.stop[4]"},
		{"effort of an older Claude", lathe.WireMessages, "", "claude-haiku-4-5", "", "responses", `"reasoning":{"effort":"high"},"input":"hi"`, `"thinking":{"type":"enabled","budget_tokens":16384}`, "effort", ""},
		{"no thinking at Gemini 2.5 Pro", lathe.WireGemini, "", "gemini-2.5-pro", "", "messages", `"max_tokens":99,"thinking":{"type":"disabled"},"messages":[` + turn + `]`, `"thinkingBudget":128`, "", "sampling.reasoning_effort"},
		{"a budget at chat completions", lathe.WireOpenAIChat, "", "m", "", "messages", `"max_tokens":9999,"thinking":{"type":"enabled","budget_tokens":8000},"messages":[` + turn + `]`, `"reasoning_effort":"medium"`, "", "sampling.reasoning_budget"},
		{"a budget at Responses", lathe.WireResponses, "", "m", "", "messages", `"max_tokens":40000,"thinking":{"type":"enabled","budget_tokens":31999},"messages":[` + turn + `]`, `"reasoning":{"effort":"high"}`, "", "sampling.reasoning_budget"},
		{"reasoning beside a call", lathe.WireOpenAIChat, "deepseek", "m", "", "messages", `"max_tokens":99,"messages":[` + turn + `,{"role":"assistant","content":[{"type":"thinking","thinking":"Think","signature":""},{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]`, `"reasoning_content":"Think"`, "", ""},
		{"reasoning of others at OpenAI", lathe.WireOpenAIChat, "openai", "m", "", "messages", `"max_tokens":99,"messages":[` + turn + `,{"role":"assistant","content":[{"type":"thinking","thinking":"Think","signature":""},{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]`, `"c1"`, "Think", "messages[1].content[0]"},
		{"adaptive thinking and a forced call", lathe.WireMessages, "", "claude-opus-4-6", "", "chat/completions", `"messages":[` + turn + `],"reasoning_effort":"high","tool_choice":"required","tools":[{"type":"function","function":{"name":"f"}}]`, `"thinking":{"type":"adaptive"}`, "", ""},
		{"instructions and a developer", lathe.WireOpenAIChat, "vllm", "m", "", "responses", `"store":false,"instructions":"INS","input":[{"role":"developer","content":"DEV"},{"role":"user","content":"a"}]`, `"messages":[{"role":"system","content":"INS\n\nDEV"},{"role":"user","content":"a"}]`, "", "input[0].role"},
		{"a later system message", lathe.WireOpenAIChat, "llamacpp", "m", "", "messages", `"max_tokens":99,"system":"TOP","messages":[` + turn + `,{"role":"system","content":"REM"}]`, `"messages":[{"role":"system","content":"TOP"},{"role":"user","content":"hi\n\n<system>\nREM\n</system>"}]`, "", "messages[1].role"},
		{"a later system message at Messages", lathe.WireMessages, "", "m", "", "chat/completions", `"messages":[` + turn + `,{"role":"system","content":"REM"}]`, `"text":"<system>\nREM\n</system>"`, `"role":"system"`, "messages[1].role"},
		{"history at Responses", lathe.WireResponses, "", "m", "", "chat/completions", `"messages":[` + turn + `,{"role":"assistant","content":"b"},` + turn + `]`, `"annotations":[]}],"status":"completed"}`, "", ""},
		{"temperature and top_p", lathe.WireMessages, "", "claude-sonnet-4-5", "", "chat/completions", `"messages":[` + turn + `],"temperature":0.7,"top_p":0.9`, `"temperature":0.7`, "top_p", "sampling.top_p"},
		{"a text document", lathe.WireOpenAIChat, "", "m", "", "messages", `"max_tokens":99,"messages":[{"role":"user","content":[{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"WORDS"}},{"type":"text","text":"q"}]}]`, `"content":"<document title=\"t\">\nWORDS\n</document>\nq"`, "", ""},
		{"a document of blocks", lathe.WireOpenAIChat, "", "m", "", "messages", `"max_tokens":99,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"WORDS"}]}},{"type":"text","text":"q"}]}]`, `\nWORDS\n`, "", ""},
		{"a format in a turn without calls", lathe.WireOpenAIChat, "vllm", "m", "", "messages", `"max_tokens":99,"tool_choice":{"type":"none"},"messages":[` + turn + `],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`, `"response_format":{`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, sent := destinationModel(t, c.wire, c.kind, c.model)
			s := &setting{model: m, opts: func(o *server.Options) { o.Setup.Tools = nil }}
			if c.tool != "" {
				s.opts = nil
				s.tools = []lathe.Tool{&schemaTool{lathe.ToolSpec{Name: "f", Schema: json.RawMessage(c.tool), Allowlist: []string{"*"}}}}
			}
			f := serve(t, s)
			resp, got := f.do("POST", "/v1/"+c.path, `{"model":"sim/x",`+c.body+`}`)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%d: %s", resp.StatusCode, got)
			}
			body := strings.ReplaceAll(sent(), `\u003c`, "<")
			if !strings.Contains(body, c.has) || c.hasNot != "" && strings.Contains(body, c.hasNot) {
				t.Errorf("sent %s\nwant %s, not %s", body, c.has, c.hasNot)
			}
			if !strings.Contains(got, c.dropped) {
				t.Errorf("answered %s\nwithout %s", got, c.dropped)
			}
		})
	}
}
