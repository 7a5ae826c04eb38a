package lathe

import (
	"math"
	"time"
)

// ToolUseMode says whether a run may, must or must not call tools.
type ToolUseMode string

// The tool use modes. The zero value counts as ModeRelaxed.
const (
	ModeRelaxed  ToolUseMode = "relaxed"
	ModeEnforced ToolUseMode = "enforced"
	ModeDisabled ToolUseMode = "disabled"
)

// FailurePolicy says when failed tools fail a run. It has an effect only in [ModeEnforced].
type FailurePolicy string

// The failure policies. The zero value counts as FailureFatal.
const (
	FailureFatal     FailurePolicy = "fatal"
	FailureTolerated FailurePolicy = "tolerated"
)

// Executor says whether tools really run.
type Executor string

// The executors. The zero value counts as ExecutorReal.
const (
	ExecutorReal Executor = "real"
	ExecutorNoop Executor = "noop" // every stage but the tool itself; the result is {"ok":true}
)

// OversizeOutput says what happens to an output above max_tool_output_bytes.
type OversizeOutput string

// The choices for an oversize output. The zero value counts as OversizeError.
const (
	OversizeError    OversizeOutput = "error"
	OversizeTruncate OversizeOutput = "truncate"
)

// Repair says whether damaged argument text may be unwrapped once (fences, double encoding).
type Repair string

// The repair choices. The zero value counts as RepairSafe.
const (
	RepairSafe Repair = "safe"
	RepairOff  Repair = "off"
)

// ResultFormat is the form in which tool results are sent to the model.
type ResultFormat string

// The result formats. The zero value counts as ResultPlain.
const (
	ResultPlain    ResultFormat = "plain"
	ResultEnvelope ResultFormat = "envelope"
)

// OnParseError says how a run continues after a call written as text that cannot be parsed.
type OnParseError string

// The choices after a parse error. The zero value counts as ParseErrorTell.
const (
	ParseErrorTell         OnParseError = "tell"
	ParseErrorRetryWithout OnParseError = "retry_without_tools"
)

// OnLimit says how a run ends when a limit is reached.
type OnLimit string

// The choices at a limit. The zero value counts as OnLimitFinish.
const (
	OnLimitFinish OnLimit = "finish" // one last model call without tools
	OnLimitStop   OnLimit = "stop"
)

// Settings are the modes of a run. Zero fields have the default named first in their comment.
type Settings struct {
	ToolUseMode         ToolUseMode   // relaxed, enforced, disabled
	FailurePolicy       FailurePolicy // fatal, tolerated
	ParallelToolCalls   *bool         // nil: not sent; false: calls beyond the first of a turn are answered too_many_calls
	MaxParallel         int           // 1; above it ReadOnly calls of a turn run side by side
	ToolChoice          ToolChoice    // auto
	ToolChoiceEveryTurn bool          // required applies to the first turn only unless set
	// NoFixEmptyFinal turns off fix_empty_final: if the answer is blank after at least one call, the
	// loop asks the model for it once more.
	NoFixEmptyFinal bool
	// FixEmptyFinalText is the text of that request; "Please provide your final answer.".
	FixEmptyFinalText string
	// FixEmptyFinalKeepTools offers tools in that request, too. It is the negation of fix_empty_final_disable_tools.
	FixEmptyFinalKeepTools bool
	FallbackRetryCount     int            // 0; turns of a run that may be repeated without tools; relaxed only
	Executor               Executor       // real, noop
	OnParseError           OnParseError   // tell, retry_without_tools
	OnLimit                OnLimit        // finish, stop
	OversizeOutput         OversizeOutput // error, truncate
	Repair                 Repair         // safe, off
	ResultFormat           ResultFormat   // plain, envelope
	CompactEnvelope        bool           // tool_result_compact_envelope
	StrictUnknownTool      bool           // the run ends unknown_tool
}

// DefaultFixEmptyFinalText is the default of Settings.FixEmptyFinalText.
const DefaultFixEmptyFinalText = "Please provide your final answer."

// Limits bound a run. A zero field has the default in its comment. For the fields that say so,
// a negative value means no limit.
type Limits struct {
	MaxIterations    int           // 8 model calls
	MaxToolCalls     int           // 32 (max_total_tool_calls)
	MaxDepth         int           // 1; negative: no run may start a run
	MaxRepeatedCalls int           // 3
	MaxUnknownTools  int           // 3 in a row
	MaxToolArgsBytes int           // 200 000
	MaxPayloadBytes  int           // 8 192, of a call written as text
	MaxOutputBytes   int           // 65 536 (max_tool_output_bytes)
	MaxJSONDepth     int           // 64
	MaxJSONKeys      int           // 10 000 in one object
	MaxTools         int           // 128
	MaxToolsBytes    int           // 200 000
	ToolTimeout      time.Duration // 30 s
	RunTimeout       time.Duration // 15 min; negative: none
	ApprovalTTL      time.Duration // 1 h
	MaxTokensTotal   int64         // none
	MaxCost          float64       // none; US dollars
}

