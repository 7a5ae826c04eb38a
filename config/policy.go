package config

import (
	"errors"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// Policy says what may be executed.
type Policy struct {
	ReadOnly, Idempotent, Writes lathe.Decision
	Tools                        map[string]lathe.Decision // by exact name, before the effects
	Rules                        map[string]*PolicyRule    // by name, beside Tools
	Labels                       map[string][]string       // of tools, by pattern of their name
	Trifecta, Taint              lathe.Decision
	Budget                       Budget
}

// A PolicyRule says what becomes of the calls that it fits.
type PolicyRule struct {
	Decision  lathe.Decision
	Tool      string // pattern; empty: every tool
	Effect    lathe.Effect
	When      string // CEL; empty: whatever the arguments
	Principal string // pattern; empty: everybody
	Labels    map[string]string
	Reason    string
}

// Budget bounds what one run may use; a zero field, or no entry, is no bound.
type Budget struct {
	Calls  int
	Tools  map[string]int // by pattern
	Tokens int64          // the largest number: no bound
	Cost   float64
}

// Circuit says when a backend that fails is left alone.
type Circuit struct {
	Failures int // 0: never
	OpenFor  time.Duration
}

// ToolRetry says how often a call is tried again.
type ToolRetry struct {
	Attempts int
	Backoff  time.Duration
}

// Secrets says which values are kept from models and tools.
type Secrets struct {
	Values   map[string]Ref
	Patterns bool
	Grants   map[string][]string // by pattern of the tool's name
}

// keys returns the rows of the policy, bound to p.
func (p *Policy) keys() []key {
	return []key{
		{"policy.effects.read_only", "allow", decision(&p.ReadOnly), "Tools that change nothing.", "readonly"},
		{"policy.effects.idempotent", "ask", decision(&p.Idempotent), "Tools that may run twice without harm.", ""},
		{"policy.effects.writes", "ask", decision(&p.Writes), "Tools that change something, or do not say.", "write"},
		{"policy.tools", "", table(&p.Tools, "tool name", "`allow`, `ask` or `deny`", isToolName, newDecision), "Decisions by tool name; they come before `policy.effects`.", ""},
		{"policy.rules", "", group(&p.Rules, "rule name", isRuleName, (*PolicyRule).keys), "Rules; see docs/policy.md. `deny` wins over `ask` and `ask` over `allow`, `policy.tools` included; what none fits goes by `policy.effects`.", "rule"},
		{"policy.labels", "", table(&p.Labels, "pattern of tool names", "list of labels, separated by commas", isPattern, newLabels), "What tools touch: `reads_private`, `reads_untrusted`, `can_exfiltrate`, or words of your own.", "label"},
		{"policy.trifecta", "ask", decision(&p.Trifecta), "The call with which a run would have used tools of all three labels; `allow` turns it off.", "lethal_trifecta"},
		{"policy.taint", "ask", decision(&p.Taint), "Tools that change something, in a run that has used a tool labelled `reads_untrusted`; `allow` turns it off.", ""},
		{"policy.budget.calls", "0", count(&p.Budget.Calls, 0, maxCount), "Calls of one run in which a tool runs; `0`: no bound but `max_total_tool_calls`.", "max_calls"},
		{"policy.budget.tools", "", table(&p.Budget.Tools, "pattern of tool names", "number", isPattern, newCount), "The same for the tools of a pattern together; `0` allows none.", "per_tool"},
		{"policy.budget.tokens", "none", tokens(&p.Budget.Tokens), "Tokens of one run, after which no model call follows.", ""},
		{"policy.budget.cost", "none", dollars(&p.Budget.Cost), "US dollars of one run, as far as servers say their price.", ""},
	}
}

// keys returns the rows of one rule, bound to r.
func (r *PolicyRule) keys() []key {
	return []key{
		{"decision", "deny", decision(&r.Decision), "What becomes of the calls that the rule fits.", "action effect_of"},
		{"tool", "", patternText(&r.Tool), "Pattern of the tool's name, `*` for any characters. Default: every tool.", "tools name"},
		{"effect", "", effect(&r.Effect), "Effect of the tool. Default: every effect.", ""},
		{"when", "", text(&r.When), "Condition in CEL over `args`, `tool`, `effect`, `origin`, `principal`, `session`, `labels`, `depth`, `turn`, `seq`, `used`.", "if condition args arguments"},
		{"principal", "", patternText(&r.Principal), "Pattern of who runs, such as the name of an API key. Default: everybody.", "key user"},
		{"labels", "", table(&r.Labels, "label of the run", "pattern", isName, newPattern), "Labels that the run must carry.", "label"},
		{"reason", "", text(&r.Reason), "What the model and the events are told; no secret.", "message"},
	}
}

// keys returns the rows of secrets, bound to s.
func (s *Secrets) keys() []key {
	return []key{
		{"secrets.values", "", table(&s.Values, "name", "reference", isRuleName, newKey), "Values that neither models nor tools are shown: a token stands in their place. Keys and headers elsewhere in this file count, too.", "known"},
		{"secrets.patterns", "false", boolean(&s.Patterns), "Also take out what looks like a key of a known kind.", "detect"},
		{"secrets.grants", "", table(&s.Grants, "pattern of tool names", "list of names, separated by commas", isPattern, newLabels), "Secrets that tools may be given in place of their token, by name; what looked like a key is `found`.", "allow"},
	}
}

// guardKeys returns the rows of what keeps a failing backend from harm.
func (t *Tools) guardKeys() []key {
	return []key{
		{"tools.circuit.failures", "5", count(&t.Circuit.Failures, 0, maxCount), "Calls to a backend that fail in a row, after which its tools answer `unavailable` at once; `0`: never.", "threshold"},
		{"tools.circuit.open_for", "30s", duration(&t.Circuit.OpenFor, time.Millisecond), "Time until one call is let through to see.", "cooldown"},
		{"tools.retry.attempts", "1", count(&t.Retry.Attempts, 1, 10), "Attempts of a call that is answered `unavailable`, of tools that only read or are idempotent; the first one included.", "retries"},
		{"tools.retry.backoff", "200ms", duration(&t.Retry.Backoff, time.Millisecond), "Wait before the second attempt; it doubles, and up to half of it is left out at random.", "delay"},
	}
}

func newLabels(p *[]string) value { return names(p) }
func newCount(p *int) value       { return count(p, 0, maxCount) }
func newPattern(p *string) value  { return patternText(p) }

// patternText is text in which * stands for any characters.
func patternText(p *string) value {
	v := text(p).(*fn)
	v.setFn = func(s string) error {
		if len(s) > 256 || strings.ContainsAny(s, " \t\r\n") {
			return errors.New("a pattern has at most 256 characters and no blanks")
		}
		*p = s
		return nil
	}
	return v
}

// isPattern takes patterns of tool names.
func isPattern(s string) error {
	if isToolName(strings.NewReplacer("*", "x", "?", "x").Replace(s)) != nil {
		return errors.New("a pattern has 1 to 64 letters, digits, _ and -, and * or ? for others")
	}
	return nil
}

// isRuleName takes names that stand in events.
func isRuleName(s string) error {
	if !isLabel(strings.ToLower(s)) {
		return errors.New("a name has 1 to 64 letters, digits, _ . and -")
	}
	return nil
}
