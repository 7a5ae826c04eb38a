package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A wsClient is a client in WebSocket mode.
type wsClient struct {
	t   *testing.T
	ws  *websocket.Conn
	ctx context.Context
}

// A wsEvent is a message of the server.
type wsEvent struct {
	Type     string
	Sequence int `json:"sequence_number"`
	Status   int
	Error    struct{ Code, Message, Param string }
	Response *response
	raw      string
}

func (f *fixture) dial(t *testing.T, header ...string) *wsClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it is reached only if the test fails
	t.Cleanup(cancel)
	h := http.Header{}
	if f.key != "" {
		h.Set("Authorization", "Bearer "+f.key)
	}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	ws, _, err := websocket.Dial(ctx, f.url+"/v1/responses", &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	ws.SetReadLimit(16 << 20)
	return &wsClient{t, ws, ctx}
}

func (c *wsClient) send(message string) {
	c.t.Helper()
	if err := c.ws.Write(c.ctx, websocket.MessageText, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next event; nil if the connection has ended.
func (c *wsClient) next() *wsEvent {
	c.t.Helper()
	kind, b, err := c.ws.Read(c.ctx)
	if err != nil {
		return nil
	}
	e := &wsEvent{raw: string(b)}
	if err := json.Unmarshal(b, e); err != nil || kind != websocket.MessageText {
		c.t.Fatalf("%v: %s", err, b)
	}
	return e
}

// events returns the events up to the one that ends a response.
func (c *wsClient) events() (list []*wsEvent) {
	c.t.Helper()
	for {
		e := c.next()
		if e == nil {
			c.t.Fatalf("the connection ended after %d events", len(list))
		}
		list = append(list, e)
		switch e.Type {
		case "error", "response.completed", "response.incomplete", "response.failed":
			return list
		}
	}
}

// create sends a request and returns the last event of its response.
func (c *wsClient) create(body string) *wsEvent {
	c.t.Helper()
	c.send(`{"type":"response.create","model":"sim/demo",` + body + `}`)
	list := c.events()
	return list[len(list)-1]
}

// closed returns the status with which the server has closed the connection, and the events before.
func (c *wsClient) closed() (status websocket.StatusCode, before string) {
	c.t.Helper()
	for {
		_, b, err := c.ws.Read(c.ctx)
		before += string(b)
		if err != nil {
			var e websocket.CloseError
			if !errors.As(err, &e) {
				c.t.Fatalf("the connection ended without a status: %v", err)
			}
			return e.Code, before
		}
	}
}

// Opcodes of frames.
const (
	opContinuation = 0
	opText         = 1
	opClose        = 8
)

// frame returns a frame of a client with at most 125 bytes.
func frame(opcode byte, last bool, payload string) string {
	if last {
		opcode |= 0x80
	}
	return string([]byte{opcode, 0x80 | byte(len(payload)), 0, 0, 0, 0}) + payload // the mask is zero
}

// closedAfter opens a connection, sends bytes in place of frames, and returns the status with which the server closes it.
func (f *fixture) closedAfter(frames string) websocket.StatusCode {
	f.t.Helper()
	host := strings.TrimPrefix(f.url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // it is reached only if the test fails
	if _, err := io.WriteString(conn, "GET /v1/responses HTTP/1.1\r\nHost: "+host+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"); err != nil {
		f.t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		f.t.Fatal(resp, err)
	}
	if _, err := io.WriteString(conn, frames); err != nil {
		f.t.Fatal(err)
	}
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(from, head); err != nil {
			f.t.Fatal(err)
		}
		payload := make([]byte, head[1])
		if _, err := io.ReadFull(from, payload); err != nil {
			f.t.Fatal(err)
		}
		if head[0]&0xf == opClose {
			return websocket.StatusCode(binary.BigEndian.Uint16(payload))
		}
	}
}

// The events on a WebSocket are those of a stream over HTTP, one in each message, and the next response begins after the last
// event of the one before.
func TestSocketSendsTheEventsOfAStream(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	_, text := f.respond(true, `"input":"What is 7 + 35?"`)
	var want []string
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			want = append(want, strings.TrimSpace(name))
		}
	}
	c := f.dial(t)
	for range 2 { // the second one is sent before the end of the first
		c.send(`{"type":"response.create","model":"sim/demo","input":"What is 7 + 35?"}`)
	}
	ids := map[string]bool{}
	for range 2 {
		var got []string
		for i, e := range c.events() {
			if got = append(got, e.Type); e.Sequence != i {
				t.Errorf("event %d has the number %d", i, e.Sequence)
			}
			if e.Response != nil && e.Response.Status == "completed" {
				ids[e.Response.ID] = e.Response.Store
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
	}
	if len(ids) != 2 {
		t.Errorf("responses %v", ids)
	}
	for id, stored := range ids {
		if resp, body := f.do("GET", "/v1/responses/"+id, ""); !stored || resp.StatusCode != 200 {
			t.Errorf("%v %d %s", stored, resp.StatusCode, body)
		}
	}
}

// A message continues the last response of its connection although it is not stored: with its calls, those of the server
// included, and without its instructions. No other connection can.
func TestSocketContinuesWithoutAStore(t *testing.T) {
	t.Parallel()
	const weather = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	for name, nothing := range map[string]bool{"store false": false, "no store": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := mixed()
			f := serve(t, &setting{model: model, nothing: nothing, opts: func(o *server.Options) {
				if nothing {
					o.Index, o.Supervisor = nil, nil
				}
			}})
			c := f.dial(t)
			one := c.create(`"store":false,"instructions":"Be brief.","input":"hi",` + weather)
			if one.Type != "response.completed" || one.Response.Store {
				t.Fatal(one.raw)
			}
			call := one.Response.Output[len(one.Response.Output)-1]
			result := fmt.Sprintf(`"store":false,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"rain"}],%s`, one.Response.ID, call.CallID, weather)
			if other := f.dial(t).create(result); other.Error.Code != "previous_response_not_found" || other.Status != 400 || other.Error.Param != "previous_response_id" {
				t.Errorf("another connection: %s", other.raw)
			}
			two := c.create(result)
			if two.Response == nil || two.Response.text() != "It is done." {
				t.Fatal(two.raw)
			}
			all := model.all()
			want := strings.Join([]string{`user "hi"`, `assistant "First I compute." calculator:s1`, `tool =s1`,
				`assistant "Now both." calculator:s2 weather:c1 calculator:s3`, `tool =s2`, `tool =c1`, `tool =s3`}, "\n")
			if got := transcript(all[len(all)-1].Messages); got != want {
				t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
			}
			if old := c.create(result); old.Error.Code != "previous_response_not_found" {
				t.Errorf("a response before the last one: %s", old.raw)
			}
		})
	}
}

