package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/provider"
)

// TestCountTokens: requests to count tokens need no limit of their answer on Messages, are read as strictly as others, and get
// a number above 0 in the form of their wire.
func TestCountTokens(t *testing.T) {
	testdata.WithoutRace(t)
	f := serve(t, nil)
	for _, tt := range []struct{ path, body, member string }{
		{"/v1/messages/count_tokens", `{"model":"sim/demo","messages":[{"role":"user","content":"a long question"}]}`, "input_tokens"},
		{"/v1/messages/count_tokens", `{"model":"sim/demo","max_tokens":5,"messages":[{"role":"user","content":"a long question"}]}`, "input_tokens"},
		{"/v1beta/models/sim/demo:countTokens", `{"contents":[{"parts":[{"text":"a long question"}]}]}`, "totalTokens"},
		{"/v1beta/models/sim/demo:countTokens", `{"generateContentRequest":{"model":"models/sim/demo","contents":[{"parts":[{"text":"a long question"}]}],"systemInstruction":{"parts":[{"text":"Be brief."}]}}}`, "totalTokens"},
	} {
		res, body := f.do("POST", tt.path, tt.body)
		var got map[string]int
		if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != 200 || got[tt.member] <= 0 {
			t.Errorf("%s: %d %s", tt.path, res.StatusCode, body)
		}
	}
	for _, body := range []string{`{"model":"sim/demo","max_tokens":0,"messages":[{"role":"user","content":"a"}]}`, `{"model":"sim/demo","messages":[]}`} {
		if res, got := f.do("POST", "/v1/messages/count_tokens", body); res.StatusCode != 400 || !strings.Contains(got, `"invalid_request_error"`) {
			t.Errorf("%s: %d %s", body, res.StatusCode, got)
		}
	}
}

// A countingServer is a model server that answers requests to count tokens.
type countingServer struct {
	status atomic.Int64
	body   atomic.Pointer[string]
	asked  atomic.Int64
	sent   atomic.Pointer[string] // path, version of the API and body of the last request
}

func (s *countingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.asked.Add(1)
	sent := r.URL.Path + " " + r.Header.Get("Anthropic-Beta") + " " + r.Header.Get("Anthropic-Version") + " " + string(b)
	s.sent.Store(&sent)
	return &http.Response{StatusCode: int(s.status.Load()), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(*s.body.Load())), Request: r}, nil
}

// A model server of the client's wire counts the tokens, of what has tokens. If it fails, or does not count, the answer is an
// estimate and says so; a server without the method is not asked again.
func TestTokensAreCountedByTheModelsServer(t *testing.T) {
	t.Parallel()
	const carrier = `{"role":"assistant","content":[{"type":"redacted_thinking","data":"lathe1.xyz"},{"type":"text","text":"ok"}]},`
	for name, x := range map[string]struct {
		wire                     lathe.Wire
		path, body, answer, sent string
		estimate                 string
	}{
		"messages": {lathe.WireMessages, "/v1/messages/count_tokens",
			`{"model":"sim/demo","max_tokens":9,"temperature":1,"system":"s","service_tier":"auto","messages":[{"role":"user","content":"hi"},` + carrier + `{"role":"user","content":"on"}],"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}]}`,
			`{"input_tokens":123}`, `/v1/messages/count_tokens b-1 2023-01-01 {"model":"up-model","tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"ok"}]},{"role":"user","content":[{"type":"text","text":"on"}]}]}`, `{"input_tokens":`},
		"gemini": {lathe.WireGemini, "/v1beta/models/sim/demo:countTokens", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"temperature":1}}`,
			`{"totalTokens":123}`, `/v1beta/models/up-model:countTokens   {"generateContentRequest":{"model":"models/up-model","generationConfig":{"temperature":1},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}}`, `{"totalTokens":`},
		"responses": {lathe.WireResponses, "/v1/responses/input_tokens", `{"model":"sim/demo","input":"hi","max_output_tokens":9,"store":false}`,
			`{"object":"response.input_tokens","input_tokens":123}`, `/v1/responses/input_tokens   {"model":"up-model","input":[{"type":"message","role":"user","content":"hi"}]}`, `"input_tokens":`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &countingServer{}
			model := func(w lathe.Wire) *fixture {
				m, err := provider.New(w, "up-model", &provider.Options{Name: "up", BaseURL: "http://up.invalid", Transport: s, Retry: provider.Retry{Attempts: 1}})
				if err != nil {
					t.Fatal(err)
				}
				return serve(t, &setting{model: m})
			}
			f := model(x.wire)
			count := func(status int, answer string) (estimated, body string) {
				t.Helper()
				s.status.Store(int64(status))
				s.body.Store(&answer)
				req, err := http.NewRequestWithContext(t.Context(), "POST", f.url+x.path, strings.NewReader(x.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header["Anthropic-Beta"], req.Header["Anthropic-Version"] = []string{"b-1"}, []string{"2023-01-01"}
				resp, err := f.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				b, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("%v: %d %s", err, resp.StatusCode, b)
				}
				return resp.Header.Get("X-Lathe-Estimated"), string(b)
			}
			if estimated, body := count(200, x.answer); estimated != "false" || strings.TrimSpace(body) != x.answer {
				t.Errorf("estimated %q: %s", estimated, body)
			}
			if sent := *s.sent.Load(); sent != x.sent {
				t.Errorf("the server was sent\n%s\nwant\n%s", sent, x.sent)
			}
			n := s.asked.Load()
			for i, bad := range []struct {
				status int
				answer string
			}{{500, `{"error":{}}`}, {200, `{"input_tokens":-1,"totalTokens":"many"}`}, {200, "<html>"}, {200, strings.Repeat(" ", 70_000) + x.answer}, {301, ""}, {400, "{}"}, {404, ""}, {404, ""}} {
				if estimated, body := count(bad.status, bad.answer); estimated != "true" || !strings.Contains(body, x.estimate) || strings.Contains(body, "123") {
					t.Errorf("%d: estimated %q: %s", i, estimated, body)
				}
			}
			if got := s.asked.Load() - n; got != 7 { // the second 404 is not asked for
				t.Errorf("the server was asked %d times", got)
			}
			n = s.asked.Load()
			f = model(lathe.WireOpenAIChat)
			if estimated, body := count(200, x.answer); estimated != "true" || !strings.Contains(body, x.estimate) || s.asked.Load() != n {
				t.Errorf("a model on another wire: estimated %q: %s", estimated, body)
			}
		})
	}
}
