package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A wireClient is a client of one wire: the codec that reaches model servers of this wire reaches this server.
type wireClient struct {
	codec wire.Upstream
	base  string // of its URLs
	key   string // the header of its key
	keeps bool   // it sends items back whose type it does not know
}

var wireClients = map[string]*wireClient{
	"chat":      {codec: openai.Upstream{}, base: "/v1", key: "Authorization"},
	"responses": {codec: responses.Codec{}, base: "/v1", key: "Authorization", keeps: true},
	"codex":     {codec: responses.Codec{}, base: "/v1", key: "Authorization"},
	"messages":  {codec: messages.Codec{}, key: "X-Api-Key", keeps: true},
	"gemini":    {codec: gemini.Codec{}, base: "/v1beta", key: "X-Goog-Api-Key"},
}

// A wireAnswer is what a client has read.
type wireAnswer struct {
	status  int
	header  http.Header
	body    string
	message lathe.Message
	reason  lathe.FinishReason
	err     error // an *wire.APIError, in a body or in the stream, or that of a broken stream
	cut     bool
}

func (a *wireAnswer) code() string {
	var e *wire.APIError
	errors.As(a.err, &e)
	switch {
	case e == nil:
		return ""
	case e.Code != "":
		return e.Code
	}
	return a.header.Get("X-Lathe-Error-Code")
}

func weatherSpec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: "weather", Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}}}`)}
}

// body is the body of a request.
func (c *wireClient) body(stream bool, tools []*lathe.ToolSpec, history ...lathe.Message) string {
	b, _ := c.codec.AppendRequest(nil, &lathe.Request{Model: "sim/demo", Messages: history, Tools: tools}, &wire.EncodeOptions{Stream: stream, Entry: "x"})
	return string(b)
}

func (c *wireClient) path(stream bool) string {
	model := "sim/demo"
	if c.codec.Wire() == lathe.WireGemini { // whose names of models are paths
		model = "models/" + model
	}
	return c.base + c.codec.Path(model, stream)
}

// ask sends a conversation.
func (c *wireClient) ask(f *fixture, stream bool, tools []*lathe.ToolSpec, history ...lathe.Message) *wireAnswer {
	return c.send(f.t.Context(), f, stream, c.body(stream, tools, history...))
}

// send sends the body of a request. The answer has what was read before ctx was done.
func (c *wireClient) send(ctx context.Context, f *fixture, stream bool, body string, header ...string) *wireAnswer {
	f.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+c.path(stream), strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if f.key != "" {
		before := c.codec.Vendor().KeyPrefix
		req.Header.Set(c.key, before+f.key)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return &wireAnswer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	a := &wireAnswer{status: resp.StatusCode, header: resp.Header, body: string(b), cut: err != nil}
	assembler := c.codec.NewAssembler(nil)
	switch {
	case resp.StatusCode != http.StatusOK:
		a.err = c.codec.ParseError(resp.StatusCode, b)
		return a
	case !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		_, fin, err := assembler.Complete(nil, b)
		a.finish(fin, err)
		return a
	}
	events := sse.NewReader(strings.NewReader(a.body), nil)
	for {
		ev, err := events.Next()
		if err != nil {
			break
		}
		if _, a.err = assembler.Append(nil, ev.Type, ev.Data); a.err != nil {
			return a
		}
	}
	fin, err := assembler.Finish(!a.cut)
	a.finish(fin, err)
	return a
}

func (a *wireAnswer) finish(fin *lathe.Finish, err error) {
	if a.err = err; fin != nil {
		a.message, a.reason = fin.Message, fin.Reason
	}
}

// back is the message as the client sends it in its next request.
func (c *wireClient) back(m lathe.Message) lathe.Message {
	if !c.keeps {
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p lathe.Part) bool { _, is := p.(lathe.Opaque); return is })
	}
	m.Role = lathe.RoleAssistant
	return m
}

// opaque returns how many items of unknown types a message has.
func opaque(m *lathe.Message) (n int) {
	for _, p := range m.Parts {
		if _, ok := p.(lathe.Opaque); ok {
			n++
		}
	}
	return n
}

// words returns the text of a message, without the space between its items.
func words(m *lathe.Message) string { return strings.Join(strings.Fields(m.Text()), "") }

// onWires runs a test for each wire, streamed and whole.
func onWires(t *testing.T, f func(t *testing.T, c *wireClient, stream bool)) {
	t.Helper()
	for name, c := range wireClients {
		for how, stream := range bothWays {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				f(t, c, stream)
			})
		}
	}
}

// Each client reads the text of all turns and no call of the server as its own, and sees the server's calls where its wire
// has a form for them.
func TestEveryWireShowsARunWithServerTools(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		f := serve(t, nil)
		a := c.ask(f, stream, nil, lathe.User("What is 7 + 35?"))
		if a.err != nil || a.reason != lathe.FinishStop || len(a.message.Calls()) > 0 {
			t.Fatalf("%v, %s, calls %v: %s", a.err, a.reason, a.message.Calls(), a.body)
		}
		if got := words(&a.message); got != "Letmeusecalculator.7+35=42." {
			t.Errorf("the text is %q", got)
		}
		if want := map[lathe.Wire]int{lathe.WireResponses: 1, lathe.WireMessages: 2}[c.codec.Wire()]; opaque(&a.message) != want {
			t.Errorf("%d items of the server, want %d: %s", opaque(&a.message), want, a.body)
		}
		if !strings.HasPrefix(a.header.Get("X-Lathe-Run-Id"), "run_") || !strings.Contains(a.body, `"lathe":{"run_id":"run_`) {
			t.Errorf("no report: %v %s", a.header, a.body)
		}
		if c.codec.Wire() == lathe.WireGemini {
			return // has no member lathe in requests here
		}
		body := strings.TrimSuffix(c.body(stream, nil, lathe.User("What is 7 + 35?")), "}") + `,"lathe":{"show":"hidden"}}`
		if a := c.send(t.Context(), f, stream, body); a.err != nil || opaque(&a.message) != 0 || !strings.HasSuffix(a.message.Text(), "7 + 35 = 42.") {
			t.Errorf("hidden: %v %s", a.err, a.body)
		}
	})
}

