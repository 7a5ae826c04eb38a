package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A client that resumes a stream that broke off sends the text that it has received, and asks for the rest: the calls of
// the failed run are in the conversation then, and are not made again.
func TestResumedStreamSendsOneMail(t *testing.T) {
	t.Parallel()
	const resumes = `{"role":"user","content":"mail ann"},{"role":"assistant","content":%s},{"role":"user","content":"Resume."}`
	for _, tt := range []struct {
		name, text, resumed string
		spoken, kept        bool
		mails               int64
	}{
		{name: "text before the call", text: "A moment. ", resumed: `"A moment. "`, kept: true, mails: 1},
		{name: "part of it", text: "A moment. ", resumed: `"A mom"`, kept: true, mails: 1},
		{name: "text after the call", spoken: true, resumed: `"I have "`, kept: true, mails: 1},
		{name: "text of both", text: "A moment. ", spoken: true, resumed: `"A moment. \n\nI have "`, kept: true, mails: 1},
		{name: "without a store", text: "A moment. ", resumed: `"A moment. "`, mails: 1},
		{name: "another conversation", text: "A moment. ", resumed: `"A moment. "},{"role":"user","content":"More."},{"role":"assistant","content":"Yes."`, kept: true, mails: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, o := &mailer{text: tt.text, spoken: tt.spoken}, &postOffice{}
			m.fail.Store(2)
			r := serveRetries(t, m, o, newMortal(store.NewMemory(nil)), func(s *setting) {
				s.nothing = !tt.kept
				s.opts = func(opts *server.Options) {
					if !tt.kept {
						opts.Index, opts.Supervisor = nil, nil
					}
				}
			})
			if x := r.post(t.Context(), mailBody(true, ""), nil); x.code == "" {
				t.Fatalf("the first request did not fail: %+v", x)
			}
			body := `{"model":"sim/any","messages":[` + strings.Replace(resumes, "%s", tt.resumed, 1) + `],"stream":true}`
			if x := r.post(t.Context(), body, nil); x.code == "" {
				t.Fatalf("the second request did not fail: %+v", x)
			}
			r.wantMails(tt.mails)
			r.post(t.Context(), body, nil) // repeats the resumed request
			r.wantMails(tt.mails)
		})
	}
}

// A run can complete after the connection of its client broke: a client that resumes the stream gets the calls of that run,
// too, and the mail is sent once.
func TestResumedStreamOfCompletedRunSendsOneMail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A long moment. ", 1<<20) // 15 MB: more than the buffers of a connection hold
	r := serveRetries(t, &mailer{text: long}, &postOffice{}, newMortal(store.NewMemory(nil)), func(s *setting) {
		s.opts = func(opts *server.Options) { opts.Limits.MaxBuffer = 1 << 30 }
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(mailBody(true, "")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	for r.status(resp.Header.Get("X-Lathe-Run-Id")) != "completed" {
		time.Sleep(time.Millisecond)
	}
	leave()
	_ = resp.Body.Close()
	r.idle()
	body := `{"model":"sim/any","messages":[{"role":"user","content":"mail ann"},{"role":"assistant","content":"A long "},{"role":"user","content":"Resume."}],"stream":true}`
	r.wantAnswer(r.post(t.Context(), body, nil), mailed)
	r.wantMails(1)
}
