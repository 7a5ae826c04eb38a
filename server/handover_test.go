package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
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
		calls  int
		pieces int // frames with argument text
	}{
		"alone":              {client("0", "c1", "Oslo") + end, "", 1, 3},
		"server before":      {server("0", "s1") + client("1", "c1", "Oslo") + end, "", 1, 3},
		"server around":      {server("0", "s1") + client("1", "c1", "Oslo") + server("2", "s2") + end, "", 1, 3},
		"two":                {client("0", "c1", "Oslo") + server("1", "s1") + client("2", "c2", "Rome") + end, "", 2, 4}, // the second at the end
		"only one at a time": {client("0", "c1", "Oslo") + client("1", "c2", "Rome") + end, `,"parallel_tool_calls":false`, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, step(c.body, chunk(`{"role":"assistant","content":"x"}`, `"stop"`)))
			s := f.streamed(ask("sim/x", "hi", more+c.more))
			ids := map[string]bool{}
			for _, tc := range s.ToolCalls {
				if ids[tc.ID] = true; !isGatewayID(tc.ID) {
					t.Errorf("id %q", tc.ID)
				}
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
			if len(ids) != c.calls || pieces != c.pieces || s.finish != "tool_calls" || !s.done {
				t.Errorf("%d calls in %d pieces, finish %s, want %d in %d", len(ids), pieces, s.finish, c.calls, c.pieces)
			}
		})
	}
}

// The first piece is with the client before the model has written the last.
func TestClientCallsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	set := &setting{instead: func(_ int, r *http.Request) (*http.Response, error) {
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
	for deadline := time.Now().Add(time.Minute); !strings.Contains(got, `{\"city\":`) && time.Now().Before(deadline); {
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

// Whatever comes of a call after its client got the beginning of it: if the run does not contain the call, its arguments
// are never whole, and the stream ends with an error.
func TestClientGetsNoCallThatTheRunDoesNotContain(t *testing.T) {
	t.Parallel()
	call := func(i, id, args string) string {
		return chunk(`{"tool_calls":[{"index":`+i+`,"id":"`+id+`","type":"function","function":{"name":"weather","arguments":`+quote(args)+`}}]}`, "null")
	}
	head := chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]}`, "null")
	piece := func(text string) string {
		return chunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+quote(text)+`}}]}`, "null")
	}
	const unreadable = `data: {"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}` + "\n\n"
	ends := func(reason string) string { return chunk(`{}`, quote(reason)) + "data: [DONE]\n\n" }
	answer := chunk(`{"role":"assistant","content":"The weather is fine."}`, `"stop"`) + "data: [DONE]\n\n"
	again := call("0", "c9", `{"city":"Rome"}`) + ends("tool_calls")
	whole := head + piece(`{"city":`) + piece(`"Oslo"}`)
	for name, c := range map[string]struct {
		first, then string
		limits      lathe.Limits
	}{
		"cut":                           {first: head + piece(`{"city":`) + unreadable, then: answer},
		"cut after its name":            {first: head + unreadable, then: answer},
		"cut, then another call":        {first: head + piece(`{"city":`) + unreadable, then: again},
		"whole":                         {first: whole + unreadable, then: answer},
		"whole in one piece":            {first: call("0", "c1", `{"city":"Oslo"}`) + unreadable, then: again},
		"whole, with space after it":    {first: whole + piece(" \n") + unreadable, then: answer},
		"whole, and the next is cut":    {first: whole + call("1", "c2", `{"ci`) + unreadable, then: again},
		"a number":                      {first: head + piece("1") + piece("2") + unreadable, then: answer},
		"in a fence":                    {first: head + piece("```json\n{\"city\":") + piece("\"Oslo\"}") + unreadable, then: answer},
		"braces in a string":            {first: head + piece(`{"city":"}\"}`) + piece(`"}`) + unreadable, then: answer},
		"at the model's limit":          {first: head + piece(`{"city":`) + ends("length"), then: again},
		"cut in the last turn of a run": {first: head + piece(`{"city":`) + unreadable, limits: lathe.Limits{MaxIterations: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := step(c.first, c.then)
			set.limits = c.limits
			f := serve(t, set)
			s := f.streamed(ask("sim/x", "hi", `,"stream":true,"tools":[`+weatherTool+`]`))
			if s.finish != "" || s.done || s.errCode != "tool_call_withdrawn" || s.Content != "" {
				t.Errorf("finish %q, done %v, error %q, content %q, want an error alone", s.finish, s.done, s.errCode, s.Content)
			}
			if len(s.ToolCalls) != 1 || json.Valid([]byte(s.ToolCalls[0].Function.Arguments)) {
				t.Errorf("the client got the calls %+v, want the beginning of one", s.ToolCalls)
			}
		})
	}
}

// A request whose stream ended because a call was withdrawn is repeated by its client. What its run wrote is not written again.
func TestRequestIsRepeatedAfterItsCallWasWithdrawn(t *testing.T) {
	t.Parallel()
	call := func(id, name, args string) string {
		return chunk(`{"tool_calls":[{"index":0,"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":`+quote(args)+`}}]}`, "null")
	}
	end := chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
	unreadable := `data: {"error":{"code":500,"message":"error parsing tool call: raw='{', err=unexpected end of JSON input","type":"api_error"}}` + "\n\n"
	office, release := &postOffice{}, make(chan struct{})
	var left atomic.Bool
	set := step(call("m1", "mail", `{"to":"ann"}`)+end, call("c1", "weather", `{"city":`)+unreadable)
	first := set.instead
	set.instead = func(n int, r *http.Request) (*http.Response, error) {
		if n < 3 {
			return first(n, r)
		}
		body := call("c2", "weather", `{"city":"Oslo"}`) + end
		if !left.Load() { // of the run that the client leaves with the error
			select {
			case <-release:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	defer close(release)
	set.tools, set.policy = []lathe.Tool{office.tool()}, policy.AllowAll()
	f := serve(t, set)
	body := ask("sim/x", "mail ann, then tell the weather", `,"stream":true,"tools":[`+weatherTool+`]`)
	if s := f.streamed(body); s.errCode != "tool_call_withdrawn" || s.done {
		t.Fatalf("got %+v, want a call that is withdrawn", s)
	}
	left.Store(true)
	s := f.streamed(body)
	if len(s.ToolCalls) != 1 || !isGatewayID(s.ToolCalls[0].ID) || s.finish != "tool_calls" || s.report == nil || s.report.Continues == "" {
		t.Errorf("the repetition got %+v", s)
	}
	if n := office.sent.Load(); n != 1 {
		t.Errorf("%d mails were sent, want 1", n)
	}
}
