package messages

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// minBudget is the smallest thinking budget that the API accepts, in tokens.
const minBudget = 1024

// A thinkingPlan contains the values of thinking, effort and max_tokens of a request. The API restricts their combinations with each other
// and with the tool choice.
type thinkingPlan struct {
	mode      string // type of thinking; "": not sent
	budget    int    // tokens, for mode enabled
	effort    string // effort of output_config; "": not sent
	display   bool
	maxTokens int
}

func (p *thinkingPlan) on() bool { return p.mode == "adaptive" || p.mode == "enabled" }

// efforts are the values of output_config.effort, each with the equivalent budget in tokens for models without an effort.
var efforts = map[string]int{"low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}

// planThinking computes the plan. It resolves conflicts in this order: a budget is dropped if the tool choice forces a call, a budget above
// max_tokens is reduced, and sampling parameters that the API refuses together with thinking are dropped later.
func (e *encoder) planThinking() {
	s, p := &e.req.Sampling, &e.plan
	p.maxTokens = e.opts.MaxTokens
	if p.maxTokens <= 0 {
		p.maxTokens = defaultMaxTokens
	}
	if s.MaxTokens != nil {
		p.maxTokens = *s.MaxTokens
	}
	e.planEffort()
	if b := s.ReasoningBudget; b != nil {
		switch {
		case *b == 0 && p.effort != "":
			p.mode = "" // effort without thinking
		case *b == 0:
			p.mode = "disabled"
		case *b < 0:
			p.mode = "adaptive"
		default:
			p.mode, p.budget = "enabled", *b
		}
	}
	if p.mode == "enabled" && e.without(featureBudget) {
		e.drop("sampling.reasoning_budget")
		p.mode = "adaptive"
	}
	if p.mode == "adaptive" && e.without(featureAdaptive) {
		p.mode, p.budget = "enabled", efforts[p.effort]
		if p.budget == 0 {
			p.budget = efforts["medium"]
		}
	}
	if p.mode == "enabled" && e.forced() { // with adaptive thinking, a forced call is allowed
		e.dropReasoning()
	}
	if p.effort != "" && e.without(featureEffort) {
		if p.mode != "enabled" {
			e.drop("sampling.reasoning_effort")
		}
		p.effort = ""
	}
	if p.mode == "disabled" && e.without(featureThinking) {
		p.mode = ""
	}
	if p.on() && e.without(featureThinking) || p.mode == "enabled" && e.unsignedStep() {
		e.dropReasoning()
	}
	e.fitBudget()
	p.display = s.ReasoningSummary != "" && p.on() && !e.without(featureDisplay)
	if s.ReasoningSummary != "" && !p.display {
		e.drop("sampling.reasoning_summary")
	}
}

// dropReasoning turns thinking off, and records the member of the request that is thereby not sent.
func (e *encoder) dropReasoning() {
	switch {
	case e.req.Sampling.ReasoningBudget != nil:
		e.drop("sampling.reasoning_budget")
	case e.plan.effort == "" || e.without(featureEffort):
		e.drop("sampling.reasoning_effort")
	}
	e.plan.mode, e.plan.budget = "", 0
}

// unsignedStep reports whether the request continues a step whose calls another model wrote. With mode enabled, the API refuses such a turn
// because it does not begin with thinking.
func (e *encoder) unsignedStep() bool {
	i := len(e.req.Messages) - 1
	for i >= 0 && e.req.Messages[i].Role == lathe.RoleTool {
		i--
	}
	if i < 0 || i == len(e.req.Messages)-1 || e.req.Messages[i].Role != lathe.RoleAssistant {
		return false
	}
	for _, p := range e.req.Messages[i].Parts {
		switch p := p.(type) {
		case lathe.Reasoning:
			if e.sendsReasoning(&e.req.Messages[i], &p) {
				return false
			}
		case lathe.Text:
			if p.Text != "" {
				return true
			}
		default:
			return true
		}
	}
	return true
}

// planEffort sets the effort of the API and the corresponding mode of thinking.
func (e *encoder) planEffort() {
	p := &e.plan
	switch effort := e.req.Sampling.ReasoningEffort; {
	case effort == "":
	case effort == effortNone:
		p.mode = "disabled"
	case effort == "minimal":
		e.drop("sampling.reasoning_effort")
		p.mode, p.effort = "adaptive", "low"
	case efforts[effort] == 0:
		e.drop("sampling.reasoning_effort")
		p.mode, p.effort = "adaptive", "high"
	default:
		p.mode, p.effort = "adaptive", effort
	}
}

// fitBudget makes the budget smaller than max_tokens and at least minBudget. If the request has no token limit, it increases the default
// limit by the budget instead.
func (e *encoder) fitBudget() {
	p := &e.plan
	if p.mode != "enabled" {
		return
	}
	if p.budget < minBudget {
		e.dropReasoning()
		p.mode, p.budget = "enabled", minBudget
	}
	switch {
	case e.req.Sampling.MaxTokens == nil:
		p.maxTokens += p.budget
	case p.budget < p.maxTokens:
	case p.maxTokens > minBudget:
		e.dropReasoning()
		p.mode, p.budget = "enabled", p.maxTokens-1
	default:
		e.dropReasoning()
	}
}

// forced reports whether the model must call a tool.
func (e *encoder) forced() bool {
	if e.helper != nil {
		return true
	}
	mode := e.req.ToolChoice.Mode
	return (mode == lathe.ChoiceRequired || mode == lathe.ChoiceFunction) && len(e.req.Tools)+len(e.req.HostedTools) > 0
}

// asksToDrop reports whether the request contains the option by which the server drops thinking that it cannot accept.
func asksToDrop(e *encoder) bool {
	return e.plan.on() && e.free("thinking") && e.opts.Takes.ThinkingBinding == destination.DropBlock && !e.without(featureBinding)
}

// thinking appends the members thinking and output_config.
func (e *encoder) thinking(dst wire.JSON) wire.JSON {
	p := &e.plan
	if p.mode != "" && e.free("thinking") {
		members := []any{"type", p.mode}
		if p.mode == "enabled" {
			members = append(members, "budget_tokens", p.budget)
		}
		if p.display {
			members = append(members, "display", "summarized")
		}
		if asksToDrop(e) {
			members = append(members, "block_binding", wire.ObjectOf("prefix_mismatch_behavior", "drop_block"))
		}
		dst = dst.Val("thinking", wire.ObjectOf(members...))
	}
	if p.effort == "" && e.format == nil || !e.free("output_config") {
		return dst
	}
	var format wire.JSON
	if e.format != nil {
		format = wire.ObjectOf("type", "json_schema", "schema", e.format)
	}
	return dst.Val("output_config", wire.ObjectOf("effort", wire.Optional(p.effort), "format", format))
}
