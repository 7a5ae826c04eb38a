package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/vendor"
	"github.com/lathe-run/lathe/loop"
)

// Each protocol describes the run that a request asks for by a runRequest. makePlan checks it against what the server, the
// model and the key allow, and makes the input of the run from it.

// A runRequest is the part of a request that describes its run, independent of the protocol.
type runRequest struct {
	model      string // the name in the request
	messages   []lathe.Message
	sampling   *lathe.Sampling
	user       string
	tools      []*lathe.ToolSpec // the tools that the client declared
	toolsParam string            // the member of the request that contains the tools
	choice     lathe.ToolChoice
	parallel   *bool
	options    *requestOptions
	reserved   int // the number of labels that the server will add
	// place converts a path in messages to the path in the request, for errors about content. If it is nil, the messages
	// are set later and their content is not checked here.
	place func(path string) string
	// relay is the wire on which the client accepts the bytes of the model server unchanged; "": the client does not.
	relay lathe.Wire
	// accept, if not nil, makes the checks of the protocol that depend on the model of the plan and on whether it is relayed.
	accept func(context.Context) *problem
}

// A plan is a checked request for a run: the model whose loop executes the run, and the input of the run.
type plan struct {
	model    *Model
	in       loop.Input // in.Settings and in.Limits point to the fields settings and limits
	settings lathe.Settings
	limits   lathe.Limits
	relayed  bool // the client gets the bytes of the model server unchanged
}

// makePlan checks a request for a run and sets p. Every protocol uses it, so that a request has the same effect and the
// same errors on each of them. The steps are: the model, the tools, the limits, the settings, and the checks that depend on
// those. The caller splices in hidden turns afterwards.
func (co *core) makePlan(ctx context.Context, c *caller, req *runRequest, p *plan) (bad *problem) {
	o := req.options
	if p.model, bad = c.model(req.model); bad != nil {
		return bad
	}
	c.named = req.model
	if bad = co.objects.check(ctx, c, func(yield func(vendor.Object) bool) { vendor.InMessages(req.messages, yield) }); bad != nil {
		return bad
	}
	if o.detach && co.opts.Supervisor == nil {
		return badRequest(o.param("detach"), "This gateway does not carry runs without their client.")
	}
	if bad = c.clash(req.tools, req.toolsParam); bad != nil {
		return bad
	}
	if bad = o.checkLabels(req.reserved, c.key.Labels); bad != nil {
		return bad
	}
	p.in = loop.Input{
		Run:      lathe.RunInfo{RequestID: c.requestID, SessionID: o.session, Principal: c.key.Name, Profile: c.key.Profile, Labels: withOwn(o.labels, c.key.Labels)},
		Messages: req.messages, Sampling: req.sampling, ClientTools: req.tools, Target: req.model,
	}
	extra := runinput.Of(&p.in)
	extra.User = req.user
	extra.AllowAbsent = true // a key may name tools of MCP servers that are not ready, and a reload may add tools
	if p.in.Allow, bad = c.toolsFor(o); bad != nil {
		return bad
	}
	if p.limits, bad = c.limitsFor(o, p.model); bad != nil {
		return bad
	}
	if p.settings, bad = o.settingsFor(p.model); bad != nil {
		return bad
	}
	if req.choice.Mode != "" {
		p.settings.ToolChoice = req.choice
	}
	if req.parallel != nil {
		p.settings.ParallelToolCalls = req.parallel
	}
	if most := p.limits.WithDefaults().MaxTools; len(req.tools) > most { // before any work per tool is done
		return badRequest(req.toolsParam, "The request has %d tools, and max_tools is %d.", len(req.tools), most)
	}
	p.in.Settings, p.in.Limits = &p.settings, &p.limits
	p.relayed = req.relay != "" && c.relays(p.model, req.relay, &p.settings, p.in.Allow)
	if req.accept != nil {
		if bad = req.accept(ctx); bad != nil {
			return bad
		}
	}
	if p.relayed {
		return nil // the model server checks the tool choice itself
	}
	if req.choice.Mode != "" {
		bad = c.checkChoice(p.settings.ToolChoice, p.in.ClientTools, p.in.Allow)
	}
	if bad == nil && req.place != nil {
		_, bad = p.model.checkContent(req.messages, req.place)
	}
	return bad
}

// clash returns a problem if a tool of the client has the name of a tool of this server. param is the member of the request
// that contains the tools.
func (c *access) clash(client []*lathe.ToolSpec, param string) *problem {
	for i, t := range client {
		if c.ownTool(t.Name) != nil {
			return badRequest(fmt.Sprintf("%s[%d].function.name", param, i), "The tool name %s is taken by a tool of this gateway: choose another.", t.Name)
		}
	}
	return nil
}

// ownTool returns the tool of this server with that name, hidden tools included. It returns nil if none exists or the
// caller may not use it.
func (c *access) ownTool(name string) *lathe.ToolSpec {
	if spec := c.specOf(name); spec != nil && spec.For(c.key.Name, c.key.Profile) {
		return spec
	}
	return nil
}

// checkChoice returns a problem if neither the tools of the client nor the allowed tools of this server can satisfy the tool
// choice. A nil allow stands for all tools of the caller.
func (c *access) checkChoice(choice lathe.ToolChoice, client []*lathe.ToolSpec, allow []string) *problem {
	if choice.Mode != lathe.ChoiceRequired && choice.Mode != lathe.ChoiceFunction {
		return nil
	}
	own := allow
	if own == nil {
		own = c.toolNames()
	}
	switch choice.Mode {
	case lathe.ChoiceRequired:
		if len(own) == 0 && !slices.ContainsFunc(client, func(t *lathe.ToolSpec) bool { return !t.Disallowed }) {
			return badRequest("tool_choice", "A call is required, but there are no tools.")
		}
	case lathe.ChoiceFunction:
		if !slices.Contains(own, choice.Name) && !slices.ContainsFunc(client, func(t *lathe.ToolSpec) bool { return t.Name == choice.Name }) {
			return badRequest("tool_choice.function.name", "There is no tool with this name, neither in the request nor on this gateway.")
		}
	}
	return nil
}

// checkLabels returns a problem if a run cannot have the labels of the request: there are too many, or the server sets one
// of them itself. reserved is the number of labels that the server adds, and own are the labels of the caller's key.
func (o *requestOptions) checkLabels(reserved int, own map[string]string) *problem {
	if err := loop.CheckLabels(o.labels); err != nil {
		return badRequest(o.param("labels"), "The labels cannot be used: %v.", err)
	}
	if most := loop.MaxLabels - reserved - len(own); len(o.labels) > most {
		return badRequest(o.param("labels"), "A run may have %d labels here.", most)
	}
	for name := range o.labels {
		if _, taken := own[name]; taken || hiddenLabel(name) {
			return badRequest(o.param("labels"), "The gateway sets the label %s itself.", name)
		}
	}
	return nil
}
