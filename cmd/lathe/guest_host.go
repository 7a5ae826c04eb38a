package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/audit"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// A guestHost carries the sends of one guest: each is a run of the engine with the configured model,
// the guest's functions and the tools that it was given.
type guestHost struct {
	cfg    *config.Config
	model  func(name string) (*config.Model, lathe.Model, error) // "" is the one of the command line
	fixed  bool                                                  // the command line says which model answers
	set    *tool.Set                                             // what the guest was given, and its functions while they are needed
	given  []string                                              // names that every send may use
	runner *tool.Runner                                          // of set
	bare   *tool.Runner                                          // of no tools
	policy lathe.Policy
	engine *engine.Engine
	note   func(text string)

	mu        sync.Mutex
	functions []lathe.Tool // those of the send under way
	models    map[string]*guestModel
	missed    map[string]bool // what was asked for in vain, shortened
}

type guestModel struct {
	entry *config.Model
	model lathe.Model
}

func newGuestHost(cfg *config.Config, set *tool.Set, approver lathe.Approver, trail *audit.Log, log *slog.Logger) *guestHost {
	h := &guestHost{cfg: cfg, set: set, models: map[string]*guestModel{}, missed: map[string]bool{}, policy: guestPolicy{buildPolicy(cfg)}}
	h.runner = buildRunnerUnder(h.policy, cfg, set, approver, trail, log)
	h.bare = buildRunnerUnder(h.policy, cfg, nil, approver, trail, log)
	return h
}

// guestPolicy judges the functions of a guest as tools that only read: they change nothing outside of
// the guest but what its grants let it change at any time.
type guestPolicy struct{ lathe.Policy }

func (p guestPolicy) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	return p.Policy.Tool(run, asRead(spec))
}

func (p guestPolicy) Call(c *lathe.CallInfo) lathe.Verdict {
	call := *c
	call.Tool = asRead(c.Tool)
	return p.Policy.Call(&call)
}

func asRead(spec *lathe.ToolSpec) *lathe.ToolSpec {
	if spec == nil || spec.Origin != guest.Origin {
		return spec
	}
	read := *spec
	read.Effect = lathe.ReadOnly
	return &read
}

// choose returns the model of a send: that of the command line, else the configured one that the
// guest names, else the default.
func (h *guestHost) choose(name string) (*guestModel, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wanted := name
	if _, configured := h.cfg.Models[name]; h.fixed || !configured {
		name = ""
	}
	m := h.models[name]
	if m == nil {
		entry, model, err := h.model(name)
		if err != nil {
			return nil, err
		}
		m = &guestModel{entry, model}
		h.models[name] = m
	}
	// A name may be as long as a session: what is kept of it outlives that.
	if said := strings.Clone(clipText(wanted, 80)); said != "" && name == "" && wanted != m.entry.Name && !h.missed[said] {
		h.missed[said] = true
		h.note(fmt.Sprintf("the guest asks for the model %s: %s answers", printable(said), m.entry.Name))
	}
	return m, nil
}

func clipText(s string, n int) string { return s[:min(len(s), n)] }

