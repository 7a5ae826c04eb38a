package verify_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/lab/verify"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/sim"
)

// markup is text that must not become markup, commands of a terminal, or lines.
const markup = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=x ]]>&#x1b;\x1b[31m\x1b]0;owned\x07\u009b31m\u202e\r\nfake: passed\x00"

// files are all that a report is written as.
func files(t *testing.T, rep *verify.Report) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, write := range map[string]func(io.Writer) error{"table": rep.WriteTable, "json": rep.WriteJSON, "html": rep.WriteHTML, "junit": rep.WriteJUnit, "badge": rep.WriteBadge, "svg": rep.WriteBadgeSVG} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(name, err)
		}
		out[name] = b.String()
	}
	return out
}

// harmless checks that the files of a report hold nothing that acts, are what they should be, and are short.
func harmless(t *testing.T, rep *verify.Report) {
	t.Helper()
	all := files(t, rep)
	for name, text := range all {
		if len(text) > 64<<10 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for _, bad := range []string{"<script", "<img", "\x1b", "\u009b", "\x00", "\x07", "\u202e", "\r"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q", name, bad)
			}
		}
	}
	for _, r := range all["table"] {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("the table holds %q", r)
		}
	}
	if strings.Contains(all["table"], "\nfake") {
		t.Error("the server writes a line of the table")
	}
	published, err := schema.Compile(verify.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if violations := published.Validate([]byte(all["json"])); len(violations) > 0 {
		t.Error(violations)
	}
	var badge verify.Badge
	var document struct{ XMLName xml.Name }
	if err := errors.Join(json.Unmarshal([]byte(all["badge"]), &badge), xml.Unmarshal([]byte(all["junit"]), &document), xml.Unmarshal([]byte(all["svg"]), &document)); err != nil {
		t.Error(err)
	}
}

// Whatever a server writes into its answers, what is written of it is bounded and does nothing.
func TestHostileTextIsHarmless(t *testing.T) {
	t.Parallel()
	quoted, err := json.Marshal(markup)
	if err != nil {
		t.Fatal(err)
	}
	evil := string(quoted[1 : len(quoted)-1])
	huge := strings.Repeat(evil, 100)
	for _, w := range wires {
		for name, text := range map[string]string{"text": evil, "huge": huge} {
			t.Run(string(w)+"/"+name, func(t *testing.T) {
				t.Parallel()
				opts := options()
				opts.Trials = 1
				// the name of the model, finish reasons, ids, names of tools, types of events and texts
				change := strings.NewReplacer(`"model":"`, `"model":"`+text, `"modelVersion":"`, `"modelVersion":"`+text, `"finish_reason":"`, `"finish_reason":"`+evil, `"finishReason":"`, `"finishReason":"`+evil,
					`"stop_reason":"`, `"stop_reason":"`+evil, `"name":"`, `"name":"`+evil, `"id":"`, `"id":"`+evil, `"call_id":"`, `"call_id":"`+evil, `"text":"`, `"text":"`+evil, `"content":"`, `"content":"`+evil)
				server := &counter{answer: rewritten(func(b []byte) []byte { return []byte(change.Replace(string(b))) })}
				rep, err := verify.Run(t.Context(), target(sim.DemoModel, w, server), nil, opts)
				if err != nil {
					t.Fatal(err)
				}
				if rep.Status == verify.Passed || len(rep.Target.Answered) > 204 {
					t.Errorf("%s, %d bytes of a name", rep.Status, len(rep.Target.Answered))
				}
				harmless(t, rep)
			})
		}
	}
}

// An answer is no more than it may be; one that does not end, ends with the time of a request, and after three of them no more are made. A
// redirect is not followed, and takes no key along.
func TestHostileServersAreBounded(t *testing.T) {
	t.Parallel()
	var away, statuses atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { away.Add(1) }))
	t.Cleanup(elsewhere.Close)
	line := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + strings.Repeat("x", 1000) + "\"}}]}\n\n")
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		<-r.Context().Done()
	}
	for name, c := range map[string]struct {
		handler  http.HandlerFunc
		with     func(*verify.Options)
		requests int    // at most
		stopped  string // why
		finding  string
	}{
		"endless answers": {endless, func(o *verify.Options) { o.Doctor.MaxBytes, o.MaxTokens = 1<<20, 300_000 }, 3, "tokens", "too-large"},
		"no end":          {silent, func(o *verify.Options) { o.Doctor.Timeout = 50 * time.Millisecond }, 3, "silent", "hang"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, nil, 60, "", "redirect"},
		"large headers": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, nil, 60, "silent", ""},
		"statuses": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(int(404 + statuses.Add(1)%90))
			fmt.Fprint(w, markup)
		}, nil, 60, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(c.handler)
			t.Cleanup(srv.Close)
			opts := options()
			opts.Trials = 1
			if c.with != nil {
				c.with(opts)
			}
			rep, err := verify.Run(t.Context(), doctor.Target{BaseURL: srv.URL + "/v1", Wire: lathe.WireOpenAIChat, Model: "m", Key: secret.New("sk-verify-hostile-0001")}, nil, opts)
			var unreachable *doctor.UnreachableError
			if errors.As(err, &unreachable) { // no response can be read
				if name != "large headers" {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if rep.Target.Requests > c.requests || rep.Target.Stopped != c.stopped || rep.Status == verify.Passed {
				t.Errorf("%s %v: %d requests, stopped by %q, want %d and %q", rep.Status, rep.Why, rep.Target.Requests, rep.Target.Stopped, c.requests, c.stopped)
			}
			found := c.finding == ""
			for _, m := range rep.Metrics {
				for _, d := range m.Deviations {
					found = found || d.ID == c.finding
				}
			}
			if !found {
				t.Errorf("%s is not found: %+v", c.finding, rep.Metrics[1])
			}
			harmless(t, rep)
			for name, text := range files(t, rep) {
				if strings.Contains(text, "sk-verify-hostile") {
					t.Errorf("the key is in %s", name)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := away.Load(); n > 0 {
			t.Errorf("%d redirects were followed", n)
		}
	})
}
