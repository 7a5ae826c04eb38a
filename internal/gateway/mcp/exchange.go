package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// An exchange is a runnerCall whose tool may ask the client questions, as protocol version 2026-07-28 defines it: a question is returned as
// the result of the request, and the client repeats its request with the answers. The tool runs once and blocks between the requests. The
// requestState that the client receives is a random text, valid for one more request of the same caller with the same arguments.
//
// The tool runs on a goroutine of its own, which sends questions to asks and the result to done. A request receives them: the open one, or
// the next one that takes a parked exchange by unpark. If the exchange is a task, the requests about the task do, one at a time.
type exchange struct {
	clientAbilities
	rc     *runnerCall
	hash   [32]byte        // hash of the request
	ctx    context.Context // context of the runnerCall; it outlives the requests
	cancel context.CancelFunc
	asks   chan *asking
	done   chan lathe.ToolResult
	shape  shape
	finish finish
	open   *asking // the questions that were received and are not answered; nil: none

	// Set by park. The lock of the tenant guards them.
	state string // requestState
	timer *time.Timer
}

// A finish converts the result of a runnerCall to the protocol result of the open request.
type finish func(ctx context.Context, r *lathe.ToolResult) (mcp.Result, error)

// A shape returns the protocol result that asks the client the given questions.
type shape func(requests mcp.InputRequestMap, state string) (mcp.Result, error)

// A round is one HTTP request of an exchange, of which there may be several.
type round struct {
	session *mcp.ServerSession
	token   any // progress token; nil: none
	caps    *mcp.ClientCapabilities
	answers mcp.InputResponseMap
	tasks   taskUse
}

// An asking contains the questions for whose answers a tool waits. A request sets answers and err before it closes ready.
type asking struct {
	questions map[string]tool.Question
	answers   map[string]tool.Answer
	err       error
	ready     chan struct{}
}

// fingerprint returns a hash of a request. Answers are accepted only for a request with the same hash.
func fingerprint(method, name string, args []byte) [32]byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(method), []byte(name), args} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

// send executes the runnerCall. It returns the result that end makes of the tool result, or a question for the client, or a task.
func send(ctx context.Context, rc *runnerCall, hash [32]byte, r *round, s shape, end finish) (mcp.Result, error) {
	rc.client.set(ctx, r.session, r.token)
	can, transport := abilities(r.caps), transportOf(ctx)
	modern := modernVersion(rc.protocol)
	canAsk := can[capForm] || can[capLink] || can[capSample] || can[capRoots]
	if modern && (canAsk || r.tasks != noTask) {
		x := &exchange{clientAbilities: clientAbilities{can: can}, rc: rc, hash: hash, asks: make(chan *asking), done: make(chan lathe.ToolResult, 1),
			shape: s, finish: end}
		rc.asker = x
		return x.begin(ctx, transport, r)
	}
	a := &sessionAsker{clientAbilities: clientAbilities{can: can}, session: r.session, t: rc.t}
	rc.asker = a
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(rc.session.ctx, cancel)() // the end of the session ends its calls
	result := rc.run(ctx, transport)
	if result.IsError && modern {
		if err := a.missingError(); err != nil {
			return nil, err
		}
	}
	return end(ctx, &result)
}

// begin starts the runnerCall in its own goroutine, and serves the request that caused it.
func (x *exchange) begin(ctx context.Context, transport string, first *round) (mcp.Result, error) {
	s := x.rc.t.s
	x.ctx, x.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ok := s.apart(func() {
		defer x.cancel()
		defer context.AfterFunc(x.rc.session.ctx, x.cancel)()
		x.done <- x.rc.run(x.ctx, transport)
		x.rc.t.forget(x)
	})
	if !ok {
		x.rc.end()
		return nil, notNow("the server is about to end")
	}
	if first.tasks == taskAtOnce {
		if res, ok := x.becomeTask(); ok {
			return res, nil
		}
	}
	return x.serve(ctx, first)
}

// serve waits until the runnerCall ends, asks a question that the client has not answered, or takes so long that it becomes a task.
func (x *exchange) serve(ctx context.Context, r *round) (mcp.Result, error) {
	var long <-chan time.Time
	if r.tasks != noTask {
		long = time.After(x.rc.t.s.opts.Tasks.After)
	}
	for {
		select {
		case <-long:
			if res, ok := x.becomeTask(); ok {
				return res, nil
			}
		case x.open = <-x.asks:
			if x.deliverAnswers(r.answers) {
				continue
			}
			res, err := x.park()
			if err == nil {
				return res, nil
			}
			x.open.err = err
			x.resumeTool()
		case result := <-x.done:
			return x.end(ctx, &result)
		case <-ctx.Done(): // closing the request cancels the call
			x.cancel()
			result := <-x.done
			return x.finish(ctx, &result)
		}
	}
}