// Send runs one send.
func (h *guestHost) Send(ctx context.Context, req *guest.Request) (*guest.Reply, error) {
	m, err := h.choose(req.Model)
	if err != nil {
		return nil, err
	}
	in := &loop.Input{Run: req.Run, Messages: req.Messages, ClientTools: req.Offers, Allow: []string{}}
	runner := h.bare
	if req.Auto {
		runner = h.runner
		restore, err := h.enter(req.Tools)
		if err != nil {
			return nil, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "guest: send", Err: causeOf(err)}
		}
		defer restore()
		in.Allow = h.allowed(req)
	}
	settings, limits := h.cfg.SettingsFor(m.entry), h.cfg.Limits()
	settings.OnLimit, settings.NoFixEmptyFinal = lathe.OnLimitStop, settings.NoFixEmptyFinal || !req.Auto
	settings.StrictUnknownTool = settings.StrictUnknownTool || req.StrictUnknownTool
	if req.ToolChoice.Mode != "" {
		settings.ToolChoice = req.ToolChoice
	}
	if req.ParallelToolCalls != nil {
		settings.ParallelToolCalls = req.ParallelToolCalls
	}
	limits.MaxIterations, limits.MaxToolCalls, limits.MaxOutputBytes = req.MaxIterations, req.MaxToolCalls, req.MaxOutputBytes
	if full := limits.WithDefaults(); req.Timeout > 0 && (full.RunTimeout < 0 || req.Timeout < full.RunTimeout) {
		limits.RunTimeout = req.Timeout
	}
	sampling, rest := samplingOf(req)
	l, err := loop.New(m.model, runner, &loop.Options{Settings: settings, Limits: limits, Policy: h.policy, Sampling: sampling,
		Overrides: joined(overrides(m.entry), rest), Retention: retentionOf(h.cfg)})
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "guest: send", Err: causeOf(err)}
	}
	var id runIDSink
	res, err := h.engine.Run(ctx, l, in, &id)
	if res == nil {
		return nil, err
	}
	reply := &guest.Reply{Result: res, RunID: id.id, Backend: m.entry.Label, Model: m.entry.Name,
		History: loop.SessionHistory(res.History, retentionSettings(h.cfg))}
	if reply.Backend == "" {
		reply.Backend = m.entry.Provider
	}
	return reply, nil
}

// enter makes functions the guest's tools until restore is called. A function of a guest may send
// itself: then its own are the tools, and these again afterwards.
func (h *guestHost) enter(functions []lathe.Tool) (restore func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.functions
	if err := h.set.Replace(guest.Origin, functions); err != nil {
		return nil, err
	}
	h.functions = functions
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.functions = before
		// They were taken before; should they not be now, the run that goes on answers unavailable.
		_ = h.set.Replace(guest.Origin, before)
	}, nil
}

// allowed names the tools that a send may use. It is never nil, which would be all of the set.
func (h *guestHost) allowed(req *guest.Request) []string {
	names := append([]string{}, h.given...)
	for _, t := range req.Tools {
		names = append(names, t.Spec().Name)
	}
	if req.MCP == nil {
		return names
	}
	for _, spec := range h.set.Specs() {
		server, ok := strings.CutPrefix(spec.Origin, "mcp:")
		if ok && req.MCP.Allows(server, strings.TrimPrefix(spec.Name, server+"__")) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// samplingOf takes what Lathe knows out of the parameters of a request. What it cannot read goes to
// the model as it is.
func samplingOf(req *guest.Request) (s lathe.Sampling, rest []lathe.Member) {
	s.ResponseFormat = req.ResponseFormat
	for _, m := range req.Overrides {
		switch m.Name {
		case "temperature", "top_p", "max_tokens", "seed", "stop", "reasoning_effort":
			object := append(append(append([]byte{'{'}, rawjson.AppendQuote(nil, m.Name)...), ':'), m.Value...)
			next := s
			if json.Unmarshal(append(object, '}'), &next) == nil {
				s = next
				continue
			}
		}
		rest = append(rest, m)
	}
	return s, rest
}

// joined returns a and what b adds to it; b wins.
func joined(a, b []lathe.Member) []lathe.Member {
	out := slices.Clone(b)
	for _, m := range a {
		if !slices.ContainsFunc(b, func(o lathe.Member) bool { return o.Name == m.Name }) {
			out = append(out, m)
		}
	}
	return out
}

// runIDSink keeps the id of a run.
type runIDSink struct{ id string }

func (s *runIDSink) Emit(_ context.Context, e lathe.Event) { s.id = e.RunID }

// guestEnded turns the end of a guest into an exit code and a sentence.
func guestEnded(ctx context.Context, o *guest.Outcome) error {
	switch {
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, errors.New("interrupted")}
	case o.Err != nil:
		return &exitError{exitFailed, fmt.Errorf("the guest ended %s: %w", o.Reason, o.Err)}
	case o.Code != 0:
		return &exitError{exitFailed, fmt.Errorf("the guest ended with code %d", o.Code)}
	}
	return nil
}
