package provider_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// A response above a limit ends the call with the name of the setting that raises the limit.
func TestResponsesAboveALimitNameTheSetting(t *testing.T) {
	t.Parallel()
	const head, text = `{"choices":[{"index":0,"delta":`, `{"content":"0123456789"}`
	calls := `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}]}`
	for name, tt := range map[string]struct {
		delta  string
		times  int
		whole  bool
		limits func(*provider.Options)
		want   string
	}{
		"calls":    {calls, 1, false, func(o *provider.Options) { o.Limits.MaxAnswerCalls = 1 }, "the answer is above max_answer_calls"},
		"text":     {text, 20, false, func(o *provider.Options) { o.Limits.MaxAnswerBytes = 100 }, "the answer is above max_answer_bytes"},
		"line":     {text, 1, false, func(o *provider.Options) { o.Limits.MaxLineBytes = 20 }, "the response is above max_line_bytes"},
		"event":    {text, 1, false, func(o *provider.Options) { o.Limits.MaxEventBytes = 20 }, "the response is above max_event_bytes"},
		"response": {text, 20, false, func(o *provider.Options) { o.Limits.MaxResponseBytes = 300 }, "the response is above max_response_bytes"},
		"whole":    {text, 1, true, func(o *provider.Options) { o.Limits.MaxEventBytes = 20 }, "the response is above max_event_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				accept(r)
				if tt.whole {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(strings.Replace(head, "delta", "message", 1) + tt.delta + "}]}"))
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(strings.Repeat("data: "+head+tt.delta+"}]}\n\n", tt.times) + "data: [DONE]\n\n"))
			}))
			defer server.Close()
			o := &provider.Options{BaseURL: server.URL, Retry: provider.Retry{Attempts: 1}}
			tt.limits(o)
			c, err := provider.OpenAI("m", o)
			if err != nil {
				t.Fatal(err)
			}
			a := ask(t, t.Context(), c)
			if a.err == nil {
				t.Fatal("the response was taken")
			}
			if up := a.upstream(t); up.Kind != lathe.UpstreamBadProtocol || up.Message != tt.want {
				t.Errorf("got %s %q, want %q", up.Kind, up.Message, tt.want)
			}
		})
	}
}
