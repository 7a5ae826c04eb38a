package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/store"
)

// While the model server fails, each repetition continues the run and asks it again. The third failure in the same way has a status
// that clients do not repeat by themselves; the request continues the run all the same, and the mail is sent once.
func TestFailuresOfContinuedRunsAreNotMultiplied(t *testing.T) {
	t.Parallel()
	for how, stream := range bothWays {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			m := &mailer{}
			m.fail.Store(100)
			r := serveRetries(t, m, &postOffice{}, newMortal(store.NewMemory(nil)), nil)
			for i, want := range []int{502, 502, 400, 400} {
				resp, body := r.do("POST", "/v1/chat/completions", mailBody(stream, ""))
				if resp.StatusCode != want || (resp.Header.Get("X-Should-Retry") == "false") != (want == 400) || !strings.Contains(body, "upstream_5xx") {
					t.Errorf("request %d: %d %v %s, want %d", i+1, resp.StatusCode, resp.Header, body, want)
				}
			}
			m.fail.Store(0)
			if resp, body := r.do("POST", "/v1/chat/completions", mailBody(stream, "")); resp.StatusCode != http.StatusOK || !strings.Contains(body, "The tools said") {
				t.Errorf("after that: %d %s", resp.StatusCode, body)
			}
			r.wantMails(1)
		})
	}
}