// In a mixed turn the client gets its own call alone. When it comes back, the model sees all that it said before, whatever
// the client has left out.
func TestEveryWireHandsOverMixedTurns(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		model := mixed()
		f := serve(t, &setting{model: model})
		ask := lathe.User("hi")
		a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, ask)
		calls := a.message.Calls()
		if a.err != nil || a.reason != lathe.FinishToolCalls || len(calls) != 1 || calls[0].Name != "weather" || calls[0].Arguments != `{"city":"Oslo"}` {
			t.Fatalf("%v, %s, %+v: %s", a.err, a.reason, calls, a.body)
		}
		if got := words(&a.message); got != "FirstIcompute.Nowboth." {
			t.Errorf("the text is %q", got)
		}
		result := lathe.Message{Role: lathe.RoleTool, Wire: c.codec.Wire(), Parts: []lathe.Part{lathe.ToolResult{CallID: calls[0].ID, Name: "weather", Content: "rain"}}}
		b := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, ask, c.back(a.message), result)
		if b.err != nil || b.message.Text() != "It is done." {
			t.Fatalf("%v: %s", b.err, b.body)
		}
		want := strings.Join([]string{`user "hi"`, `assistant "First I compute." calculator:s1`, `tool =s1`,
			`assistant "Now both." calculator:s2 weather:c1 calculator:s3`, `tool =s2`, `tool =c1`, `tool =s3`}, "\n")
		all := model.all()
		if got := transcript(all[len(all)-1].Messages); got != want {
			t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
		}
	})
}

