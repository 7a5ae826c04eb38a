package rules

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
)

// Limits of a list of rules.
const (
	maxRules        = 1_000
	maxWhenBytes    = 4_096
	maxWhenDepth    = 32
	defaultMaxCost  = 100_000
	maxPatternBytes = 256
)

// ruleNone is the rule of the verdict for calls that no rule matches, if there is no other policy.
const ruleNone = "rules.none"

// A Rule decides about the calls that it matches. A call must match all fields that are set. The zero Decision denies: a rule with only a name
// denies every call.
type Rule struct {
	Name     string         // required; lathe.Verdict.Rule of its verdicts
	Decision lathe.Decision // for the calls that the rule matches
	Tool     string         // pattern of the tool's name, as in [policy.Match]; "" matches all
	Effect   string         // of the tool: "read_only", "idempotent" or "writes"; "" matches all
	// When is a CEL expression of type bool over the variables args (the arguments), tool, effect, origin, principal, session, depth, turn,
	// seq, labels (of the run) and used (a map from tool names to their number of calls in the run). "" matches all.
	When      string
	Principal string            // pattern of the principal of the run, as in [policy.Match]; "" matches all
	Labels    map[string]string // labels that the run must have, each with a pattern of its value; "" matches every value
	Reason    string            // the reason in the verdict; "": a general text
	Source    string            // where the rule is configured, for the findings of [Policy.Explain] only
}

// Options configure a [Policy]. The zero value is usable.
type Options struct {
	// Else decides about calls that no rule matches, and about model calls; nil denies such calls and allows model calls.
	Else lathe.Policy
	// MaxCost limits the evaluation of one condition, in cost units of CEL; 0: 100,000. If a condition exceeds it, a rule that allows does
	// not match, and a rule that requires an approval or denies matches.
	MaxCost uint64
}

// A Problem is one error in a rule.
type Problem struct {
	Rule    int    // index in the list of rules, from 0
	Field   string // "name", "tool", "effect", "when", "principal" or "labels"
	Line    int    // of Rule.When, from 1; 0: another field
	Column  int    // of Rule.When, from 1; 0: another field
	Message string
}

// Problems is the error of [New]. It contains all problems of a list of rules, in their order.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps {
		lines = append(lines, fmt.Sprintf("rule %d: %s: %s", p.Rule+1, p.Field, p.Message))
	}
	return strings.Join(lines, "\n")
}

// A Policy is a [lathe.Policy] that decides by a list of rules. It has no state and may be used by several goroutines at once.
type Policy struct {
	rules []*rule // sorted by decision, strictest first, then by name
	other lathe.Policy
}

var (
	_ lathe.Policy     = (*Policy)(nil)
	_ policy.Explainer = (*Policy)(nil)
)

// rule is a Rule with its condition compiled.
type rule struct {
	Rule
	when cel.Program // nil: no condition
}