// end returns the protocol result of a tool result, or the error for missing capabilities of the client.
func (x *exchange) end(ctx context.Context, r *lathe.ToolResult) (mcp.Result, error) {
	if r.IsError {
		if err := x.missingError(); err != nil {
			return nil, err
		}
	}
	return x.finish(ctx, r)
}

// deliverAnswers adds the given answers to the open questions. If all of them are answered, it passes the answers to the tool and returns
// true.
func (x *exchange) deliverAnswers(given mcp.InputResponseMap) bool {
	a := x.open
	for name, q := range a.questions {
		if _, ok := a.answers[name]; ok {
			continue
		}
		if answer, ok := answerOf(q, given[name]); ok {
			a.answers[name] = answer
		}
	}
	if len(a.answers) < len(a.questions) {
		return false
	}
	x.resumeTool()
	return true
}

// resumeTool ends the wait of the tool for the open questions.
func (x *exchange) resumeTool() {
	close(x.open.ready)
	x.open = nil
}

// receiveQuestions sets open to the questions that the tool has asked, if there are any. It does not wait for the tool.
func (x *exchange) receiveQuestions() {
	if x.open != nil {
		return
	}
	select {
	case x.open = <-x.asks:
	default:
	}
}

// unanswered returns the open questions that the client has not answered.
func (x *exchange) unanswered() mcp.InputRequestMap {
	out := mcp.InputRequestMap{}
	for name, q := range x.open.questions {
		if _, ok := x.open.answers[name]; !ok {
			out[name] = requestOf(q)
		}
	}
	return out
}

// park stores the exchange until the client repeats its request, and returns the result that asks the open questions.
func (x *exchange) park() (mcp.Result, error) {
	t := x.rc.t
	requests := x.unanswered()
	state := rand.Text()
	res, err := x.shape(requests, state)
	if err != nil {
		return nil, err
	}
	x.rc.client.detach()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.s.asking.Add(1) > int64(t.s.opts.MaxAsking) {
		t.s.asking.Add(-1)
		return nil, &lathe.Error{Code: lathe.CodeRateLimited, Op: "mcp: too many calls wait for their clients"}
	}
	t.parked[state], x.state = x, state
	x.timer = time.AfterFunc(t.s.opts.AskTimeout, func() {
		if t.unpark(state) != nil {
			x.cancel()
		}
	})
	return res, nil
}

// unpark removes and returns the parked exchange with that state, or returns nil. A state is valid for one request.
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

// forget removes an exchange whose runnerCall has ended, if it is parked.
func (t *tenant) forget(x *exchange) {
	t.mu.Lock()
	state := x.state
	t.mu.Unlock()
	t.unpark(state)
}

// resume continues the parked exchange with that state: it passes on the client's answers and serves the request.
func (t *tenant) resume(ctx context.Context, state string, hash [32]byte, r *round) (mcp.Result, error) {
	t.mu.Lock()
	x := t.parked[state]
	t.mu.Unlock()
	if x == nil || x.hash != hash || t.unpark(state) == nil {
		return nil, invalidParams("no such requestState of this request: make the request anew without it")
	}
	x.mu.Lock()
	x.can = abilities(r.caps)
	x.mu.Unlock()
	x.rc.client.set(ctx, r.session, r.token)
	select {
	case result := <-x.done:
		return x.end(ctx, &result)
	default:
	}
	if x.deliverAnswers(r.answers) {
		return x.serve(ctx, r)
	}
	res, err := x.park()
	if err != nil {
		x.cancel()
		return nil, notNow("too many calls wait for their clients")
	}
	return res, nil
}

// Ask implements tool.Asker.
func (x *exchange) Ask(ctx context.Context, questions map[string]tool.Question) (map[string]tool.Answer, error) {
	if err := x.require(questions); err != nil {
		return nil, err
	}
	a := &asking{questions: maps.Clone(questions), answers: map[string]tool.Answer{}, ready: make(chan struct{})}
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

// toolAsks returns the result of tools/call that asks the client the questions in requests.
func toolAsks(requests mcp.InputRequestMap, state string) (mcp.Result, error) {
	res := &mcp.CallToolResult{}
	if err := json.Unmarshal([]byte(`{"content":[],"resultType":"input_required"}`), res); err != nil { // resultType can only be decoded
		return nil, err
	}
	res.InputRequests, res.RequestState = requests, state
	return res, nil
}