// A client that sends back all items that it has got, but for carriers, gives the model the calls of this server again. Of
// other clients the carriers restore them.
func TestRoundsOfTheServerComeBack(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, f *fixture, before int) {
		t.Helper()
		sent := f.seen.all()[before]
		if strings.Count(sent, `"name":"calculator","arguments":`) != 1 || strings.Count(sent, `"role":"tool"`) != 1 || !strings.Contains(sent, `"content":"7 + 35 = 42."`) {
			t.Errorf("the model was sent %s", sent)
		}
	}
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		if c.codec.Wire() == lathe.WireOpenAIChat || !stream {
			t.Skip("the answer has no carriers")
		}
		f := serve(t, nil)
		ask := lathe.User("What is 7 + 35?")
		a := c.ask(f, stream, nil, ask)
		before := len(f.seen.all())
		if b := c.ask(f, stream, nil, ask, c.back(a.message), lathe.User("hello")); b.err != nil {
			t.Fatalf("%v: %s", b.err, b.body)
		}
		check(t, f, before)
	})
	for name, of := range map[string]struct{ ask, member, again string }{
		"responses": {`{"model":"sim/demo","input":[{"role":"user","content":"What is 7 + 35?"}`, "output", `,%s,{"role":"user","content":"hello"}]}`},
		"messages": {`{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"What is 7 + 35?"}`, "content",
			`,{"role":"assistant","content":[%s]},{"role":"user","content":"hello"}]}`},
	} {
		t.Run(name+"/items", func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			c := wireClients[name]
			a := c.send(t.Context(), f, false, of.ask+"]}")
			items := strings.Trim(string((*parse[map[string]json.RawMessage](t, a.body))[of.member]), "[]")
			before := len(f.seen.all())
			if b := c.send(t.Context(), f, false, of.ask+fmt.Sprintf(of.again, items)); b.err != nil {
				t.Fatalf("%v: %s", b.err, b.body)
			}
			check(t, f, before)
		})
	}
}

// After an error a client repeats its request, also in the other form: the mail is sent once, and the repetition gets the
// answer.
func TestEveryWireHasOneEffect(t *testing.T) {
	t.Parallel()
	for _, place := range []struct {
		name  string
		model func(*mailer)
	}{
		{"before the first byte", func(m *mailer) { m.fail.Store(1) }},
		{"in the stream", func(m *mailer) { m.fail.Store(1); m.text = "A moment." }},
		{"after some text", func(m *mailer) { m.fail.Store(1); m.spoken = true }},
	} {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			onWires(t, func(t *testing.T, c *wireClient, stream bool) {
				m := &mailer{}
				place.model(m)
				r := serveRetries(t, m, &postOffice{}, newMortal(store.NewMemory(nil)), nil)
				ask := lathe.User("mail ann")
				if a := c.ask(r.fixture, true, nil, ask); a.err == nil {
					t.Fatalf("the first request did not fail: %v %s", a.err, a.body)
				}
				r.wantMails(1)
				b := c.ask(r.fixture, stream, nil, ask)
				if b.err != nil || !strings.HasSuffix(b.message.Text(), mailed) {
					t.Errorf("%v: %s", b.err, b.body)
				}
				r.wantMails(1)
				if strings.Contains(m.text, "moment") && !strings.HasPrefix(b.message.Text(), m.text) {
					t.Errorf("the text is %q", b.message.Text())
				}
				c.ask(r.fixture, stream, nil, ask) // on purpose: the answer was delivered
				r.wantMails(2)
			})
		})
	}
}

// W38: Codex sends a request again with the message that it has got, and nothing after it.
func TestW38_ResentMessageOfAFailedResponseHasOneEffect(t *testing.T) {
	t.Parallel()
	c := wireClients["codex"]
	m := &mailer{text: "A moment."}
	m.fail.Store(1)
	r := serveRetries(t, m, &postOffice{}, newMortal(store.NewMemory(nil)), nil)
	ask := lathe.User("mail ann")
	if a := c.ask(r.fixture, true, nil, ask); a.err == nil {
		t.Fatalf("the first request did not fail: %s", a.body)
	}
	said := lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireResponses, Parts: []lathe.Part{lathe.Text{Text: "A moment."}}}
	if b := c.ask(r.fixture, true, nil, ask, said); b.err != nil || !strings.HasSuffix(b.message.Text(), mailed) {
		t.Errorf("%v: %s", b.err, b.body)
	}
	r.wantMails(1)
}

