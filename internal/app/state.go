package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

// served implements [server.State] for one revision, which is one loaded configuration: it shows operators the state, and makes the changes
// that they may make.
type served struct {
	app    *App
	rev    *revision
	policy lathe.Policy
}

// Servers implements [server.State].
func (s *served) Servers() []server.ServerState {
	known := slices.Collect(maps.Values(s.rev.cfg.KnownSecrets()))
	var out []server.ServerState
	for _, st := range s.rev.tools.Servers.Status() {
		one := server.ServerState{Name: st.Server, State: string(st.State), Since: st.Since, Required: st.Required, Transport: st.Transport,
			Protocol: st.Protocol, Software: st.Software, Capabilities: st.Capabilities, Instructions: secret.Scrub(st.Instructions, known...), Problem: string(st.Problem), Starts: st.Starts, Failures: st.Failures,
			Target: secret.Scrub(st.Target, known...), LastError: secret.Scrub(st.LastError, known...), Stderr: secret.Scrub(st.Stderr, known...), NextTry: timeOf(st.NextTry), Tools: []server.ToolState{}}
		for i := range st.Tools {
			t := &st.Tools[i]
			one.Tools = append(one.Tools, server.ToolState{Name: t.Name, Remote: t.Remote, State: string(t.State), Reason: t.Reason, Changed: t.Changed, Digest: t.Digest,
				Hidden: t.Hidden, Definition: t.Definition, Accepted: t.Accepted, AcceptedAt: timeOf(t.AcceptedAt)})
		}
		out = append(out, one)
	}
	return out
}

// timeOf returns nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Reconnect implements [server.State].
func (s *served) Reconnect(name string) error { return s.rev.tools.Servers.Reconnect(name) }

// Accept implements [server.State].
func (s *served) Accept(tool, digest string) error {
	_, err := s.rev.tools.Servers.AcceptShown(tool, digest)
	return err
}

// Models implements [server.State].
func (s *served) Models() []server.ModelState {
	cfg := s.rev.cfg
	var out []server.ModelState
	for _, name := range s.rev.models.Names() {
		m, err := cfg.Model(name)
		if err != nil {
			m = &config.Model{Name: name, Provider: "sim", Dialect: "native", SupportsTools: true}
		}
		out = append(out, server.ModelState{Name: name, Provider: m.Provider, Model: m.Model, Dialect: m.Dialect, Tools: m.SupportsTools,
			Default: name == cfg.DefaultModel || m.Name == cfg.DefaultModel, Limits: limitsOf(cfg.Limits())})
	}
	return out
}

// limitsOf returns the limits of a run that are above 0.
func limitsOf(l lathe.Limits) map[string]int64 {
	out := map[string]int64{}
	for key, n := range map[string]int64{"max_iterations": int64(l.MaxIterations), "max_total_tool_calls": int64(l.MaxToolCalls),
		"run_timeout_ms": l.RunTimeout.Milliseconds(), "max_tokens_total": l.MaxTokensTotal} {
		if n > 0 {
			out[key] = n
		}
	}
	return out
}

// Explain implements [server.State].
func (s *served) Explain(c *server.PolicyCall) (*server.Explanation, error) {
	out, unknown := ExplainCall(s.rev.tools.Set, s.policy, c, 1)
	switch unknown {
	case "":
		return out, nil
	case c.Tool:
		return nil, lathe.CodeNotFound.Wrap(Op, lathe.ErrNotFound)
	}
	return nil, lathe.CodeInvalidRequest.Errorf(Op, "used names a tool that there is not")
}

// ExplainCall returns the decision of the policy on a call in a turn, and what each rule says. unknown is the first tool that the call names
// and the set does not have, or "".
func ExplainCall(set *tool.Set, p lathe.Policy, c *server.PolicyCall, turn int) (_ *server.Explanation, unknown string) {
	t, ok := set.Lookup(c.Tool)
	if !ok {
		return nil, c.Tool
	}
	call := &lathe.CallInfo{Run: &lathe.RunInfo{Principal: c.Principal, SessionID: c.Session, Labels: c.Labels}, Turn: turn, Seq: len(c.Used),
		Call: &lathe.ToolCall{Name: c.Tool, Arguments: string(c.Arguments)}, Tool: t.Spec(), Args: c.Arguments}
	if call.Used, unknown = toolUses(set, c.Used); unknown != "" {
		return nil, unknown
	}
	v, findings := policy.Explain(p, call)
	out := &server.Explanation{Tool: c.Tool, Decision: v.Decision.String(), Rule: v.Rule, Reason: v.Reason}
	for _, f := range findings {
		out.Rules = append(out.Rules, server.PolicyFinding{Rule: f.Rule, Decision: f.Decision.String(), Matched: f.Matched, Decides: f.Decides, Source: f.Source, Why: f.Why})
	}
	return out, ""
}

// Settings implements [server.State].
func (s *served) Settings() ([]server.SettingState, error) {
	rows, err := s.rev.cfg.Shown()
	known := slices.Collect(maps.Values(s.rev.cfg.KnownSecrets()))
	out := make([]server.SettingState, len(rows))
	for i, r := range rows {
		about, def := config.About(r.Key)
		out[i] = server.SettingState{Key: r.Key, Value: secret.Scrub(r.Value, known...), Origin: r.Origin, About: about, Default: def,
			Restart: slices.ContainsFunc(restartKeys, func(k string) bool { return r.Key == k || strings.HasPrefix(r.Key, k+".") })}
	}
	return out, err
}

// Audit implements [server.State].
func (s *served) Audit(ctx context.Context, limit int) (*server.AuditState, error) {
	if s.rev.cfg.Audit.Path == "" {
		return nil, nil
	}
	out := &server.AuditState{OK: true}
	files := map[string]bool{}
	last := make([]server.AuditLine, 0, limit)
	for e, err := range audit.Lines(AuditPath(s.rev.cfg)) {
		var broken *audit.Break
		if errors.As(err, &broken) {
			out.OK, out.Broken = false, broken.Error()
			break
		}
		if errors.Is(err, fs.ErrNotExist) { // no line was written yet
			break
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		files[e.File] = true
		out.Lines++
		if len(last) == limit {
			last = slices.Delete(last, 0, 1)
		}
		f, _ := e.Fields() // without fields if the event cannot be decoded
		last = append(last, server.AuditLine{N: e.N, Time: e.Time, Kind: string(e.Kind), Type: f.Type, Principal: e.Principal, RunID: f.RunID, ToolCallID: f.ToolCallID, Tool: f.Tool,
			Decision: f.Decision, Rule: f.Rule, By: f.By, Status: f.Status, Prev: e.Prev})
	}
	slices.Reverse(last)
	out.Files, out.Data = len(files), last
	if s.app.audit != nil && out.OK {
		out.Head = s.app.audit.Head().String()
	}
	return out, nil
}

// Version implements [server.State].
func (s *served) Version() server.VersionState {
	kind := "memory"
	switch s.app.store.(type) {
	case nil:
		kind = "none"
	case *sqlite.Store:
		kind = "sqlite"
	case *postgres.Store:
		kind = "postgres"
	}
	return server.VersionState{Version: s.app.opts.Version, Revision: s.app.opts.Revision, Go: runtime.Version(), Started: s.app.started, Store: kind, Node: s.app.Node()}
}
