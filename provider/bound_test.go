package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
)

// recorded keeps the last request, and counts those that were refused.
type recorded struct {
	next    http.RoundTripper
	last    string
	refused int
}

func (r *recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.last = string(body)
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := r.next.RoundTrip(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		r.refused++
	}
	return resp, err
}

// Thinking behind other tools than those of the request, as in a turn that is repeated without tools, is left out of that request and listed; a
// request with its tools has it again. The server refuses none of them. A process that does not know the thinking learns from one refusal.
func TestThinkingIsSentBehindItsToolsOnly(t *testing.T) {
	t.Parallel()
	server := &recorded{next: sim.New(nil).Transport()}
	entry := func() lathe.Model {
		m, err := provider.Anthropic("sim/fault-bound-thinking", &provider.Options{BaseURL: "http://sim.invalid", Transport: server, Server: provider.Server{Kind: "anthropic", Accepts: map[string]string{"thinking_binding": "keep"}}, Entry: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	tools := []*lathe.ToolSpec{{Name: "calculator", Description: "Calculates an arithmetic expression.",
		Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)}}
	ask := func(m lathe.Model, tools []*lathe.ToolSpec, history []lathe.Message, signatures int, dropped ...string) *lathe.Finish {
		t.Helper()
		var fin *lathe.Finish
		for d, err := range m.Generate(t.Context(), &lathe.Request{Messages: history, Tools: tools}) {
			if err != nil {
				t.Fatal(err)
			}
			fin = d.Finish
		}
		if n := strings.Count(server.last, `"signature":"`); n != signatures || !slices.Equal(fin.Dropped, dropped) {
			t.Errorf("%d signatures are sent, want %d, and %q are left out, want %q", n, signatures, fin.Dropped, dropped)
		}
		return fin
	}
	m := entry()
	history := []lathe.Message{lathe.User("What is 7 + 35?")}
	fin := ask(m, tools, history, 0)
	history = append(history, fin.Message)
	for _, c := range fin.Message.Calls() {
		history = append(history, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: `{"result":42}`}}})
	}
	history = append(history, lathe.User("Hello."))
	ask(m, nil, history, 0, "messages[1].parts[0]")
	ask(m, tools, history, 1)
	if server.refused > 0 {
		t.Errorf("%d requests were refused", server.refused)
	}
	m = entry() // of another process
	for range 3 {
		ask(m, nil, history, 0, "messages[1].parts[0]")
	}
	if server.refused != 1 {
		t.Errorf("%d requests were refused, want one", server.refused)
	}
}

// A readerOfOne is a server of Responses that can read no encrypted reasoning but its own.
type readerOfOne struct{ last string }

func (s *readerOfOne) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.last = string(body)
	status, answer := http.StatusOK, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
	if strings.Contains(s.last, "of another") {
		status, answer = http.StatusBadRequest, `{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content"}}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// Encrypted reasoning that a client has brought from another model is left out and listed if the server cannot read it; what this entry wrote
// stays, also in later requests.
func TestReasoningOfAnotherModelIsLeftOut(t *testing.T) {
	t.Parallel()
	s := &readerOfOne{}
	m, err := provider.Responses("m", &provider.Options{BaseURL: "http://up.invalid/v1", Transport: s, Entry: "x", Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	said := func(data, entry string) lathe.Message {
		return lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireResponses, Parts: []lathe.Part{lathe.Reasoning{Data: data, Entry: entry}, lathe.Text{Text: "a"}}}
	}
	history := []lathe.Message{lathe.User("a"), said("of another", ""), lathe.User("b"), said("own", "x"), lathe.User("c")}
	for _, history := range [][]lathe.Message{history, {lathe.User("a"), said("brought", ""), lathe.User("b")}} {
		var fin *lathe.Finish
		for d, err := range m.Generate(t.Context(), &lathe.Request{Messages: history}) {
			if err != nil {
				t.Fatal(err)
			}
			fin = d.Finish
		}
		if foreign := len(history) > 3; foreign != slices.Equal(fin.Dropped, []string{"messages[1].parts[0]"}) || !strings.Contains(s.last, map[bool]string{true: `"own"`, false: `"brought"`}[foreign]) {
			t.Errorf("%q are left out of %s", fin.Dropped, s.last)
		}
	}
}

// Where the request asks the server to drop thinking that it cannot accept, thinking is listed and sent though the tools have changed: the server may
// require it beside a call, and the thinking after it was written behind it.
func TestThinkingIsLeftToAServerThatDropsIt(t *testing.T) {
	t.Parallel()
	server := &recorded{next: sim.New(nil).Transport()}
	m, err := provider.Anthropic("sim/fault-bound-thinking", &provider.Options{BaseURL: "http://sim.invalid", Transport: server, Server: provider.Server{Kind: "anthropic", Accepts: map[string]string{"thinking_binding": "drop_block"}}, Entry: "x"})
	if err != nil {
		t.Fatal(err)
	}
	calculator := &lathe.ToolSpec{Name: "calculator", Description: "Calculates an arithmetic expression.",
		Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)}
	found := &lathe.ToolSpec{Name: "found", Schema: json.RawMessage(`{"type":"object"}`)}
	history := []lathe.Message{lathe.User("What is 7 + 35?")}
	ask := func(signatures int, dropped []string, tools ...*lathe.ToolSpec) {
		t.Helper()
		for d, err := range m.Generate(t.Context(), &lathe.Request{Messages: history, Tools: tools, Sampling: lathe.Sampling{ReasoningEffort: "high"}}) {
			if err != nil {
				t.Fatal(err)
			}
			if fin := d.Finish; fin != nil {
				if n := strings.Count(server.last, `"signature":"`); n != signatures || !slices.Equal(fin.Dropped, dropped) {
					t.Errorf("%d signatures are sent, want %d, and %q are left out, want %q", n, signatures, fin.Dropped, dropped)
				}
				history = append(history, fin.Message)
				for _, c := range fin.Message.Calls() {
					history = append(history, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: `{"result":42}`}}})
				}
			}
		}
	}
	ask(0, nil, calculator)
	ask(1, []string{"messages[1].parts[0]"}, calculator, found)
	history = append(history, lathe.User("Thanks."))
	ask(2, []string{"messages[1].parts[0]"}, calculator, found)
	if server.refused > 0 {
		t.Errorf("%d requests were refused", server.refused)
	}
}
