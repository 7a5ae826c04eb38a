package sim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/sim"
)

// A client is one wire as its clients speak it.
type client struct {
	wire.Upstream
	root string // of its paths
}

var clients = []client{
	{openai.Upstream{}, "/v1"}, {responses.Codec{}, "/v1"}, {messages.Codec{}, ""}, {gemini.Codec{}, "/v1beta"},
}

// ask sends a request and reads the answer with the codec's Assembler.
func (c client) ask(t *testing.T, rt http.RoundTripper, req *lathe.Request, stream bool) (*lathe.Finish, error) {
	t.Helper()
	body, _ := c.AppendRequest(nil, req, &wire.EncodeOptions{Stream: stream, IncludeUsage: true, ReasoningField: "*"})
	hr, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sim.invalid"+c.root+c.Path(req.Model, stream), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(hr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return nil, c.ParseError(resp.StatusCode, b)
	}
	asm := c.NewAssembler(nil)
	if resp.Header.Get("Content-Type") == "application/json" {
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		_, fin, err := asm.Complete(nil, b)
		return fin, err
	}
	r := sse.NewReader(resp.Body, &sse.Options{RawUTF8: true})
	for !asm.Done() {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if _, err := asm.Append(nil, ev.Type, ev.Data); err != nil {
			return nil, err
		}
	}
	return asm.Finish(true)
}

// run answers every call with a result until the model stops asking, and returns the last answer.
func (c client) run(t *testing.T, rt http.RoundTripper, model, prompt string, stream bool) (*lathe.Finish, []lathe.Message, error) {
	t.Helper()
	history := []lathe.Message{lathe.User(prompt)}
	var tokens lathe.Usage
	for range 10 {
		fin, err := c.ask(t, rt, &lathe.Request{Model: model, Messages: history, Tools: tools}, stream)
		if e := (*wire.APIError)(nil); errors.As(err, &e) && (e.Status == 408 || e.Status == 429 || e.Status >= 500) && e.Code != "bad_call" {
			fin, err = c.ask(t, rt, &lathe.Request{Model: model, Messages: history, Tools: tools}, stream)
		}
		if err != nil {
			return nil, history, err
		}
		tokens.Add(fin.Usage)
		fin.Usage = tokens
		history = append(history, fin.Message)
		cs := fin.Message.Calls()
		if last := history[len(history)-2]; len(cs) == 0 && fin.Message.Text() == "" && last.Role == lathe.RoleTool { // ask for an answer
			r := last.Parts[0].(lathe.ToolResult)
			r.Content += "\n\n" + lathe.DefaultFixEmptyFinalText
			last.Parts = []lathe.Part{r}
			history = append(history[:len(history)-2:len(history)-2], last)
			continue
		}
		if len(cs) == 0 || fin.Reason == lathe.FinishLength || cs[0].Incomplete {
			return fin, history, nil
		}
		seen := map[string]int{}
		for i := range cs {
			if cs[i].ID == "" || seen[cs[i].ID] > 0 { // as every client has to
				cs[i].ID += "_" + string(rune('a'+i))
			}
			seen[cs[i].ID]++
		}
		history[len(history)-1] = withIDs(fin.Message, cs)
		for _, call := range cs {
			content := `{"result":42}`
			if call.Name == "get_current_time" {
				content = `{"currentTime":"2026-11-20T20:30:00+09:00"}`
			}
			history = append(history, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: call.ID, Name: call.Name, Content: content}}})
		}
	}
	t.Fatal("the model never stopped asking")
	return nil, nil, nil
}

func withIDs(m lathe.Message, calls []lathe.ToolCall) lathe.Message {
	parts := make([]lathe.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		if _, ok := p.(lathe.ToolCall); ok {
			p, calls = calls[0], calls[1:]
		}
		parts = append(parts, p)
	}
	m.Parts = parts
	return m
}

const (
	twoTools   = "What is 7 + 35, and what time is it in Tokyo?"
	twoAnswers = "7 + 35 = 42. The time in Tokyo is 20:30 (2026-11-20T20:30:00+09:00)."
)

func eachWire(t *testing.T, test func(t *testing.T, c client, stream bool)) {
	for _, c := range clients {
		for _, stream := range []bool{true, false} {
			form := "/whole"
			if stream {
				form = "/stream"
			}
			t.Run(string(c.Wire())+form, func(t *testing.T) {
				t.Parallel()
				test(t, c, stream)
			})
		}
	}
}

