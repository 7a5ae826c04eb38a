package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

var gatewayID = regexp.MustCompile(`^call_[0-9A-Z]{26}_[A-Za-z0-9_-]{24}$`)

// isGatewayID reports whether the id of a call was made by the gateway.
func isGatewayID(id string) bool { return gatewayID.MatchString(id) }

// gives is the message with the result of a call of weather.
func (c *wireClient) gives(id string) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Wire: c.codec.Wire(), Parts: []lathe.Part{lathe.ToolResult{CallID: id, Name: "weather", Content: "rain"}}}
}

// bare is the message with nothing but its calls, and without what is opaque about them.
func bare(m lathe.Message) lathe.Message {
	out := lathe.Message{Role: lathe.RoleAssistant}
	for _, call := range m.Calls() {
		out.Parts = append(out.Parts, calls(call.ID, call.Name, call.Arguments))
	}
	return out
}

// The id of the client's call is enough to find what the server did before it: whatever is before it in the conversation,
// whatever the client has left out of the message, and in another process that has the store.
func TestCallIDFindsItsTurn(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		kept := store.NewMemory(nil)
		f := serve(t, &setting{model: mixed(), store: kept})
		tools := []*lathe.ToolSpec{weatherSpec()}
		a := c.ask(f, stream, tools, lathe.User("hi"))
		if a.err != nil || len(a.message.Calls()) != 1 || !isGatewayID(a.message.Calls()[0].ID) {
			t.Fatalf("%v: %s", a.err, a.body)
		}
		result := c.gives(a.message.Calls()[0].ID)
		for how, history := range map[string][]lathe.Message{
			"another beginning":       {lathe.User("The folder has 7 files now."), c.back(a.message), result},
			"nothing but the call":    {lathe.User("hi"), bare(a.message), result},
			"both":                    {lathe.User("It is Monday."), bare(a.message), result},
			"behind other turns":      {lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "b"}}}, lathe.User("c"), bare(a.message), result},
			"with a further question": {lathe.User("It is Monday."), bare(a.message), result, lathe.User("And?")},
		} {
			for _, where := range []string{"here", "in another process"} {
				model := mixed()
				g := f
				if where != "here" {
					g = serve(t, &setting{model: model, store: kept})
				} else {
					model = f.models.set.model.(*fake)
				}
				b := c.ask(g, stream, tools, history...)
				if b.err != nil || b.header.Get("X-Lathe-Lost-Joins") != "" {
					t.Errorf("%s %s: %v %s", how, where, b.err, b.body)
				}
				all := model.all()
				first := all[slices.IndexFunc(all, func(r lathe.Request) bool {
					return len(r.Messages) > 3 && strings.Contains(transcript(r.Messages), "c1")
				})]
				if where == "here" {
					first = all[len(all)-1]
				}
				want := strings.Join([]string{`assistant "First I compute." calculator:s1`, `tool =s1`, `assistant "Now both." calculator:s2 weather:c1 calculator:s3`,
					`tool =s2`, `tool =c1`, `tool =s3`}, "\n")
				if got := transcript(first.Messages); !strings.Contains(got, want) || strings.Count(got, "weather") != 1 {
					t.Errorf("%s %s: the model was sent\n%s", how, where, got)
				}
			}
		}
	})
}

// Gemini CLI sends the result of a call twice.
func TestCallIDFindsItsTurnWithADoubledResult(t *testing.T) {
	t.Parallel()
	c := wireClients["gemini"]
	model := mixed()
	f := serve(t, &setting{model: model})
	tools := []*lathe.ToolSpec{weatherSpec()}
	a := c.ask(f, false, tools, lathe.User("hi"))
	result := c.gives(a.message.Calls()[0].ID)
	body := c.body(false, tools, lathe.User("It is Monday."), bare(a.message), result)
	response := regexp.MustCompile(`\{"functionResponse":\{.*?\}\}\}`).FindString(body)
	if response == "" {
		t.Fatal(body)
	}
	b := c.send(t.Context(), f, false, strings.Replace(body, response, response+","+response, 1))
	all := model.all()
	if got := transcript(all[len(all)-1].Messages); b.err != nil || !strings.Contains(got, `assistant "First I compute." calculator:s1`) || strings.Count(got, "=c1") != 1 {
		t.Errorf("%v %s: the model was sent\n%s", b.err, b.body, got)
	}
}

