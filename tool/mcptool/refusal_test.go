package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

// sessions is a server of 2025 that can forget its sessions. refuse answers a message whose session it does not know, and busy, as long as
// it returns true, answers calls in place of the server.
type sessions struct {
	refuse func(w http.ResponseWriter, id string)
	busy   func(w http.ResponseWriter, id string) bool

	mu      sync.Mutex
	made    int
	known   map[string]bool
	handled []string // sessions of the calls that were handled
	refused int      // calls that were not
	hold    chan struct{}
	held    chan struct{}
}

func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
}

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m testMessage
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &m)
	w.Header().Set("Content-Type", "application/json")
	reply := func(result string) { fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result) }
	session := r.Header.Get(sessionHeader)
	s.mu.Lock()
	known := s.known[session]
	s.mu.Unlock()
	switch {
	case m.Method == "server/discover":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	case m.Method == "initialize":
		s.mu.Lock()
		s.made++
		session = fmt.Sprintf("s%d", s.made)
		s.known[session] = true
		s.mu.Unlock()
		w.Header().Set(sessionHeader, session)
		reply(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call" && s.busy != nil && s.busy(w, string(m.ID)):
	case m.Method == "tools/call" && strings.Contains(string(m.Params), `"wait"`):
		s.held <- struct{}{}
		<-s.hold
		reply(`{"content":[{"type":"text","text":"late"}]}`)
	case !known:
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		s.refuse(w, string(m.ID))
	case m.Method == "tools/list":
		reply(`{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}`)
	default:
		s.mu.Lock()
		s.handled = append(s.handled, session)
		s.mu.Unlock()
		reply(`{"content":[{"type":"text","text":"ok"}]}`)
	}
}

// serveSessions starts such a server and returns a rig with its one tool, which has the effect.
func serveSessions(t *testing.T, s *sessions, effect lathe.Effect, opts *Options) *rig {
	t.Helper()
	s.known, s.hold, s.held = map[string]bool{}, make(chan struct{}), make(chan struct{}, 1)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	conf := httpConf(server.URL)
	conf.Effects = map[string]lathe.Effect{"do": effect}
	r := newRig(t, opts, conf)
	t.Cleanup(func() { _ = r.group.Close() }) // before the server
	return r
}

func status(code int, body string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", id))
	}
}

// A call in a session that the server has lost is answered on a new session: always after a 404 by which the server has not handled it, and
// only of a tool that reads or is idempotent after a 404 that may be the answer of an application, and the 400 that some servers send.
func TestLostSessionDoesNotCostACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refuse func(http.ResponseWriter, string)
		effect lathe.Effect
		want   lathe.Code
	}{
		"404, reads":                        {status(404, `{"error":"Session not found"}`), lathe.ReadOnly, ""},
		"404, writes":                       {status(404, "not found"), lathe.Writes, ""},
		"404 as JSON-RPC, undeclared":       {status(404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`), lathe.EffectUndeclared, ""},
		"404 with the id, writes":           {status(404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`), lathe.Writes, ""},
		"404 of an application, writes":     {status(404, `{"error":"Order of this session not found"}`), lathe.Writes, lathe.CodeUnavailable},
		"404 with text in JSON, writes":     {status(404, `"not found"`), lathe.Writes, lathe.CodeUnavailable},
		"404 with much JSON, writes":        {status(404, `{"error":"`+strings.Repeat("x", maxRefusalBytes)+`"}`), lathe.Writes, lathe.CodeUnavailable},
		"404, JSON-RPC of a tool, writes":   {status(404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32002,"message":"Order not found"}}`), lathe.Writes, lathe.CodeUnavailable},
		"404, JSON-RPC of a tool, reads":    {status(404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32002,"message":"Order not found"}}`), lathe.ReadOnly, ""},
		"404 of an application, idempotent": {status(404, `{"error":"Order not found"}`), lathe.Idempotent, ""},
		"404 with text in JSON, idempotent": {status(404, `"not found"`), lathe.Idempotent, ""},
		"404 without a body, writes":        {status(404, ""), lathe.Writes, ""},
		"400, reads":                        {status(400, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: No valid session ID provided"}}`), lathe.ReadOnly, ""},
		"400, idempotent":                   {status(400, "Bad Request: No valid session ID provided"), lathe.Idempotent, ""},
		"400, writes":                       {status(400, "Bad Request: No valid session ID provided"), lathe.Writes, lathe.CodeUnavailable},
		"400 of another kind, reads":        {status(400, "Bad Request"), lathe.ReadOnly, lathe.CodeUnavailable},
		"401, reads":                        {status(401, ""), lathe.ReadOnly, lathe.CodeUnavailable},
		"500, reads":                        {status(500, ""), lathe.ReadOnly, lathe.CodeUnavailable},
		"500, writes":                       {status(500, ""), lathe.Writes, lathe.CodeInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sessions{refuse: tt.refuse}
			r := serveSessions(t, s, tt.effect, nil)
			s.forget()
			res := r.call("web__do", map[string]int{})
			wantCode(t, res, tt.want)
			if s.refused != 1 || tt.want == "" && !slices.Equal(s.handled, []string{"s2"}) || tt.want != "" && len(s.handled) != 0 {
				t.Errorf("%d calls refused, handled in %v", s.refused, s.handled)
			}
			if res := r.call("web__do", map[string]int{}); res.Content != "ok" {
				t.Errorf("the next call: %+v", res)
			}
		})
	}
}