func TestEveryWireHasTheSameConversation(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, c client, stream bool) {
		rt := sim.New(nil).Transport()
		for _, k := range []struct{ model, prompt, want string }{
			{"sim/demo", "Reply exactly with: Done.", "Done."},
			{"sim/demo", "What is 7 + 35?", "7 + 35 = 42."},
			{"sim/demo", twoTools, twoAnswers},
			{"sim/thinking", twoTools, twoAnswers},
			{"sim/demo+native", twoTools, twoAnswers},
		} {
			fin, history, err := c.run(t, rt, k.model, k.prompt, stream)
			if err != nil {
				t.Fatalf("%s: %v", k.model, err)
			}
			if fin.Message.Text() != k.want || fin.Reason != lathe.FinishStop || fin.Usage.InputTokens == 0 || fin.Usage.OutputTokens == 0 || len(fin.Faults) > 0 {
				t.Errorf("%s: %+v", k.model, fin)
			}
			if k.prompt != twoTools {
				continue
			}
			want := []string{`calculator {"expression":"7 + 35"}`, `get_current_time {"zone":"Asia/Tokyo"}`}
			if got := calls(&history[1]); strings.Join(got, ";") != strings.Join(want, ";") || history[1].Text() != "Let me use calculator and get_current_time." {
				t.Errorf("%s: calls %v in %+v", k.model, got, history[1])
			}
		}
	})
}

func TestEveryWirePlaysScripts(t *testing.T) {
	t.Parallel()
	s, err := sim.ParseScript(strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	eachWire(t, func(t *testing.T, c client, stream bool) {
		rt := sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": s}}).Transport()
		req := &lathe.Request{Model: "sim/script", Messages: []lathe.Message{lathe.User("go")}}
		fin, err := c.ask(t, rt, req, stream)
		if err != nil {
			t.Fatal(err)
		}
		cs := fin.Message.Calls()
		if len(cs) != 2 || cs[1].ID != "mine" || cs[1].Arguments != `{"a":1,"b":2}` || fin.Reason != lathe.FinishToolCalls || fin.Usage.Total() != 15 {
			t.Errorf("first turn: %+v", fin)
		}
		req.Messages = append(req.Messages, fin.Message)
		for _, call := range cs {
			req.Messages = append(req.Messages, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: call.ID, Name: call.Name, Content: "42"}}})
		}
		if fin, err = c.ask(t, rt, req, stream); err != nil {
			t.Fatal(err)
		}
		if fin.Message.Text() != "It is\nforty-two." || fin.Reason != lathe.FinishLength {
			t.Errorf("second turn: %+v", fin)
		}
		req.Messages = append(req.Messages, fin.Message)
		var e *wire.APIError
		if _, err = c.ask(t, rt, req, stream); !errors.As(err, &e) || e.Status != 429 || e.Message != "slow down" {
			t.Errorf("third turn: %v", err)
		}
	})
}

func TestEveryWireHasDialects(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, c client, stream bool) {
		fin, err := c.ask(t, sim.New(nil).Transport(), &lathe.Request{Model: "sim/demo+hermes", Messages: []lathe.Message{lathe.User("What is 7 + 35?")}, Tools: tools}, stream)
		if err != nil {
			t.Fatal(err)
		}
		if len(fin.Message.Calls()) != 0 || !strings.Contains(fin.Message.Text(), `<tool_call>`) {
			t.Errorf("%+v", fin.Message)
		}
	})
}

// A fault that a run survives leaves the answer as it is, and one that it does not survive is an error.
func TestFaultsOnEveryWire(t *testing.T) {
	t.Parallel()
	for _, c := range clients {
		for _, f := range sim.FaultsOn(c.Wire()) {
			if f.Name == "hang" || f.Ends == lathe.ReasonToolLoop {
				continue // are not conversations that end
			}
			t.Run(string(c.Wire())+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				prompt, want := twoTools, twoAnswers
				switch {
				case f.Name == "args-null", f.Name == "args-missing":
					prompt, want = "What is 7 + 35?", "calculator says: result is 42."
				case f.Name == "args-empty":
					prompt, want = "Tell me the time.", "The time now is 20:30 (2026-11-20T20:30:00+09:00)."
				case strings.HasPrefix(f.Name, "args-") && f.Name != "args-one-piece" && f.Name != "args-at-once" && f.Name != "args-partial", f.Name == "function-call":
					prompt, want = "What is 7 + 35?", "7 + 35 = 42."
				case f.Name == "cut-mid-text":
					prompt = "Tell me a story."
				}
				fin, _, err := c.run(t, sim.New(nil).Transport(), "sim/fault-"+f.Name, prompt, true)
				switch f.Ends {
				case lathe.ReasonAnswered:
					if err != nil {
						t.Fatal(err)
					}
					if f.Name == "terminal-differs" { // such calls are not executed
						if cs := fin.Message.Calls(); len(cs) != 2 || !cs[0].Incomplete || !cs[1].Incomplete {
							t.Errorf("%+v", cs)
						}
						return
					}
					if fin.Message.Text() != want {
						t.Errorf("answer %q, want %q", fin.Message.Text(), want)
					}
				case lathe.ReasonUpstreamError:
					if err == nil {
						t.Errorf("answered %+v", fin)
					}
				case lathe.ReasonLength:
					if err != nil || fin.Reason != lathe.FinishLength {
						t.Errorf("%+v, %v", fin, err)
					}
				case lathe.ReasonContentFilter:
					if err != nil || fin.Reason != lathe.FinishContentFilter {
						t.Errorf("%+v, %v", fin, err)
					}
				default:
					t.Errorf("ends %s", f.Ends)
				}
			})
		}
	}
}

