package gateway_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/gateway"
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
				s.opts = func(opts *gateway.Options) {
					if !tt.kept {
						opts.Index, opts.Crew = nil, nil
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
