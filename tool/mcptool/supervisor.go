package mcptool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// A supervisor keeps one server running. Its goroutine connects, waits for the end of the connection, and connects again.
type supervisor struct {
	conf     Server
	opts     *Options
	http     *http.Client
	stderr   *tail
	onChange func(*supervisor) // called when the tools may have changed
	again    chan struct{}     // receives a value when an operator requests a new connection; buffers one

	adopting sync.Mutex // locked while definitions are checked and published

	first   chan struct{} // closed when the server was ready, or the first attempts have failed
	started atomic.Bool   // first is closed
	legacy  bool          // the next attempt uses legacyProtocol; only the goroutine of run uses this field

	mu      sync.Mutex    // guards the fields below
	moved   chan struct{} // closed and replaced at each change of the status
	status  Status
	session *session               // nil unless the server is ready
	live    map[string]*remote     // by offered name
	defs    map[string]*definition // definitions of the last list, by the server's name
	list    []ToolStatus
	refused int // number of refused requests of the server
}

func newSupervisor(conf Server, opts *Options, onChange func(*supervisor)) *supervisor {
	s := &supervisor{conf: conf, opts: opts, stderr: &tail{}, onChange: onChange, again: make(chan struct{}, 1), moved: make(chan struct{}), first: make(chan struct{})}
	s.status = Status{Server: conf.Name, State: StateStarting, Since: opts.Now(), Required: conf.Required}
	if conf.Command != "" {
		s.status.Transport = "stdio"
		s.status.Target = strings.Join(append([]string{conf.Command}, conf.Args...), " ")
	} else {
		s.status.Transport, s.status.Target = "http", conf.URL
		s.http = conf.Client
		if s.http == nil {
			t := http.DefaultTransport.(*http.Transport).Clone()
			t.Proxy = nil // the proxies of the environment are not used
			s.http = &http.Client{Transport: t}
		}
	}
	return s
}

// run supervises the server until ctx is done.
func (s *supervisor) run(ctx context.Context) {
	attempts := newBackoff(s.opts.BackoffMin, s.opts.BackoffMax) // pauses after failed attempts
	ends := newBackoff(s.opts.BackoffMin, s.opts.BackoffMax)     // pauses after the end of a session that was offered
	var draining sync.WaitGroup
	defer draining.Wait()
	until := time.Now().Add(s.conf.StartTimeout) // deadline of the first attempts together
	for ctx.Err() == nil {
		s.set(func(st *Status) { st.State, st.NextTry = StateStarting, time.Time{} })
		if s.started.Load() {
			until = time.Now().Add(s.conf.StartTimeout)
		}
		conn, err := s.connect(ctx, until)
		begin := time.Now()
		if err != nil {
			s.legacy = !s.legacy // the server may not support this kind of handshake
		} else {
			s.legacy = s.legacy || conn.isSilentAtFirst
			err = s.serve(ctx, conn, attempts)
		}
		wasOffered := conn != nil && conn.isOffered
		switch {
		case wasOffered && errors.Is(err, errSessionLost): // calls in progress may still get their answers
			draining.Go(func() { conn.drain(ctx); conn.close(s.opts.StopGrace) })
			s.pauseAfterLoss(ctx, err, ends, time.Since(begin))
			continue
		case conn != nil:
			conn.close(s.opts.StopGrace)
		}
		if ctx.Err() != nil || errors.Is(err, errReconnect) {
			continue
		}
		wait := attempts.next()
		if wasOffered {
			wait = max(wait, ends.afterSession(time.Since(begin)))
		}
		s.fail(err, attempts.failures, wait, until)
		s.log("mcp server is down", "error", s.cause(err), "next_try", wait)
		sleep(ctx, wait, s.again)
	}
	s.set(func(st *Status) { st.State, st.PID = StateClosed, 0 })
	if s.http != nil && s.conf.Client == nil {
		s.http.CloseIdleConnections()
	}
}

// pauseAfterLoss waits after the loss of a session, which lasted lived, unless the loss counts as the first failure.
func (s *supervisor) pauseAfterLoss(ctx context.Context, err error, ends *backoff, lived time.Duration) {
	wait := ends.afterSession(lived)
	if ends.failures == 1 {
		wait = 0
	}
	s.log("mcp session is lost, a new one is made", "next_try", wait)
	if wait > 0 {
		s.set(func(st *Status) {
			st.State, st.LastError, st.NextTry = StateBackoff, s.cause(err), s.opts.Now().Add(wait)
		})
		sleep(ctx, wait, s.again)
	}
}

var (
	// errReconnect ends a connection because an operator requested a new one.
	errReconnect = errors.New("the server is connected anew")
	// errSessionLost ends a connection because the server no longer knows its session.
	errSessionLost = errors.New("the server does not know the session any more, as after a restart or a timeout of its own: a new session is made")
)