// After a continuation that fails, the response that it referred to is gone.
func TestSocketForgetsAfterAFailure(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{model: &fake{turn: func(n int, req *lathe.Request) lathe.Message { return says(lathe.Text{Text: "OK."}) }}})
	c := f.dial(t)
	one := c.create(`"store":false,"input":"hi"`)
	if one.Response == nil {
		t.Fatal(one.raw)
	}
	bad := c.create(`"store":false,"previous_response_id":"` + one.Response.ID + `","input":[{"type":"function_call_output","call_id":"c9","output":"x"}]`)
	if bad.Type != "error" || bad.Status != 400 {
		t.Fatal(bad.raw)
	}
	if again := c.create(`"store":false,"previous_response_id":"` + one.Response.ID + `","input":"x"`); again.Error.Code != "previous_response_not_found" {
		t.Error(again.raw)
	}
}

// A message with generate false calls no model, and the next one continues its input.
func TestSocketWarmUp(t *testing.T) {
	t.Parallel()
	model := &fake{turn: func(int, *lathe.Request) lathe.Message { return says(lathe.Text{Text: "OK."}) }}
	f := serve(t, &setting{model: model})
	c := f.dial(t)
	warm := c.create(`"generate":false,"instructions":"Be brief.","input":"hi"`)
	if warm.Type != "response.completed" || warm.Sequence != 2 || len(warm.Response.Output) != 0 || warm.Response.Store || len(model.all()) != 0 {
		t.Fatal(warm.raw)
	}
	if bad := c.create(`"generate":false,"input":"hi","tool_choice":{"type":"function","name":"none"}`); bad.Status != 400 {
		t.Errorf("a warm-up is checked: %s", bad.raw)
	}
	next := c.create(`"store":false,"previous_response_id":"` + warm.Response.ID + `","instructions":"Be brief.","input":"Go."`)
	if next.Type != "response.completed" {
		t.Fatal(next.raw)
	}
	if got := transcript(model.all()[0].Messages); got != "system \"Be brief.\"\nuser \"hi\"\nuser \"Go.\"" {
		t.Errorf("the model was sent\n%s", got)
	}
}

