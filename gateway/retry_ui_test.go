package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/store"
)

const (
	uiMail      = `{"id":"chat-1","model":"sim/any","trigger":"submit-message","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"mail ann"}]}]}`
	uiMailAgain = `{"messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"mail ann"}]}],"id":"chat-1","model":"sim/any","trigger":"regenerate-message","messageId":"m2"}`
)

// page sends a request of a chat page and returns what it is answered.
func (r *retries) page(ctx context.Context, body, query string, header ...string) (status int, text string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/api/chat"+query, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, string(b) + err.Error()
	}
	return resp.StatusCode, string(b)
}

// Wherever the run of a chat page fails after its mail, the page's retry gets the mail's result and the answer, and no
// further mail is sent.
func TestRetryOfPageSendsOneMail(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"memory", "none"} {
		for _, protocol := range []string{"ui-message-stream", "ui-message-stream-v5", "data-stream", "assistant-transport", "ag-ui"} {
			for _, leave := range []bool{false, true} {
				name := where + "/" + protocol + "/fails"
				if leave {
					name = where + "/" + protocol + "/leaves"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					m, o := &mailer{text: "A moment."}, &postOffice{}
					ctx, quit := context.WithCancel(t.Context())
					defer quit()
					if leave {
						m.hold, m.asked = make(chan struct{}), make(chan struct{}, 1)
						go func() { <-m.asked; quit() }()
					} else {
						m.fail.Store(1)
					}
					r := serveRetries(t, m, o, nil, func(s *setting) {
						if s.nothing = where == "none"; s.nothing {
							s.opts = func(opts *gateway.Options) { opts.Index, opts.Crew = nil, nil }
						}
					})
					first, again := uiMail, uiMailAgain
					if protocol == "ag-ui" {
						first = `{"threadId":"t","runId":"r1","model":"sim/any","messages":[{"id":"m1","role":"user","content":"mail ann"}]}`
						again = strings.Replace(first, "r1", "r2", 1)
					}
					query := "?protocol=" + protocol
					if _, text := r.page(ctx, first, query); strings.Contains(text, "The tools said") {
						t.Fatalf("the first request did not fail: %s", text)
					}
					r.idle()
					if leave {
						close(m.hold)
					}
					status, text := r.page(t.Context(), again, query)
					for _, part := range []string{"A moment.", "call_1", "mail", "The tools said"} {
						if status != http.StatusOK || strings.Count(text, part) == 0 {
							t.Errorf("%d, the stream has no %q:\n%s", status, part, text)
						}
					}
					r.wantMails(1)
					if status, text = r.page(t.Context(), again, query); status != http.StatusOK || !strings.Contains(text, "The tools said") {
						t.Errorf("the repetition on purpose: %d %s", status, text)
					}
					r.wantMails(2)
				})
			}
		}
	}
}

// A page that sends its request again while the run is active follows that run.
func TestRetryOfPageFollowsActiveRun(t *testing.T) {
	t.Parallel()
	m, o := &mailer{hold: make(chan struct{}), asked: make(chan struct{}, 1)}, &postOffice{}
	var found atomic.Int64
	var seen sync.Map
	kept := store.NewMemory(nil)
	r := serveRetries(t, m, o, &finder{kept, kept, &found, &seen}, nil)
	texts := make(chan string, 2)
	ask := func() {
		_, text := r.page(t.Context(), uiMail, "")
		texts <- text
	}
	go ask()
	<-m.asked
	go ask()
	for found.Load() < 2 { // the answer is not there before both have asked
		time.Sleep(time.Millisecond)
	}
	close(m.hold)
	for range 2 {
		if text := <-texts; !strings.Contains(text, "The tools said") {
			t.Errorf("the stream is %s", text)
		}
	}
	r.wantMails(1)
}

// A page asks for a run of its own by the header.
func TestRetryOfPageBeginsAnewWhenAsked(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	m.fail.Store(1)
	r := serveRetries(t, m, o, nil, nil)
	r.page(t.Context(), uiMail, "")
	if status, text := r.page(t.Context(), uiMail, "", "X-Lathe-New-Run", "true"); status != http.StatusOK || !strings.Contains(text, "The tools said") {
		t.Errorf("%d %s", status, text)
	}
	r.wantMails(2)
	if status, _ := r.page(t.Context(), uiMail, "", "X-Lathe-New-Run", "perhaps"); status != http.StatusBadRequest {
		t.Errorf("a header of another value is answered %d", status)
	}
}
