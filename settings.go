package lathe

import (
	"time"

	"github.com/lathe-run/lathe/internal/setting"
)

// ToolUseMode says whether a run may, must or must not call tools.
type ToolUseMode string

// The tool use modes. The zero value counts as ModeRelaxed.
const (
	ModeRelaxed  ToolUseMode = "relaxed"  // the model may call tools
	ModeEnforced ToolUseMode = "enforced" // a run without any tool call fails with ReasonNoToolCalls
	ModeDisabled ToolUseMode = "disabled" // no tools are sent
)

// FailurePolicy says when failed tools fail a run. It has an effect only in [ModeEnforced].
type FailurePolicy string

// The failure policies. The zero value counts as FailureFatal.
const (
	FailureFatal     FailurePolicy = "fatal"     // a tool whose last call failed fails the run with ReasonToolError
	FailureTolerated FailurePolicy = "tolerated" // one successful call is enough
)

// Executor says whether tools are called.
type Executor string

// The executors. The zero value counts as ExecutorReal.
const (
	ExecutorReal Executor = "real" // Tool.Call is called
	ExecutorNoop Executor = "noop" // everything is checked, but Tool.Call is not called; the result is {"ok":true}
)

// OversizeOutput says what happens to an output above max_tool_output_bytes.
type OversizeOutput string

// The choices for an oversize output. The zero value counts as OversizeError.
const (
	OversizeError    OversizeOutput = "error"    // the call fails with CodeOutputTooLarge
	OversizeTruncate OversizeOutput = "truncate" // the beginning and the end of the output are the result
)

// Repair says whether damaged argument text may be repaired where its meaning is unambiguous.
type Repair string

// The repair choices. The zero value counts as RepairSafe.
const (
	RepairSafe Repair = "safe" // see Settings.Repair for what is repaired
	RepairOff  Repair = "off"  // nothing is repaired
)

// ResultFormat is the form in which tool results are sent to the model.
type ResultFormat string

// The result formats. The zero value counts as ResultPlain.
const (
	ResultPlain    ResultFormat = "plain"    // the output itself
	ResultEnvelope ResultFormat = "envelope" // an object with the members ok, data and errors
)

// OnParseError says how a run continues after a call written as text that cannot be parsed.
type OnParseError string

// The choices after a parse error. The zero value counts as ParseErrorTell.
const (
	ParseErrorTell         OnParseError = "tell"                // the model receives an error as the result of the call
	ParseErrorRetryWithout OnParseError = "retry_without_tools" // the turn is repeated once without tools
)

// OpenThought says what happens to calls at the end of a block of thinking that the model does not close.
type OpenThought string

// The choices for calls in a block of thinking that is not closed. The zero value counts as OpenThoughtRun.
const (
	OpenThoughtRun    OpenThought = "run"    // they are executed
	OpenThoughtIgnore OpenThought = "ignore" // they remain a part of the reasoning
)

// OnLimit says how a run ends when a limit is reached.
type OnLimit string

// The choices at a limit. The zero value counts as OnLimitFinish.
const (
	OnLimitFinish OnLimit = "finish" // one last model call without tools
	OnLimitStop   OnLimit = "stop"   // no further model call
)