// An error is one message with a status, and the connection serves the next request.
func TestSocketErrors(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	failing.Store(true)
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} },
		instead: func(int, *http.Request) (*http.Response, error) {
			if failing.Swap(false) {
				return nil, errors.New("down")
			}
			return nil, nil
		}})
	c := f.dial(t)
	if e := c.create(`"input":"hi"`); e.Type != "error" || e.Status < 500 || e.Error.Code == "" {
		t.Errorf("the model cannot be reached: %s", e.raw)
	}
	one, text1 := f.respond(false, `"input":"hi"`)
	if one == nil {
		t.Fatal(text1)
	}
	bob := f.dial(t, "Authorization", "Bearer "+text("bob"))
	if e := bob.create(`"previous_response_id":"` + one.ID + `","input":"x"`); e.Error.Code != "previous_response_not_found" {
		t.Errorf("a response of another key: %s", e.raw)
	}
	if e := c.create(`"previous_response_id":"` + one.ID + `","input":"x"`); e.Type != "response.completed" {
		t.Errorf("a stored response: %s", e.raw)
	}
	for message, want := range map[string]string{
		`{`:                          "invalid_request",
		`[]`:                         "invalid_request",
		`"x"`:                        "invalid_request",
		`{"a":1}`:                    "type",
		`{"type":5}`:                 "type",
		`{"type":"response.cancel"}`: "type",
		`{"type":"response.create","input":"hi"}`:                                                   `"model"`,
		`{"type":"response.create","model":"sim/demo","input":"hi","stream":false}`:                 `"stream"`,
		`{"type":"response.create","model":"sim/demo","input":"hi","background":true}`:              "background",
		`{"type":"response.create","model":"sim/demo","input":"hi","generate":1}`:                   "generate",
		`{"type":"response.create","model":"no/such","input":"hi"}`:                                 "model_not_found",
		`{"type":"response.create","model":"sim/demo","input":"hi","previous_response_id":"resp_"}`: "previous_response_not_found",
	} {
		c.send(message)
		if e := c.events()[0]; e.Type != "error" || e.Status < 400 || e.Status >= 500 || !strings.Contains(e.raw, want) {
			t.Errorf("%s: %s", message, e.raw)
		}
	}
	if e := c.create(`"input":"hi","stream":true`); e.Type != "response.completed" {
		t.Errorf("after errors: %s", e.raw)
	}
}

// A response that fails after its first event ends with one event.
func TestSocketEndsAFailedResponseOnce(t *testing.T) {
	t.Parallel()
	m := &mailer{}
	m.fail.Store(1)
	r := serveRetries(t, m, &postOffice{}, newMortal(store.NewMemory(nil)), nil)
	c := r.dial(t)
	if e := c.create(`"input":"mail ann"`); e.Type != "response.failed" || e.Response.Status != "failed" {
		t.Fatal(e.raw)
	}
	if e := c.create(`"input":"mail ann","generate":false`); e.Type != "response.completed" {
		t.Errorf("the message after the last event: %s", e.raw)
	}
}

