package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/reconnect"
)

// This file decides alone which messages are sent again after an HTTP answer that is no success.

// A refusal says why an HTTP server, or a proxy before it, has not handled a message.
type refusal int

const (
	notRefused refusal = iota // it was handled, or that is not known
	// lostSession is 404 to a message with a session id. By the protocol the server ended the session before the message arrived, so
	// that it has not handled the message, and the client begins a new session. To a message that resumes the stream of an earlier
	// one, it says nothing about the earlier one.
	lostSession
	// unknownSession is 400 whose text names the session, which some servers send in place of 404, and 404 with JSON that may be the
	// answer of an application. Others send them for more than that.
	unknownSession
	tooSoon // 429, or 503: the server asks to wait
)

// The limits of calls that are sent again.
const (
	maxAttempts     = 3 // of a call that comes too soon, the first one included
	firstPause      = 200 * time.Millisecond
	maxRefusalBytes = 4 << 10 // read of a 400 or 404
)

const sessionHeader = "Mcp-Session-Id"

// refusalOf returns why an answer refuses its message, and for tooSoon how long the server asks to wait, as [reconnect.RetryAfter] has
// it. The answer stays whole.
func refusalOf(req *http.Request, resp *http.Response) (refusal, time.Duration) {
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		return tooSoon, reconnect.RetryAfter(resp.Header.Get("Retry-After"))
	case req.Header.Get(sessionHeader) == "", resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest:
		return notRefused, 0
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBytes)) // a body that breaks off is read up to there
	resp.Body = limitedBody{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	switch {
	case resp.StatusCode == http.StatusNotFound && !isOfApplication(head):
		return lostSession, 0
	case resp.StatusCode == http.StatusNotFound, namesSession(string(head)):
		return unknownSession, 0
	}
	return notRefused, 0
}

// isOfApplication reports whether the beginning of the body of a 404 is JSON other than a JSON-RPC error about the session: it may be the
// answer of what handled the message.
func isOfApplication(head []byte) bool {
	head = bytes.TrimSpace(head)
	if !json.Valid(head) {
		return len(head) > 0 && bytes.ContainsAny(head[:1], `{["`) // more than is read, or broken
	}
	if _, isRPC := memberText(head, "jsonrpc"); !isRPC {
		return true
	}
	fault, _ := rawjson.Get(head, "error")
	message, _ := memberText(orEmpty(fault), "message")
	return !namesSession(message)
}

func namesSession(s string) bool { return strings.Contains(strings.ToLower(s), "session") }

// again reports whether a call that got no result may be sent once more, and how long to wait before; 0: not at all, or as the caller
// decides for tooSoon. attempt is the number of the one that failed, from 1.
func (r *request) again(effect lathe.Effect, attempt int) (wait time.Duration, ok bool) {
	switch {
	case r.refused != nil:
		return 0, false
	case !r.sent: // also lostSession of its own message
		return 0, attempt == 1
	case r.refusal == lostSession, r.refusal == unknownSession:
		return 0, attempt == 1 && mayRepeat(effect)
	case r.refusal == tooSoon:
		return r.after, attempt < maxAttempts && mayRepeat(effect) && r.after >= 0
	}
	return 0, false
}

// mayRepeat reports whether a tool may be called again that may have handled the call.
func mayRepeat(effect lathe.Effect) bool {
	return effect == lathe.ReadOnly || effect == lathe.Idempotent
}

// waitFor waits for d. It returns false, without waiting, if the deadline of ctx comes before, and false if ctx ends meanwhile.
func (o *Options) waitFor(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false // what is known is better than a timeout
	}
	return d <= 0 || o.wait(ctx, d) == nil
}
