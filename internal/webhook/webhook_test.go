package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe/event"
)

// An endpoint answers attempts with what answer returns, and keeps them.
type endpoint struct {
	mu     sync.Mutex
	got    []*http.Request
	bodies []string
	times  []time.Time
	answer func(n int) (int, error)
}

func (e *endpoint) do(r *http.Request) (*http.Response, error) {
	b, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got, e.bodies, e.times = append(e.got, r), append(e.bodies, string(b)), append(e.times, time.Now())
	status, err := e.answer(len(e.got))
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: http.NoBody}, nil
}

var testSecret = []byte("0123456789abcdef0123456789abcdef")

// run sends one notice in synthetic time, and returns the log.
func run(t *testing.T, e *endpoint, expires time.Duration) string {
	t.Helper()
	var log strings.Builder
	n := New(&Options{URL: "https://example.com/hook", Secret: testSecret, Page: "https://lathe.example.com", Do: e.do, Log: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	n.Emit(ctx, event.Event{RunID: "run_1", Time: time.Now(), Data: &event.ApprovalRequested{ToolCallID: "call_1", Tool: "send_mail", Seq: 2,
		Rule: "writes", ExpiresAt: time.Now().Add(expires), Arguments: json.RawMessage(`{"to":"secret@example.com"}`)}})
	n.Emit(ctx, event.Event{RunID: "run_1", Data: &event.RunStarted{}}) // has no notice
	time.Sleep(2 * time.Hour)
	cancel()
	<-done
	return log.String()
}

func TestNoticeIsSignedAndHasNoArguments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: func(int) (int, error) { return 204, nil }}
		if log := run(t, e, time.Hour); log != "" {
			t.Errorf("logged %s", log)
		}
		if len(e.got) != 1 {
			t.Fatalf("%d requests, want one", len(e.got))
		}
		h, body := e.got[0].Header, e.bodies[0]
		want := `{"type":"approval.requested","timestamp":"2000-01-01T00:00:00Z","data":{"run_id":"run_1","tool_call_id":"call_1","tool":"send_mail","rule":"writes",` +
			`"expires_at":"2000-01-01T01:00:00Z","url":"https://lathe.example.com/runs/run_1"}}`
		if body != want {
			t.Errorf("body %s, want %s", body, want)
		}
		sum := base64.StdEncoding.EncodeToString(sign(testSecret, h.Get("Webhook-Id"), "946684800", []byte(body)))
		if h.Get("Webhook-Timestamp") != "946684800" || h.Get("Webhook-Signature") != "v1,"+sum {
			t.Errorf("headers %v, want the signature v1,%s", h, sum)
		}
	})
}

// The vector is computed with openssl: printf 'msg_1.1.{}' | openssl dgst -sha256 -hmac KEY -binary | base64.
func TestSign(t *testing.T) {
	t.Parallel()
	if got := base64.StdEncoding.EncodeToString(sign(testSecret, "msg_1", "1", []byte("{}"))); got != "Fj1xD533GHFGumBeEr9dgQ19EkM44LsDoFaDBQihN4A=" {
		t.Errorf("got %s", got)
	}
}

func TestFailuresAreRetriedWithOneID(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer   func(n int) (int, error)
		expires  time.Duration
		attempts int
		log      string
	}{
		"accepted later": {func(n int) (int, error) { return []int{500, 429, 200}[n-1], nil }, time.Hour, 3, ""},
		"no connection":  {func(int) (int, error) { return 0, errors.New("egress: refused") }, 10 * time.Hour, 7, "attempts=7 result=\"egress: refused\""},
		"expires":        {func(int) (int, error) { return 503, nil }, time.Minute, 4, "attempts=4 result=\"status 503\""},
		"refused":        {func(int) (int, error) { return 410, nil }, time.Hour, 1, "attempts=1 result=\"status 410\""},
		"redirected":     {func(int) (int, error) { return 302, nil }, time.Hour, 1, "attempts=1 result=\"status 302\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{answer: tc.answer}
				log := run(t, e, tc.expires)
				if len(e.got) != tc.attempts || !strings.Contains(log, tc.log) || (tc.log == "") != (log == "") {
					t.Errorf("%d attempts, want %d; log %q, want %q", len(e.got), tc.attempts, log, tc.log)
				}
				for i, r := range e.got {
					if r.Header.Get("Webhook-Id") != e.got[0].Header.Get("Webhook-Id") || e.bodies[i] != e.bodies[0] {
						t.Errorf("attempt %d differs: %v %s", i+1, r.Header, e.bodies[i])
					}
				}
			})
		})
	}
}

// More notices than the limit are not sent, and emitting them does not block.
func TestPendingNoticesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		n := New(&Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range maxPending + 2 {
			n.Emit(t.Context(), event.Event{RunID: "run_1", Data: &event.ApprovalRequested{}})
		}
		if len(n.notices) != maxPending || strings.Count(log.String(), "too many wait") != 2 {
			t.Errorf("%d notices, log %s", len(n.notices), log.String())
		}
	})
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	if b, err := ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(testSecret)); err != nil || string(b) != string(testSecret) {
		t.Errorf("%q, %v", b, err)
	}
	for _, s := range []string{"", "whsec_", "whsec_short", base64.StdEncoding.EncodeToString(testSecret), "whsec_" + strings.Repeat("=", 44), "whsec_" + strings.Repeat("A", 200)} {
		if _, err := ParseSecret(s); err == nil || s != "" && s != "whsec_" && strings.Contains(err.Error(), s) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