// Calls of a lost session that were sent before keep their connection until they are answered, each with its own outcome.
func TestLostSessionLeavesOtherCallsAlone(t *testing.T) {
	t.Parallel()
	s := &sessions{refuse: status(404, "")}
	r := serveSessions(t, s, lathe.Writes, nil)
	var wait sync.WaitGroup
	wait.Go(func() {
		if res := r.call("web__do", map[string]string{"do": "wait"}); res.Content != "late" {
			t.Errorf("the call that was under way: %+v", res)
		}
	})
	<-s.held
	s.forget()
	for range 4 {
		wait.Go(func() {
			if res := r.call("web__do", map[string]int{}); res.Content != "ok" {
				t.Errorf("a call after the loss: %+v", res)
			}
		})
	}
	r.until("a new session", func(st Status) bool { return st.Starts == 2 && st.State == StateReady })
	close(s.hold)
	wait.Wait()
	if st := r.group.Status()[0]; st.Starts != 2 || st.Failures != 0 {
		t.Errorf("got %+v", st)
	}
}

// A session that is lost again and again does not make a call go on without end, and the next call works.
func TestCallIsRepeatedOnceIfEachSessionIsLost(t *testing.T) {
	t.Parallel()
	s := &sessions{refuse: status(404, "")}
	var always sync.Mutex
	left := 2
	s.busy = func(w http.ResponseWriter, _ string) bool {
		always.Lock()
		defer always.Unlock()
		if left--; left >= 0 {
			w.WriteHeader(http.StatusNotFound)
		}
		return left >= 0
	}
	r := serveSessions(t, s, lathe.Writes, nil)
	wantCode(t, r.call("web__do", map[string]int{}), lathe.CodeUnavailable)
	if res := r.call("web__do", map[string]int{}); res.Content != "ok" {
		t.Errorf("the next call: %+v", res)
	}
}

// A server that asks to wait is asked again, for a tool that only reads or is idempotent, after the wait that it names; after 429 on the same connection.
func TestCallThatComesTooSoonIsRepeated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status  int
		after   string
		times   int // that the server asks to wait
		effect  lathe.Effect
		want    lathe.Code
		waits   int
		seconds float64 // of the first wait, from and to twice as much
	}{
		"429, reads":            {429, "3", 1, lathe.ReadOnly, "", 1, 3},
		"429 twice, reads":      {429, "1", 2, lathe.ReadOnly, "", 2, 1},
		"429 always, reads":     {429, "1", 9, lathe.ReadOnly, lathe.CodeUnavailable, 2, 1},
		"429 without a time":    {429, "", 1, lathe.ReadOnly, "", 1, 0.1},
		"503, reads":            {503, "2", 1, lathe.ReadOnly, "", 1, 2},
		"429 for too long":      {429, "3600", 1, lathe.ReadOnly, lathe.CodeUnavailable, 0, 0},
		"429, writes":           {429, "1", 1, lathe.Writes, lathe.CodeUnavailable, 0, 0},
		"429, idempotent":       {429, "1", 1, lathe.Idempotent, "", 1, 1},
		"429, undeclared":       {429, "1", 1, lathe.EffectUndeclared, lathe.CodeUnavailable, 0, 0},
		"429 that is no number": {429, "soon", 1, lathe.ReadOnly, lathe.CodeUnavailable, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			left := tt.times
			s := &sessions{refuse: status(404, ""), busy: func(w http.ResponseWriter, _ string) bool {
				mu.Lock()
				defer mu.Unlock()
				if left--; left < 0 {
					return false
				}
				w.Header().Set("Retry-After", tt.after)
				w.WriteHeader(tt.status)
				return true
			}}
			var waits []time.Duration
			opts := &Options{wait: func(_ context.Context, d time.Duration) error {
				waits = append(waits, d)
				return nil
			}}
			r := serveSessions(t, s, tt.effect, opts)
			wantCode(t, r.call("web__do", map[string]int{}), tt.want)
			if len(waits) != tt.waits || len(waits) > 0 && (waits[0].Seconds() < tt.seconds || waits[0].Seconds() > 2*tt.seconds) {
				t.Errorf("waited %v, want %d times and %g s at first", waits, tt.waits, tt.seconds)
			}
			starts := 1
			if tt.status == 503 { // the session may be lost
				starts = 2
			}
			if st := r.group.Status()[0]; st.Starts != starts || st.State != StateReady {
				t.Errorf("%d connections, want %d: %+v", st.Starts, starts, st)
			}
		})
	}
}

// A deadline before the end of the wait ends the call with what the server said.
func TestCallThatComesTooSoonKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	o := &Options{wait: func(context.Context, time.Duration) error { t.Error("it waits"); return nil }}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if o.waitFor(ctx, time.Hour) {
		t.Error("it waits beyond the deadline")
	}
}