// An id is that of a key, whatever the user of the request. A changed one, and that of another key, stays what it is.
func TestCallIDBelongsToItsConversation(t *testing.T) {
	t.Parallel()
	model := mixed()
	f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }})
	more := func(user string) string { return `,"user":"` + user + `","tools":[` + weatherTool + `]` }
	m, _ := f.answer(`{"model":"sim/x","messages":[{"role":"user","content":"hi"}]`+more("u")+`}`, false)
	own := m.ToolCalls[0].ID
	for name, x := range map[string]struct{ key, user, id string }{
		"the same":         {"a", "u", own},
		"another key":      {"b", "u", own},
		"another user":     {"a", "v", own},
		"a changed mark":   {"a", "u", own[:len(own)-2] + "AA"},
		"a changed run":    {"a", "u", "call_1" + own[6:]},
		"a cut id":         {"a", "u", own[:len(own)-4]},
		"no run":           {"a", "u", "call__" + own[len(own)-24:]},
		"a new line":       {"a", "u", own[:len(own)-1] + "\n"},
		"another alphabet": {"a", "u", own[:len(own)-1] + "="},
	} {
		f.key = text(x.key)
		other := m
		other.ToolCalls = []wireCall{call(x.id)}
		f.answer(`{"model":"sim/x","messages":[{"role":"user","content":"another beginning"},`+strings.SplitN(again(other, "rain"), "},", 2)[1]+`]`+more(x.user)+`}`, false)
		all := model.all()
		i := len(all) - 1
		for ; len(all[i].Messages) > 3 && strings.Count(transcript(all[i].Messages), "calculator") > 3; i-- {
		}
		got := transcript(all[i].Messages)
		if joined := strings.Contains(got, "calculator:s1"); joined != (name == "the same" || name == "another user") || strings.Contains(got, x.id) == joined {
			t.Errorf("%s: the model was sent\n%s", name, got)
		}
	}
}

// A request without tools of this server has the ids of the model server.
func TestCallsOfRunsWithoutServerToolsKeepTheirIDs(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{model: handsOnly(), opts: func(o *server.Options) {
		k := key("a")
		k.Tools = []string{}
		o.Setup.Keys = []server.Key{k}
	}})
	m, _ := f.answer(`{"model":"sim/x","messages":[{"role":"user","content":"hi"}],"tools":[`+weatherTool+`]}`, false)
	if len(m.ToolCalls) != 1 || m.ToolCalls[0].ID != "c1" {
		t.Errorf("got %+v", m)
	}
}

func handsOnly() *fake {
	return &fake{turn: func(int, *lathe.Request) lathe.Message { return says(calls("c1", "weather", `{"city":"Oslo"}`)) }}
}

// asking is a fixture whose calls of calculator wait for an approval.
func asking(t *testing.T, kept *store.Memory) (*fixture, *fake) {
	model := asksAndHands()
	return serve(t, &setting{model: model, store: kept, approvals: approval.NewQueue(nil), policy: policy.Effects{ReadOnly: lathe.Ask}}), model
}

// approveOnly approves the call s1 of the only run.
func (f *fixture) approveOnly(run string) {
	f.t.Helper()
	_, got := f.do("GET", "/api/runs/"+run, "")
	var r struct {
		Open []struct {
			ID     string `json:"tool_call_id"`
			Digest string `json:"args_digest"`
		} `json:"open_calls"`
	}
	if err := json.Unmarshal([]byte(got), &r); err != nil || len(r.Open) == 0 || r.Open[0].Digest == "" {
		f.t.Fatalf("%v: %s", err, got)
	}
	if resp, got := f.do("POST", "/api/runs/"+run+"/approvals/s1", `{"decision":"approve","digest":"`+r.Open[0].Digest+`"}`); resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		f.t.Fatalf("status %d: %s", resp.StatusCode, got)
	}
	f.crew.Drain(f.t.Context())
}

