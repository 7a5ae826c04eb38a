package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

// step answers the nth request of a run with the nth body.
func step(bodies ...string) *setting {
	return &setting{instead: func(n int, r *http.Request) (*http.Response, error) {
		body := bodies[min(n, len(bodies))-1]
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}}
}

// The arguments of a client's call come as the model writes them, also where calls of the server stand
// before, between and after, of which the client sees nothing.
func TestClientCallsAreToldAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	call := func(piece string) string { return chunk(`{"tool_calls":[`+piece+`]}`, "null") }
	begin := func(i, id, name string) string {
		return call(`{"index":` + i + `,"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":""}}`)
	}
	args := func(i, text string) string {
		return call(`{"index":` + i + `,"function":{"arguments":` + quote(text) + `}}`)
	}
	server := func(i, id string) string {
		return begin(i, id, "calculator") + args(i, `{"expression":`) + args(i, `"6 * 7"}`)
	}
	client := func(i, id, city string) string {
		return begin(i, id, "weather") + args(i, `{"ci`) + args(i, `ty":`) + args(i, quote(city)+"}")
	}
	end := chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
	more := `,"stream":true,"tools":[` + weatherTool + `]`
	for name, c := range map[string]struct {
		body   string
		more   string
		ids    string
		pieces int // frames with argument text
	}{
		"alone":              {client("0", "c1", "Oslo") + end, "", "c1", 3},
		"server before":      {server("0", "s1") + client("1", "c1", "Oslo") + end, "", "c1", 3},
		"server around":      {server("0", "s1") + client("1", "c1", "Oslo") + server("2", "s2") + end, "", "c1", 3},
		"two":                {client("0", "c1", "Oslo") + server("1", "s1") + client("2", "c2", "Rome") + end, "", "c1 c2", 6},
		"only one at a time": {client("0", "c1", "Oslo") + client("1", "c2", "Rome") + end, `,"parallel_tool_calls":false`, "c1", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, step(c.body, chunk(`{"role":"assistant","content":"x"}`, `"stop"`)))
			s := f.streamed(ask("sim/x", "hi", more+c.more))
			var ids []string
			for _, tc := range s.ToolCalls {
				ids = append(ids, tc.ID)
				if tc.Function.Name != "weather" || tc.Type != "function" || !json.Valid([]byte(tc.Function.Arguments)) {
					t.Errorf("call %+v", tc)
				}
			}
			pieces := 0
			for _, frame := range s.frames {
				if strings.Contains(frame, "calculator") && !strings.Contains(frame, `"lathe"`) || strings.Contains(frame, "expression") {
					t.Errorf("the client sees the server's call: %s", frame)
				}
				if strings.Contains(frame, `"tool_calls":[{"index"`) && !strings.Contains(frame, `"arguments":""`) {
					pieces++
				}
			}
			if got := strings.Join(ids, " "); got != c.ids || pieces != c.pieces || s.finish != "tool_calls" || !s.done {
				t.Errorf("calls %s in %d pieces, finish %s, want %s in %d", got, pieces, s.finish, c.ids, c.pieces)
			}
		})
	}
}

// The first piece is with the client before the model has written the last.
func TestClientCallsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	set := &setting{patient: true, instead: func(_ int, r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr, Request: r}, nil
	}}
	f := serve(t, set)
	go func() {
		_, _ = io.WriteString(pw, chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":"}}]}`, "null"))
	}()
	resp, err := f.client.Post(f.url+"/v1/chat/completions", "application/json", strings.NewReader(ask("sim/x", "hi", `,"stream":true,"tools":[`+weatherTool+`]`)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	buf, got := make([]byte, 4096), ""
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(got, `{\"city\":`) && time.Now().Before(deadline); {
		n, err := resp.Body.Read(buf)
		if got += string(buf[:n]); err != nil {
			t.Fatalf("%v after %s", err, got)
		}
	}
	_, _ = io.WriteString(pw, chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}`, "null")+chunk(`{}`, `"tool_calls"`)+"data: [DONE]\n\n")
	_ = pw.Close()
	rest, err := io.ReadAll(resp.Body)
	if s := readStream(t, got+string(rest)); err != nil || len(s.ToolCalls) != 1 || s.ToolCalls[0].Function.Arguments != `{"city":"Oslo"}` {
		t.Errorf("got %+v (%v)", s, err)
	}
}

// A call that was begun and is not handed over after all (the run is over its limit) is closed, and the
// stream is still one that a client can read.
func TestClientCallBeyondTheLimit(t *testing.T) {
	t.Parallel()
	call := func(id, name, args string) string {
		return chunk(`{"tool_calls":[{"index":0,"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":`+quote(args)+`}}]}`, "null") + chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
	}
	set := step(call("s1", "calculator", `{"expression":"1 + 1"}`), call("c1", "weather", `{"city":"Oslo"}`), chunk(`{"role":"assistant","content":"enough"}`, `"stop"`))
	set.limits = lathe.Limits{MaxToolCalls: 1}
	f := serve(t, set)
	s := f.streamed(ask("sim/x", "hi", `,"stream":true,"tools":[`+weatherTool+`]`))
	if len(s.ToolCalls) != 0 || s.Content != "enough" || s.report.Reason != "max_total_tool_calls" || !s.done {
		t.Errorf("got %+v", s)
	}
}
