package config

import (
	"time"

	"github.com/lathe-run/lathe"
)

// Policy configures which tool calls are executed.
type Policy struct {
	// Tools that change nothing.
	ReadOnly lathe.Decision `key:"effects.read_only" default:"allow" also:"readonly"`
	// Tools that may run twice without harm.
	Idempotent lathe.Decision `key:"effects.idempotent" default:"ask"`
	// Tools that change something, or declare no effect.
	Writes lathe.Decision `key:"effects.writes" default:"ask" also:"write"`
	// Decisions by tool name; they come before `policy.effects`.
	Tools map[string]lathe.Decision `key:"tools" names:"tool" per:"tool name"`
	// Rules; see docs/policy.md. `deny` wins over `ask` and `ask` over `allow`, `policy.tools` included. If no rule
	// matches, `policy.effects` decides.
	Rules map[string]*PolicyRule `key:"rules" names:"rule" per:"rule name" also:"rule"`
	// Labels of tools: `reads_private`, `reads_untrusted`, `can_exfiltrate`, or words of your own.
	Labels map[string][]string `key:"labels" names:"pattern" per:"pattern of tool names to list of labels" also:"label"`
	// The call with which a run would have used tools of all three labels; `allow` turns it off.
	Trifecta lathe.Decision `key:"trifecta" default:"ask" also:"lethal_trifecta"`
	// Calls that change something, after the run used a tool labelled `reads_untrusted`; `allow` turns this off.
	Taint  lathe.Decision `key:"taint" default:"ask"`
	Budget Budget         `key:"budget"`
}

// A PolicyRule decides about the calls that match it.
type PolicyRule struct {
	// Decision about the calls that match the rule.
	Decision lathe.Decision `key:"decision" default:"deny" also:"action effect_of"`
	// Pattern of the tool's name, `*` for any characters. Default: every tool.
	Tool string `key:"tool" is:"pattern" also:"tools name"`
	// Effect of the tool. Default: every effect.
	Effect lathe.Effect `key:"effect"`
	// Condition in CEL over `args`, `tool`, `effect`, `origin`, `principal`, `session`, `labels`, `depth`, `turn`,
	// `seq`, `used`.
	When string `key:"when" also:"if condition args arguments"`
	// Pattern of the principal, such as the name of a key. Default: every principal.
	Principal string `key:"principal" is:"pattern" also:"key user"`
	// Labels that the run must have.
	Labels map[string]string `key:"labels" per:"label of the run to pattern" is:"pattern" also:"label"`
	// Text for the model and for events; must hold no secret.
	Reason string `key:"reason" also:"message"`
}

// A Budget limits what one run may use; a zero field, or a missing entry, is no limit.
type Budget struct {
	// Maximum executed tool calls of one run; `0`: no bound but `max_total_tool_calls`.
	Calls int `key:"calls" default:"0" range:"0.." also:"max_calls"`
	// The same for the tools of a pattern together; `0` allows none.
	Tools map[string]int `key:"tools" names:"pattern" per:"pattern of tool names to number" range:"0.." also:"per_tool"`
	// Maximum tokens of one run; beyond them no model call is made.
	Tokens int64 `key:"tokens" default:"none" off:"none"` // the largest number: no bound
	// Maximum cost of one run in US dollars, by `models.NAME.price`, else as model servers report it.
	Cost float64 `key:"cost" default:"none" is:"dollars"`
}

// Circuit configures the circuit breakers of backends: when calls of a failing backend are refused.
type Circuit struct {
	// Calls to a backend that fail in a row, after which its tools answer `unavailable` at once; `0`: never.
	Failures int `key:"failures" default:"5" range:"0.." also:"threshold"` // 0: never
	// Time until one call tests the backend.
	OpenFor time.Duration `key:"open_for" default:"30s" range:"1ms.." also:"cooldown"`
}

// ToolRetry configures how often a failed call is repeated.
type ToolRetry struct {
	// Attempts of a call that is answered `unavailable`, of tools that only read or are idempotent; the first one
	// included.
	Attempts int `key:"attempts" default:"1" range:"1..10" also:"retries"`
	// Wait before the second attempt; it doubles, and up to half of it is left out at random.
	Backoff time.Duration `key:"backoff" default:"200ms" range:"1ms.." also:"delay"`
}

// Secrets configures which values are hidden from models and tools.
type Secrets struct {
	// Values that neither models nor tools are shown: a token stands in their place. Keys and headers elsewhere in
	// this file count, too.
	Values map[string]Ref `key:"values" names:"rule" per:"name to reference" is:"key" also:"known"`
	// Also take out what looks like a key of a known kind.
	Patterns bool `key:"patterns" default:"false" also:"detect"`
	// Secrets that tools may be given in place of their token, by name; what looked like a key is `found`.
	Grants map[string][]string `key:"grants" names:"pattern" per:"pattern of tool names to list of names" also:"allow"`
}