// New returns the policy of a list of at most 1,000 rules. The order of the rules does not matter: the strictest rule that matches decides,
// and of equally strict ones the one whose name sorts first. opts may be nil. New compiles each condition once; a condition of more than
// 4,096 bytes is a problem. The error is a [Problems].
func New(list []Rule, opts *Options) (*Policy, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MaxCost == 0 {
		o.MaxCost = defaultMaxCost
	}
	p := &Policy{other: o.Else}
	var problems Problems
	if len(list) > maxRules {
		return nil, Problems{{Rule: maxRules, Field: "name", Message: fmt.Sprintf("there are %d rules, and at most %d are taken", len(list), maxRules)}}
	}
	c := &compiler{maxCost: o.MaxCost}
	for i := range list {
		r := &rule{Rule: list[i]}
		bad := r.check()
		if len(bad) == 0 && r.When != "" {
			r.when, bad = c.compile(r.When)
		}
		for _, b := range bad {
			b.Rule = i
			problems = append(problems, b)
		}
		p.rules = append(p.rules, r)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	slices.SortStableFunc(p.rules, func(a, b *rule) int {
		if d := rank(a.Decision) - rank(b.Decision); d != 0 {
			return d
		}
		return strings.Compare(a.Name+"\x00"+a.Reason, b.Name+"\x00"+b.Reason)
	})
	return p, nil
}

// check validates all fields except the condition.
func (r *rule) check() (bad Problems) {
	add := func(field, format string, args ...any) {
		bad = append(bad, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if r.Name == "" {
		add("name", "a rule has a name")
	}
	if !slices.Contains([]string{"", "read_only", "idempotent", "writes"}, r.Effect) {
		add("effect", "an effect is read_only, idempotent or writes")
	}
	if len(r.Tool) > maxPatternBytes {
		add("tool", "the pattern is longer than %d bytes", maxPatternBytes)
	}
	if len(r.Principal) > maxPatternBytes {
		add("principal", "the pattern is longer than %d bytes", maxPatternBytes)
	}
	if len(r.When) > maxWhenBytes {
		add("when", "the condition is longer than %d bytes", maxWhenBytes)
	}
	return bad
}

// rank returns d as a number, and that of Deny for an unknown decision.
func rank(d lathe.Decision) int {
	if d > lathe.Allow {
		return int(lathe.Deny)
	}
	return int(d)
}

// Tool returns the least strict verdict that a call of the tool could get in this run. It returns Deny only if every call would be denied.
func (p *Policy) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	var some *rule // the least strict rule so far whose condition may match a call
	for _, r := range p.rules {
		if r.misfit(run, spec) != "" {
			continue
		}
		if r.when == nil {
			return r.verdict() // the rules that follow are less strict and do not take precedence
		}
		some = r
	}
	v := p.fallback(func(o lathe.Policy) lathe.Verdict { return o.Tool(run, spec) })
	if some != nil && rank(some.Decision) > rank(v.Decision) {
		return some.verdict()
	}
	return v
}

// Step returns the verdict of Options.Else, or Allow if it is nil: rules decide only calls.
func (p *Policy) Step(s *lathe.StepInfo) lathe.Verdict {
	if p.other == nil {
		return lathe.Verdict{Decision: lathe.Allow, Rule: "step"}
	}
	return p.other.Step(s)
}

// Call returns the verdict of the strictest rule that matches, or that of Options.Else if none does.
func (p *Policy) Call(c *lathe.CallInfo) lathe.Verdict {
	vars := variables{call: c}
	for _, r := range p.rules {
		if r.misfit(c.Run, c.Tool) != "" {
			continue
		}
		if fits, _ := r.judge(&vars); fits {
			return r.verdict()
		}
	}
	return p.fallback(func(o lathe.Policy) lathe.Verdict { return o.Call(c) })
}

func (p *Policy) fallback(ask func(lathe.Policy) lathe.Verdict) lathe.Verdict {
	if p.other == nil {
		return lathe.Verdict{Rule: ruleNone, Reason: "no rule allows this call"}
	}
	return ask(p.other)
}

// misfit returns why the rule does not apply to a tool in a run, or "" if it applies.
func (r *rule) misfit(run *lathe.RunInfo, spec *lathe.ToolSpec) string {
	switch {
	case !policy.Match(r.Tool, spec.Name):
		return "the tool does not fit its pattern"
	case r.Effect != "" && r.Effect != spec.Effect.String():
		return "the tool has another effect: " + spec.Effect.String()
	case !policy.Match(r.Principal, run.Principal):
		return "the run has another principal"
	}
	for name, pattern := range r.Labels {
		if value, ok := run.Labels[name]; !ok || !policy.Match(pattern, value) {
			return "the run does not have its labels"
		}
	}
	return ""
}

// judge evaluates the condition. If the evaluation fails, fits is true unless the rule allows.
func (r *rule) judge(vars *variables) (fits bool, failure error) {
	if r.when == nil {
		return true, nil
	}
	yes, err := evaluate(r.when, vars)
	if err != nil {
		return r.Decision != lathe.Allow, err
	}
	return yes, nil
}

func (r *rule) verdict() lathe.Verdict {
	v := lathe.Verdict{Decision: r.Decision, Rule: r.Name, Reason: r.Reason}
	if v.Reason == "" && rank(v.Decision) == 0 {
		v.Reason = "a rule of the operator does not allow this call"
	}
	return v
}

// Explain returns, for each rule, whether it matches the call and why, the strictest rule first. If no rule matches, the findings of
// Options.Else follow.
func (p *Policy) Explain(c *lathe.CallInfo) []policy.Finding {
	var out []policy.Finding
	vars := variables{call: c}
	matched := false
	for _, r := range p.rules {
		f := policy.Finding{Rule: r.Name, Decision: r.Decision, Source: r.Source, Why: r.misfit(c.Run, c.Tool)}
		if f.Why == "" {
			var err error
			f.Matched, err = r.judge(&vars)
			f.Why = r.why(f.Matched, err)
		}
		matched = matched || f.Matched
		out = append(out, f)
	}
	if matched {
		return out
	}
	if p.other == nil {
		return append(out, policy.Finding{Rule: ruleNone, Matched: true, Why: "no rule fits"})
	}
	_, rest := policy.Explain(p.other, c)
	return append(out, rest...)
}

func (r *rule) why(fits bool, err error) string {
	switch {
	case err != nil && fits:
		return "its condition cannot be evaluated, which counts as met: " + text.Clip(err.Error(), maxWhyBytes)
	case err != nil:
		return "its condition cannot be evaluated, which counts as not met: " + text.Clip(err.Error(), maxWhyBytes)
	case r.when == nil:
		return "it has no condition on the arguments"
	case fits:
		return "its condition is met"
	}
	return "its condition is not met"
}

const maxWhyBytes = 200
