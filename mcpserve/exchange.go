package mcpserve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
)

// An exchange is an errand whose tool may ask the client, from 2026-07-28 on: the question is the
// answer to the request, and the client makes its request again with what it was asked for. The tool
// runs once all the same: between the requests it waits here, and the state that the client is given
// is a number that cannot be guessed, good for one more request of the same caller with the same
// arguments.
type exchange struct {
	manners
	e      *errand
	print  [32]byte
	ctx    context.Context // of the errand: it outlives the requests
	cancel context.CancelFunc
	asks   chan *asking
	done   chan lathe.ToolResult
	shape  shape
	finish finish

	// Used by whoever serves the request that is open; nobody does while the exchange is parked.
	given mcp.InputResponseMap
	open  *asking
	timer *time.Timer
	state string // while it is parked
}

// A finish makes the result of the request that is open of what came of its errand.
type finish func(ctx context.Context, r *lathe.ToolResult) (mcp.Result, error)

// A shape makes the result that asks.
type shape func(requests mcp.InputRequestMap, state string) (mcp.Result, error)

// A round is one request of an exchange.
type round struct {
	session *mcp.ServerSession
	token   any
	caps    *mcp.ClientCapabilities
	answers mcp.InputResponseMap
	tasks   bool // it may be answered by a task
	atOnce  bool // it is, where there is room
}

// asking is what a tool waits for.
type asking struct {
	questions map[string]lathe.Question
	answers   map[string]lathe.Answer
	err       error
	ready     chan struct{}
}

// fingerprint tells requests apart: what is asked about one is not told to another.
func fingerprint(method, name string, args []byte) [32]byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(method), []byte(name), args} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

// send carries the errand through the runner. Its result is what finish makes of it, or a question.
func send(ctx context.Context, e *errand, print [32]byte, r *round, s shape, end finish) (mcp.Result, error) {
	e.told.set(ctx, r.session, r.token)
	can, transport := abilities(r.caps), transportOf(ctx)
	modern := modernVersion(e.protocol)
	if modern && (r.tasks || can[capForm] || can[capLink] || can[capSample] || can[capRoots]) {
		x := &exchange{manners: manners{can: can}, e: e, print: print, asks: make(chan *asking), done: make(chan lathe.ToolResult, 1),
			shape: s, finish: end, given: r.answers}
		e.asker = x
		return x.begin(ctx, transport, r)
	}
	a := &sessionAsker{manners: manners{can: can}, session: r.session, t: e.t}
	e.asker = a
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.v.ctx, cancel)() // the end of the session ends its calls
	result := e.run(ctx, transport)
	if result.IsError && modern {
		if err := a.lacks(); err != nil {
			return nil, err
		}
	}
	return end(ctx, &result)
}

// begin starts the errand, and serves the request that it comes from.
func (x *exchange) begin(ctx context.Context, transport string, first *round) (mcp.Result, error) {
	s := x.e.t.s
	x.ctx, x.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ok := s.apart(func() {
		defer x.cancel()
		defer context.AfterFunc(x.e.v.ctx, x.cancel)()
		x.done <- x.e.run(x.ctx, transport)
		x.e.t.forget(x)
	})
	if !ok {
		x.e.end()
		return nil, &jsonrpc.Error{Code: codeBusy, Message: "the server is about to end"}
	}
	if first.atOnce {
		if res, ok := x.become(); ok {
			return res, nil
		}
	}
	return x.serve(ctx, first)
}

// serve waits for the errand to end, to ask something that the client has not answered, or to take so
// long that it is a task.
func (x *exchange) serve(ctx context.Context, r *round) (mcp.Result, error) {
	var long <-chan time.Time
	if r.tasks {
		timer := time.NewTimer(x.e.t.s.opts.Tasks.After)
		defer timer.Stop()
		long = timer.C
	}
	for {
		select {
		case <-long:
			if res, ok := x.become(); ok {
				return res, nil
			}
		case a := <-x.asks:
			x.open = a
			if x.settle() {
				continue
			}
			res, err := x.park()
			if err == nil {
				return res, nil
			}
			a.err, x.open = err, nil
			close(a.ready)
		case r := <-x.done:
			return x.end(ctx, &r)
		case <-ctx.Done(): // who closes the request cancels it
			x.cancel()
			r := <-x.done
			return x.finish(ctx, &r)
		}
	}
}