// Settings are the modes of a run. The default of a zero field is in its struct tag `default`.
//
// Each field is also a setting in the section `tool_calling` of a configuration file. The struct tag `key` is the name of that setting, and
// the comment of the field describes it. A field with the struct tag `is:"negated"` is the opposite of the setting: it is true if the
// setting is false.
type Settings struct {
	// `relaxed`: calls are allowed; `enforced`: a run without any call fails; `disabled`: no tools are sent.
	ToolUseMode ToolUseMode `key:"tool_use_mode" default:"relaxed" of:"relaxed=preferred,optional,auto enforced=required,must disabled=off,none,no,0,false" was:"mode"`
	// With `enforced`: `fatal`, a tool whose last call failed fails the run; `tolerated`, one successful call is enough.
	FailurePolicy FailurePolicy `key:"tool_failure_policy" default:"fatal" of:"fatal=strict tolerated=tolerate,ignore" also:"failure_policy"`
	// Sent to the server unless `unset`; with `false`, calls beyond the first of a turn are refused.
	ParallelToolCalls *bool `key:"parallel_tool_calls" default:"unset" also:"parallel"` // nil: unset
	// Maximum of concurrent calls of one turn. Only calls of tools with the effect `read_only` are concurrent.
	MaxParallel int `key:"max_parallel_tool_calls" default:"1" range:"1..256" also:"max_parallel"`
	// The tool choice that is sent to the model: `auto`, `none`, `required`, or `function:NAME`.
	ToolChoice ToolChoice `key:"tool_choice" default:"auto"`
	// Send a tool choice of `required` or `function:NAME` in every turn instead of the first only.
	ToolChoiceEveryTurn bool `key:"tool_choice_every_turn" default:"false"`
	// Ask the model once more for an answer when its answer after tool calls is blank.
	NoFixEmptyFinal bool `key:"fix_empty_final" default:"true" is:"negated"` // true: do not ask
	// The user message that asks for the answer if `fix_empty_final` is set.
	FixEmptyFinalText string `key:"fix_empty_final_user_text" default:"Please provide your final answer."` // DefaultFixEmptyFinalText
	// Send the request that `fix_empty_final` adds without tools.
	FixEmptyFinalKeepTools bool `key:"fix_empty_final_disable_tools" default:"true" is:"negated"` // true: send it with tools
	// Times that the model is asked again, with the errors, if its answer does not match the JSON Schema of the request; `0`: never.
	MaxAnswerRepairs int `key:"max_answer_repairs" default:"1" range:"0..10" zero:"-1"` // negative: never
	// Times a turn is repeated without tools when the server says that it does not support tools.
	FallbackRetryCount int `key:"fallback_retry_count" default:"0" range:"0..10" also:"retries"` // in ModeRelaxed only
	// `noop`: every stage runs but the tool, whose result is `{"ok":true}`.
	Executor Executor `key:"executor" default:"real" of:"real noop=dry_run,stub,fake"`
	// After a call written as text that cannot be parsed: `tell` the model, or repeat the turn without tools (`retry_without_tools`).
	OnParseError OnParseError `key:"on_parse_error" default:"tell" of:"tell retry_without_tools=retry"`
	// What to do with calls of offered tools at the end of a block of thinking that is not closed when the answer ends normally: `run`
	// them, or `ignore` them and leave them in the reasoning.
	CallsInOpenThought OpenThought `key:"calls_in_open_thought" default:"run" of:"run=execute ignore=text"`
	// At a limit: `finish` makes one last model call without tools, `stop` ends the run at once.
	OnLimit OnLimit `key:"on_limit" default:"finish" of:"finish=answer stop=abort"`
	// Above `max_tool_output_bytes`, `error` fails the call, and `truncate` keeps the head and tail of the output.
	OversizeOutput OversizeOutput `key:"oversize_output" default:"error" of:"error=fail truncate=cut"`
	// Repair arguments whose meaning is unambiguous: a code fence around them, an object written as a string, line ends and tabs in
	// strings, a comma before a closing bracket, a byte order mark.
	Repair Repair `key:"repair" default:"safe" of:"safe=on,true off=none,false"`
	// The form of the results that are sent to the model: `plain`, the output itself, or `envelope`, an object with `ok`, `data` and `errors`.
	ResultFormat ResultFormat `key:"result_format" default:"plain" of:"plain=raw envelope"`
	// Leave empty members out of the envelope.
	CompactEnvelope bool `key:"tool_result_compact_envelope" default:"false" also:"compact_envelope"`
	// End the run when the model asks for a tool that is not there.
	StrictUnknownTool bool `key:"strict_unknown_tool" default:"false"` // with ReasonUnknownTool
}

// DefaultFixEmptyFinalText is the default of [Settings].FixEmptyFinalText.
const DefaultFixEmptyFinalText = "Please provide your final answer."

