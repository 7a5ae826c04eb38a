// Package webhook sends a request to an HTTP endpoint for each tool call that waits for an approval. Requests are signed as specified by
// Standard Webhooks (https://www.standardwebhooks.com). They contain no arguments of calls.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe/event"
)

// TypeApprovalRequested is the message type for a call that waits for an approval.
const TypeApprovalRequested = "approval.requested"

// Limits of a Notifier.
const (
	maxPending = 1000 // notices not delivered yet; further ones are dropped
	maxAtOnce  = 4    // requests in flight
)

// delays are the times between the attempts to deliver one notice.
var delays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute}

// Options are the endpoint of the notices and its secret.
type Options struct {
	URL    string
	Secret []byte // key of the signatures; see [ParseSecret]
	Page   string // address of the console without a final slash; "": notices have no link
	// Do sends a request. It must limit the time of the request and the size of the response.
	Do  func(*http.Request) (*http.Response, error)
	Log *slog.Logger
}

// A Notifier is a sink that sends a notice for each [event.ApprovalRequested]. A notice that the endpoint has not
// accepted is sent again with the same id, at most six times in 43 minutes, until the approval expires or the process
// ends. Notices are sent in no particular order.
type Notifier struct {
	opts    Options
	notices chan *notice
	pending atomic.Int64
	slots   chan struct{}
}

// A notice is one message to the endpoint.
type notice struct {
	id, runID string
	body      []byte
	expires   time.Time
}

// New returns a notifier. It sends nothing before Run is called.
func New(o *Options) *Notifier {
	return &Notifier{opts: *o, notices: make(chan *notice, maxPending), slots: make(chan struct{}, maxAtOnce)}
}

// ParseSecret returns the bytes of a secret: `whsec_` followed by 24 to 64 bytes in base64.
func ParseSecret(s string) ([]byte, error) {
	text, ok := strings.CutPrefix(s, "whsec_")
	b, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(b) < 24 || len(b) > 64 {
		return nil, errors.New("the secret of a webhook is whsec_ and 24 to 64 random bytes in base64; `echo whsec_$(openssl rand -base64 32)` makes one")
	}
	return b, nil
}

// A message is the body of a request.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	RunID      string    `json:"run_id"`
	ToolCallID string    `json:"tool_call_id"`
	Tool       string    `json:"tool"`
	Rule       string    `json:"rule,omitempty"`
	ExpiresAt  time.Time `json:"expires_at"`
	URL        string    `json:"url,omitempty"`
}

// Emit implements [event.Sink]. It does not block.
func (n *Notifier) Emit(_ context.Context, e event.Event) {
	a, ok := e.Data.(*event.ApprovalRequested)
	if !ok {
		return
	}
	m := message{TypeApprovalRequested, e.Time.UTC(), data{RunID: e.RunID, ToolCallID: a.ToolCallID, Tool: a.Tool, Rule: a.Rule, ExpiresAt: a.ExpiresAt.UTC()}}
	if n.opts.Page != "" {
		m.Data.URL = n.opts.Page + "/runs/" + e.RunID
	}
	body, err := json.Marshal(&m)
	if err != nil {
		n.opts.Log.Error("a webhook for an approval cannot be encoded", "run_id", e.RunID)
		return
	}
	sum := sha256.Sum256([]byte(e.RunID + "\x00" + a.ToolCallID + "\x00" + strconv.Itoa(a.Seq)))
	if n.pending.Add(1) > maxPending {
		n.pending.Add(-1)
		n.opts.Log.Warn("a webhook for an approval was not sent: too many wait", "run_id", e.RunID, "limit", maxPending)
		return
	}
	n.notices <- &notice{id: "msg_" + hex.EncodeToString(sum[:16]), runID: e.RunID, body: body, expires: a.ExpiresAt} // does not block: pending counts at most maxPending notices
}

// Run sends notices until ctx is done. It returns when no request is in flight.
func (n *Notifier) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-n.notices:
			all.Go(func() {
				defer n.pending.Add(-1)
				n.deliver(ctx, one)
			})
		}
	}
}

// deliver sends a notice until the endpoint accepts it, the approval expires or the attempts are used up.
func (n *Notifier) deliver(ctx context.Context, one *notice) {
	for i := 0; ; i++ {
		result, again := n.send(ctx, one)
		if result == "" || ctx.Err() != nil {
			return
		}
		if !again || i == len(delays) || time.Now().Add(delays[i]).After(one.expires) {
			n.opts.Log.Warn("a webhook for an approval was not delivered", "run_id", one.runID, "attempts", i+1, "result", result)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delays[i]):
		}
	}
}

// send makes one attempt. It returns "" if the endpoint accepted the notice, else the error, and whether another attempt may succeed.
func (n *Notifier) send(ctx context.Context, one *notice) (result string, again bool) {
	select {
	case <-ctx.Done():
		return "stopped", false
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.opts.URL, bytes.NewReader(one.body))
	if err != nil {
		return "the URL cannot be read", false
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", one.id)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sign(n.opts.Secret, one.id, at, one.body)))
	resp, err := n.opts.Do(req)
	if err != nil {
		return err.Error(), true // contains no URL: see egress.Error
	}
	_ = resp.Body.Close() // the body is not read
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return "", false
	}
	again = code >= 500 || code == http.StatusRequestTimeout || code == http.StatusTooEarly || code == http.StatusTooManyRequests
	return "status " + strconv.Itoa(code), again
}

// sign returns the HMAC-SHA256 of id, timestamp and body with dots between them.
func sign(secret []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(append([]byte(id+"."+timestamp+"."), body...)) // never fails
	return mac.Sum(nil)
}