func TestFaultsAreRefusedOnOtherWires(t *testing.T) {
	t.Parallel()
	for _, c := range clients {
		for _, f := range sim.Faults() {
			if f.On(c.Wire()) {
				continue
			}
			_, err := c.ask(t, sim.New(nil).Transport(), &lathe.Request{Model: "sim/fault-" + f.Name, Messages: []lathe.Message{lathe.User("x")}}, true)
			var e *wire.APIError
			if !errors.As(err, &e) || e.Status != 404 || !strings.Contains(e.Message, string(f.Wires[0])) {
				t.Errorf("%s on %s: %v", f.Name, c.Wire(), err)
			}
		}
	}
}

func TestGeminiStreamsAnArrayWithoutSSE(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"sim/demo", "sim/fault-keep-alive-flood", "sim/fault-usage-late"} {
		rec := httptest.NewRecorder()
		body := `{"contents":[{"role":"user","parts":[{"text":"Reply exactly with: one two three"}]}]}`
		sim.New(nil).Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1beta/models/"+model+":streamGenerateContent", strings.NewReader(body)))
		if !json.Valid(rec.Body.Bytes()) {
			t.Errorf("%s: not JSON: %.300s", model, rec.Body)
		}
		_, fin, err := gemini.Codec{}.NewAssembler(nil).Complete(nil, rec.Body.Bytes())
		if err != nil || fin.Message.Text() != "one two three" || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v: %s", model, err, rec.Body)
		}
	}
}

func TestTokensAreCountedOnWiresWithACount(t *testing.T) {
	t.Parallel()
	h := sim.New(nil).Handler()
	for path, c := range map[string]struct{ body, want string }{
		"/v1/messages/count_tokens":           {`{"model":"sim/demo","messages":[{"role":"user","content":"12345678"}]}`, `{"input_tokens":2}`},
		"/v1beta/models/sim/demo:countTokens": {`{"contents":[{"parts":[{"text":"12345678"}]}]}`, `{"totalTokens":2}`},
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, strings.NewReader(c.body)))
		if rec.Code != http.StatusOK || rec.Body.String() != c.want {
			t.Errorf("%s: %d %s, want %s", path, rec.Code, rec.Body, c.want)
		}
	}
}

func TestModelsAreListedInTheFormOfTheWire(t *testing.T) {
	t.Parallel()
	h := sim.New(nil).Handler()
	for _, c := range []struct{ path, version, want string }{
		{"/v1/models", "", `{"object":"list","data":[{"id":"sim/careful"`},
		{"/v1/models", "2023-06-01", `{"data":[{"type":"model","id":"sim/careful"`},
		{"/v1beta/models", "", `{"models":[{"name":"models/sim/careful"`},
	} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, c.path, http.NoBody)
		r.Header.Set("Anthropic-Version", c.version)
		h.ServeHTTP(rec, r)
		if !strings.HasPrefix(rec.Body.String(), c.want) {
			t.Errorf("%s: %.200s", c.path, rec.Body)
		}
	}
}

func TestErrorsHaveTheFormOfTheWire(t *testing.T) {
	t.Parallel()
	h := sim.New(nil).Handler()
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/responses", `{"model":"sim/none","input":"x"}`, 404, `{"error":{"message":"no simulated model`},
		{"/v1/responses", `{"model":"sim/demo","input":"x","previous_response_id":"resp_1"}`, 400, `"code":"previous_response_not_found"`},
		{"/v1/responses", `{"model":"sim/demo","input":[{"type":"function_call_output","call_id":"call_9","output":"x"}]}`, 400, "call_id"},
		{"/v1/messages", `{"model":"sim/none","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, 404, `{"type":"error","error":{"type":"not_found_error"`},
		{"/v1/messages", `{"model":"sim/demo","messages":[]}`, 400, `"type":"invalid_request_error"`},
		{"/v1/messages", `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]}]}`, 400, "tool_result"},
		{"/v1beta/models/sim/none:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`, 404, `"status":"NOT_FOUND"`},
		{"/v1beta/models/sim/demo:embedContent", `{}`, 404, `"status":"NOT_FOUND"`},
		{"/v1beta/models/sim/fault-status-429-delay:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`, 429, `"retryDelay":"0.01s"`},
		{"/v1/messages/batches", `{}`, 404, `{"type":"error"`},
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body)))
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.body, rec.Code, rec.Body, c.status, c.want)
		}
	}
}
