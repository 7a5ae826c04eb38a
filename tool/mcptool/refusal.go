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

// Only this file decides which messages are sent again after an HTTP answer that is not a success.

// A refusal is the reason why an HTTP server, or a proxy in front of it, has not handled a message.
type refusal int

const (
	notRefused refusal = iota // the message was handled, or that is not known
	// lostSession is status 404 for a message with a session id. By the protocol, the server ended the session before the message arrived,
	// so it has not handled the message, and the client must begin a new session. For a message that resumes the stream of an earlier
	// message, it does not apply to the earlier one.
	lostSession
	// unknownSession is status 400 with a text that names the session, which some servers send in place of 404, and 404 with JSON that may
	// come from an application. Other servers send both in other cases, too.
	unknownSession
	tooSoon // status 429 or 503: the server asks the client to wait
)

// needsSession reports whether the message can only be sent in a new session.
func (r refusal) needsSession() bool { return r == lostSession || r == unknownSession }

// A failedAnswer is an HTTP answer that was not a success.
type failedAnswer struct {
	status  int // 0: no answer was received
	refusal refusal
	after   time.Duration // for tooSoon: the time to wait, as [reconnect.RetryAfter] returns it
}

// Limits of repeated calls.
const (
	maxAttempts     = 3 // attempts of a call that was tooSoon, with the first one
	firstPause      = 200 * time.Millisecond
	maxRefusalBytes = 4 << 10 // bytes read of the body of a 400 or 404
)

const sessionHeader = "Mcp-Session-Id"

// readFailure reads an answer that is not a success. The body of the answer can still be read.
func readFailure(req *http.Request, resp *http.Response) failedAnswer {
	failed := failedAnswer{status: resp.StatusCode}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		failed.refusal, failed.after = tooSoon, reconnect.RetryAfter(resp.Header.Get("Retry-After"))
	case http.StatusNotFound, http.StatusBadRequest:
		if req.Header.Get(sessionHeader) != "" {
			failed.refusal = sessionRefusal(resp)
		}
	}
	return failed
}

// sessionRefusal returns the refusal in a 400 or 404 for a message with a session id.
func sessionRefusal(resp *http.Response) refusal {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBytes)) // of a body that breaks off, the available part is sufficient
	resp.Body = limitedBody{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	switch {
	case resp.StatusCode == http.StatusNotFound && !isOfApplication(head):
		return lostSession
	case resp.StatusCode == http.StatusNotFound, namesSession(string(head)):
		return unknownSession
	}
	return notRefused
}

// isOfApplication reports whether the beginning of the body of a 404 is JSON other than a JSON-RPC error about the session: it may be the
// answer of an application that handled the message.
func isOfApplication(head []byte) bool {
	head = bytes.TrimSpace(head)
	if !json.Valid(head) {
		return len(head) > 0 && bytes.ContainsAny(head[:1], `{["`) // truncated or invalid JSON
	}
	return rawjson.Kind(rawjson.At(head, "jsonrpc")) != '"' || !namesSession(rawjson.TextAt(head, "error", "message"))
}

func namesSession(s string) bool { return strings.Contains(strings.ToLower(s), "session") }

// again reports whether a call without a result may be sent again, and the time to wait before that; 0: no time, or for tooSoon the
// caller's choice. attempt is the number of the failed attempt, from 1.
func (r *request) again(effect lathe.Effect, attempt int) (wait time.Duration, ok bool) {
	switch {
	case r.refused != nil:
		return 0, false
	case !r.sent: // also if its own message got lostSession
		return 0, attempt == 1
	case r.refusal.needsSession():
		return 0, attempt == 1 && mayRepeat(effect)
	case r.refusal == tooSoon:
		return r.after, attempt < maxAttempts && mayRepeat(effect) && r.after >= 0
	}
	return 0, false
}

// mayRepeat reports whether a tool with this effect may be called again although it may have handled the call.
func mayRepeat(effect lathe.Effect) bool {
	return effect == lathe.ReadOnly || effect == lathe.Idempotent
}

// waitFor waits for d. It returns false without waiting if the deadline of ctx is earlier, and false if ctx is done during the wait.
func (o *Options) waitFor(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false // a known error is better than a timeout
	}
	return d <= 0 || o.wait(ctx, d) == nil
}
