package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

const nameForm = `{"type":"object","properties":{"name":{"type":"string","default":"John"},"age":{"type":"integer"}}}`

// asking is a server of the SDK whose tool asks for a form and says what it was answered.
func asking(t *testing.T, stateless bool, schema string) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "sign", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		form := &mcp.ElicitParams{Mode: "form", Message: "Who \u202eare you?", RequestedSchema: json.RawMessage(schema)}
		say := func(r *mcp.ElicitResult, state string) *mcp.CallToolResult {
			b, _ := json.Marshal(r.Content)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Action + " " + string(b) + state}}}
		}
		if !stateless {
			got, err := req.Session.Elicit(ctx, form)
			if err != nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no form"}}}, nil
			}
			return say(got, ""), nil
		}
		if r, ok := req.Params.InputResponses["who"].(*mcp.ElicitResult); ok {
			return say(r, " "+req.Params.RequestState), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": form}, RequestState: `<"state">`}, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(server.Close)
	return server.URL
}

// person answers every form in one way.
type person struct {
	answer tool.Answer
	err    error
	mu     sync.Mutex
	forms  []tool.Form
}

func (p *person) Can(q tool.Question) bool { return q.Form != nil }

func (p *person) Ask(_ context.Context, qs map[string]tool.Question) (map[string]tool.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]tool.Answer{}
	for key, q := range qs {
		p.forms = append(p.forms, *q.Form)
		out[key] = p.answer
	}
	return out, p.err
}