// W29: an error before the first byte, and one after it, are in the form of the wire, and say why.
func TestEveryWireSaysErrorsInItsOwnForm(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		m := &mailer{text: "A moment."}
		m.fail.Store(100)
		r := serveRetries(t, m, &postOffice{}, newMortal(store.NewMemory(nil)), nil)
		if a := c.ask(r.fixture, stream, nil, lathe.User("mail ann")); a.code() != "upstream_5xx" && !(stream && a.err != nil && a.status == 200) {
			t.Errorf("from the model: %d %q %v %s", a.status, a.code(), a.err, a.body)
		} else if stream && c.codec.Wire() == lathe.WireResponses && strings.Count(a.body, `"type":"response.failed"`) != 1 {
			t.Errorf("the stream has no terminal event: %s", a.body)
		}
		a := c.send(t.Context(), r.fixture, stream, `{"broken`)
		if a.status != 400 || a.err.(*wire.APIError).Message == "" {
			t.Errorf("a broken body: %d %s", a.status, a.body)
		}
	})
	t.Run("a taken name", func(t *testing.T) {
		t.Parallel()
		f := serve(t, nil)
		taken := []*lathe.ToolSpec{{Name: "calculator", Schema: []byte(`{"type":"object"}`)}}
		for name, c := range wireClients {
			want := map[bool]string{true: "tools[0].function.name", false: "tools"}[name == "chat"]
			if a := c.ask(f, false, taken, lathe.User("hi")); a.status != 400 || !strings.Contains(a.body, `"`+want+`"`) && name != "messages" {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
	})
	t.Run("overloaded", func(t *testing.T) {
		t.Parallel()
		f := serve(t, nil)
		f.gateway.Unready()
		c := wireClients["messages"]
		a := c.ask(f, true, nil, lathe.User("hi"))
		if a.status != 529 || !strings.Contains(a.body, "overloaded_error") || a.header.Get("Retry-After") == "" || a.header.Get("Request-Id") == "" || a.code() != "draining" {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	})
}

// W8: whatever a model server sends before it breaks off, the client gets one end.
func TestEveryWireEndsOnceWhenTheModelBreaksOff(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	whole := soundStreams["calls"]
	for name, c := range wireClients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := 0; cut < len(whole); cut += 97 {
				f := serve(t, upstreamSays("text/event-stream", whole[:cut]))
				a := c.ask(f, true, []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi"))
				if a.err != nil && a.code() == "" && a.status != 200 {
					t.Errorf("cut at %d: %d %v %s", cut, a.status, a.err, a.body)
				}
				if errors.Is(a.err, wire.ErrIncomplete) && c.codec.Wire() != lathe.WireOpenAIChat {
					t.Errorf("cut at %d: the stream has no end: %s", cut, a.body)
				}
			}
		})
	}
}

// A client that leaves ends its run.
func TestEveryWireCancelsWithItsClient(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		m := mixed()
		m.wait = func(run context.Context) {
			leave()
			<-run.Done()
			close(ended)
		}
		f := serve(t, &setting{model: m})
		if a := c.send(ctx, f, stream, c.body(stream, nil, lathe.User("hi"))); a.err == nil && !a.cut {
			t.Errorf("got %s", a.body)
		}
		<-ended
	})
}