// A run hands a call over while another waits for an approval, and says so in its second answer. Whether the client keeps the two
// answers apart or joins them to one message, the model sees after the approval what became of the call.
func TestWaitingRunIsFoundByItsCall(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		kept := store.NewMemory(nil)
		f, _ := asking(t, kept)
		tools := []*lathe.ToolSpec{weatherSpec()}
		a := c.ask(f, stream, tools, lathe.User("hi"))
		if a.err != nil || len(a.message.Calls()) != 1 {
			t.Fatalf("%v: %s", a.err, a.body)
		}
		result := c.gives(a.message.Calls()[0].ID)
		b := c.ask(f, stream, tools, lathe.User("hi"), c.back(a.message), result)
		if b.err != nil || !strings.Contains(b.message.Text(), "This waits for an approval") {
			t.Fatalf("%v: %s", b.err, b.body)
		}
		f.approveOnly(a.header.Get("X-Lathe-Run-Id"))
		joined := c.back(a.message)
		var before []lathe.Part
		for _, p := range joined.Parts { // as Claude Code does: reasoning, text, calls
			if r, ok := p.(lathe.Reasoning); ok {
				before = append(before, r)
			}
		}
		joined.Parts = append(append(before, lathe.Text{Text: b.message.Text()}), bare(joined).Parts...)
		for how, history := range map[string][]lathe.Message{
			"apart":                    {lathe.User("hi"), c.back(a.message), result, c.back(b.message)},
			"apart, another beginning": {lathe.User("It is Monday."), c.back(a.message), result, c.back(b.message)},
			"joined":                   {lathe.User("hi"), joined, result},
			"joined, changed":          {lathe.User("It is Monday."), joined, result},
			"the call alone":           {lathe.User("hi"), bare(a.message), result},
		} {
			g, model := asking(t, kept)
			d := c.ask(g, stream, tools, append(history, lathe.User("and?"))...)
			want := "user assistant tool tool assistant user"
			if how == "the call alone" { // without the text that followed
				want = "user assistant tool tool user"
			}
			if d.err != nil || d.message.Text() != want {
				t.Errorf("%s: %v %s", how, d.err, d.body)
			}
			if got := transcript(model.all()[0].Messages); !strings.Contains(got, "calculator:s1 weather:c1\ntool =s1\ntool =c1") || strings.Contains(fmt.Sprint(model.all()[0].Messages), "has not been called") {
				t.Errorf("%s: the model was sent\n%s", how, got)
			}
		}
	})
}

// A call that the model server could not parse is the same failure on each wire for a client that executes all calls itself.
func TestUnreadableCallOfAClientFailsOnEachWire(t *testing.T) {
	t.Parallel()
	const unreadable = `data: {"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}` + "\n\n"
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		set := step(unreadable, unreadable)
		set.opts = func(o *server.Options) {
			k := key("a")
			k.Tools = []string{}
			o.Setup.Keys = []server.Key{k}
		}
		f := serve(t, set)
		a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi"))
		if a.err == nil || strings.Contains(a.body, "mcp_") || len(f.seen.all()) != 1 {
			t.Errorf("%d requests, %v: %s", len(f.seen.all()), a.err, a.body)
		}
	})
}

// A call of a tool that this server does not have is not shown as one of its calls.
func TestUnknownToolIsNoCallOfTheServer(t *testing.T) {
	t.Parallel()
	for _, name := range pieceWires {
		for how, stream := range bothWays {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				n := 0
				f := serve(t, &setting{model: &fake{turn: func(int, *lathe.Request) lathe.Message {
					if n++; n > 1 {
						return says(lathe.Text{Text: "Done."})
					}
					return says(calls("x1", "no_such_tool", `{}`), calls("s1", "calculator", `{"expression":"6 * 7"}`))
				}}})
				a := wireClients[name].ask(f, stream, nil, lathe.User("hi"))
				if a.err != nil || a.message.Text() != "Done." || strings.Contains(strings.SplitN(a.body, `"lathe":{`, 2)[0], "no_such_tool") || !strings.Contains(a.body, "calculator") {
					t.Errorf("%v: %s", a.err, a.body)
				}
			})
		}
	}
}