// end is the result of the errand.
func (x *exchange) end(ctx context.Context, r *lathe.ToolResult) (mcp.Result, error) {
	if r.IsError {
		if err := x.lacks(); err != nil {
			return nil, err
		}
	}
	return x.finish(ctx, r)
}

// settle hands the client's answers to the tool, where there is one for each question.
func (x *exchange) settle() bool {
	a := x.open
	for name, q := range a.questions {
		if _, ok := a.answers[name]; ok {
			continue
		}
		if answer, ok := answerOf(q, x.given[name]); ok {
			a.answers[name] = answer
		}
	}
	if len(a.answers) < len(a.questions) {
		return false
	}
	x.open = nil
	close(a.ready)
	return true
}

// unanswered is what the client has not answered yet.
func (x *exchange) unanswered() mcp.InputRequestMap {
	out := mcp.InputRequestMap{}
	for name, q := range x.open.questions {
		if _, ok := x.open.answers[name]; !ok {
			out[name] = requestOf(q)
		}
	}
	return out
}

// park keeps the exchange until the client makes its request again, and returns what it is asked.
func (x *exchange) park() (mcp.Result, error) {
	t := x.e.t
	requests := x.unanswered()
	state := rand.Text()
	res, err := x.shape(requests, state)
	if err != nil {
		return nil, err
	}
	x.e.told.hangUp()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.s.asking.Add(1) > int64(t.s.opts.MaxAsking) {
		t.s.asking.Add(-1)
		return nil, &lathe.Error{Code: lathe.CodeRateLimited, Op: "mcpserve: too many calls wait for their clients"}
	}
	t.parked[state], x.state = x, state
	x.timer = time.AfterFunc(t.s.opts.AskTimeout, func() {
		if t.unpark(state) != nil {
			x.cancel()
		}
	})
	return res, nil
}

// unpark returns the exchange of that state, nil where there is none. The state is good once.
func (t *tenant) unpark(state string) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.parked[state]
	if x != nil {
		delete(t.parked, state)
		t.s.asking.Add(-1)
		x.timer.Stop()
	}
	return x
}

// forget drops an exchange whose errand is over.
func (t *tenant) forget(x *exchange) {
	t.mu.Lock()
	state := x.state
	t.mu.Unlock()
	t.unpark(state)
}

// resume goes on with an exchange.
func (t *tenant) resume(ctx context.Context, state string, print [32]byte, r *round) (mcp.Result, error) {
	t.mu.Lock()
	x := t.parked[state]
	t.mu.Unlock()
	if x == nil || x.print != print || t.unpark(state) == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such requestState of this request: make the request anew without it"}
	}
	x.mu.Lock()
	x.can = abilities(r.caps)
	x.mu.Unlock()
	x.given = maps.Clone(r.answers)
	x.e.told.set(ctx, r.session, r.token)
	select {
	case result := <-x.done:
		return x.end(ctx, &result)
	default:
	}
	if !x.settle() {
		res, err := x.park()
		if err != nil {
			x.cancel()
			return nil, &jsonrpc.Error{Code: codeBusy, Message: "too many calls wait for their clients"}
		}
		return res, nil
	}
	return x.serve(ctx, r)
}

// Ask implements lathe.Asker.
func (x *exchange) Ask(ctx context.Context, questions map[string]lathe.Question) (map[string]lathe.Answer, error) {
	if err := x.check(questions); err != nil {
		return nil, err
	}
	a := &asking{questions: maps.Clone(questions), answers: make(map[string]lathe.Answer, len(questions)), ready: make(chan struct{})}
	select {
	case x.asks <- a:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-x.ctx.Done():
		return nil, x.ctx.Err()
	}
	select {
	case <-a.ready:
		return a.answers, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-x.ctx.Done():
		return nil, x.ctx.Err()
	}
}

// toolAsks is a question in answer to tools/call.
func toolAsks(requests mcp.InputRequestMap, state string) (mcp.Result, error) {
	res := &mcp.CallToolResult{}
	if err := json.Unmarshal([]byte(`{"content":[],"resultType":"input_required"}`), res); err != nil { // the one way to say it
		return nil, err
	}
	res.InputRequests, res.RequestState = requests, state
	return res, nil
}
