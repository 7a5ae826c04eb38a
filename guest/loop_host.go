package guest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A LoopHost is a [Host] that executes each send as a run of package loop. The run may call the functions of the guest and the tools of
// [HostOptions]. A LoopHost may be used for several guests at once.
type LoopHost struct {
	opts    HostOptions
	backend *Backend
	policy  lathe.Policy
	runner  *tool.Runner // the runner of opts.Tools
}

var _ Host = (*LoopHost)(nil)

// HostOptions are the options of [NewHost]. With the zero value, models can call the functions of the guest only.
type HostOptions struct {
	// Tools are further tools that the model may call; nil: none. A send uses the tools that the set contains when the send begins. If a
	// function of the guest has the same name as one of them, the send fails with invalid_request.
	Tools *tool.Set
	// Allow names the tools that the model may call in every send; nil: all except those of MCP servers. A tool of an MCP server (Origin
	// "mcp:SERVER") that Allow does not name may be called only in sessions that have enabled its server.
	Allow []string
	// Runner contains the options of the runner: policy, approver, journal, settings, limits and so on. A nil Policy means
	// policy.Default(). The policy sees a function of the guest as read-only, because it changes only the guest and the files granted to
	// it; rules that name the function apply. Settings.OnLimit has no effect: a send ends at the limit.
	Runner tool.Options
	// Choose returns the model for a send. name is the model that the guest names, or "". If Choose is nil, or returns nil and no error,
	// the model of [NewHost] is used. It may be called from several goroutines at once.
	Choose func(name string) (*Backend, error)
	// Retention configures how much of commentary and tool results a session keeps, and is recorded with each run. nil: the zero Retention,
	// which is not recorded.
	Retention *loop.Retention
	// Engine executes the runs. An *engine.Engine stores their events and publishes them. nil: the events are discarded.
	Engine Engine
}

// An Engine executes one run and returns its result, as [engine.Engine.Run] does. It must pass the events to opts.Sinks. The result may be
// nil only with an error.
type Engine interface {
	Run(ctx context.Context, l *loop.Loop, in *loop.Input, opts *engine.RunOptions) (*event.Result, error)
}

// A Backend is a model that answers sends, with the settings with which it is called.
type Backend struct {
	Model lathe.Model
	// Name and ModelName are what [Reply].Backend and [Reply].Model report; "": the provider and the model of Model.Describe.
	Name, ModelName string
	// Settings are the settings of the runs with this model; nil: those of HostOptions.Runner.
	Settings *lathe.Settings
	// Overrides are further members of each request to the model server. If the guest sets a member with the same name, that one is sent.
	Overrides []lathe.Member
}

// NewHost returns a host whose sends use model, which must not be nil. opts may be nil. The error says which option is not valid, such as a
// name in Allow that no tool has.
func NewHost(model lathe.Model, opts *HostOptions) (*LoopHost, error) {
	h := &LoopHost{}
	if opts != nil {
		h.opts = *opts
	}
	if model == nil {
		return nil, errors.New("guest: a host needs a model")
	}
	h.backend = &Backend{Model: model}
	set := h.opts.Tools
	if set == nil {
		var err error
		if set, err = tool.NewSetWithin(h.opts.Runner.Limits); err != nil {
			return nil, err
		}
		h.opts.Tools = set
	}
	for _, name := range h.opts.Allow {
		if _, ok := set.Lookup(name); !ok {
			return nil, fmt.Errorf("guest: Allow names the tool %q, which is not in Tools", name)
		}
	}
	runner := h.opts.Runner
	if runner.Policy == nil {
		runner.Policy = policy.Default()
	}
	h.policy = functionPolicy{runner.Policy}
	runner.Policy = h.policy
	var err error
	if h.runner, err = tool.NewRunner(set, &runner); err != nil {
		return nil, fmt.Errorf("guest: %w", err)
	}
	return h, nil
}

// Send implements [Host].
func (h *LoopHost) Send(ctx context.Context, req *Request) (*Reply, error) {
	b, err := h.choose(req.Model)
	if err != nil {
		return nil, err
	}
	in := runinput.With(&loop.Input{Run: req.Run, Messages: req.Messages, ClientTools: req.Offers, Allow: []string{}}, runinput.Extra{AllowAbsent: true})
	runner := h.runner.Over(nil)
	if req.Auto {
		set, err := h.opts.Tools.With(req.Tools...)
		if err != nil {
			return nil, refused(err)
		}
		runner, in.Allow = h.runner.Over(set), h.allowed(req)
	}
	sampling, rest := samplingOf(req)
	l, err := loop.New(b.Model, runner, &loop.Options{Settings: h.settings(b, req), Limits: h.limits(req), Policy: h.policy, Sampling: sampling,
		Overrides: replaced(b.Overrides, rest), Retention: h.opts.Retention})
	if err != nil {
		return nil, refused(err)
	}
	res, id, err := h.run(ctx, l, in)
	if res == nil {
		return nil, err
	}
	return &Reply{Result: res, RunID: id, Backend: b.Name, Model: b.ModelName, History: loop.SessionHistory(res.History, h.opts.Retention)}, nil
}