// Hidden turns that the memory does not keep, since they are too large or others have taken their place, are read from the store,
// and the id of a call is that of the model server again, whatever the way in which the request names the conversation.
func TestCallIDsAreReadWithoutTheMemory(t *testing.T) {
	t.Parallel()
	for way, input := range waysToContinue {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waits %v", way, waits), func(t *testing.T) {
				t.Parallel()
				s := &setting{model: mixed(), store: store.NewMemory(nil), opts: func(o *server.Options) { o.Limits.MaxKeptBytes = 100 }}
				want := `assistant "First I compute." calculator:s1` + "\n" + `tool =s1` + "\n" + `assistant "Now both." calculator:s2 weather:c1 calculator:s3` + "\ntool =s2\ntool =c1\ntool =s3"
				if waits {
					s.model, s.approvals, s.policy = asksAndHands(), approval.NewQueue(nil), policy.Effects{ReadOnly: lathe.Ask}
				}
				f := serve(t, s)
				one, whole := f.respond(false, `"input":"hi",`+weatherItem)
				if one == nil || !isGatewayID(one.Output[len(one.Output)-1].CallID) {
					t.Fatal(whole)
				}
				two, text := f.respond(false, input(t, one, whole)+","+weatherItem)
				if waits {
					if two == nil || !strings.Contains(two.text(), "This waits for an approval") {
						t.Errorf("the run was not resumed: %s", text)
					}
					return
				}
				if two == nil || two.text() != "It is done." || strings.Contains(text, "lost_joins") {
					t.Fatal(text)
				}
				all := s.model.(*fake).all()
				if got := transcript(all[len(all)-1].Messages); !strings.Contains(got, want) || strings.Count(got, "weather") != 1 {
					t.Errorf("the model was sent\n%s", got)
				}
			})
		}
	}
}

// The response before on a WebSocket has the calls under the ids of the model server, and the client sends those of this server, also
// when the memory of hidden turns has others.
func TestCallIDsAreReadOnAWebSocket(t *testing.T) {
	t.Parallel()
	model := mixed()
	f := serve(t, &setting{model: model, nothing: true, opts: func(o *server.Options) {
		o.Index, o.Supervisor, o.Limits.MaxKept = nil, nil, 1
	}})
	c := f.dial(t)
	one := c.create(`"input":"hi",` + weatherItem)
	if one.Response == nil {
		t.Fatal(one.raw)
	}
	if other, text := f.respond(false, `"input":"another one",`+weatherItem); other == nil {
		t.Fatal(text)
	}
	two := c.create(waysToContinue["previous_response_id"](t, one.Response, "") + "," + weatherItem)
	if two.Response == nil || two.Response.text() != "It is done." {
		t.Fatal(two.raw)
	}
	all := model.all()
	if got := transcript(all[len(all)-1].Messages); !strings.Contains(got, `assistant "Now both." calculator:s2 weather:c1 calculator:s3`+"\ntool =s2\ntool =c1\ntool =s3") {
		t.Errorf("the model was sent\n%s", got)
	}
}

// A client may send another result of its call than the one that the run got: the model gets what the client sends now, once.
func TestResultsThatTheClientSendsCount(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		kept := store.NewMemory(nil)
		f, _ := asking(t, kept)
		tools := []*lathe.ToolSpec{weatherSpec()}
		a := c.ask(f, stream, tools, lathe.User("hi"))
		id := a.message.Calls()[0].ID
		if b := c.ask(f, stream, tools, lathe.User("hi"), c.back(a.message), c.gives(id)); b.err != nil {
			t.Fatal(b.err)
		}
		f.approveOnly(a.header.Get("X-Lathe-Run-Id"))
		g, model := asking(t, kept)
		other := c.gives(id)
		other.Parts = []lathe.Part{lathe.ToolResult{CallID: id, Name: "weather", Content: "[removed]"}}
		d := c.ask(g, stream, tools, lathe.User("It is Monday."), bare(a.message), other, lathe.User("and?"))
		if d.err != nil {
			t.Fatal(d.err)
		}
		got := ""
		for _, m := range model.all()[0].Messages {
			if m.Role == lathe.RoleTool {
				got += " " + m.Parts[0].(lathe.ToolResult).Content
			}
		}
		if got != ` {"result":42,"exact":true} [removed]` {
			t.Errorf("the model was sent the results%s", got)
		}
	})
}

