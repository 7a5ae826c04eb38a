package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// JSON-RPC error codes: in the place of an answer that cannot be used, and to a server's request.
const (
	rpcUnreadable     = -32700
	rpcMethodNotFound = -32601
)

// Errors of messages.
var (
	errUnreadable = errors.New("a message that is not strict JSON-RPC")
	errTooLong    = errors.New("a message over max_message_bytes")
)

// A tap stands between the bytes of a connection and their decoder. It checks each message before
// anything else reads it, and takes the results of requests it is asked to watch out as they are.
type tap struct {
	mu      sync.Mutex
	pending map[string]*request // by the JSON text of their id
	tokens  map[string]*request // by progress token
	bad     int                 // messages that could not be used
	broke   error               // why nothing more is read
	last    int64
	held    int                    // people who are being asked
	visits  map[string]*time.Timer // by the server's id of what a person visits
	asked   func()                 // called for each request of the server but ping and questions
}

func newTap(asked func()) *tap {
	return &tap{pending: map[string]*request{}, tokens: map[string]*request{}, asked: asked}
}

// A request is one that is watched. Its fields are the tap's until it is forgotten.
type request struct {
	token     string
	id        string
	sent      bool            // bytes of it may have reached the server
	result    []byte          // as it came
	fault     []byte          // the error object that came in its place
	stub      bool            // the decoder gets an empty result in place of the true one
	err       error           // what was wrong with the answer
	status    int             // of HTTP, where it was not a success
	refused   error           // why it was not sent with a token, or was sent with one that was not taken
	marks     []mark          // of the tool; with arguments, they are never changed
	arguments json.RawMessage // of the call, where there are marks
	asker     lathe.Asker     // who is behind the call; nil: it is no call of a tool
	progress  func()          // called on each sign of progress
	cut       func(error)     // called when no answer can come any more
}

type requestKey struct{}

// watch returns a context for a request whose result is taken out. forget must be called after it.
func (t *tap) watch(ctx context.Context, r *request) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	r.token = "lathe-" + strconv.FormatInt(t.last, 10)
	t.tokens[r.token] = r
	return context.WithValue(ctx, requestKey{}, r)
}

func (t *tap) forget(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tokens, r.token)
	delete(t.pending, r.id)
}

// sent is told each message before it goes out.
func (t *tap) sent(ctx context.Context, msg []byte) {
	r, _ := ctx.Value(requestKey{}).(*request)
	if r == nil {
		return
	}
	method, isCall := text(msg, "method")
	id, hasID := rawjson.Get(msg, "id")
	if !isCall || !hasID || method != "tools/call" && method != "tools/list" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.id, r.sent = string(id), true
	t.pending[r.id] = r
}

// unsent takes back that a request was sent.
func (t *tap) unsent(ctx context.Context) {
	if r, _ := ctx.Value(requestKey{}).(*request); r != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		r.sent = false
	}
}

// unauthorized notes that a request had no effect for want of a token.
func (t *tap) unauthorized(ctx context.Context, err error) {
	if r, _ := ctx.Value(requestKey{}).(*request); r != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		r.sent, r.refused = false, err
	}
}

// hold keeps calls from running out of their idle timeout while a person is asked. release must be
// called after it: for the calls, something was heard then.
func (t *tap) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held++
}

func (t *tap) release() {
	t.mu.Lock()
	t.held--
	var calls []*request
	for _, r := range t.tokens {
		calls = append(calls, r)
	}
	t.mu.Unlock()
	for _, r := range calls {
		if r.progress != nil {
			r.progress()
		}
	}
}

func (t *tap) isHeld() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held > 0
}

// caller returns who is behind the only call that runs. Where several do, nobody knows whose question
// a server of 2025 asks, and it must not be put to another's person.
func (t *tap) caller() lathe.Asker {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out lathe.Asker
	for _, r := range t.tokens {
		if r.asker != nil && out != nil {
			return nil
		}
		if r.asker != nil {
			out = r.asker
		}
	}
	return out
}

// isBusy reports whether requests wait for their answers.
func (t *tap) isBusy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending) > 0
}

// answered notes the HTTP status of a request that was not a success.
func (t *tap) answered(ctx context.Context, status int) {
	if r, _ := ctx.Value(requestKey{}).(*request); r != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		r.status = status
	}
}