// settings returns the settings of the run for a send.
func (h *LoopHost) settings(b *Backend, req *Request) lathe.Settings {
	s := h.runner.Settings()
	if b.Settings != nil {
		s = *b.Settings
	}
	s.OnLimit = lathe.OnLimitStop
	if !req.Auto {
		s.NoFixEmptyFinal = true
	}
	if req.StrictUnknownTool {
		s.StrictUnknownTool = true
	}
	if req.ToolChoice.Mode != "" {
		s.ToolChoice = req.ToolChoice
	}
	if req.ParallelToolCalls != nil {
		s.ParallelToolCalls = req.ParallelToolCalls
	}
	return s
}

// limits returns the limits of the run for a send. A guest can only lower the timeout.
func (h *LoopHost) limits(req *Request) lathe.Limits {
	limits := h.runner.Limits()
	for _, r := range setting.Rows[lathe.Limits]() {
		if r.Guest > 0 {
			r.In(&limits).Set(r.In(&req.Limits))
		}
	}
	most := limits.WithDefaults().RunTimeout // negative: no limit
	if req.Timeout > 0 && (most < 0 || req.Timeout < most) {
		limits.RunTimeout = req.Timeout
	}
	return limits
}

// choose returns the Backend for a send, with its names set.
func (h *LoopHost) choose(name string) (*Backend, error) {
	b := *h.backend
	if h.opts.Choose != nil {
		chosen, err := h.opts.Choose(name)
		switch {
		case err != nil:
			return nil, err
		case chosen != nil && chosen.Model == nil:
			return nil, lathe.CodeInternal.Errorf("guest: send", "the host's Choose returned a Backend without a Model")
		case chosen != nil:
			b = *chosen
		}
	}
	if b.Model != nil {
		info := b.Model.Describe()
		b.Name, b.ModelName = cmp.Or(b.Name, info.Provider), cmp.Or(b.ModelName, info.Model)
	}
	return &b, nil
}

// run executes a run and returns its result and its id. res is nil only with an error.
func (h *LoopHost) run(ctx context.Context, l *loop.Loop, in *loop.Input) (res *event.Result, id string, err error) {
	if h.opts.Engine != nil {
		var id runIDSink
		res, err = h.opts.Engine.Run(ctx, l, in, &engine.RunOptions{Sinks: []event.Sink{&id}})
		return res, id.id, err
	}
	in.Run.RunID, in.Run.RequestID = "run_"+strings.ToLower(rand.Text()), "req_"+strings.ToLower(rand.Text())
	res, err = l.Do(ctx, in)
	return res, in.Run.RunID, err
}

// runIDSink stores the id of the run whose events it receives.
type runIDSink struct{ id string }

func (s *runIDSink) Emit(_ context.Context, e event.Event) { s.id = e.RunID }

// allowed returns the names of the tools that a send may call. It is never nil, which would mean all tools of the set.
func (h *LoopHost) allowed(req *Request) []string {
	names := append([]string{}, h.opts.Allow...)
	for _, t := range req.Tools {
		names = append(names, t.Spec().Name)
	}
	for _, spec := range h.opts.Tools.Specs() {
		server, isMCP := strings.CutPrefix(spec.Origin, "mcp:")
		ok := h.opts.Allow == nil
		if isMCP {
			ok = req.MCP != nil && req.MCP.Allows(server, strings.TrimPrefix(spec.Name, server+"__"))
		}
		if ok {
			names = append(names, spec.Name)
		}
	}
	return names
}

// refused returns the error of a send that cannot become a run. The guest receives the text of its cause.
func refused(err error) error {
	if e := (*lathe.Error)(nil); errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return lathe.CodeInvalidRequest.Wrap("guest: send", err)
}

// functionPolicy passes the functions of guests to a policy as tools that only read. The functions themselves declare no effect, so that
// they are not repeated after a failure.
type functionPolicy struct{ lathe.Policy }

// Tool implements [lathe.Policy]: it decides whether a tool is advertised to the model.
func (p functionPolicy) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	return p.Policy.Tool(run, asRead(spec))
}

// Call implements [lathe.Policy]: it decides about a call.
func (p functionPolicy) Call(c *lathe.CallInfo) lathe.Verdict {
	call := *c
	call.Tool = asRead(c.Tool)
	return p.Policy.Call(&call)
}

func asRead(spec *lathe.ToolSpec) *lathe.ToolSpec {
	if spec == nil || spec.Origin != origin {
		return spec
	}
	read := *spec
	read.Effect = lathe.ReadOnly
	return &read
}
