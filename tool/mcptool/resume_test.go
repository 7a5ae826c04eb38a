package mcptool

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/oauth"
)

// A wire is a transport to a handler without a network, so that time can be that of a test. next takes the place of the handler for a
// request where it returns an answer or an error.
type wire struct {
	handler http.Handler
	next    func(*http.Request) (*http.Response, error)
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if resp, err := w.next(req); resp != nil || err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return resp, err
	}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	defer req.Body.Close()
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, req)
	return rec.Result(), nil
}

// wired returns a rig with the one tool of a server of sessions, which has the effect.
func wired(t *testing.T, s *sessions, effect lathe.Effect, elicit Elicitation, next func(*http.Request) (*http.Response, error)) *rig {
	t.Helper()
	s.known = map[string]bool{}
	conf := httpConf("http://server.test/")
	conf.KeepAlive = -1
	conf.Elicitation = elicit
	conf.Effects = map[string]lathe.Effect{"do": effect}
	conf.Client = &http.Client{Transport: &wire{s, next}}
	return newRig(t, &Options{BackoffMin: time.Second, BackoffMax: 8 * time.Second}, conf)
}

func emptyAnswer(status int) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(http.NoBody)}
}

var dialError = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

// A call that the server has taken, and whose stream cannot be resumed, has an unknown outcome: a tool that writes is not called again.
func TestCallIsNotRepeatedWhenItsStreamCannotBeResumed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		resume func() (*http.Response, error)
		effect lathe.Effect
		want   lathe.Code
		calls  int
	}{
		{"404, writes", func() (*http.Response, error) { return emptyAnswer(404), nil }, lathe.Writes, lathe.CodeInterrupted, 1},
		{"404, undeclared", func() (*http.Response, error) { return emptyAnswer(404), nil }, lathe.EffectUndeclared, lathe.CodeInterrupted, 1},
		{"404, reads", func() (*http.Response, error) { return emptyAnswer(404), nil }, lathe.ReadOnly, "", 2},
		{"404, idempotent", func() (*http.Response, error) { return emptyAnswer(404), nil }, lathe.Idempotent, "", 2},
		{"405, writes", func() (*http.Response, error) { return emptyAnswer(405), nil }, lathe.Writes, lathe.CodeInterrupted, 1},
		{"dial, writes", func() (*http.Response, error) { return nil, dialError }, lathe.Writes, lathe.CodeInterrupted, 1},
		{"token, writes", func() (*http.Response, error) { return nil, needsLogin }, lathe.Writes, lathe.CodeInterrupted, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				s := &sessions{busy: func(w http.ResponseWriter, _ string) bool {
					if calls++; calls > 1 {
						return false
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n")
					return true
				}}
				resumed := 0
				r := wired(t, s, tt.effect, ElicitRefuse, func(req *http.Request) (*http.Response, error) {
					if req.Header.Get("Last-Event-ID") == "" {
						return nil, nil
					}
					resumed++
					return tt.resume()
				})
				wantCode(t, r.call("web__do", map[string]int{}), tt.want)
				if calls != tt.calls || resumed == 0 {
					t.Errorf("%d calls, want %d; %d times resumed", calls, tt.calls, resumed)
				}
				if res := r.call("web__do", map[string]int{}); res.Content != "ok" {
					t.Errorf("the next call: %+v", res)
				}
				_ = r.group.Close()
			})
		})
	}
}

// A call of which one round was answered counts as sent, whatever happens to the next round.
func TestCallIsNotRepeatedAfterItsFirstRound(t *testing.T) {
	t.Parallel()
	for name, door := range map[string]func() (*http.Response, error){
		"404":   func() (*http.Response, error) { return emptyAnswer(404), nil },
		"dial":  func() (*http.Response, error) { return nil, dialError },
		"token": func() (*http.Response, error) { return nil, &oauth.Error{Err: errors.New("refused")} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, closed := 0, false
				s := &sessions{busy: func(w http.ResponseWriter, id string) bool {
					if calls++; calls > 1 {
						return false
					}
					closed = true
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?","requestedSchema":%s}}}}}`, id, nameForm)
					return true
				}}
				r := wired(t, s, lathe.Writes, ElicitDefaults, func(req *http.Request) (*http.Response, error) {
					if !closed || req.Method != http.MethodPost {
						return nil, nil
					}
					closed = false
					return door()
				})
				wantCode(t, r.call("web__do", map[string]int{}), lathe.CodeInterrupted)
				if calls != 1 {
					t.Errorf("%d calls, want 1", calls)
				}
				_ = r.group.Close()
			})
		})
	}
}

// The notification that a call is cancelled says nothing about the call, which may have been handled.
func TestOnlyItsOwnMessageTakesACallBack(t *testing.T) {
	t.Parallel()
	x := newTap(func() {})
	r := &request{}
	ctx := x.watch(t.Context(), r)
	if x.sent(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)) != r {
		t.Fatal("the call is not watched")
	}
	other := x.sent(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`))
	x.unsent(other, needsLogin)
	x.answered(ctx, other, failedAnswer{status: 404, refusal: lostSession})
	if got := x.state(r); !got.sent || got.unhandled || got.refused != nil {
		t.Errorf("got %+v", got)
	}
	x.answered(ctx, r, failedAnswer{status: 404, refusal: lostSession})
	if got := x.state(r); got.sent || !got.unhandled {
		t.Errorf("got %+v", got)
	}
}
