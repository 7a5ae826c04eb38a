package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A mailer is a model that has one mail sent, and then says so. What goes wrong after the mail is set by the test.
// It knows what it is asked alone: so several processes may have it.
type mailer struct {
	text   string        // said with the call: the stream has begun then
	fail   atomic.Int64  // model calls after the mail that still fail
	spoken bool          // they fail after some text
	hold   chan struct{} // when set, model calls after the mail wait for it
	asked  chan struct{} // tells that one of them waits
	first  func()        // called before the mail is asked for
	said   func()        // called after text, before the mail is asked for
}

var errModel = errors.New("the model is out of order")

func (*mailer) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *mailer) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		say := func(text string) bool { return yield(lathe.Delta{Kind: lathe.DeltaText, Text: text}, nil) }
		var results []string
		for i := range req.Messages {
			if req.Messages[i].Role == lathe.RoleTool {
				results = append(results, req.Messages[i].Parts[0].(lathe.ToolResult).Content)
			}
		}
		f := &lathe.Finish{Reason: lathe.FinishStop, Model: "mailer", Usage: lathe.Usage{TotalTokens: 1}}
		f.Message.Role = lathe.RoleAssistant
		if len(results) == 0 {
			if m.first != nil {
				m.first()
			}
			if m.text != "" {
				if !say(m.text) {
					return
				}
				if m.said != nil {
					m.said()
				}
				f.Message.Parts = append(f.Message.Parts, lathe.Text{Text: m.text})
			}
			f.Reason = lathe.FinishToolCalls
			f.Message.Parts = append(f.Message.Parts, lathe.ToolCall{ID: "call_1", Name: "mail", Arguments: `{"to":"ann"}`})
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil)
			return
		}
		if m.hold != nil {
			select {
			case m.asked <- struct{}{}:
			default:
			}
			select {
			case <-m.hold:
			case <-ctx.Done():
				yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeCancelled, Op: "mailer", Err: ctx.Err()})
				return
			}
		}
		if m.fail.Add(-1) >= 0 {
			if m.spoken && !say("I have ") {
				return
			}
			yield(lathe.Delta{}, &lathe.UpstreamError{Kind: lathe.Upstream5xx, Status: 500, Err: errModel})
			return
		}
		answer := "The tools said: " + strings.Join(results, " ")
		if !say(answer) {
			return
		}
		f.Message.Parts = []lathe.Part{lathe.Text{Text: answer}}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil)
	}
}

// A post office counts the mails that were sent, by all processes.
type postOffice struct {
	sent  atomic.Int64
	slow  chan struct{} // when set, a mail is sent and then waits for it, or for the end of its call
	began chan struct{} // tells that a mail waits
}

func (o *postOffice) tool() lathe.Tool {
	type in struct {
		To string `json:"to"`
	}
	type out struct {
		Sent bool `json:"sent"`
	}
	return tool.Func("mail", "Sends a mail.", func(ctx context.Context, _ in) (out, error) {
		o.sent.Add(1)
		if o.slow != nil {
			select {
			case o.began <- struct{}{}:
			default:
			}
			select {
			case <-o.slow:
			case <-ctx.Done():
				return out{}, ctx.Err()
			}
		}
		return out{true}, nil
	}, &tool.FuncOptions{Show: []string{"*"}, Effect: lathe.Writes})
}

// A mortal store takes nothing after its process has died.
type mortal struct {
	store.RunIndex
	store.SignalStore
	store.RequestStore
	dead atomic.Bool
}

func newMortal(kept interface {
	store.RunIndex
	store.SignalStore
	store.RequestStore
}) *mortal {
	return &mortal{RunIndex: kept, SignalStore: kept, RequestStore: kept}
}

func (m *mortal) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	if m.dead.Load() {
		return 0, &lathe.Error{Code: lathe.CodeUnavailable, Op: "test", Err: errors.New("the process is dead")}
	}
	return m.RunIndex.Append(ctx, runID, last, events...)
}

func (m *mortal) DeliverRequest(ctx context.Context, d store.RequestDigest, runID string, at time.Time) error {
	if m.dead.Load() {
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: "test", Err: errors.New("the process is dead")}
	}
	return m.RequestStore.DeliverRequest(ctx, d, runID, at)
}

// retries is a gateway whose model sends mails.
type retries struct {
	*fixture
	model  *mailer
	office *postOffice
}

func serveRetries(t testing.TB, model *mailer, office *postOffice, kept store.RunIndex, change func(*setting)) *retries {
	t.Helper()
	s := &setting{model: model, tools: []lathe.Tool{office.tool()}, policy: policy.AllowAll(), store: kept}
	if change != nil {
		change(s)
	}
	return &retries{serve(t, s), model, office}
}

// An exchange is one request for a chat completion and what came of it.
type exchange struct {
	status int
	header http.Header
	text   string // of the answer, put together
	code   string // of the error, in a body or in the stream
	report *report
	err    error // of the connection
}

// post sends a request for a chat completion as a client would. seen, when set, is called with each line of a
// stream; the client leaves when it returns false.
func (r *retries) post(ctx context.Context, body string, seen func(line string) bool, header ...string) *exchange {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return &exchange{err: err}
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return &exchange{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	x := &exchange{status: resp.StatusCode, header: resp.Header}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(resp.Body)
		x.err = err
		x.take(string(b))
		return x
	}
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		line := sc.Text()
		if seen != nil && !seen(line) {
			return x
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" {
			x.take(data)
		}
	}
	x.err = sc.Err()
	return x
}

func (x *exchange) take(object string) {
	var c completion
	if json.Unmarshal([]byte(object), &c) != nil {
		x.code = "unreadable"
		return
	}
	if c.Error != nil && c.Error.Code != nil {
		x.code = *c.Error.Code
	}
	if c.Lathe != nil {
		x.report = c.Lathe
	}
	for _, choice := range c.Choices {
		x.text += choice.Message.Content + choice.Delta.Content
	}
}

func mailBody(stream bool, more string) string {
	s := `{"model":"sim/any","messages":[{"role":"user","content":"mail ann"}]`
	if stream {
		s += `,"stream":true,"stream_options":{"include_usage":true}`
	}
	return s + more + "}"
}

const mailed = `The tools said: {"sent":true}`

// wantMails fails unless that many mails were sent.
func (r *retries) wantMails(n int64) {
	r.t.Helper()
	if got := r.office.sent.Load(); got != n {
		r.t.Errorf("%d mails were sent, want %d", got, n)
	}
}

// wantAnswer fails unless the exchange brought an answer that ends so.
func (r *retries) wantAnswer(x *exchange, text string) {
	r.t.Helper()
	if x.err != nil || x.status != http.StatusOK || x.code != "" || !strings.HasSuffix(x.text, text) {
		r.t.Errorf("got %d, code %q, text %q, %v, want an answer that ends in %q", x.status, x.code, x.text, x.err, text)
	}
}
