package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// asker is a tool that asks for a name and greets; runs counts how often it was called.
func asker(runs *atomic.Int32) *fake {
	return reader("greet", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		runs.Add(1)
		a, err := tool.AskOne(ctx, "name", tool.Question{Form: &tool.Form{Message: "Who are you?",
			Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)}})
		if err != nil {
			return nil, err
		}
		if a.Refused != "" {
			return &lathe.Output{Data: json.RawMessage(`"` + a.Refused + `"`)}, nil
		}
		return &lathe.Output{Data: a.Form}, nil
	})
}

const (
	able   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	accept = `{"name":{"action":"accept","content":{"name":"Ann"}}}`
)

// askCall posts one tools/call of 2026-07-28.
func askCall(t testing.TB, url, key, name, args, rest string) (int, string) {
	t.Helper()
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,%s%s}}`, name, args, able, rest)
	status, _, answer := post(t, client(t), url, msg, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name, "Authorization", "Bearer "+key)
	return status, answer
}

// stateOf returns the state that an answer which asks gives.
func stateOf(t testing.TB, answer string) string {
	t.Helper()
	var m struct {
		Result struct{ ResultType, RequestState string }
	}
	if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Result.ResultType != "input_required" || m.Result.RequestState == "" {
		t.Fatalf("this asks nothing: %s", answer)
	}
	return m.Result.RequestState
}

// A call that asks is one call of the tool and one run, over however many requests.
func TestAskingBetweenRequests(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	r := newRig(t, nil, nil, asker(&runs))
	url := r.web()
	_, answer := askCall(t, url, "", "greet", `{}`, "")
	state := stateOf(t, answer)
	if !strings.Contains(answer, `"inputRequests":{"name":{"method":"elicitation/create","params":{`) {
		t.Errorf("asked %s", answer)
	}
	for _, wrong := range []string{`{"other":{"action":"accept"}}`, `{"name":{"action":"accept","content":{"name":7}}}`, `{"name":{"roots":[]}}`} {
		_, answer = askCall(t, url, "", "greet", `{}`, `,"requestState":"`+state+`","inputResponses":`+wrong)
		state = stateOf(t, answer) // it is asked again
	}
	_, answer = askCall(t, url, "", "greet", `{}`, `,"requestState":"`+state+`","inputResponses":`+accept)
	if !strings.Contains(answer, `"structuredContent":{"name":"Ann"}`) || !strings.Contains(answer, `"resultType":"complete"`) {
		t.Errorf("answered %s", answer)
	}
	if runs.Load() != 1 {
		t.Errorf("the tool was called %d times", runs.Load())
	}
	started := 0
	for _, e := range r.log.all() {
		if _, ok := e.Data.(*event.RunStarted); ok {
			started++
		}
	}
	if started != 1 {
		t.Errorf("%d runs were told", started)
	}
	// An answer that the client sends before the question is used, too.
	if _, answer = askCall(t, url, "", "greet", `{}`, `,"inputResponses":`+accept); !strings.Contains(answer, `"name":"Ann"`) {
		t.Errorf("answered %s", answer)
	}
	if _, answer = askCall(t, url, "", "greet", `{}`, `,"inputResponses":{"name":{"action":"decline"}}`); !strings.Contains(answer, `"text":"decline"`) {
		t.Errorf("answered %s", answer)
	}
}

// A link of a tool goes to the client that can show it, in both eras.
func TestLinksGoToTheClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("pay", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		a, err := tool.AskOne(ctx, "visit", tool.Question{Link: &tool.Link{Message: "Pay.", URL: "https://pay.example.com/1"}})
		if err != nil {
			return nil, err
		}
		return &lathe.Output{Data: json.RawMessage(`"` + a.Refused + `."`)}, nil
	}))
	url, c := r.web(), client(t)
	ask := func(caps, rest string) string {
		msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{},%s%s}}`,
			strings.Replace(able, `{"elicitation":{}}`, caps, 1), rest)
		_, _, answer := post(t, c, url, msg, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "pay")
		return answer
	}
	for reply, want := range map[string]string{`{"action":"accept"}`: `"text":"."`, `{"action":"decline"}`: `"text":"decline."`} {
		answer := ask(`{"elicitation":{"url":{}}}`, "")
		if !strings.Contains(answer, `"mode":"url"`) || !strings.Contains(answer, `"url":"https://pay.example.com/1"`) || !strings.Contains(answer, `"elicitationId":"`) {
			t.Errorf("asked %s", answer)
		}
		if answer = ask(`{"elicitation":{"url":{}}}`, `,"requestState":"`+stateOf(t, answer)+`","inputResponses":{"visit":`+reply+`}`); !strings.Contains(answer, want) {
			t.Errorf("answered %s", answer)
		}
	}
	if answer := ask(`{"elicitation":{}}`, ""); !strings.Contains(answer, `"requiredCapabilities":{"elicitation":{"url":{}}}`) {
		t.Errorf("answered %s", answer)
	}
	l := r.talk(strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"elicitation":{"url":{}}}`, 1))
	l.await(`"id":0`)
	l.send(ready)
	l.send(call(1, "pay", `{}`))
	seen := l.await("elicitation/create")
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(seen[len(seen)-1]), &m); err != nil || !strings.Contains(seen[len(seen)-1], "https://pay.example.com/1") {
		t.Fatalf("%v: %q", err, seen)
	}
	l.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept"}}`)
	if seen := l.await(`"id":1`); !strings.Contains(seen[len(seen)-1], `"text":"."`) {
		t.Errorf("answered %q", seen)
	}
}

