package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/lathe-run/lathe/internal/jsonrpc2"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
)

// JSON-RPC error codes: one in place of an invalid answer, and one for a server's request.
const (
	rpcUnreadable     = -32700
	rpcMethodNotFound = -32601
)

// Errors of messages.
var (
	errUnreadable = errors.New("a message that is not strict JSON-RPC")
	errTooLong    = errors.New("a message over max_message_bytes")
)

// A tap reads the messages of a connection before the protocol library decodes them. It checks each message, and stores the raw results of
// watched requests.
type tap struct {
	mu        sync.Mutex             // guards the fields below except asked, and those of requests that change after watch
	pending   map[string]*request    // sent requests, by JSON text of the id
	tokens    map[string]*request    // watched requests, by progress token
	bad       int                    // number of invalid messages
	broke     error                  // reason why reading has ended
	last      int64                  // number of the last progress token
	questions int                    // number of questions and open URLs that suspend the idle timeout
	links     map[string]*time.Timer // timers of open URLs, by elicitation id
	asked     func()                 // called for each request of the server except ping and elicitations
}

func newTap(asked func()) *tap {
	return &tap{pending: map[string]*request{}, tokens: map[string]*request{}, asked: asked}
}

// A request is a watched request. The tap owns its fields until forget is called; state returns a copy.
type request struct {
	// Set before watch is called, and never changed.
	stub      bool            // the decoder gets an empty result in place of the received one
	marks     []mark          // marks of the tool
	arguments json.RawMessage // of the call, if there are marks
	tool      string          // registered name of the called tool; "": not a call
	asker     tool.Asker      // asker of the call; nil: not a call of a tool
	progress  func([]byte)    // called for each sign of progress, with the params of a notification, or nil; may be nil
	cut       func(error)     // called when no answer can arrive any more

	token string // progress token, set by watch

	// Set when the message is sent, or could not be sent.
	id      string
	sent    bool  // the server may have handled it
	refused error // error of obtaining a token, or of a token that was not accepted

	failedAnswer      // the last one
	unhandled    bool // the status of the answer to the call's own message means that the server has not handled it

	// Set by the answer.
	result []byte // as received
	fault  []byte // the received error object
	err    error  // error of the answer itself
}

type requestKey struct{}

// requestOf returns the watched request to which ctx belongs, or nil.
func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// watch returns a context for a request whose raw result the tap stores. The caller must call forget afterwards.
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

// sent is called with each message before it is sent. It returns the watched request in the message, or nil if none exists. Other
// messages may also have the context of a watched request: the GET that resumes its stream, and the notification that it is cancelled.
func (t *tap) sent(ctx context.Context, msg []byte) *request {
	r := requestOf(ctx)
	if r == nil {
		return nil
	}
	method, id := rawjson.TextAt(msg, "method"), rawjson.At(msg, "id")
	if id == nil || method != "tools/call" && method != "tools/list" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.id, r.sent = string(id), true
	t.pending[r.id] = r
	return r
}

// unsent records that the request of a message was not sent after all. refused is the error of its token, or nil. r may be nil: a message
// without a request does not affect one that was sent.
func (t *tap) unsent(r *request, refused error) {
	if r == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.sent, r.refused = false, refused
}

// suspendIdle suspends the idle timeout of calls while a user is asked. The caller must call resumeIdle afterwards, which restarts the
// timeouts.
func (t *tap) suspendIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions++
}

func (t *tap) resumeIdle() {
	t.mu.Lock()
	t.questions--
	calls := slices.Collect(maps.Values(t.tokens))
	t.mu.Unlock()
	for _, r := range calls {
		if r.progress != nil {
			r.progress(nil)
		}
	}
}

func (t *tap) isIdleSuspended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.questions > 0
}

// caller returns the Asker of the only call in progress. If there are several, it returns nil, because a question of a server with protocol
// version 2025-11-25 or earlier does not name its call, and must not reach the user of another call.
func (t *tap) caller() tool.Asker {
	t.mu.Lock()
	defer t.mu.Unlock()
	var only tool.Asker
	for _, r := range t.tokens {
		if r.asker == nil {
			continue
		}
		if only != nil {
			return nil
		}
		only = r.asker
	}
	return only
}

// isBusy reports whether requests have no answer yet.
func (t *tap) isBusy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending) > 0
}

// answered records an HTTP answer to a message. carried is the request in the message, or nil: only the request's own message shows whether
// the server has handled it. It returns the id of the watched request to which the message belongs, or "".
func (t *tap) answered(ctx context.Context, carried *request, failed failedAnswer) (id string) {
	r := requestOf(ctx)
	if r == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.failedAnswer = failed
	if r == carried {
		r.sent = failed.refusal != lostSession
		r.unhandled = failed.status >= 300 && failed.status < 500 || failed.status == http.StatusServiceUnavailable
	}
	return r.id
}