// A turn that the id of a call names, and that is nowhere any more, is counted as lost.
func TestTurnsThatAreGoneAreCounted(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		for _, gone := range []string{"without a store", "deleted"} {
			s := &setting{model: mixed(), opts: func(o *server.Options) { o.Limits.MaxKeptBytes = 100 }}
			if gone == "without a store" {
				s.nothing = true
				s.opts = func(o *server.Options) { o.Index, o.Supervisor, o.Limits.MaxKeptBytes = nil, nil, 100 }
			}
			f := serve(t, s)
			tools := []*lathe.ToolSpec{weatherSpec()}
			a := c.ask(f, stream, tools, lathe.User("hi"))
			if a.err != nil || len(a.message.Calls()) != 1 {
				t.Fatalf("%v: %s", a.err, a.body)
			}
			if gone == "deleted" {
				if resp, body := f.do("DELETE", "/api/runs/"+a.header.Get("X-Lathe-Run-Id"), ""); resp.StatusCode != http.StatusNoContent {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
			}
			b := c.ask(f, stream, tools, lathe.User("hi"), bare(a.message), c.gives(a.message.Calls()[0].ID))
			if lost := b.header.Get("X-Lathe-Lost-Joins"); b.err != nil || lost != "1" {
				t.Errorf("%s: lost %q, %v: %s", gone, lost, b.err, b.body)
			}
		}
	})
}

// A client that joins two answers has the text of the second one between the calls of both: it stays with the call behind it, also if the turn
// of that call is nowhere any more.
func TestTextBetweenTheCallsOfTwoTurnsIsOfTheLaterOne(t *testing.T) {
	t.Parallel()
	model := &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		switch strings.Count(transcript(req.Messages), "tool =") {
		case 0:
			return says(lathe.Text{Text: "One."}, calls("c1", "weather", `{"city":"Oslo"}`))
		case 1:
			return says(lathe.Text{Text: "Two."}, calls("c2", "weather", `{"city":"Rome"}`))
		}
		return says(lathe.Text{Text: "It is done."})
	}}
	f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Limits.MaxKeptBytes = 100 }})
	c, tools, hi := wireClients["messages"], []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi")
	a := c.ask(f, false, tools, hi)
	b := c.ask(f, false, tools, hi, c.back(a.message), c.gives(a.message.Calls()[0].ID))
	first, second := a.message.Calls()[0].ID, b.message.Calls()[0].ID
	if resp, body := f.do("DELETE", "/api/runs/"+b.header.Get("X-Lathe-Run-Id"), ""); resp.StatusCode != http.StatusNoContent {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	joined := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "One."}, calls(first, "weather", `{"city":"Oslo"}`),
		lathe.Text{Text: "Two."}, calls(second, "weather", `{"city":"Rome"}`)}}
	d := c.ask(f, false, tools, hi, joined, c.gives(second), c.gives(first))
	all := model.all()
	want := "user \"hi\"\nassistant \"One.\" weather:c1\ntool =c1\nassistant \"Two.\" weather:" + second + "\ntool =" + second
	if got := transcript(all[len(all)-1].Messages); d.err != nil || got != want {
		t.Errorf("%v: the model was sent\n%s\nwant\n%s", d.err, got, want)
	}
}

// Every turn that the calls of a conversation name is looked up in the store, also behind a thousand others.
func TestTurnsBehindManyOthersAreFound(t *testing.T) {
	t.Parallel()
	const others = 1001
	model := mixed()
	f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Limits.MaxKeptBytes = 100 }})
	c, tools, hi := wireClients["chat"], []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi")
	a := c.ask(f, false, tools, hi)
	run, id := a.header.Get("X-Lathe-Run-Id"), a.message.Calls()[0].ID
	if made := f.gateway.CallID(t.Context(), run, 2, "c1"); made != id {
		t.Fatalf("the id is %s, not %s", id, made)
	}
	history := []lathe.Message{hi}
	for i := range others {
		gone := f.gateway.CallID(t.Context(), run, 100+i, fmt.Sprint("x", i))
		history = append(history, bare(says(calls(gone, "weather", `{"city":"Rome"}`))), c.gives(gone))
	}
	b := c.ask(f, false, tools, append(history, bare(a.message), c.gives(id))...)
	all := model.all()
	if got := transcript(all[len(all)-1].Messages); b.err != nil || b.header.Get("X-Lathe-Lost-Joins") != fmt.Sprint(others) || !strings.HasSuffix(got, "tool =s1\nassistant \"Now both.\" calculator:s2 weather:c1 calculator:s3\ntool =s2\ntool =c1\ntool =s3") {
		t.Errorf("%v, lost %s: the model was sent %s", b.err, b.header.Get("X-Lathe-Lost-Joins"), got[max(0, len(got)-400):])
	}
}
