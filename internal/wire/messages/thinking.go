package messages

import (
	"cmp"

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
	display   wire.Optional
	maxTokens int
}

func (p *thinkingPlan) on() bool { return p.mode == "adaptive" || p.mode == "enabled" }

// efforts are the values of output_config.effort, each with the equivalent budget in tokens for models without an effort.
var efforts = map[string]int{"low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}

// planThinking computes the plan: planEffort and planBudget set the values that the request asks for, and fitEffort and fitBudget replace those
// that the model does not accept. Sampling parameters that the API refuses together with thinking are dropped later.
func (e *planner) planThinking() {
	s, p := &e.req.Sampling, &e.plan
	p.maxTokens = cmp.Or(max(e.opts.MaxTokens, 0), defaultMaxTokens)
	if s.MaxTokens != nil {
		p.maxTokens = *s.MaxTokens
	}
	e.planEffort()
	e.planBudget()
	if p.mode == "enabled" && e.without(featureBudget) {
		e.drop("sampling.reasoning_budget")
		p.mode = "adaptive"
	}
	e.fitEffort()
	if p.mode == "enabled" {
		e.fitBudget()
	}
	switch {
	case s.ReasoningSummary == "":
	case p.on() && !e.without(featureDisplay):
		p.display = "summarized"
	default:
		e.drop("sampling.reasoning_summary")
	}
}

// planEffort sets the effort, and the mode of thinking with an effort.
func (e *planner) planEffort() {
	p := &e.plan
	switch effort := e.req.Sampling.ReasoningEffort; effort {
	case "":
	case effortNone:
		p.mode = "disabled"
	default:
		p.mode, p.effort = "adaptive", effort
		if efforts[effort] > 0 {
			return
		}
		e.drop("sampling.reasoning_effort")
		p.effort = "high"
		if effort == "minimal" {
			p.effort = "low"
		}
	}
}

// planBudget sets the mode of thinking for the budget of the request, which takes precedence over the mode for its effort.
func (e *planner) planBudget() {
	p := &e.plan
	switch b := e.req.Sampling.ReasoningBudget; {
	case b == nil:
	case *b < 0:
		p.mode = "adaptive"
	case *b > 0:
		p.mode, p.budget = "enabled", *b
	case p.effort != "":
		p.mode = "" // effort without thinking
	default:
		p.mode = "disabled"
	}
}

// fitEffort replaces an effort by its budget if the model has no adaptive thinking. It removes a mode of thinking that the model refuses for
// this request, and an effort that the model does not accept.
func (e *planner) fitEffort() {
	p := &e.plan
	hasBudget := p.mode == "adaptive" && e.without(featureAdaptive) // the budget expresses the effort
	if hasBudget {
		p.mode, p.budget = "enabled", efforts[cmp.Or(p.effort, "medium")]
	}
	hasConflict := p.mode == "enabled" && (e.forced() || e.unsignedStep()) // adaptive thinking has neither conflict
	if hasConflict || e.without(featureThinking) {
		if p.on() {
			e.dropBudget()
		}
		p.mode, hasBudget = "", false
	}
	if p.effort != "" && e.without(featureEffort) {
		if !hasBudget {
			e.drop("sampling.reasoning_effort")
		}
		p.effort = ""
	}
}

// fitBudget makes the budget at least minBudget and smaller than max_tokens, or turns thinking off if that is impossible. If the request has
// no token limit, it increases the default limit by the budget instead.
func (e *planner) fitBudget() {
	p := &e.plan
	if p.budget < minBudget {
		e.dropBudget()
		p.budget = minBudget
	}
	if e.req.Sampling.MaxTokens == nil {
		p.maxTokens += p.budget
		return
	}
	if p.budget >= p.maxTokens {
		e.dropBudget()
		p.budget = p.maxTokens - 1
	}
	if p.budget < minBudget {
		p.mode = ""
	}
}

// dropBudget records as dropped the member of the request that determined the budget. An effort is not recorded while the plan has it.
func (e *planner) dropBudget() {
	switch {
	case e.req.Sampling.ReasoningBudget != nil:
		e.drop("sampling.reasoning_budget")
	case e.plan.effort == "":
		e.drop("sampling.reasoning_effort")
	}
}

// unsignedStep reports whether the request continues a step whose calls another model wrote. With mode enabled, the API refuses such a turn
// because it does not begin with thinking.
func (e *planner) unsignedStep() bool {
	msgs := e.req.Messages
	i := len(msgs)
	for i > 0 && msgs[i-1].Role == lathe.RoleTool {
		i--
	}
	if i == 0 || i == len(msgs) || msgs[i-1].Role != lathe.RoleAssistant {
		return false
	}
	for _, p := range msgs[i-1].Parts {
		switch p := p.(type) {
		case lathe.Reasoning:
			if e.sendsReasoning(&msgs[i-1], &p) {
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

// forced reports whether the model must call a tool.
func (e *planner) forced() bool {
	if e.helper != nil {
		return true
	}
	mode := e.req.ToolChoice.Mode
	return (mode == lathe.ChoiceRequired || mode == lathe.ChoiceFunction) && len(e.req.Tools)+len(e.req.HostedTools) > 0
}

// asksToDrop reports whether the request contains the option by which the server drops thinking that it cannot accept.
func (e *planner) asksToDrop() bool {
	return e.plan.on() && !e.overridden("thinking") && e.opts.Takes.ThinkingBinding == destination.DropBlock && !e.without(featureBinding)
}

// thinking appends the members thinking and output_config.
func (e *encoder) thinking(dst wire.JSON) wire.JSON {
	p := &e.plan
	if p.mode != "" && !e.overridden("thinking") {
		var budget *int
		if p.mode == "enabled" {
			budget = &p.budget
		}
		var binding wire.JSON
		if e.asksToDrop() {
			binding = wire.ObjectOf("prefix_mismatch_behavior", "drop_block")
		}
		dst = dst.Val("thinking", wire.ObjectOf("type", p.mode, "budget_tokens", budget, "display", p.display, "block_binding", binding))
	}
	if p.effort == "" && e.format == nil || e.overridden("output_config") {
		return dst
	}
	var format wire.JSON
	if e.format != nil {
		format = wire.ObjectOf("type", "json_schema", "schema", e.format)
	}
	return dst.Val("output_config", wire.ObjectOf("effort", wire.Optional(p.effort), "format", format))
}