// A state is good once, for the same request of the same caller.
func TestStatesAreBound(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	keys := mcp.Keys(mcp.Key{Secret: secret.New("ann-ann-ann-ann-"), Caller: mcp.Caller{Principal: "ann"}},
		mcp.Key{Secret: secret.New("bob-bob-bob-bob-"), Caller: mcp.Caller{Principal: "bob"}})
	r := newRig(t, nil, &mcp.Options{HTTP: mcp.HTTPOptions{Identify: keys}}, asker(&runs), reader("other", echo))
	url := r.web()
	const ann, bob = "ann-ann-ann-ann-", "bob-bob-bob-bob-"
	_, answer := askCall(t, url, ann, "greet", `{"a":1}`, "")
	state := stateOf(t, answer)
	for name, c := range map[string][4]string{
		"another caller":   {bob, "greet", `{"a":1}`, state},
		"another argument": {ann, "greet", `{"a":2}`, state},
		"another tool":     {ann, "other", `{"a":1}`, state},
		"another state":    {ann, "greet", `{"a":1}`, state + "x"},
	} {
		status, answer := askCall(t, url, c[0], c[1], c[2], `,"requestState":"`+c[3]+`","inputResponses":`+accept)
		if status != 400 || !strings.Contains(answer, `-32602`) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	for i, want := range []string{`"name":"Ann"`, `-32602`} {
		if _, answer := askCall(t, url, ann, "greet", `{"a":1}`, `,"requestState":"`+state+`","inputResponses":`+accept); !strings.Contains(answer, want) {
			t.Errorf("use %d: %s", i+1, answer)
		}
	}
}

// Calls that wait for their clients are bounded, in number and in time.
func TestAskingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		r := newRig(t, nil, &mcp.Options{MaxAsking: 2, AskTimeout: time.Minute}, asker(&runs))
		l := r.talk()
		ask := func(id int, rest string) string {
			l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"greet","arguments":{},%s%s}}`, id, able, rest))
			seen := l.await(fmt.Sprintf(`"id":%d,`, id))
			return seen[len(seen)-1]
		}
		state := stateOf(t, ask(1, ""))
		stateOf(t, ask(2, ""))
		if got := ask(3, ""); !strings.Contains(got, "rate_limited") {
			t.Errorf("one too many: %s", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := ask(4, `,"requestState":"`+state+`","inputResponses":`+accept); !strings.Contains(got, "-32602") {
			t.Errorf("too late: %s", got)
		}
		stateOf(t, ask(5, "")) // there is room again
		r.server.Close()
	})
}

// A tool asks a client that lacks the capability. A client of 2026-07-28 gets an error that names the capability, and one
// of an earlier version gets the result unavailable.
func TestClientsThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	r := newRig(t, nil, nil, asker(&runs))
	got := r.lines(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{},`+meta+`}}`)
	if want := `"error":{"code":-32021,"message":"the call needs what the client cannot do","data":{"requiredCapabilities":{"elicitation":{}}}}`; !strings.Contains(got["1"][0], want) {
		t.Errorf("got %s", got["1"])
	}
	got = r.lines(nil, hello, ready, call(1, "greet", `{}`))
	if !strings.Contains(got["1"][0], `"isError":true`) || !strings.Contains(got["1"][0], "unavailable") {
		t.Errorf("got %s", got["1"])
	}
}

// Up to 2025-11-25 the server sends requests of its own.
func TestAskingInSessions(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	r := newRig(t, nil, nil, asker(&runs))
	l := r.talk(strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1), ready)
	for i, c := range []struct{ answer, want string }{
		{`{"action":"accept","content":{"name":"Ann"}}`, `"structuredContent":{"name":"Ann"}`},
		{`{"action":"cancel"}`, `"text":"cancel"`},
		{`{"action":"accept","content":{}}`, `"isError":true`},
	} {
		l.send(call(10+i, "greet", `{}`))
		seen := l.await(`"method":"elicitation/create"`)
		var m struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(seen[len(seen)-1]), &m); err != nil {
			t.Fatal(err)
		}
		l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, c.answer))
		if seen := l.await(fmt.Sprintf(`"id":%d,`, 10+i)); !strings.Contains(seen[len(seen)-1], c.want) {
			t.Errorf("%s: %s", c.answer, seen)
		}
	}
}