// Limits bound a run. The default of a zero field is in its struct tag `default`; "none" there means that there is no limit. A negative
// value is invalid, unless the comment at the end of the line says what it means. Sizes are in bytes.
//
// Each field is also a setting in the section `tool_calling` of a configuration file; the struct tag `key` is its name. The struct tag
// `narrow` lists the other places in which the limit can be lowered: "request" stands for the options of an API request, "keys" for the
// entry of an API key in the section `keys`, and "agents" for an agent that is called as a tool, in the section `tools.run`.
type Limits struct {
	// Maximum model calls of one run.
	MaxIterations int `key:"max_iterations" default:"8" range:"1.." narrow:"request keys agents" guest:"128" also:"max_turns max_steps max_rounds"`
	// Maximum tool calls of one run.
	MaxToolCalls int `key:"max_total_tool_calls" default:"32" range:"1.." narrow:"request keys agents" guest:"10000" also:"max_tool_calls max_calls"`
	// Maximum depth of runs that tools start inside a run; `0`: none.
	MaxDepth int `key:"max_depth" default:"1" range:"0..100" zero:"-1"` // negative: none
	// Maximum of equal calls with equal results; then the run ends with `tool_loop`.
	MaxRepeatedCalls int `key:"max_repeated_calls" default:"3" range:"1.." narrow:"request"`
	// Maximum of consecutive calls to unknown tools; then the run ends with `tool_loop`.
	MaxUnknownTools int `key:"max_unknown_tools" default:"3" range:"1.." narrow:"request"`
	// Maximum size of the arguments of one call.
	MaxToolArgsBytes int `key:"max_tool_args_bytes" default:"200000" is:"size" range:"1.." narrow:"request" also:"max_args_bytes max_arguments_bytes"`
	// Maximum size of one call written as text, marks included. With `none`, `max_tool_args_bytes` plus 4 KiB bounds the call, and a payload on
	// harmony's channel `tool` has at most 8 KiB.
	MaxPayloadBytes int `key:"max_payload_bytes" default:"none" is:"size" off:"none" range:"1.." narrow:"request"` // the largest number: none
	// Maximum size of the output of one call.
	MaxOutputBytes int `key:"max_tool_output_bytes" default:"64KiB" is:"size" range:"1.." narrow:"request" guest:"1MiB" also:"max_output_bytes"`
	// Maximum nesting of arguments.
	MaxJSONDepth int `key:"max_json_depth" default:"64" range:"1..1000"`
	// Maximum members of one object in arguments.
	MaxJSONKeys int `key:"max_json_keys" default:"10000" range:"1.."`
	// Maximum tool definitions sent.
	MaxTools int `key:"max_tools" default:"128" range:"1.." narrow:"request"`
	// Maximum size of the tool definitions sent.
	MaxToolsBytes int `key:"max_tools_bytes" default:"200000" is:"size" range:"1.." narrow:"request"`
	// Maximum time of one call; a tool may have its own.
	ToolTimeout time.Duration `key:"tool_timeout" default:"30s" range:"1ns.." narrow:"request"`
	// Maximum time of one run, or `none`.
	RunTimeout time.Duration `key:"run_timeout" default:"15m" off:"none" narrow:"request keys"` // negative: none
	// Time in which a person may approve a call.
	ApprovalTTL time.Duration `key:"approval_ttl" default:"1h" range:"1ns.." narrow:"request" also:"approval_timeout"`
	// Maximum tokens of one run, or `none`.
	MaxTokensTotal int64 `key:"max_tokens_total" default:"none" off:"none" narrow:"request keys agents" also:"max_tokens"` // the largest number: none
	// Maximum cost of one run in US dollars, by `models.NAME.price`, else as model servers report it; or `none`.
	MaxCost float64 `key:"max_cost" default:"none" is:"dollars" narrow:"request keys agents" also:"max_cost_usd"` // 0: none
}

// WithDefaults returns l with the default in place of each zero field.
func (l Limits) WithDefaults() Limits {
	setting.Fill(&l)
	return l
}