// serve offers the tools of a connection until the connection ends. It returns why it ended.
func (s *supervisor) serve(ctx context.Context, conn *session, attempts *backoff) error {
	if err := s.refresh(ctx, conn, conn.until); err != nil {
		return err
	}
	conn.isOffered = true
	info := conn.mcp.InitializeResult()
	s.set(func(st *Status) {
		st.State, st.Failures, st.LastError, st.NextTry = StateReady, 0, "", time.Time{}
		st.Problem = ""
		st.Starts++
		if conn.proc != nil {
			st.PID = conn.proc.cmd.Process.Pid
		}
		if info != nil {
			st.Protocol = info.ProtocolVersion
			if info.ServerInfo != nil {
				st.Software = text.Clip(plain(info.ServerInfo.Name+" "+info.ServerInfo.Version, nil), 100)
			}
			st.Capabilities, st.Instructions = capabilitiesOf(info.Capabilities, s.conf.secrets()), text.Clip(plain(info.Instructions, s.conf.secrets()), 4096)
		}
		s.session = conn
	})
	attempts.reset()
	s.endFirstAttempts()
	s.log("mcp server is ready", "protocol", s.Status().Protocol)
	defer s.set(func(*Status) { s.session = nil })
	alive := s.watch(ctx, conn, info)
	defer alive.stop()
	for {
		var stale <-chan time.Time // nil: the list of tools does not become stale
		if conn.fresh > 0 {
			stale = time.After(conn.fresh)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-conn.loss:
			return errSessionLost
		case <-conn.life.Done():
			return errLost
		case <-conn.ended:
			return errLost
		case <-alive.silent:
			return errSilent
		case <-s.again:
			return errReconnect
		case <-conn.changed:
		case <-stale:
		}
		if err := s.refresh(ctx, conn, time.Now().Add(s.conf.StartTimeout)); err != nil && !errors.Is(err, errCached) {
			return err
		}
	}
}

// unauthorized records that the server did not accept the token of a call, and returns a text for the model.
func (s *supervisor) unauthorized(err error) string {
	problem := problemOf(err)
	s.set(func(st *Status) { st.LastError, st.Problem = s.cause(err), problem })
	switch {
	case problem != ProblemLogin:
		return "does not take the token it is sent"
	case s.opts.LoginCommand != nil:
		return "needs a person to log in: " + s.opts.LoginCommand(s.conf.Name)
	}
	return "needs a person to log in"
}

// withoutTokens removes the tokens that the client sends to the server from a message of the server, which may echo a request. raw is valid
// JSON, and so is the result.
func (s *supervisor) withoutTokens(raw []byte) []byte {
	if len(raw) == 0 || s.conf.Tokens == nil {
		return raw
	}
	for _, t := range s.conf.Tokens() {
		if v := t.Reveal(); len(v) >= secret.MinFound && !strings.ContainsAny(v, `"\\`) {
			raw = bytes.ReplaceAll(raw, []byte(v), []byte(secret.Redacted))
		}
	}
	return raw
}

// authorized clears a login or credential problem from the status after a successful call.
func (s *supervisor) authorized() {
	s.mu.Lock()
	refused := s.status.State == StateReady && (s.status.Problem == ProblemLogin || s.status.Problem == ProblemCredentials)
	s.mu.Unlock()
	if refused {
		s.set(func(st *Status) { st.LastError, st.Problem = "", "" })
	}
}

// refresh lists the tools before the deadline until, and updates which are offered.
func (s *supervisor) refresh(ctx context.Context, conn *session, until time.Time) error {
	defs, refused, err := conn.list(ctx, &s.conf, until)
	if errors.Is(err, errSessionLost) {
		conn.lose()
	}
	if err != nil {
		return err
	}
	s.adopt(defs, refused)
	return nil
}

// adopt decides about each definition and publishes the tools. A tool with an unchanged definition remains the same value.
func (s *supervisor) adopt(defs []*definition, refused map[string]error) {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	c := &s.conf
	for _, name := range twice(defs) {
		refused[name] = errors.New("the server has two tools of that name")
	}
	for name, others := range c.clashes(defs) {
		refused[name] = fmt.Errorf("the name %s is taken: %s would all have it", c.toolName(name), strings.Join(others, ", "))
	}
	var good []*definition
	for _, d := range defs {
		if refused[d.name] == nil {
			good = append(good, d)
		}
	}
	verdicts := s.opts.Pins.judge(c.Name, c.Pin, good, s.opts.Now())
	old := s.tools()
	live, byName, list := map[string]*remote{}, map[string]*definition{}, []ToolStatus(nil)
	for _, d := range good {
		byName[d.name] = d
		st, t := offer(s, d, verdicts[d.name], old)
		if t != nil {
			live[st.Name] = t
		}
		list = append(list, st)
	}
	for name, why := range refused {
		shown := text.Clip(plain(name, nil), maxRemoteName)
		list = append(list, ToolStatus{Name: c.toolName(shown), Remote: shown, State: ToolRefused, Reason: why.Error()})
	}
	list = append(list, c.missing(slices.Concat(slices.Sorted(maps.Keys(byName)), slices.Sorted(maps.Keys(refused))))...)
	slices.SortFunc(list, func(a, b ToolStatus) int { return strings.Compare(a.Name+a.Remote, b.Name+b.Remote) })
	s.mu.Lock()
	s.live, s.defs = live, byName
	s.mu.Unlock()
	s.onChange(s)
	// The status is updated last: if it shows a tool as blocked, no run has the tool any more.
	s.mu.Lock()
	s.list = list
	s.mu.Unlock()
}