// held is a model whose turns wait for a receive from goOn, or the end of their request.
func held() (model *fake, began chan struct{}, goOn chan struct{}, left *atomic.Int32) {
	began, goOn, left = make(chan struct{}, 64), make(chan struct{}), &atomic.Int32{}
	model = &fake{turn: func(int, *lathe.Request) lathe.Message { return says(lathe.Text{Text: "OK."}) }, wait: func(ctx context.Context) {
		began <- struct{}{}
		select {
		case <-goOn:
		case <-ctx.Done():
			left.Add(1)
		}
	}}
	return model, began, goOn, left
}

// Messages that come while a response is active wait, up to a limit, and are answered in their order.
func TestSocketServesOneRequestAtATime(t *testing.T) {
	t.Parallel()
	model, began, goOn, _ := held()
	f := serve(t, &setting{model: model})
	c := f.dial(t)
	for i := range 3 {
		c.send(fmt.Sprintf(`{"type":"response.create","model":"sim/demo","store":false,"input":"%d"}`, i))
	}
	for i := range 3 {
		<-began
		if n := len(model.all()); n != i+1 {
			t.Fatalf("%d requests are at work", n-i)
		}
		if got := transcript(model.all()[i].Messages); got != fmt.Sprintf("user \"%d\"", i) {
			t.Errorf("request %d: %s", i, got)
		}
		goOn <- struct{}{}
		if e := c.events(); e[len(e)-1].Type != "response.completed" {
			t.Error(e[len(e)-1].raw)
		}
	}
	for i := range 6 { // one at work, four that wait, and one more
		c.send(`{"type":"response.create","model":"sim/demo","store":false,"input":"x"}`)
		if i == 0 {
			<-began
		}
	}
	if got, _ := c.closed(); got != websocket.StatusPolicyViolation {
		t.Errorf("closed with %d", got)
	}
	f.idle()
}

// A client that leaves ends the run of its request.
func TestSocketEndsTheRunOfALeavingClient(t *testing.T) {
	t.Parallel()
	model, began, _, left := held()
	f := serve(t, &setting{model: model})
	c := f.dial(t)
	c.send(`{"type":"response.create","model":"sim/demo","input":"x"}`)
	<-began
	_ = c.ws.CloseNow()
	f.idle()
	if n := left.Load(); n != 1 {
		t.Errorf("%d turns have ended", n)
	}
}

// A handshake has the checks of every request, and those for the pages of other sites, which a GET otherwise does not have.
func TestSocketHandshake(t *testing.T) {
	t.Parallel()
	keys := func(o *server.Options) {
		o.Setup.Keys, o.Setup.Origins = []server.Key{key("ann")}, []string{"https://chat.example.com"}
	}
	f, open := serve(t, &setting{opts: keys}), serve(t, nil)
	for name, c := range map[string]struct {
		at     *fixture
		path   string
		header http.Header
		status int
	}{
		"no key":                         {f, "", nil, 401},
		"key in the query":               {f, "?key=" + text("ann"), nil, 401},
		"another key":                    {f, "", http.Header{"Authorization": {"Bearer " + text("bob")}}, 401},
		"another site":                   {open, "", http.Header{"Origin": {"https://evil.example"}}, 403},
		"null origin":                    {open, "", http.Header{"Origin": {"null"}}, 403},
		"another site, says the browser": {open, "", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		"another port":                   {open, "", http.Header{"Origin": {"http://127.0.0.1:1"}}, 403},
		"allowed site":                   {f, "", http.Header{"Origin": {"https://chat.example.com"}, "Authorization": {"Bearer " + text("ann")}}, 101},
		"own page":                       {open, "", http.Header{"Origin": {open.url}}, 101},
		"unknown host":                   {open, "", http.Header{"Host": {"evil.example"}}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			opts := &websocket.DialOptions{HTTPHeader: c.header.Clone()}
			if host := c.header.Get("Host"); host != "" {
				opts.Host = host
			}
			ws, res, err := websocket.Dial(t.Context(), c.at.url+"/v1/responses"+c.path, opts)
			if err == nil {
				_ = ws.CloseNow()
			}
			if res == nil || res.StatusCode != c.status {
				t.Errorf("%v %v, want %d", res, err, c.status)
			}
		})
	}
	if resp, body := open.do("GET", "/v1/responses", ""); resp.StatusCode != 404 || !strings.Contains(body, "POST /v1/responses") {
		t.Errorf("without an upgrade: %d %s", resp.StatusCode, body)
	}
}