// Narrow returns l, with defaults in place of its zero fields, in which each field is lowered to that of by if by is stricter. A field of
// by that is 0 has no effect, and neither has a negative one, except for MaxDepth. above is the key of the first field in which by is less
// strict than l, such as "max_iterations"; "": by has no such field.
func (l Limits) Narrow(by Limits) (out Limits, above string) {
	out = l.WithDefaults()
	if by == (Limits{}) {
		return out, ""
	}
	narrowed := out // allocated only here
	above = setting.Narrow(&narrowed, new(by))
	return narrowed, above
}

// Reason says why a run ended or was parked. A parked run has stopped until a decision or a result of its caller is stored; it can then be
// resumed, also by another process. A released reason never changes its meaning.
type Reason string

// The reasons for which a run ends or is parked.
const (
	ReasonAnswered            Reason = "answered"              // the model gave an answer
	ReasonClientToolCalls     Reason = "client_tool_calls"     // the caller must execute calls of its own tools and start a new run
	ReasonAwaitingApproval    Reason = "awaiting_approval"     // parked until calls are approved or denied
	ReasonAwaitingToolResults Reason = "awaiting_tool_results" // parked until the caller sends the results of its own tools
	ReasonMaxIterations       Reason = "max_iterations"        // Limits.MaxIterations was reached
	ReasonMaxToolCalls        Reason = "max_total_tool_calls"  // Limits.MaxToolCalls was reached
	ReasonToolLoop            Reason = "tool_loop"             // Limits.MaxRepeatedCalls or MaxUnknownTools was reached
	ReasonRunTimeout          Reason = "run_timeout"           // Limits.RunTimeout was reached
	ReasonBudgetExceeded      Reason = "budget_exceeded"       // Limits.MaxTokensTotal or MaxCost was reached, or Policy.Step did not allow a model call
	ReasonBudgetExhausted     Reason = "budget_exhausted"      // the budget of the API key or of its group does not allow another model call
	ReasonNoToolCalls         Reason = "no_tool_calls"         // ModeEnforced: the model called no tool
	ReasonInvalidAnswer       Reason = "invalid_answer"        // the answer does not match the requested JSON Schema
	ReasonEmptyAnswer         Reason = "empty_answer"          // the answer is blank
	ReasonToolError           Reason = "tool_error"            // ModeEnforced: a tool failed, see FailurePolicy
	ReasonUnknownTool         Reason = "unknown_tool"          // Settings.StrictUnknownTool: the model called a tool that it was not offered
	ReasonContentFilter       Reason = "content_filter"        // the model server withheld the answer
	ReasonLength              Reason = "length"                // the answer was cut off by the limit on output tokens
	ReasonUpstreamError       Reason = "upstream_error"        // the model server failed
	ReasonGuestFault          Reason = "guest_fault"           // a WebAssembly tool requested the end of the run
	ReasonCancelled           Reason = "cancelled"             // the caller cancelled the run or its context
	ReasonInterrupted         Reason = "interrupted"           // the process stopped
	ReasonInternal            Reason = "internal"              // the input is not valid, or a fault of this module, of a sink or of a store
)

// Status returns the group of reasons to which r belongs: "completed", "parked", "limited", "cancelled" or "failed". For unknown reasons it
// returns "failed".
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

// Blank is the likely cause of a blank answer; "": the answer is not blank, or the run failed.
type Blank string

// The causes of a blank answer. If several apply, the first of them is reported.
const (
	BlankCallsIgnored  Blank = "calls_ignored"  // the model called tools where calls have no effect
	BlankLength        Blank = "length"         // the limit on output tokens was reached before the answer began
	BlankReasoning     Blank = "reasoning_only" // the model wrote reasoning and ended
	BlankOutputDropped Blank = "output_dropped" // output tokens were counted and none was sent: the server discarded them, as Ollama does with calls that it cannot parse
	BlankEmpty         Blank = "empty"          // the model ended at once
)