// offer decides about a definition. It returns the tool, or nil if it is not offered. old are the tools that were offered before: one with the
// same definition was already checked.
func offer(s *supervisor, d *definition, v verdict, old map[string]*remote) (ToolStatus, *remote) {
	st := ToolStatus{Name: s.conf.toolName(d.name), Remote: d.name, Reason: v.reason, Changed: v.changed, Digest: d.digest, Hidden: d.hidden,
		Description: d.description, Definition: d.canonical, Accepted: v.accepted, AcceptedAt: v.at}
	switch {
	case !s.conf.offers(d.name):
		st.State, st.Reason, st.Changed = ToolExcluded, "not among the tools of its configuration", nil
		return st, nil
	case !v.ok:
		st.State = ToolBlocked
		return st, nil
	}
	t := old[st.Name]
	if t == nil || t.digest != d.digest || t.name != d.name {
		t = newRemote(s, d)
		if _, err := tool.NewSet(t); err != nil {
			st.State, st.Reason = ToolRefused, causeOf(err).Error()
			return st, nil
		}
	}
	st.State = ToolReady
	return st, t
}

// causeOf returns the error within a *lathe.Error, or err itself.
func causeOf(err error) error {
	if e, ok := errors.AsType[*lathe.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// ready returns the connection for a call of t, and waits up to readyWait for one that is being made. The caller must call release on it.
func (s *supervisor) ready(ctx context.Context, t *remote) (*session, error) {
	unavailable := func(why string) error {
		return tool.Fail(lathe.CodeUnavailable, "the server %s %s", s.conf.Name, why)
	}
	late := time.After(readyWait)
	for {
		s.mu.Lock()
		conn, moved, state := s.session, s.moved, s.status.State
		current := s.live[t.spec.Name] == t
		down := state != StateReady && (s.status.Failures > 1 || s.status.NextTry.Sub(s.opts.Now()) > readyWait)
		s.mu.Unlock()
		switch {
		case state == StateClosed:
			return nil, unavailable("is stopped")
		case conn != nil && conn.take():
			if current {
				return conn, nil
			}
			conn.release()
			return nil, unavailable("has changed the definition of this tool; a person has to accept it")
		case down:
			return nil, unavailable("cannot be reached")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late:
			return nil, unavailable("is being started again")
		case <-moved:
		}
	}
}

// set changes the status and wakes goroutines that wait for a change.
func (s *supervisor) set(fn func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.status.State
	fn(&s.status)
	if s.status.State != was {
		s.status.Since = s.opts.Now()
	}
	close(s.moved)
	s.moved = make(chan struct{})
}

// fail records a failed attempt. until is the deadline of the first attempts.
func (s *supervisor) fail(err error, failures int, wait time.Duration, until time.Time) {
	problem := problemOf(err)
	s.set(func(st *Status) {
		st.State, st.Failures, st.PID = StateBackoff, failures, 0
		if failures >= failedAfter {
			st.State = StateFailed
		}
		st.LastError, st.Problem = s.cause(err), problem
		st.NextTry = s.opts.Now().Add(wait)
	})
	// The two kinds of handshake are tried in turn, so the first failure does not end the first attempts, unless the program cannot be
	// started, an operator must log in, or no time remains for the other kind.
	if failures > 1 || problem == ProblemProgram || problem == ProblemLogin || time.Until(until) <= wait {
		s.endFirstAttempts()
	}
}

// cause returns the text of an error for display.
func (s *supervisor) cause(err error) string {
	if err == nil {
		return ""
	}
	return text.Clip(plain(err.Error(), s.conf.secrets()), 500)
}

// endFirstAttempts records that the first attempts have ended.
func (s *supervisor) endFirstAttempts() {
	if s.started.CompareAndSwap(false, true) {
		close(s.first)
	}
}

// Status returns the current status of the server.
func (s *supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Tools = slices.Clone(s.list)
	st.Refused = s.refused
	if s.session != nil {
		st.BadMessages = s.session.tap.badMessages()
	}
	st.Stderr = s.stderr.text(s.conf.secrets())
	return st
}

func (s *supervisor) refusedRequest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
}

// tools returns the offered tools, by name. The map is never changed.
func (s *supervisor) tools() map[string]*remote {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

func (s *supervisor) log(msg string, args ...any) {
	if s.opts.Log != nil {
		s.opts.Log.Log(context.Background(), slog.LevelInfo, msg, append([]any{"server", s.conf.Name}, args...)...)
	}
}
