package config

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
)

// An Agent is a tool whose calls are runs of their own.
type Agent struct {
	Description  string
	Model        string // an entry of models; empty: the default
	Instructions string
	Tools        []string // names, or the single entry *; empty: none
	Effect       lathe.Effect
	Timeout      time.Duration
	// Limits narrow those of the run that calls the agent: zero fields, and those below zero, say nothing.
	Limits lathe.Limits
}

// keys returns the rows of one agent, bound to a.
func (a *Agent) keys() []key {
	l := &a.Limits
	return []key{
		{"description", "", text(&a.Description), "What the agent does, for the model that calls it. Required.", "summary"},
		{"model", "", text(&a.Model), "Entry of `models` that answers. Default: the default model, or in `lathe run` the model of the run.", ""},
		{"instructions", "", text(&a.Instructions), "System text of the agent's runs.", "system prompt system_prompt"},
		{"tools", "", listValue{&a.Tools, isAgentTool}, "Tools that the agent may call, by name, of those that the calling run has; `\"*\"`: all of them. Default: none.", "tool allow"},
		{"effect", "writes", effect(&a.Effect), "What a call does. An agent that is `read_only` or `idempotent` gets no tool with a stronger effect.", "effects"},
		{"timeout", "5m", duration(&a.Timeout, 1), "Time of one call.", ""},
		{"max_iterations", "0", count(&l.MaxIterations, 0, maxCount), "Model calls of one call of the agent, where that is less than in `tool_calling`.", ""},
		{"max_total_tool_calls", "0", count(&l.MaxToolCalls, 0, maxCount), "Tool calls of one call of the agent, where that is less than the calling run has left.", "max_tool_calls"},
		{"max_tokens_total", "none", tokens(&l.MaxTokensTotal), "Tokens of one call of the agent, likewise.", "max_tokens"},
		{"max_cost", "none", dollars(&l.MaxCost), "US dollars of one call of the agent, likewise.", ""},
	}
}

func isAgentTool(s string) error {
	if s == "*" {
		return nil
	}
	return isToolName(s)
}

// checkAgents reports what agents lack.
func (l *loader) checkAgents() {
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Tools.Run)) {
		a, base := l.cfg.Tools.Run[name], "tools.run."+name
		if a.Description == "" {
			l.at(base+".description", "no description: what the agent does, for the model that calls it")
		}
		if slices.Contains(a.Tools, "*") && len(a.Tools) > 1 {
			l.at(base+".tools", `"*" stands alone: it is every tool of the calling run`)
		}
		if _, err := l.cfg.Model(a.Model); err != nil && a.Model != "" {
			var e *lathe.Error
			errors.As(err, &e)
			l.at(base+".model", e.Err.Error())
		}
	}
}