// Messages are text, complete in time, and within the size of a body; more pings than a client needs end the connection.
func TestSocketLimitsFrames(t *testing.T) {
	t.Parallel()
	serveLimits := func(t *testing.T, change func(*server.Limits)) *wsClient {
		return serve(t, &setting{opts: func(o *server.Options) { change(&o.Limits) }}).dial(t)
	}
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		c := serveLimits(t, func(l *server.Limits) { l.MaxBody = 1000 })
		c.send(strings.Repeat("x", 1001))
		if got, _ := c.closed(); got != websocket.StatusMessageTooBig {
			t.Errorf("closed with %d", got)
		}
	})
	t.Run("too large in fragments", func(t *testing.T) {
		t.Parallel()
		f := serve(t, &setting{opts: func(o *server.Options) { o.Limits.MaxBody = 1000 }})
		frames := frame(opText, false, "x")
		for range 1000 {
			frames += frame(opContinuation, false, "x")
		}
		if got := f.closedAfter(frames); got != websocket.StatusMessageTooBig {
			t.Errorf("closed with %d", got)
		}
	})
	t.Run("fragments", func(t *testing.T) {
		t.Parallel()
		c := serveLimits(t, func(*server.Limits) {})
		w, err := c.ws.Writer(c.ctx, websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(`{"type":"response.create","model":"sim/demo","input":"hi"}`) {
			if _, err := w.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if e := c.events(); e[len(e)-1].Type != "response.completed" {
			t.Error(e[len(e)-1].raw)
		}
	})
	t.Run("never complete", func(t *testing.T) {
		t.Parallel()
		f := serve(t, &setting{opts: func(o *server.Options) { o.Limits.BodyTimeout = time.Millisecond }})
		if got := f.closedAfter(frame(opText, false, "{") + frame(opContinuation, false, "")); got != websocket.StatusPolicyViolation {
			t.Errorf("closed with %d", got)
		}
	})
	t.Run("binary", func(t *testing.T) {
		t.Parallel()
		c := serveLimits(t, func(*server.Limits) {})
		if err := c.ws.Write(c.ctx, websocket.MessageBinary, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if got, _ := c.closed(); got != websocket.StatusUnsupportedData {
			t.Errorf("closed with %d", got)
		}
	})
	t.Run("pings", func(t *testing.T) {
		t.Parallel()
		c := serveLimits(t, func(*server.Limits) {})
		status := make(chan websocket.StatusCode, 1)
		go func() { // reads the pongs
			_, _, err := c.ws.Read(c.ctx)
			status <- websocket.CloseStatus(err)
		}()
		answered := 0
		for answered < 1000 && c.ws.Ping(c.ctx) == nil {
			answered++
		}
		if got := <-status; answered > 240 || got != websocket.StatusPolicyViolation {
			t.Errorf("%d pings were answered, closed with %d", answered, got)
		}
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		c := serveLimits(t, func(l *server.Limits) { l.SocketIdle = time.Millisecond })
		if got, _ := c.closed(); got != websocket.StatusNormalClosure {
			t.Errorf("closed with %d", got)
		}
	})
	t.Run("old", func(t *testing.T) {
		t.Parallel()
		c := serveLimits(t, func(l *server.Limits) { l.SocketAge = time.Millisecond })
		if e := c.next(); e == nil || e.Status != 400 || e.Error.Code != "websocket_connection_limit_reached" {
			t.Errorf("got %v", e)
		}
		if got, _ := c.closed(); got != websocket.StatusNormalClosure {
			t.Errorf("closed with %d", got)
		}
	})
}

// Each message is a request under the limits and the keys that hold when it comes; the connection is none.
func TestSocketMessagesCountForTheirKey(t *testing.T) {
	t.Parallel()
	one, two := key("ann"), key("bob")
	one.Concurrency, one.RequestsPerMinute = 1, 3
	var setup server.Setup
	clock := &handClock{at: time.Now()}
	f := serve(t, &setting{now: clock.now, opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{one, two}
		setup = o.Setup
	}})
	c := f.dial(t)
	for range 2 {
		if e := c.create(`"input":"hi"`); e.Type != "response.completed" {
			t.Fatal(e.raw)
		}
	}
	if e := c.create(`"input":"hi"`); e.Status != 429 || e.Error.Code != "rate_limit_exceeded" {
		t.Errorf("the fourth request of a minute: %s", e.raw)
	}
	setup.Keys = []server.Key{two}
	if _, err := f.gateway.Reload(&setup); err != nil {
		t.Fatal(err)
	}
	if e := c.create(`"input":"hi"`); e.Status != 401 || e.Error.Code != "invalid_api_key" {
		t.Errorf("after the key was removed: %s", e.raw)
	}
}

// A drain waits for the response that is active, refuses the messages that wait, and closes the connections.
func TestSocketsDrain(t *testing.T) {
	t.Parallel()
	model, began, goOn, _ := held()
	f := serve(t, &setting{model: model})
	idle, busy := f.dial(t), f.dial(t)
	busy.send(`{"type":"response.create","model":"sim/demo","input":"one"}`)
	<-began
	busy.send(`{"type":"response.create","model":"sim/demo","input":"two"}`)
	over := make(chan struct{})
	go func() {
		defer close(over)
		f.gateway.Drain(context.Background())
	}()
	if got, _ := idle.closed(); got != websocket.StatusGoingAway {
		t.Errorf("the idle connection is closed with %d", got)
	}
	goOn <- struct{}{}
	if e := busy.events(); e[len(e)-1].Type != "response.completed" {
		t.Errorf("the active response: %s", e[len(e)-1].raw)
	}
	got, before := busy.closed() // the message may not have been read before the drain
	if got != websocket.StatusGoingAway || before != "" && !strings.Contains(before, `"status":503`) {
		t.Errorf("the busy connection is closed with %d after %s", got, before)
	}
	<-over
	if _, res, err := websocket.Dial(t.Context(), f.url+"/v1/responses", nil); err == nil || res.StatusCode != 503 {
		t.Errorf("a connection after the drain: %v %v", res, err)
	}
}

// A message that does not fit into the memory of its key, with what its connection holds, is refused for good: neither its request
// nor the connection says that it may be sent again.
func TestSocketRefusesWhatNeverFits(t *testing.T) {
	t.Parallel()
	f := serve(t, small(1<<20, nil)) // half of it for a key
	for range 100 {
		c := f.dial(t)
		ask := func(n int) *wsEvent { return c.create(`"store":false,"input":"` + strings.Repeat("x", n) + `"`) }
		e := ask(100_000)
		if e.Type == "response.completed" {
			e = ask(220_000)
		}
		if e.Status == 429 { // it came while the memory of the message before was not released, and so may fit later
			_ = c.ws.CloseNow() // or it has ended
			continue
		}
		if e.Status != 413 || e.Error.Code != "request_too_large" || !strings.Contains(e.Error.Message, "serve.max_inflight_bytes") {
			t.Errorf("a message whose conversation does not fit: %.300s", e.raw)
		}
		if e := ask(1000); e.Type != "response.completed" { // the connection is as before
			t.Errorf("the next message: %.300s", e.raw)
		}
		c.send(`{"type":"response.create","model":"sim/demo","input":"` + strings.Repeat("x", 600_000) + `"}`)
		if status, before := c.closed(); status != websocket.StatusMessageTooBig || !strings.Contains(before, "request_too_large") {
			t.Errorf("a message that does not fit: %d %.300s", status, before)
		}
		f.empties()
		return
	}
	t.Error("no message was refused for good")
}