// WithDefaults returns l with each zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&l.MaxIterations, 8)
	def(&l.MaxToolCalls, 32)
	def(&l.MaxDepth, 1)
	def(&l.MaxRepeatedCalls, 3)
	def(&l.MaxUnknownTools, 3)
	def(&l.MaxToolArgsBytes, 200_000)
	def(&l.MaxPayloadBytes, 8_192)
	def(&l.MaxOutputBytes, 65_536)
	def(&l.MaxJSONDepth, 64)
	def(&l.MaxJSONKeys, 10_000)
	def(&l.MaxTools, 128)
	def(&l.MaxToolsBytes, 200_000)
	if l.ToolTimeout == 0 {
		l.ToolTimeout = 30 * time.Second
	}
	if l.RunTimeout == 0 {
		l.RunTimeout = 15 * time.Minute
	}
	if l.ApprovalTTL == 0 {
		l.ApprovalTTL = time.Hour
	}
	if l.MaxTokensTotal == 0 {
		l.MaxTokensTotal = math.MaxInt64
	}
	return l
}

// Narrow returns l with its zero fields replaced by their defaults, and each limit replaced by that of by where by is stricter.
// A zero or negative field of by has no effect, nor has one that is wider than that of l: above is the key of the first such
// limit, or "". MaxDepth, MaxJSONDepth and MaxJSONKeys of by are ignored.
func (l Limits) Narrow(by Limits) (out Limits, above string) {
	out = l.WithDefaults()
	if by == (Limits{}) { // nearly always
		return out, ""
	}
	for _, f := range []struct {
		key   string
		wider bool
	}{
		{"max_iterations", lower(&out.MaxIterations, by.MaxIterations)},
		{"max_total_tool_calls", lower(&out.MaxToolCalls, by.MaxToolCalls)},
		{"max_repeated_calls", lower(&out.MaxRepeatedCalls, by.MaxRepeatedCalls)},
		{"max_unknown_tools", lower(&out.MaxUnknownTools, by.MaxUnknownTools)},
		{"max_tool_args_bytes", lower(&out.MaxToolArgsBytes, by.MaxToolArgsBytes)},
		{"max_payload_bytes", lower(&out.MaxPayloadBytes, by.MaxPayloadBytes)},
		{"max_tool_output_bytes", lower(&out.MaxOutputBytes, by.MaxOutputBytes)},
		{"max_tools", lower(&out.MaxTools, by.MaxTools)},
		{"max_tools_bytes", lower(&out.MaxToolsBytes, by.MaxToolsBytes)},
		{"tool_timeout", lower(&out.ToolTimeout, by.ToolTimeout)},
		{"run_timeout", lower(&out.RunTimeout, by.RunTimeout)},
		{"approval_ttl", lower(&out.ApprovalTTL, by.ApprovalTTL)},
		{"max_tokens_total", lower(&out.MaxTokensTotal, by.MaxTokensTotal)},
		{"max_cost", lower(&out.MaxCost, by.MaxCost)},
	} {
		if f.wider && above == "" {
			above = f.key
		}
	}
	return out, above
}

// lower sets *have to want where that is less, and reports whether want is more. A want of zero or below is no limit, and
// so is a *have of zero or below.
func lower[T int | int64 | float64 | time.Duration](have *T, want T) (above bool) {
	switch {
	case want <= 0:
		return false
	case *have <= 0 || want < *have:
		*have = want
		return false
	}
	return want > *have
}

// Reason says why a run ended or was parked. Reasons are part of the contract.
type Reason string

// The reasons.
const (
	ReasonAnswered            Reason = "answered"
	ReasonClientToolCalls     Reason = "client_tool_calls"
	ReasonAwaitingApproval    Reason = "awaiting_approval"
	ReasonAwaitingToolResults Reason = "awaiting_tool_results"
	ReasonMaxIterations       Reason = "max_iterations"
	ReasonMaxToolCalls        Reason = "max_total_tool_calls"
	ReasonToolLoop            Reason = "tool_loop"
	ReasonRunTimeout          Reason = "run_timeout"
	ReasonBudgetExceeded      Reason = "budget_exceeded"
	ReasonBudgetExhausted     Reason = "budget_exhausted" // of a key or its group, and not the limits of the run
	ReasonNoToolCalls         Reason = "no_tool_calls"
	ReasonToolError           Reason = "tool_error"
	ReasonUnknownTool         Reason = "unknown_tool"
	ReasonContentFilter       Reason = "content_filter"
	ReasonLength              Reason = "length"
	ReasonUpstreamError       Reason = "upstream_error"
	ReasonGuestFault          Reason = "guest_fault"
	ReasonCancelled           Reason = "cancelled"
	ReasonInterrupted         Reason = "interrupted"
	ReasonInternal            Reason = "internal"
)

// Status returns the coarse status of a run that ended for r: "completed", "parked", "limited",
// "cancelled" or "failed".
func (r Reason) Status() string {
	switch r {
	case ReasonAnswered, ReasonClientToolCalls:
		return "completed"
	case ReasonAwaitingApproval, ReasonAwaitingToolResults:
		return "parked"
	case ReasonMaxIterations, ReasonMaxToolCalls, ReasonToolLoop, ReasonRunTimeout, ReasonBudgetExceeded, ReasonLength:
		return "limited"
	case ReasonCancelled:
		return "cancelled"
	default:
		return "failed"
	}
}

// Blank is the likely cause of a blank answer.
type Blank string

// The causes, the most certain first.
const (
	BlankCallsIgnored  Blank = "calls_ignored"  // the model called tools where calls have no effect
	BlankLength        Blank = "length"         // the limit on output tokens was reached before the answer began
	BlankReasoning     Blank = "reasoning_only" // the model wrote reasoning and ended
	BlankOutputDropped Blank = "output_dropped" // output tokens were counted and none was sent: the server discarded them, as Ollama does with calls that it cannot parse
	BlankEmpty         Blank = "empty"          // the model ended at once
)
