package config

import (
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// An Agent configures a tool whose calls are runs of their own.
type Agent struct {
	// What the agent does, for the model that calls it. Required.
	Description string `key:"description" also:"summary"`
	// Entry of `models` that answers. Default: the default model, or in `lathe run` the model of the run.
	Model string `key:"model"`
	// System text of the agent's runs.
	Instructions string `key:"instructions" also:"system prompt system_prompt"`
	// Tools that the agent may call, by name, of those that the calling run has; `"*"`: all of them. Default: none.
	Tools []string `key:"tools" is:"tool or *" also:"tool allow"`
	// What a call does. An agent that is `read_only` or `idempotent` gets no tool with a stronger effect.
	Effect lathe.Effect `key:"effect" default:"writes" also:"effects"`
	// Time of one call.
	Timeout time.Duration `key:"timeout" default:"5m" range:"1ns.."`
	// Limits narrow those of the run that calls the agent; fields that are not above 0 have no effect.
	lathe.Limits `key:",inline" narrow:"agents" note:"It can only lower the limit of the calling run; of tool calls, tokens and cost, what that run has left."`
}

// checkAgents reports missing settings of agents.
func (l *loader) checkAgents() {
	for name, a := range text.ByName(l.cfg.Tools.Run) {
		base := "tools.run." + name
		if a.Description == "" {
			l.at(base+".description", "no description: what the agent does, for the model that calls it")
		}
		if slices.Contains(a.Tools, "*") && len(a.Tools) > 1 {
			l.at(base+".tools", `"*" stands alone: it is every tool of the calling run`)
		}
		for _, t := range a.Tools {
			switch {
			case t == name:
				l.at(base+".tools", quote(t)+" is the agent itself, and an agent never gets its own tool: remove the name")
			case l.cfg.ToolCalling.MaxDepth < 2 && l.cfg.Tools.leadsTo(t, name, map[string]bool{}):
				l.at(base+".tools", quote(t)+" leads back to this agent, and agents get no agents while tool_calling.max_depth is below 2: remove the name, or raise max_depth")
			}
		}
		checkModel(l, base+".model", a.Model)
	}
}

// leadsTo reports whether the agent from has the agent to among its tools, directly or through other agents. It adds the visited agents to
// seen.
func (t *Tools) leadsTo(from, to string, seen map[string]bool) bool {
	a := t.Run[from]
	if a == nil || seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(a.Tools, func(name string) bool { return name == to || t.leadsTo(name, to, seen) })
}