// Each client's own header holds its key; another key does not get what was kept for this one.
func TestEveryWireKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		model := mixed()
		f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }})
		ask := lathe.User("hi")
		a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, ask)
		if a.err != nil || len(a.message.Calls()) != 1 {
			t.Fatalf("%v: %s", a.err, a.body)
		}
		f.key = text("b")
		result := lathe.Message{Role: lathe.RoleTool, Wire: c.codec.Wire(), Parts: []lathe.Part{lathe.ToolResult{CallID: a.message.Calls()[0].ID, Name: "weather", Content: "rain"}}}
		back := c.back(a.message)
		back.Parts = slices.DeleteFunc(slices.Clone(back.Parts), func(p lathe.Part) bool { _, is := p.(lathe.Opaque); return is })
		if b := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, ask, back, result); b.err != nil {
			t.Fatalf("%v: %s", b.err, b.body)
		}
		all := model.all()
		if got := transcript(all[len(all)-1].Messages); strings.Contains(got, "calculator:s1") {
			t.Errorf("the model was sent\n%s", got)
		}
		f.key = text("c")
		if b := c.ask(f, stream, nil, ask); b.status != 401 || b.code() != "invalid_api_key" {
			t.Errorf("an unknown key: %d %s", b.status, b.body)
		}
	})
}

// A run that waits says so on every wire, and its outcome is in the next turn.
func TestEveryWireSaysThatARunWaits(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		h := open(t, nil)
		ask := lathe.User(`write {"n":1}`)
		a := c.ask(h.fixture, stream, nil, ask)
		if a.err != nil || a.reason != lathe.FinishStop || !strings.Contains(a.message.Text(), "write has not been called") {
			t.Fatalf("%v, %s: %s", a.err, a.reason, a.body)
		}
		if strings.Contains(a.body, `"mcp_approval_request"`) { // OpenAI's Agents SDK fails on one of a tool that it did not declare
			t.Errorf("a request for an approval that the client did not ask for: %s", a.body)
		}
		h.answerOnly("approve")
		b := c.ask(h.fixture, stream, nil, ask, c.back(a.message), lathe.User("look {}"))
		if b.err != nil || h.log.wrote.Load() != 1 {
			t.Fatalf("%v, written %d times: %s", b.err, h.log.wrote.Load(), b.body)
		}
	})
}

// The answer to a request for an approval resumes the run, in whatever form it comes.
func TestApprovalResponseResumesTheRun(t *testing.T) {
	t.Parallel()
	c := wireClients["responses"]
	for how, stream := range bothWays {
		for _, approve := range []bool{true, false} {
			t.Run(fmt.Sprint(how, " ", approve), func(t *testing.T) {
				t.Parallel()
				h := open(t, nil)
				const declared = `,"tools":[{"type":"mcp","server_label":"lathe","require_approval":"always"}]`
				ask := `{"type":"message","role":"user","content":"write {\"n\":1}"}`
				post := func(input string) *wireAnswer {
					return c.send(t.Context(), h.fixture, stream, fmt.Sprintf(`{"model":"sim/demo","stream":%v,"input":[%s]%s}`, stream, input, declared))
				}
				a := post(ask)
				var request string
				for _, p := range a.message.Parts {
					if o, ok := p.(lathe.Opaque); ok && strings.Contains(string(o.JSON), `"mcp_approval_request"`) {
						request = string(o.JSON)
					}
				}
				if a.err != nil || request == "" || strings.Contains(a.body, "has not been called") {
					t.Fatalf("%v: %s", a.err, a.body)
				}
				id := parse[struct{ ID string }](t, request).ID
				response := fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":%v}`, id, approve)
				for _, member := range []string{"approval_request_id", "request_id"} { // a repetition changes nothing
					b := post(ask + "," + request + "," + strings.Replace(response, "approval_request_id", member, 1))
					if b.err != nil || !strings.Contains(b.message.Text(), "The tools said") || strings.Contains(b.message.Text(), "Turn 1") {
						t.Errorf("%v: %s", b.err, b.body)
					}
				}
				if got := h.log.wrote.Load(); (got == 1) != approve || got > 1 {
					t.Errorf("written %d times", got)
				}
				if b := post(ask + "," + strings.Replace(response, "mcpr_", "mcpr_x", 1)); b.status != 400 || b.code() != "approval_not_found" {
					t.Errorf("an unknown id: %d %s", b.status, b.body)
				}
			})
		}
	}
}