// received checks one message and returns what the decoder may process; nil: nothing. It replaces an invalid answer to a request by an
// error.
func (t *tap) received(msg []byte) []byte {
	if err := rawjson.Check(msg, rawjson.Limits{}); err != nil {
		// The members up to the first invalid one, at any depth, can be read: the request gets an answer if the id is one of them.
		id := string(rawjson.At(msg, "id"))
		out := t.refuse(id, errUnreadable)
		if out == nil && id != "" && rawjson.At(msg, "method") == nil {
			return errorResponse(id) // for a request that is not watched
		}
		return out
	}
	msg = msg[rawjson.SkipSpace(msg, 0):]
	id, method := rawjson.At(msg, "id"), rawjson.At(msg, "method")
	switch {
	case rawjson.Kind(method) == '"':
		t.receivedRequest(msg, rawjson.Text(method), id != nil)
		return msg
	case id != nil:
		return t.receivedReply(msg, id)
	}
	return t.refuse("", errUnreadable) // neither a request nor a reply
}

// receivedReply stores the result or the error in a reply, if its request is watched.
func (t *tap) receivedReply(msg, id []byte) []byte {
	result := rawjson.At(msg, "result")
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.pending[keyOf(id)]
	switch {
	case r == nil || r.result != nil: // not watched, or answered already
	case result == nil:
		t.failed(r, msg)
	default:
		r.result = bytes.Clone(result)
		if r.stub {
			return []byte(`{"jsonrpc":"2.0","id":` + r.id + `,"result":{"content":[]}}`)
		}
	}
	return decodable(msg, id)
}

// receivedRequest is called with a notification of the server or, if it expects a reply, with a request.
func (t *tap) receivedRequest(msg []byte, method string, expectsReply bool) {
	switch {
	case method == "notifications/progress":
		params := rawjson.At(msg, "params")
		t.mu.Lock()
		r := t.tokens[rawjson.TextAt(params, "progressToken")]
		t.mu.Unlock()
		if r != nil && r.progress != nil {
			r.progress(params)
		}
	case method == "notifications/elicitation/complete":
		t.visited(rawjson.TextAt(msg, "params", "elicitationId"))
	case expectsReply && method != "ping" && method != "elicitation/create":
		t.asked()
	}
}

// decodable returns a reply that the decoder accepts: the message, or an error in its place. The decoder would skip a reply that it cannot
// decode, and the request would wait until its timeout.
func decodable(msg, id []byte) []byte {
	if _, err := jsonrpc.DecodeMessage(msg); err == nil {
		return msg
	}
	return errorResponse(string(id))
}

// failed records the error of a reply without a result. The caller holds t.mu.
func (t *tap) failed(r *request, msg []byte) {
	if fault := rawjson.At(msg, "error"); fault != nil && string(fault) != "null" {
		r.fault = bytes.Clone(fault)
		return
	}
	t.bad++
	r.err = errUnreadable
}

// keyOf returns the key in pending for an id. Some servers write the number 1 as 1.0.
func keyOf(id []byte) string {
	if f, err := strconv.ParseFloat(string(id), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return string(id)
}

// receivedFor does what received does, for a message that must be the answer to the request with this id. Its result is never nil and
// always has the id, because a reply with another id, such as an error whose id is null, would leave the request without an answer.
func (t *tap) receivedFor(raw []byte, id string) []byte {
	out := t.received(raw)
	if id == "" {
		return out
	}
	if out != nil && rawjson.At(out, "method") == nil && keyOf(rawjson.At(out, "id")) == id {
		return out
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.pending[id]; r != nil && r.result == nil && r.err == nil && r.fault == nil {
		if out == nil {
			raw = nil // not strict JSON: an error in it is not read
		}
		t.failed(r, raw)
	}
	return errorResponse(id)
}

// maxBatch is the maximum number of messages in a batch, which servers of protocol version 2025-03-26 may send.
const maxBatch = 1_000

// unbatch returns the messages of a batch. An invalid batch is counted, and nil is returned.
func (t *tap) unbatch(raw []byte) [][]byte {
	out, err := jsonrpc2.Batch(raw, rawjson.Limits{}, maxBatch)
	if err != nil {
		t.refuse("", errUnreadable)
	}
	return out
}

// receivedBatch does what receivedFor does, for a batch: it returns the answer, and records the other messages.
func (t *tap) receivedBatch(raw []byte, id string) []byte {
	var answer []byte
	for _, m := range t.unbatch(raw) {
		out := t.received(m)
		if out != nil && rawjson.At(out, "method") == nil && string(rawjson.At(out, "id")) == id {
			answer = out
		}
	}
	if answer == nil && id != "" {
		t.refuse(id, errUnreadable)
		return errorResponse(id)
	}
	return answer
}

// refuse counts an invalid message, and returns an error for its request, or nil if no such request is watched.
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

// refuseAll records that reading has ended. If exactly one request waits for an answer, it gets the error.
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
	return jsonrpc2.AppendError(nil, id, rpcUnreadable, "the answer is not strict JSON-RPC")
}

func (t *tap) badMessages() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bad
}

// broken returns the reason why reading has ended, or nil.
func (t *tap) broken() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broke
}

// state returns a copy of the state of a request.
func (t *tap) state(r *request) request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *r
}

var errBrokeOff = errors.New("the answer broke off")

// lost records that the stream with the answer to a request has ended.
func (t *tap) lost(ctx context.Context, err error) {
	r := requestOf(ctx)
	if r == nil {
		return
	}
	t.mu.Lock()
	done := r.result != nil || r.err != nil
	if !done {
		r.err = err
	}
	t.mu.Unlock()
	if !done && r.cut != nil {
		r.cut(err)
	}
}
