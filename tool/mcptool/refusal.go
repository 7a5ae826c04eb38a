package mcptool

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reconnect"
)

// This file decides alone which messages are sent again after an HTTP answer that is no success.

// A refusal says why an HTTP server, or a proxy before it, has not handled a message.
type refusal int

const (
	notRefused refusal = iota // it was handled, or that is not known
	// lostSession is 404 to a message with a session id. By the protocol the server ended the session before the message arrived, so
	// that it has not handled the message, and the client begins a new session.
	lostSession
	// unknownSession is 400 whose text names the session, which some servers send in place of 404. Others send it for more than that.
	unknownSession
	tooSoon // 429, or 503: the server asks to wait
)

// The limits of calls that are sent again.
const (
	maxAttempts     = 3 // of a call that comes too soon, the first one included
	firstPause      = 200 * time.Millisecond
	maxRefusalBytes = 4 << 10 // read of a 400
)

const sessionHeader = "Mcp-Session-Id"

// refusalOf returns why an answer refuses its message, and for tooSoon how long the server asks to wait, as [reconnect.RetryAfter] has
// it. The answer stays whole.
func refusalOf(req *http.Request, resp *http.Response) (refusal, time.Duration) {
	inSession := req.Header.Get(sessionHeader) != ""
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		return tooSoon, reconnect.RetryAfter(resp.Header.Get("Retry-After"))
	case inSession && resp.StatusCode == http.StatusNotFound:
		return lostSession, 0
	case inSession && resp.StatusCode == http.StatusBadRequest:
		head, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBytes)) // a body that breaks off is read up to there
		resp.Body = limitedBody{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
		if bytes.Contains(bytes.ToLower(head), []byte("session")) {
			return unknownSession, 0
		}
	}
	return notRefused, 0
}

// again reports whether a call that got no result may be sent once more, and how long to wait before; 0: not at all, or as the caller
// decides for tooSoon. attempt is the number of the one that failed, from 1.
func (r *request) again(effect lathe.Effect, attempt int) (wait time.Duration, ok bool) {
	switch {
	case r.refused != nil:
		return 0, false
	case !r.sent: // also lostSession
		return 0, attempt == 1
	case r.refusal == unknownSession:
		return 0, attempt == 1 && effect == lathe.ReadOnly
	case r.refusal == tooSoon:
		return r.after, attempt < maxAttempts && effect == lathe.ReadOnly && r.after >= 0
	}
	return 0, false
}

// waitFor waits for d. It returns false, without waiting, if the deadline of ctx comes before, and false if ctx ends meanwhile.
func (o *Options) waitFor(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false // what is known is better than a timeout
	}
	return d <= 0 || o.wait(ctx, d) == nil
}