// A request that answers an approval and has the result of the client's call of the same turn resumes the run with both, in
// either order, whole and as a stream. Repeated, it gets the same answer.
func TestApprovalResponseWithAResult(t *testing.T) {
	t.Parallel()
	c := wireClients["responses"]
	for how, stream := range bothWays {
		for _, order := range []string{"result first", "approval first", "approval before"} {
			t.Run(how+" "+order, func(t *testing.T) {
				t.Parallel()
				h := open(t, nil)
				const declared = `,"tools":[{"type":"mcp","server_label":"lathe","require_approval":"always"},{"type":"function","name":"weather","parameters":{"type":"object"}}]`
				post := func(input string) *wireAnswer {
					return c.send(t.Context(), h.fixture, stream, fmt.Sprintf(`{"model":"sim/demo","stream":%v,"input":[%s]%s}`, stream, input, declared))
				}
				history := `{"type":"message","role":"user","content":"write {\"n\":1}\nweather {\"city\":\"Oslo\"}"}`
				a := post(history)
				id := ""
				for _, p := range a.message.Parts {
					if o, ok := p.(lathe.Opaque); ok && strings.Contains(string(o.JSON), `"mcp_approval_request"`) {
						id = parse[struct{ ID string }](t, string(o.JSON)).ID
						history += "," + string(o.JSON)
					}
				}
				calls := a.message.Calls()
				if a.err != nil || id == "" || strings.Count(id, "mcpr_") != 1 || len(calls) != 1 {
					t.Fatalf("%v: %s", a.err, a.body)
				}
				history += fmt.Sprintf(`,{"type":"function_call","call_id":%q,"name":"weather","arguments":%q}`, calls[0].ID, calls[0].Arguments)
				approved := fmt.Sprintf(`,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}`, id)
				result := fmt.Sprintf(`,{"type":"function_call_output","call_id":%q,"output":"rain"}`, calls[0].ID)
				switch order {
				case "result first":
					history += result + approved
				case "approval first":
					history += approved + result
				case "approval before":
					if b := post(history + approved); b.err != nil || h.log.wrote.Load() != 1 || strings.Contains(b.body, "The tools said") {
						t.Fatalf("%v, written %d times: %s", b.err, h.log.wrote.Load(), b.body)
					}
					history += approved + result
				}
				for range 2 { // a repetition changes nothing
					b := post(history)
					if b.err != nil || len(b.message.Calls()) != 0 || !strings.Contains(b.message.Text(), "The tools said: {\"n\":1} rain") {
						t.Errorf("%v: %s", b.err, b.body)
					}
					if strings.Count(b.body, `"type":"mcp_call"`) == 0 {
						t.Errorf("the call of the server is not shown: %s", b.body)
					}
				}
				if got := h.log.wrote.Load(); got != 1 {
					t.Errorf("written %d times", got)
				}
			})
		}
	}
}

// Each byte of a text that is not UTF-8 is one U+FFFD for the clients of all wires, as encoding/json writes it, also where a piece of
// the stream ends within a character.
func TestEveryWireReplacesEachInvalidByte(t *testing.T) {
	t.Parallel()
	pieces := []string{"a\xff\xfe\xfdb", "\xe2\x82", "c\xf0\x9f\x98", "d\xed\xa0\x80e\xc0\xaf", "é🙂"}
	var text string
	for _, p := range pieces {
		var q string
		if b, err := json.Marshal(p); err != nil || json.Unmarshal(b, &q) != nil {
			t.Fatal(err)
		}
		text += q
	}
	if n := strings.Count(text, "\uFFFD"); n != 13 {
		t.Fatalf("encoding/json writes %d times U+FFFD: %q", n, text)
	}
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		f := serve(t, &setting{model: pieceModel(pieces)})
		if a := c.ask(f, stream, nil, lathe.User("hi")); a.err != nil || a.message.Text() != text {
			t.Errorf("%v: the client reads %q, want %q: %s", a.err, a.message.Text(), text, a.body)
		}
	})
}

// A pieceModel answers with a text in those pieces.
type pieceModel []string

func (m pieceModel) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m pieceModel) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for _, p := range m {
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: p}, nil) {
				return
			}
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant(strings.Join(m, ""))}}, nil)
	}
}
