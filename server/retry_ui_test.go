package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
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

// wantPage fails unless the page got a stream with all of the parts.
func (r *retries) wantPage(status int, text string, parts ...string) {
	r.t.Helper()
	for _, part := range parts {
		if status != http.StatusOK || !strings.Contains(text, part) {
			r.t.Errorf("%d, the stream has no %q:\n%s", status, part, text)
		}
	}
}

// Wherever the run of a chat page fails after its mail, the page's retry gets the mail's result and the answer, and no
// further mail is sent. A page that has the whole answer and repeats its request gets a new run.
func TestRetryOfPageSendsOneMail(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"memory", "none"} {
		for _, protocol := range []string{"ui-message-stream", "ui-message-stream-v5", "data-stream", "assistant-transport", "ag-ui"} {
			for _, how := range []string{"fails", "leaves", "leaves in the tool"} {
				t.Run(where+"/"+protocol+"/"+how, func(t *testing.T) {
					t.Parallel()
					m, o := &mailer{text: "A moment."}, &postOffice{}
					ctx, quit := context.WithCancel(t.Context())
					defer quit()
					switch how {
					case "fails":
						m.fail.Store(1)
					case "leaves":
						m.hold, m.asked = make(chan struct{}), make(chan struct{}, 1)
						go func() { <-m.asked; quit() }()
					default:
						o.slow, o.began = make(chan struct{}), make(chan struct{}, 1)
						go func() { <-o.began; quit() }()
					}
					r := serveRetries(t, m, o, nil, func(s *setting) {
						if s.nothing = where == "none"; s.nothing {
							s.opts = func(opts *server.Options) { opts.Index, opts.Supervisor = nil, nil }
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
					for _, held := range []chan struct{}{m.hold, o.slow} {
						if held != nil {
							close(held)
						}
					}
					status, text := r.page(t.Context(), again, query)
					r.wantPage(status, text, "A moment.", "call_1", "mail", "The tools said")
					r.wantMails(1)
					status, text = r.page(t.Context(), again, query)
					r.wantPage(status, text, "The tools said")
					r.wantMails(2)
				})
			}
		}
	}
}

// A lookups store sends a value for each lookup of a request.
type lookups struct {
	store.Shared
	store.RequestStore
	made chan struct{}
	wait func() // called in each lookup; nil: nothing
}

func newLookups() *lookups {
	kept := store.NewMemory(nil)
	return &lookups{kept, kept, make(chan struct{}, 100), nil}
}

func (l *lookups) FindRequest(ctx context.Context, d store.RequestDigest) (store.RequestRecord, error) {
	r, err := l.RequestStore.FindRequest(ctx, d)
	if l.wait != nil {
		l.wait()
	}
	l.made <- struct{}{}
	return r, err
}

// A page that sends its request again while the run is active, or while the tool of a run whose page has left still runs,
// gets the answer of that run or of one that continues it.
func TestRetryOfPageDuringRun(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		m, o, kept := &mailer{}, &postOffice{slow: make(chan struct{}), began: make(chan struct{}, 1)}, newLookups()
		r := serveRetries(t, m, o, kept, func(s *setting) {
			s.opts = func(opts *server.Options) { opts.Limits.KeepAlive = time.Millisecond }
		})
		texts := make(chan string, 2)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		ask := func(ctx context.Context) {
			_, text := r.page(ctx, uiMail, "")
			texts <- text
		}
		go ask(ctx)
		<-o.began
		<-kept.made
		go ask(t.Context())
		<-kept.made
		want := 2
		if leaves {
			leave()
			<-texts
			want = 1
		}
		close(o.slow)
		for range want {
			if text := <-texts; !strings.Contains(text, "The tools said") || strings.Count(text, `"type":"start"`) != 1 {
				t.Errorf("leaves %v: the stream is %s", leaves, text)
			}
		}
		r.wantMails(1)
	}
}

// Equal requests of pages that arrive at once share one run.
func TestFirstPagesAtOnceSendOneMail(t *testing.T) {
	t.Parallel()
	const pages = 8
	m, o, kept := &mailer{}, &postOffice{}, newLookups()
	var looking atomic.Int64
	all := make(chan struct{})
	kept.wait = func() { // no page begins a run before each has found none
		if looking.Add(1) == pages {
			close(all)
		}
		<-all
	}
	r := serveRetries(t, m, o, kept, nil)
	const body = `{"threadId":"t","model":"sim/any","state":{"messages":[]},"commands":[{"type":"add-message","message":{"role":"user","parts":[{"type":"text","text":"mail ann"}]}}]}`
	var asked sync.WaitGroup
	for range pages {
		asked.Go(func() {
			status, text := r.page(t.Context(), body, "")
			r.wantPage(status, text, "The tools said", `"role":"assistant"`)
		})
	}
	asked.Wait()
	r.wantMails(1)
}

// A page whose results resumed a run, and that sends them again, gets the answer of the run, or of one that continues it, as
// a part of the same message.
func TestRetryOfPageWithResults(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		model := &uiTurns{say: []lathe.Finish{uiSays("", lathe.ToolCall{ID: "c1", Name: "where", Arguments: `{}`}),
			uiSays("", lathe.ToolCall{ID: "c2", Name: "mail", Arguments: `{"to":"ann"}`}), uiSays("Done.")}}
		o := &postOffice{slow: make(chan struct{}), began: make(chan struct{}, 1)}
		kept := newLookups()
		f := serve(t, &setting{model: model, tools: []lathe.Tool{o.tool()}, policy: policy.AllowAll(), store: kept})
		r := &retries{fixture: f, office: o}
		_, asked := r.page(t.Context(), strings.TrimSuffix(uiHello, "}")+`,"tools":{"where":{"description":"where the user is","parameters":{"type":"object"}}}}`, "")
		<-kept.made
		again := uiContinued(t, asked, map[string]any{"type": "tool-where", "toolCallId": "c1", "state": "output-available", "input": map[string]any{}, "output": map[string]any{"city": "Oslo"}})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		texts := make(chan string, 2)
		ask := func(ctx context.Context) {
			_, text := r.page(ctx, again, "")
			texts <- text
		}
		go ask(ctx)
		<-o.began
		<-kept.made
		if leaves {
			leave()
			<-texts
			r.idle()
		}
		go ask(t.Context())
		<-kept.made
		close(o.slow)
		want := 2
		if leaves {
			want = 1
		}
		for range want {
			text := <-texts
			r.wantPage(200, text, "Done.", `"toolCallId":"c2"`, `"messageId":"`+uiFind(t, `"messageId":"([^"]+)"`, asked)+`"`)
			if got := strings.Contains(text, `"tool-output-available","toolCallId":"c2"`); got == leaves { // left: it is not known whether the mail was sent
				t.Errorf("leaves %v: %s", leaves, text)
			}
			if strings.Contains(text, `"tool-output-error","toolCallId":"c1"`) {
				t.Errorf("the call of the page has failed: %s", text)
			}
		}
		r.wantMails(1)
	}
}

// A page asks for a run of its own by the header.
func TestRetryOfPageBeginsAnewWhenAsked(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	m.fail.Store(1)
	r := serveRetries(t, m, o, nil, nil)
	r.page(t.Context(), uiMail, "")
	status, text := r.page(t.Context(), uiMail, "", "X-Lathe-New-Run", "true")
	r.wantPage(status, text, "The tools said")
	r.wantMails(2)
	if status, _ := r.page(t.Context(), uiMail, "", "X-Lathe-New-Run", "perhaps"); status != http.StatusBadRequest {
		t.Errorf("a header of another value is answered %d", status)
	}
}
