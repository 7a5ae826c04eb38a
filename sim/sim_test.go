package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/sim"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var tools = []*lathe.ToolSpec{
	{Name: "calculator", Description: "Calculates an arithmetic expression.",
		Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)},
	{Name: "get_current_time", Description: "Tells the current time.",
		Schema: json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string"}}}`)},
	{Name: "sum", Description: "Adds two numbers.",
		Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`)},
	{Name: "send_mail", Description: "Sends an email.",
		Schema: json.RawMessage(`{"type":"object","properties":{"email":{"type":"string"},"subject":{"type":"string"},"priority":{"enum":["low","high"]}},"required":["email","subject"]}`)},
	{Name: "read_file", Description: "Reads a file.",
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
}

func turn(t *testing.T, m lathe.Model, req *lathe.Request) (*lathe.Finish, []lathe.Delta, error) {
	t.Helper()
	var deltas []lathe.Delta
	var fin *lathe.Finish
	for d, err := range m.Generate(t.Context(), req) {
		if err != nil {
			return nil, deltas, err
		}
		if d.Kind == lathe.DeltaFinish {
			fin = d.Finish
			continue
		}
		deltas = append(deltas, d)
	}
	return fin, deltas, nil
}

func calls(m *lathe.Message) []string {
	var out []string
	for _, c := range m.Calls() {
		out = append(out, c.Name+" "+c.Arguments)
	}
	return out
}

func TestDemoPicksToolsAndFillsArguments(t *testing.T) {
	t.Parallel()
	m := sim.New(nil).Model("")
	for _, c := range []struct {
		prompt string
		want   []string
	}{
		{"What is 7 + 35, and what time is it in Tokyo?", []string{`calculator {"expression":"7 + 35"}`, `get_current_time {"zone":"Asia/Tokyo"}`}},
		{"What is 12 times 12?", []string{`calculator {"expression":"12 * 12"}`}},
		{"Calculate (1.5 + 2) * -3", []string{`calculator {"expression":"(1.5 + 2) * -3"}`}},
		{"Please call sum for a=7 and b=35.", []string{`sum {"a":7,"b":35}`}},
		{"What time is it in America/New_York?", []string{`get_current_time {"zone":"America/New_York"}`}},
		{"Tell me the time.", []string{`get_current_time {}`}},
		{`Send an email to ann@example.org with subject "Hello there" and high priority`, []string{`send_mail {"email":"ann@example.org","subject":"Hello there","priority":"high"}`}},
		{"Read the file notes/todo.txt", []string{`read_file {"path":"notes/todo.txt"}`}},
		{`Use send_mail with {"email":"x@y.z","subject":"s"}`, []string{`send_mail {"email":"x@y.z","subject":"s"}`}},
		{"Tell me a story about dragons.", nil},
	} {
		fin, _, err := turn(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User(c.prompt)}, Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, calls(&fin.Message)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.prompt, diff)
		}
	}
}

func TestDemoFollowsToolChoiceAndParallel(t *testing.T) {
	t.Parallel()
	m := sim.New(nil).Model("sim/demo")
	no := false
	prompt := []lathe.Message{lathe.User("What is 7 + 35, and what time is it in Tokyo?")}
	for _, c := range []struct {
		name string
		req  lathe.Request
		want int
	}{
		{"none", lathe.Request{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}, 0},
		{"one at a time", lathe.Request{ParallelToolCalls: &no}, 1},
		{"named", lathe.Request{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "read_file"}}, 1},
	} {
		c.req.Messages, c.req.Tools = prompt, tools
		fin, _, err := turn(t, m, &c.req)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(fin.Message.Calls()); got != c.want {
			t.Errorf("%s: %d calls, want %d", c.name, got, c.want)
		}
	}
	req := lathe.Request{Messages: []lathe.Message{lathe.User("Tell me a story.")}, Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}}
	if fin, _, err := turn(t, m, &req); err != nil || len(fin.Message.Calls()) != 1 {
		t.Errorf("required: %v, %v; want a call", fin, err)
	}
}

// converse answers every call with the same content until the model stops asking.
func converse(t *testing.T, m lathe.Model, prompt, result string) string {
	t.Helper()
	msgs := []lathe.Message{lathe.User(prompt)}
	for range 10 {
		fin, _, err := turn(t, m, &lathe.Request{Messages: msgs, Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, fin.Message)
		cs := fin.Message.Calls()
		if len(cs) == 0 {
			return fin.Message.Text()
		}
		for _, c := range cs {
			msgs = append(msgs, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: result}}})
		}
	}
	t.Fatal("the model never stopped asking")
	return ""
}

func TestDemoAnswersFromResults(t *testing.T) {
	t.Parallel()
	m := sim.New(nil).Model("sim/demo")
	for _, c := range []struct{ prompt, result, want string }{
		{"What is 7 + 35?", `{"result":42}`, "7 + 35 = 42."},
		{"What time is it in Tokyo?", `{"currentTime":"2026-11-20T20:30:00+09:00"}`, "The time in Tokyo is 20:30 (2026-11-20T20:30:00+09:00)."},
		{"Please call sum for a=7 and b=35.", `{"sum":42,"note":"x"}`, "sum says: sum is 42, note is x."},
		{"What is 7 + 35?", `{"ok":false,"error":{"code":"policy_denied","message":"This call is not allowed."}}`, "calculator did not work: This call is not allowed."},
		{"Read the file a.txt", `plain words`, "read_file says: plain words."},
	} {
		if got := converse(t, m, c.prompt, c.result); got != c.want {
			t.Errorf("%q: %q, want %q", c.prompt, got, c.want)
		}
	}
}

func TestSameConversationSameReply(t *testing.T) {
	t.Parallel()
	req := &lathe.Request{Messages: []lathe.Message{lathe.User("What is 7 + 35, and what time is it in Tokyo?")}, Tools: tools}
	a, da, err := turn(t, sim.New(nil).Model("sim/demo"), req)
	if err != nil {
		t.Fatal(err)
	}
	b, db, err := turn(t, sim.New(nil).Model("sim/demo"), req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(da, db); diff != "" {
		t.Error(diff)
	}
}

// post sends a chat completions request and returns status and body.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestServerAnswersOnTheWire(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(sim.New(nil).Handler())
	defer srv.Close()
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"plain", `{"model":"sim/demo","messages":[{"role":"user","content":"Reply exactly with: Done."}]}`, 200, `"content":"Done."`},
		{"stream", `{"model":"sim/demo","stream":true,"messages":[{"role":"user","content":"Reply exactly with: Done."}]}`, 200, "data: [DONE]"},
		{"unknown model", `{"model":"gpt-9","messages":[{"role":"user","content":"x"}]}`, 404, `"model_not_found"`},
		{"no JSON", `{`, 400, `"error"`},
		{"no messages", `{"model":"sim/demo"}`, 400, `messages`},
		{"unknown fault", `{"model":"sim/fault-none","messages":[{"role":"user","content":"x"}]}`, 404, `sim/fault-none`},
	} {
		status, body := post(t, srv.URL, c.body)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: status %d, body %s; want %d with %s", c.name, status, body, c.status, c.want)
		}
	}
}

func TestServerRefusesALargeBody(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	body := io.MultiReader(strings.NewReader(`{"model":"`), bytes.NewReader(make([]byte, 16<<20)))
	sim.New(nil).Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", body))
	if rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", rec.Code)
	}
}

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	s := sim.New(nil)
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	var list struct {
		Data []struct{ ID string } `json:"data"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != len(s.Names()) || !strings.Contains(rec.Body.String(), `"sim/demo"`) {
		t.Errorf("models: %s", rec.Body)
	}
}

const script = `# two turns
-- turn --
reasoning: Let me think.
text: I look it up.
call: calculator {"expression":"1"}
call[mine]: sum {"a":1,"b":2}
usage: 10 5
-- turn --
expect: 42
text: It is
  forty-two.
finish: length
-- turn --
error: 429 slow down
`

func TestScriptPlaysItsTurns(t *testing.T) {
	t.Parallel()
	s, err := sim.ParseScript(strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	m := sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": s}}).Model("sim/script")
	msgs := []lathe.Message{lathe.User("go")}
	fin, _, err := turn(t, m, &lathe.Request{Messages: msgs})
	if err != nil {
		t.Fatal(err)
	}
	cs := fin.Message.Calls()
	if len(cs) != 2 || cs[0].ID != "call_1" || cs[1].ID != "mine" || cs[1].Arguments != `{"a":1,"b":2}` || fin.Usage.TotalTokens != 15 {
		t.Errorf("first turn: %+v", fin)
	}
	result := func(id, content string) lathe.Message {
		return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: content}}}
	}
	msgs = append(msgs, fin.Message, result("mine", `{"n":42}`))
	if _, _, err := turn(t, m, &lathe.Request{Messages: append(msgs[:len(msgs):len(msgs)], result("call_1", "no"))}); err == nil || !strings.Contains(err.Error(), "expect") {
		t.Errorf("the expectation of turn 2 does not hold: %v", err)
	}
	msgs = append(msgs[:len(msgs)-1], result("call_1", "no"), result("mine", `{"n":42}`))
	if fin, _, err = turn(t, m, &lathe.Request{Messages: msgs}); err != nil {
		t.Fatal(err)
	}
	if fin.Message.Text() != "It is\nforty-two." || fin.Reason != lathe.FinishLength {
		t.Errorf("second turn: %+v", fin)
	}
	msgs = append(msgs, fin.Message)
	var up *lathe.UpstreamError
	if _, _, err = turn(t, m, &lathe.Request{Messages: msgs}); !errors.As(err, &up) || up.Kind != lathe.UpstreamRateLimited {
		t.Errorf("third turn: %v, want rate_limited", err)
	}
	msgs = append(msgs, fin.Message)
	if _, _, err = turn(t, m, &lathe.Request{Messages: msgs}); err == nil || !strings.Contains(err.Error(), "3 turns") {
		t.Errorf("beyond the script: %v", err)
	}
}

func TestScriptErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ script, want string }{
		{"", "at least one"},
		{"text: x", "line 1: a script starts with"},
		{"-- turn --\nfoo: x", `line 2: unknown key "foo"`},
		{"-- turn --\ntext", "line 2: want `key: value`"},
		{"-- turn --\nusage: many", "line 2: usage"},
		{"-- turn --\ndelay: soon", "line 2: delay"},
		{"-- turn --\nerror: 200 fine", "line 2: error"},
		{"-- turn --\ncall: ", "line 2: call"},
		{"-- turn --\ntext: x" + strings.Repeat("\n y", 8<<20/3), "at most 8388608 bytes"},
	} {
		if _, err := sim.ParseScript(strings.NewReader(c.script)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %q", c.script, err, c.want)
		}
	}
}

func TestReplayNeedsContent(t *testing.T) {
	t.Parallel()
	e := event.Event{ID: 3, RunID: "run_1", Turn: 1, Data: &event.ModelCallFinished{Attempt: 1, Status: "success", FinishReason: lathe.FinishStop,
		Message: &lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "hm"}, lathe.Text{Text: "Hello."}}}}}
	full, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.ReplayScript(bytes.NewReader(full))
	if err != nil {
		t.Fatal(err)
	}
	m := sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": s}}).Model("sim/script")
	if fin, _, err := turn(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User("x")}}); err != nil || fin.Message.Text() != "Hello." {
		t.Errorf("replay: %+v, %v", fin, err)
	}
	bare, err := e.MarshalData()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.ReplayScript(bytes.NewReader(bare)); err == nil || !strings.Contains(err.Error(), "no content") {
		t.Errorf("a record without content: %v", err)
	}
}

// Every fault that must be tolerated gives the same answer as the faultless model, in process.
func TestFaultsInProcess(t *testing.T) {
	t.Parallel()
	for _, f := range sim.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			m := sim.New(nil).Model("sim/fault-" + f.Name)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if f.Name == "hang" {
				cancel()
			}
			req := &lathe.Request{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}, Tools: tools}
			var fin *lathe.Finish
			var err error
			for d, e := range m.Generate(ctx, req) {
				err = e
				if d.Kind == lathe.DeltaFinish {
					fin = d.Finish
				}
			}
			transient := strings.HasPrefix(f.Name, "status-") && f.Ends == lathe.ReasonAnswered // its first request fails
			wantErr := f.Ends == lathe.ReasonUpstreamError && f.Name != "cut-mid-text" || transient
			if (err != nil) != wantErr {
				t.Fatalf("error %v, want one: %v", err, wantErr)
			}
			if err == nil && fin == nil {
				t.Fatal("neither a finish nor an error")
			}
		})
	}
}

func TestFaultNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range sim.Faults() {
		if seen[f.Name] || f.Does == "" || f.Ends == "" {
			t.Errorf("fault %+v is there twice or says too little", f.Name)
		}
		seen[f.Name] = true
	}
}

func TestStopsWhenTheConsumerLeaves(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sim/demo", "sim/slow", "sim/fault-crlf"} {
		n := 0
		for range sim.New(nil).Model(name).Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("Tell me a story.")}}) {
			if n++; n == 2 {
				break
			}
		}
		if n != 2 {
			t.Errorf("%s: %d deltas, want 2", name, n)
		}
	}
}

func ExampleSim_Model() {
	m := sim.New(nil).Model("sim/demo")
	req := &lathe.Request{Messages: []lathe.Message{lathe.User("Reply exactly with: Done.")}}
	for d, err := range m.Generate(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
		}
		if d.Kind == lathe.DeltaFinish {
			fmt.Println(d.Finish.Message.Text(), d.Finish.Reason)
		}
	}
	// Output: Done. stop
}