func TestElicitation(t *testing.T) {
	t.Parallel()
	needs := `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	for _, tc := range []struct {
		name     string
		mode     Elicitation
		schema   string
		person   *person
		old, new string // content of the answer in each era; "" the code
		code     lathe.Code
	}{
		{name: "refused", schema: nameForm, old: "no form", new: "given none"},
		{name: "defaults", mode: ElicitDefaults, schema: nameForm, old: `accept {"name":"John"}`, new: `accept {"name":"John"} <"state">`},
		{name: "defaults that are not enough", mode: ElicitDefaults, schema: needs, old: "decline null", new: `decline null <"state">`},
		{name: "asked", mode: ElicitAsk, schema: nameForm, person: &person{answer: tool.Answer{Form: json.RawMessage(`{"age":7}`)}},
			old: `accept {"age":7,"name":"John"}`, new: `accept {"age":7,"name":"John"} <"state">`},
		{name: "declined", mode: ElicitAsk, schema: nameForm, person: &person{answer: tool.Answer{Refused: "decline"}}, old: "decline null", new: `decline null <"state">`},
		{name: "cancelled", mode: ElicitAsk, schema: nameForm, person: &person{answer: tool.Answer{Refused: "cancel"}}, old: "cancel null", new: `cancel null <"state">`},
		{name: "answered badly", mode: ElicitAsk, schema: nameForm, person: &person{answer: tool.Answer{Form: json.RawMessage(`{"age":"x"}`)}}, old: "no form", new: "not answered well"},
		{name: "no user", mode: ElicitAsk, schema: nameForm, old: "cancel null", code: lathe.CodeUnavailable},
		{name: "the person leaves", mode: ElicitAsk, schema: nameForm, person: &person{err: tool.ErrCannotAsk}, old: "cancel null", code: lathe.CodeUnavailable},
	} {
		for _, stateless := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stateless %v", tc.name, stateless), func(t *testing.T) {
				t.Parallel()
				conf := httpConf(asking(t, stateless, tc.schema))
				conf.Elicitation = tc.mode
				r := newRig(t, nil, conf)
				defer r.group.Close()
				ctx := t.Context()
				if tc.person != nil {
					ctx = tool.WithAsker(ctx, tc.person)
				}
				got := r.callCtx(ctx, "web__sign", map[string]int{})
				want := tc.old
				if stateless {
					want = tc.new
					if tc.code != "" {
						wantCode(t, got, tc.code)
						return
					}
				}
				if !strings.Contains(got.Content, want) {
					t.Errorf("got %s, want %s", got.Content, want)
				}
				if tc.person != nil {
					tc.person.mu.Lock()
					defer tc.person.mu.Unlock()
					if len(tc.person.forms) == 0 || tc.person.forms[0].Message != "the MCP server web asks: Who are you?" {
						t.Errorf("asked %+v", tc.person.forms)
					}
				}
			})
		}
	}
}

// A question of a server of 2025 does not name its call. If several calls run, no caller gets the question.
func TestT7_QuestionsGoToTheirCaller(t *testing.T) {
	t.Parallel()
	x := newTap(func() {})
	ctx := t.Context()
	a, b := &request{asker: &person{}}, &request{asker: &person{}}
	x.watch(ctx, a)
	if x.caller() != a.asker {
		t.Error("the only caller is not found")
	}
	x.watch(ctx, &request{}) // no call of a tool
	x.watch(ctx, b)
	if x.caller() != nil {
		t.Error("one of two callers is asked")
	}
	x.forget(a)
	if x.caller() != b.asker {
		t.Error("the caller that is left is not found")
	}
}

// mrtrServer answers calls with what a test says, by the number of the round.
func mrtrServer(t *testing.T, answer func(round int, params json.RawMessage) string) string {
	t.Helper()
	var round atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m testMessage
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result := `{}`
		switch m.Method {
		case "server/discover":
			result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
		case "tools/list":
			result = `{"tools":[{"name":"do","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
		case "tools/call":
			result = answer(int(round.Add(1)), m.Params)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestQuestionsOfACallAreBounded(t *testing.T) {
	t.Parallel()
	form := `{"method":"elicitation/create","params":{"message":"?","requestedSchema":` + nameForm + `}}`
	many := make([]string, maxInputs+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"q%d":%s`, i, form)
	}
	for _, tc := range []struct {
		name, result, want string
		code               lathe.Code
		rounds             int
	}{
		{"for ever", `{"resultType":"input_required","inputRequests":{"a":` + form + `}}`, "gave no result: do not repeat the call", "", maxRounds},
		{"nothing for ever", `{"resultType":"input_required"}`, "gave no result: do not repeat the call", "", maxRounds},
		{"many", `{"resultType":"input_required","inputRequests":{` + strings.Join(many, ",") + `}}`, "more than 16", "", 1},
		{"a model's answer", `{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}}}`, "given none", "", 1},
		{"folders", `{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`, "given none", "", 1},
		{"no form", `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","url":"https://x.example"}}}}`, "cannot be answered", "", 1},
		{"deep form", `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"properties":{"a":{"type":"object"}}}}}}}`, "cannot be answered", "", 1},
		{"odd state", `{"resultType":"input_required","requestState":7}`, "", lathe.CodeInvalidOutput, 1},
		{"odd questions", `{"resultType":"input_required","inputRequests":[]}`, "", lathe.CodeInvalidOutput, 1},
		{"odd question", `{"resultType":"input_required","inputRequests":{"a":1}}`, "", lathe.CodeInvalidOutput, 1},
		{"odd result", `{"resultType":"hologram"}`, "", lathe.CodeInvalidOutput, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var rounds atomic.Int64
			conf := httpConf(mrtrServer(t, func(int, json.RawMessage) string { rounds.Add(1); return tc.result }))
			conf.Elicitation = ElicitDefaults
			r := newRig(t, nil, conf)
			defer r.group.Close()
			got := r.call("web__do", map[string]int{})
			if tc.code != "" {
				wantCode(t, got, tc.code)
			} else if !got.IsError || !strings.Contains(got.Content, tc.want) {
				t.Errorf("got %+v", got)
			}
			if int(rounds.Load()) != tc.rounds {
				t.Errorf("%d rounds, want %d", rounds.Load(), tc.rounds)
			}
		})
	}
}

// The answers for one call are sent with its next round, and with no other call.
func TestStateStaysWithItsCall(t *testing.T) {
	t.Parallel()
	form := `{"method":"elicitation/create","params":{"message":"?","requestedSchema":` + nameForm + `}}`
	var mu sync.Mutex
	var seen []map[string]json.RawMessage
	conf := httpConf(mrtrServer(t, func(round int, params json.RawMessage) string {
		m := map[string]json.RawMessage{}
		_ = json.Unmarshal(params, &m)
		mu.Lock()
		seen = append(seen, m)
		mu.Unlock()
		switch round {
		case 1:
			return `{"resultType":"input_required","inputRequests":{"a":` + form + `},"requestState":"one"}`
		case 2:
			return `{"resultType":"input_required","inputRequests":{"b":` + form + `}}`
		}
		return `{"content":[{"type":"text","text":"done"}]}`
	}))
	conf.Elicitation = ElicitDefaults
	r := newRig(t, nil, conf)
	defer r.group.Close()
	for range 2 {
		if got := r.call("web__do", map[string]int{"x": 1}); got.Content != "done" {
			t.Fatalf("got %+v", got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i, want := range []string{"", `"one" {"a":{"action":"accept","content":{"name":"John"}}}`, ` {"b":{"action":"accept","content":{"name":"John"}}}`, ""} {
		if got := strings.TrimSpace(string(seen[i]["requestState"]) + " " + string(seen[i]["inputResponses"])); got != strings.TrimSpace(want) {
			t.Errorf("round %d: got %s, want %s", i, got, want)
		}
		if string(seen[i]["arguments"]) != `{"x":1}` {
			t.Errorf("round %d: arguments %s", i, seen[i]["arguments"])
		}
	}
}

// A call does not run out of its idle timeout while a person is asked, and has all of it afterwards.
func TestAPersonMayTakeLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTap(func() {})
		var expired atomic.Bool
		idle := newIdleTimer(time.Second, func() bool {
			if x.isIdleSuspended() {
				return false
			}
			expired.Store(true)
			return true
		})
		defer idle.stop()
		x.watch(t.Context(), &request{progress: func([]byte) { idle.reset() }})
		time.Sleep(900 * time.Millisecond)
		x.suspendIdle()
		time.Sleep(time.Hour + 900*time.Millisecond)
		x.resumeIdle()
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if expired.Load() {
			t.Fatal("it ran out")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if !expired.Load() {
			t.Error("it does not run out any more")
		}
	})
}