// received checks one message and returns what the decoder may have of it; nil is nothing. The
// answer to a request that cannot be used is replaced by an error.
func (t *tap) received(msg []byte) []byte {
	if err := rawjson.Check(msg, rawjson.Limits{}); err != nil {
		return t.refuse(looseID(msg), errUnreadable)
	}
	msg = msg[rawjson.SkipSpace(msg, 0):]
	if msg[0] != '{' {
		return t.refuse("", errUnreadable)
	}
	id, ok := rawjson.Get(msg, "id")
	if method, isRequest := text(msg, "method"); isRequest {
		switch {
		case method == "notifications/progress":
			t.progressed(msg)
		case method == "notifications/elicitation/complete":
			if params, has := rawjson.Get(msg, "params"); has && params[0] == '{' {
				id, _ := text(params, "elicitationId")
				t.visited(id)
			}
		case ok && method != "ping" && method != "elicitation/create":
			t.asked()
		}
		return msg
	}
	if !ok {
		return t.refuse("", errUnreadable)
	}
	result, ok := rawjson.Get(msg, "result")
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.pending[string(id)]
	if r == nil || r.result != nil {
		return msg
	}
	if !ok {
		fault, _ := rawjson.Get(msg, "error")
		r.fault = append([]byte(nil), fault...)
		return msg
	}
	r.result = append([]byte(nil), result...)
	if !r.stub {
		return msg
	}
	return []byte(`{"jsonrpc":"2.0","id":` + r.id + `,"result":{"content":[]}}`)
}

// maxBatch bounds the messages of a batch, which servers of 2025-03-26 may send.
const maxBatch = 1_000

// isBatch reports whether what came is a list of messages.
func isBatch(raw []byte) bool {
	i := rawjson.SkipSpace(raw, 0)
	return i < len(raw) && raw[i] == '['
}

// unbatch returns the messages of a batch. One that cannot be used has no messages, and is counted.
func (t *tap) unbatch(raw []byte) [][]byte {
	var out [][]byte
	if rawjson.Check(raw, rawjson.Limits{}) == nil {
		for m := range rawjson.Elements(raw[rawjson.SkipSpace(raw, 0):]) {
			if out = append(out, m); len(out) > maxBatch {
				out = nil
				break
			}
		}
	}
	if len(out) == 0 {
		t.refuse("", errUnreadable)
	}
	return out
}

// receivedBatch is receivedFor of a batch: of it the answer is given on, and what else stands in it is noted.
func (t *tap) receivedBatch(raw []byte, id string) []byte {
	var answer []byte
	for _, m := range t.unbatch(raw) {
		out := t.received(m)
		if out == nil {
			continue
		}
		_, isRequest := rawjson.Get(out, "method")
		if of, _ := rawjson.Get(out, "id"); !isRequest && string(of) == id {
			answer = out
		}
	}
	if answer == nil && id != "" {
		t.refuse(id, errUnreadable)
		return errorResponse(id)
	}
	return answer
}

// refuse counts a message that cannot be used, and answers the request it belongs to.
func (t *tap) refuse(id string, err error) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bad++
	r := t.pending[id]
	if r == nil {
		return nil
	}
	if r.err == nil {
		r.err = err
	}
	return errorResponse(id)
}

// refuseAll says of all requests that wait that their answer cannot be had.
func (t *tap) refuseAll(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bad++
	t.broke = err
	for _, r := range t.pending {
		if r.err == nil && len(t.pending) == 1 {
			r.err = err
		}
	}
}

func errorResponse(id string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + strconv.Itoa(rpcUnreadable) + `,"message":"unreadable"}}`)
}

// looseID finds the id of a message that is not strict JSON, so that its request is not left
// waiting. Nothing else is read from such a message.
func looseID(msg []byte) string {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(msg, &m) != nil {
		return ""
	}
	return string(m.ID)
}

func (t *tap) progressed(msg []byte) {
	params, ok := rawjson.Get(msg, "params")
	if !ok || params[0] != '{' {
		return
	}
	token, _ := text(params, "progressToken")
	t.mu.Lock()
	r := t.tokens[token]
	t.mu.Unlock()
	if r != nil && r.progress != nil {
		r.progress()
	}
}

func (t *tap) badMessages() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bad
}

// broken returns why nothing more is read of the connection, or nil.
func (t *tap) broken() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broke
}

// state returns what is known of a request.
func (t *tap) state(r *request) request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *r
}

var errBrokeOff = errors.New("the answer broke off")

// lost says that the stream which would have answered a request has ended.
func (t *tap) lost(ctx context.Context, err error) {
	r, _ := ctx.Value(requestKey{}).(*request)
	if r == nil {
		return
	}
	t.mu.Lock()
	done := r.result != nil || r.err != nil
	if !done {
		r.err = err
	}
	cut := r.cut
	t.mu.Unlock()
	if !done && cut != nil {
		cut(err)
	}
}

// receivedFor is received for the answer to the request with that id, which is never nothing.
func (t *tap) receivedFor(raw []byte, id string) []byte {
	out := t.received(raw)
	if out == nil && id != "" {
		t.refuse(id, errUnreadable)
		return errorResponse(id)
	}
	return out
}
