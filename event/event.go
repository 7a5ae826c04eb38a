package event

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lathe-run/lathe"
)

// An Event is one step of a run. Package loop sets Turn and Data. Package engine sets the other fields, stores the event and publishes it
// to the sinks.
//
// A stored event has an ID above 0. An event that is published but not stored has ID 0: each event of a type for which [IsDelta] is true,
// and the last event of a run whose store has failed, which also has N 0.
type Event struct {
	ID int64 // number of the event in the run, from 1 without gaps; 0: it is not stored
	// After and N are set if ID is 0. After is the ID of the last stored event before this one; N is the number of this event within its
	// model call, from 1.
	After, N  int64
	Time      time.Time
	RunID     string
	RequestID string
	SessionID string // "": the run has no session
	Turn      int    // number of the model call, from 1; 0: the event is before the first one
	// Removed is the number of bytes of content that a store removed from the event after the end of the run, as the
	// run's retention settings require.
	Removed int
	Data    Data
}

// Data is what an [Event] reports: a pointer to one of the event types of this package. No other type implements it.
//
// Fields with the struct tag json:"-" contain content (the text of arguments, outputs and messages), the owner and labels of the run, or
// values for the same process. Only the store and the owner of the run may receive them. No other field contains content. A field named
// Tool or ToolName contains the name of a registered tool, or "unknown", whatever the model wrote.
//
// A receiver may retain Data, but must not change it.
//
//sumtype:decl
type Data interface {
	// EventType returns the name of the type, such as "RunStarted".
	EventType() string
	content() any
}

// A Sink receives the events of runs, and those of one run in order. Emit is called by one goroutine at a time for one run, and
// concurrently for several runs. It must not block, because the run waits for it. It may retain e, but must not change e.Data. ctx is the
// context of the run: [RunOwnerFrom] returns its owner.
type Sink interface {
	Emit(ctx context.Context, e Event)
}

// RunStarted is the first event of each run. Model and Provider are those of [lathe.ModelInfo].
type RunStarted struct {
	Model         string              `json:"model"`
	Provider      string              `json:"provider"`
	Dialect       string              `json:"dialect"` // format in which the model writes calls as text, or "native"
	ToolUseMode   lathe.ToolUseMode   `json:"tool_use_mode"`
	FailurePolicy lathe.FailurePolicy `json:"tool_failure_policy"`
	Tools         ToolsDigest         `json:"tools"`
	Limits        LimitsView          `json:"limits"`
	// ParentRunID and ParentToolCallID name the tool call that started the run; "": no call did.
	ParentRunID      string `json:"parent_run_id,omitempty"`
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// Continues is the id of the earlier run that this run continues, and TakenOver the number of messages with its calls and results: they
	// are the last ones of Messages. "" and 0: the run continues none.
	Continues string `json:"continues,omitempty"`
	TakenOver int    `json:"taken_over,omitempty"`
	// Replays is the id of the run whose conversation and tool results this run repeats with a model of its own; "": none.
	Replays string `json:"replays,omitempty"`
	// Executor names the engine that executes the run step by step, such as temporal; "": a process that uses the store executes it.
	Executor string          `json:"executor,omitempty"`
	Messages []lathe.Message `json:"-"` // the messages that the run starts with
	// Principal is the owner of the run, Profile and Labels are those of [lathe.RunInfo], and Target is the name of the run's
	// loop.
	Principal string            `json:"-"`
	Profile   string            `json:"-"`
	Labels    map[string]string `json:"-"`
	Target    string            `json:"-"`
	// Input contains what the loop needs besides Messages to resume the run; nil: the run cannot be resumed. Only package loop reads its
	// format.
	Input json.RawMessage `json:"-"`
	// Retention contains the settings for the content of the run that a store retains after the run has ended; nil: all content.
	Retention *RunRetention `json:"retention,omitempty"`
}

// RunRetention records the retention settings with which a run was started: those of loop.Retention.
type RunRetention struct {
	Mode           string `json:"mode"`                  // a loop.RetentionMode
	StoreRaw       bool   `json:"store_raw_tool_output"` // tool results are retained unchanged
	MaxOutputBytes int    `json:"max_output_bytes"`      // maximum bytes of a retained tool result, if StoreRaw is false
	// Applied says that the store has removed the content that these settings do not retain.
	Applied bool `json:"applied"`
}

// ToolsDigest contains the number and a hash of the tools that the model of a run is offered.
type ToolsDigest struct {
	Count int    `json:"count"`
	Hash  string `json:"hash"` // SHA-256, in hex, of the definitions in canonical form, sorted by name
	// Withheld are the registered tools that the model is not offered, sorted by name: at most the first 50. WithheldCount is the number of
	// all of them.
	Withheld      []WithheldTool `json:"withheld,omitempty"`
	WithheldCount int            `json:"withheld_count,omitempty"`
	// Deferred is the number of tools that the model can search for and whose definitions are not sent. They are not included in Count.
	Deferred int `json:"deferred,omitempty"`
}

// A WithheldTool is a registered tool that a run's model is not offered.
type WithheldTool struct {
	Tool   string         `json:"tool"`
	Reason WithheldReason `json:"reason"`
	Rule   string         `json:"rule,omitempty"` // the policy's rule; "": the policy did not decide
}

// Explain returns one sentence, without a final period, that says why the tool is withheld and how to change that.
func (w *WithheldTool) Explain() string {
	switch w.Reason {
	case WithheldPolicy:
		if w.Rule == "no_policy" {
			return w.Tool + " is withheld since the runner has no policy, which denies every call: set tool.Options.Policy, for example to policy.Default()"
		}
		return fmt.Sprintf("%s is withheld since the policy denies every call of it (rule %q): allow it in the policy", w.Tool, w.Rule)
	case WithheldApproval:
		return w.Tool + " is withheld since the policy requires an approval of its calls, and there is no approver: set tool.Options.Approver, or allow it in the policy"
	case WithheldUndeclared:
		return w.Tool + " is withheld since it declares no effect and counts as one that writes, of which the policy requires an approval, and there is no approver: declare its effect (tool.FuncOptions.Effect), set tool.Options.Approver, or allow it in the policy"
	case WithheldDepth:
		return w.Tool + " is withheld since it starts runs, and the run may start none: raise the limit max_depth"
	case WithheldMode:
		return w.Tool + " is withheld since the run uses no tools: its tool_use_mode is disabled"
	default:
		return fmt.Sprintf("%s is withheld: %s", w.Tool, w.Reason)
	}
}

// A WithheldReason says why a registered tool is not offered.
type WithheldReason string

// The reasons why a tool is not offered.
const (
	WithheldPolicy     WithheldReason = "policy"            // the policy denies every call
	WithheldApproval   WithheldReason = "needs_approval"    // the policy requires an approval, and there is no approver
	WithheldUndeclared WithheldReason = "undeclared_effect" // the same, because the tool declares no effect and so counts as one that writes
	WithheldDepth      WithheldReason = "max_depth"         // the tool starts runs, and limit max_depth allows none here
	WithheldMode       WithheldReason = "tool_use_mode"     // the run's tool_use_mode is disabled
)

// LimitsView is the part of [lathe.Limits] that RunStarted records, with the defaults in place of zero values.
type LimitsView struct {
	MaxIterations    int   `json:"max_iterations"`
	MaxToolCalls     int   `json:"max_total_tool_calls"`
	MaxToolArgsBytes int   `json:"max_tool_args_bytes"`
	MaxOutputBytes   int   `json:"max_tool_output_bytes"`
	RunTimeoutMS     int64 `json:"run_timeout_ms"` // in milliseconds; 0: no limit
}

// ModelCallStarted says that an attempt of a model call begins. A ModelCallFinished follows it. Provider and Model are those of
// [lathe.ModelInfo].
type ModelCallStarted struct {
	Attempt    int    `json:"attempt"` // number of the attempt within the turn, from 1
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	Agent      string `json:"agent,omitempty"` // name of the agent that makes the call; "": the run has only one
	PromptHash string `json:"prompt_hash"`     // SHA-256, in hex, of the model, roles, texts, temperature and token limit
	// PromptHashV2 is a hash like PromptHash that also covers tools, tool choice, calls, call ids and all sampling options.
	PromptHashV2 string `json:"prompt_hash_v2"`
	Messages     int    `json:"messages"` // number of messages that are sent
	Tools        int    `json:"tools"`    // number of tool definitions that are sent
	// Asked is the text of the last message that is sent, if the loop itself has added this message, such as a request for a final answer;
	// "": the loop has not added it, or an earlier event contains its text.
	Asked string `json:"-"`
	// Request is what is sent to the server, for sinks in the same process, which must not change it. It is not part of the JSON form.
	Request *ModelRequest `json:"-"`
}

// A ModelRequest is what an attempt of a model call sends, and the server to which it is sent.
type ModelRequest struct {
	Server   string     // host and port, as in [lathe.ModelInfo]
	Wire     lathe.Wire // as in [lathe.ModelInfo]
	Messages []lathe.Message
	Tools    []*lathe.ToolSpec
}

// TextDelta is a piece of a model's answer, while it is streamed.
type TextDelta struct {
	Bytes int    `json:"bytes"` // length of Text
	Text  string `json:"-"`
	// Delta, for sinks in the same process, is set if the piece is not plain text. It is a refusal, whose text is also in Text, or a
	// [lathe.DeltaPart], [lathe.DeltaTextEnd] or [lathe.DeltaReasoningData], with which Text is empty.
	Delta *lathe.Delta `json:"-"`
}

// ReasoningDelta is a piece of the reasoning of a model, while it is streamed.
type ReasoningDelta struct {
	Bytes int    `json:"bytes"` // length of Text
	Text  string `json:"-"`
}

// CommentaryDelta is a piece of the text that a model writes between calls, while it is streamed.
type CommentaryDelta struct {
	Bytes int    `json:"bytes"` // length of Text
	Text  string `json:"-"`
}

// ToolCallDelta is a piece of the argument text of a call, while it is streamed. Tool is the name of a registered tool, or "unknown".
type ToolCallDelta struct {
	Index      int    `json:"index"`                  // number of the call within the turn, from 0
	ToolCallID string `json:"tool_call_id,omitempty"` // "": not known yet
	Tool       string `json:"tool,omitempty"`
	Bytes      int    `json:"bytes"` // length of Text
	Text       string `json:"-"`
}

// ToolCallProgress reports the progress of a tool call that is being executed. A call has at most one such event every 100 ms. It is not
// stored. Done and Total are finite numbers in a unit that the tool chooses. Message is a text of the tool, at most 500 bytes.
type ToolCallProgress struct {
	ToolCallID string  `json:"tool_call_id"`
	Tool       string  `json:"tool"`
	Done       float64 `json:"done"`           // of Total
	Total      float64 `json:"total,omitzero"` // 0: not known
	Message    string  `json:"-"`
}

// ModelCallFinished says that an attempt of a model call has ended. LatencyMS and FirstTokenMS count from the start of the attempt, after
// the pause before it.
//
// The usage of a run is the sum of Usage over these events and of ChildUsage over its [ToolCallExecuted] events. The cost of a run is the
// sum of [ModelCallFinished.Dollars] and ChildCost over the same events.
type ModelCallFinished struct {
	Attempt           int                `json:"attempt"` // as in ModelCallStarted
	Provider          string             `json:"provider"`
	Model             string             `json:"model"`                // the model that answered, as its server names it, or as configured
	Status            string             `json:"status"`               // "success" or "error"
	ErrorCode         string             `json:"error_code,omitempty"` // of a failed attempt: a [lathe.UpstreamKind], else a [lathe.Code]
	FinishReason      lathe.FinishReason `json:"finish_reason"`        // "": the attempt failed
	Usage             lathe.Usage        `json:"usage"`
	LatencyMS         int64              `json:"latency_ms"`                   // milliseconds until the end
	FirstTokenMS      int64              `json:"first_token_ms"`               // milliseconds until the first delta; 0: no delta arrived
	ToolCalls         int                `json:"tool_calls"`                   // number of calls in Message
	IgnoredToolCalls  int                `json:"ignored_tool_calls,omitempty"` // number of calls that were removed because none were allowed
	UpstreamRequestID string             `json:"upstream_request_id"`          // the server's id of the request, at most 128 bytes of printable ASCII
	ResponseID        string             `json:"response_id,omitempty"`        // the server's id of the answer, likewise
	ProviderCost      *float64           `json:"provider_cost,omitempty"`      // in US dollars, as the server reports it; nil: it does not
	Cost              *float64           `json:"cost,omitempty"`               // in US dollars, by the configured price; nil: the model has none
	Faults            []lathe.Fault      `json:"faults,omitempty"`             // faults of the answer that were tolerated
	Dropped           []string           `json:"dropped,omitempty"`            // members of the request that the model's wire cannot express
	// UpstreamStatus is the HTTP status, and ProviderCode the server's error code, of a failed attempt: see [lathe.UpstreamError].
	UpstreamStatus int            `json:"upstream_status,omitempty"`
	ProviderCode   string         `json:"provider_code,omitempty"` // at most 64 bytes of [A-Za-z0-9_.-]
	Message        *lathe.Message `json:"-"`                       // of the model; nil: the attempt failed, or the message has no parts
	// ErrorMessage is [lathe.UpstreamError].Detail of a failed attempt, at most 500 bytes.
	ErrorMessage string `json:"-"`
}

// Dollars returns the cost of the attempt in US dollars: Cost or, if the model has no price, ProviderCost. It returns nil if the cost is
// not known.
func (e *ModelCallFinished) Dollars() *float64 {
	if e.Cost != nil {
		return e.Cost
	}
	return e.ProviderCost
}

// ToolCallProposed says that the model wrote a call that could be parsed. A ToolCallPlanned follows.
type ToolCallProposed struct {
	ToolCallID       string `json:"tool_call_id"`
	ToolName         string `json:"tool_name"`
	Seq              int    `json:"seq"`                 // number of the call within the run, from 0
	Dialect          string `json:"dialect"`             // dialect in which the model wrote the call as text, or "native"
	DeprecatedSyntax bool   `json:"deprecated_syntax"`   // the call is in a deprecated syntax of the dialect
	Recovered        bool   `json:"recovered,omitempty"` // as [lathe.ToolCall].Recovered
	Client           bool   `json:"client,omitempty"`    // the caller of the run declared the tool
	ArgsBytes        int    `json:"args_bytes"`          // length of RawArgs
	ArgsPreviewHash  string `json:"args_preview_hash"`   // 32 hex digits; equal arguments have equal hashes
	RawName          string `json:"-"`                   // the name as the model wrote it
	RawArgs          string `json:"-"`                   // the argument text as the model wrote it
}

// ToolCallParseError says that a call written as text could not be parsed.
type ToolCallParseError struct {
	Dialect      string     `json:"dialect"`
	Error        lathe.Code `json:"error"`         // such as [lathe.CodePayloadParseError]
	ExcerptBytes int        `json:"excerpt_bytes"` // length of the whole call
	RawExcerpt   string     `json:"-"`             // the first 200 bytes of the call
}

// ToolCallPlanned says that a call was assigned a number in the run and will get a result: exactly one ToolCallResult follows, either in
// this process or in one that resumes the run.
type ToolCallPlanned struct {
	ToolCallID        string `json:"tool_call_id"`
	Tool              string `json:"tool"`
	Seq               int    `json:"seq"`                 // number of the call within the run, from 0
	ArgsPreviewHash   string `json:"args_preview_hash"`   // as in ToolCallProposed
	ArgsSchemaVersion string `json:"args_schema_version"` // [lathe.ToolSpec].SchemaVersion
}

// ApprovalRequested says that a call requires an approval and waits for the decision of an approver.
type ApprovalRequested struct {
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Seq        int             `json:"seq"`            // of the call
	ArgsDigest string          `json:"args_digest"`    // [lathe.ApprovalRequest].Digest
	Rule       string          `json:"rule,omitempty"` // the policy rule that requires the approval
	ExpiresAt  time.Time       `json:"expires_at"`
	Arguments  json.RawMessage `json:"-"`
}

// ApprovalResolved says how a requested approval ended.
type ApprovalResolved struct {
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Seq        int             `json:"seq"`         // of the call
	Decision   string          `json:"decision"`    // "approved", "edited", "answered" (by the approver, in place of the tool), "denied" or "expired"
	By         string          `json:"by"`          // the approver; "": the request expired or was cancelled
	ReasonCode string          `json:"reason_code"` // as [lathe.Approval].ReasonCode
	Arguments  json.RawMessage `json:"-"`           // the edited arguments; nil unless Decision is "edited"
	// InRequest says that the approver decided in an API request whose response continues with the run: see [lathe.Approval].InRequest.
	InRequest bool `json:"in_request,omitempty"`
}

// ToolCallExecuted says that a tool was called, or that the cache answered in its place. For a call that was refused there is no such
// event.
type ToolCallExecuted struct {
	ToolCallID      string `json:"tool_call_id"`
	ToolName        string `json:"tool_name"`
	Seq             int    `json:"seq"`               // of the call
	Success         bool   `json:"success"`           // the result is no error
	LatencyMS       int64  `json:"latency_ms"`        // milliseconds from the start of the first attempt to the end of the last; 0: no attempt
	OutputTruncated bool   `json:"output_truncated"`  // the output exceeded Limits.MaxOutputBytes
	OutputSizeBytes int    `json:"output_size_bytes"` // before it was truncated
	Cached          bool   `json:"cached"`            // the cache answered
	Attempts        int    `json:"attempts"`          // number of attempts, with repetitions
	RC              *int   `json:"rc,omitempty"`      // return code of a WebAssembly tool; nil: 0, or another kind of tool
	// ChildRunID is the id of the last run that the call started; "": it started none. ChildUsage and ChildCost are the sums over all runs
	// that the attempts of the call started. They count against the limits of this run, too.
	ChildRunID string       `json:"child_run_id,omitempty"`
	ChildUsage *lathe.Usage `json:"child_usage,omitempty"`
	ChildCost  float64      `json:"child_cost,omitempty"` // in US dollars, as far as it is known
}

// ToolsLoaded says that the model receives the definitions of further tools from the next model call on, because a search found them or
// because the model called one of them. The event precedes the ToolCallResult of that call. Only runs with deferred tools have such events.
type ToolsLoaded struct {
	ToolCallID string   `json:"tool_call_id"`
	Seq        int      `json:"seq"`   // of the call
	Tools      []string `json:"tools"` // registered names, in the order in which their definitions are appended
	Hash       string   `json:"hash"`  // as [ToolsDigest].Hash, of all definitions that are sent from then on
}

// A Repair names what was repaired in the arguments of a call: one of the constants, or several joined with commas; "": nothing.
// [ToolCallProposed].RawArgs contains the text that the model wrote.
type Repair string

// The repairs of the arguments of a call.
const (
	RepairCodeFence  Repair = "code_fence"        // a Markdown code fence around the object was removed
	RepairJSONString Repair = "json_string"       // the object was written as a JSON string
	RepairBOM        Repair = "bom"               // a byte order mark in front of the object was removed
	RepairCharacter  Repair = "control_character" // line ends and tabs in strings were escaped
	RepairComma      Repair = "trailing_comma"    // a comma before a closing bracket was removed
)

// ToolCallResult is the end of a call: Result and Blobs are what the model receives. Exactly one follows each ToolCallPlanned.
type ToolCallResult struct {
	ToolCallID     string       `json:"tool_call_id"`
	Tool           string       `json:"tool"`
	Seq            int          `json:"seq"`                       // of the call
	Status         string       `json:"status"`                    // "ok" or "error"
	ErrorType      lathe.Code   `json:"error_type,omitempty"`      // "": Status is "ok"
	Message        string       `json:"message,omitempty"`         // the fixed text of ErrorType
	Cause          string       `json:"cause,omitempty"`           // why it failed, for operators; at most 200 bytes, no argument and no output
	LatencyMS      int64        `json:"latency_ms"`                // milliseconds from the start of the first attempt to the end of the last; 0: no attempt
	Client         bool         `json:"client,omitempty"`          // the caller of the run declared the tool
	Repaired       bool         `json:"repaired,omitempty"`        // the arguments were repaired
	Repair         Repair       `json:"repair,omitempty"`          // what was repaired; "" in logs of earlier versions
	PolicyDecision string       `json:"policy_decision,omitempty"` // "allow", "ask" or "deny"; "": the policy was not consulted
	PolicyRule     string       `json:"policy_rule,omitempty"`     // the rule that decided
	Limit          string       `json:"limit,omitempty"`           // the limit that was reached, by its key, such as "tool_timeout"
	Result         string       `json:"-"`                         // the content for the model
	Blobs          []lathe.Blob `json:"-"`                         // images and other content of the result that is not text
}

// RunPaused says that a run waits for external input, such as an approval. If the run can be resumed, the next event is RunResumed;
// otherwise RunFinished follows at once.
type RunPaused struct {
	Reason  lathe.Reason `json:"reason"`
	Pending []string     `json:"pending"` // the ids of the calls that wait, in call order
	// Result is set if no RunFinished follows. It is not part of the JSON form.
	Result *Result `json:"-"`
}

// RunResumed says that a run continues after it was parked or after its process has ended.
type RunResumed struct {
	Reason  lathe.Reason `json:"reason"`  // the reason of the RunPaused, or [lathe.ReasonInterrupted] if the process has ended
	Pending []string     `json:"pending"` // the ids of the calls without a result
}

// RunFinished is the last event of a run. Each run has exactly one, unless it is parked. Answer is that of [Result].
type RunFinished struct {
	Reason    lathe.Reason `json:"reason"`
	Status    string       `json:"status"`               // [lathe.Reason.Status]
	Turns     int          `json:"turns"`                // number of model calls
	ToolCalls int          `json:"tool_calls"`           // number of planned calls
	Usage     lathe.Usage  `json:"usage"`                // of the model calls, and of runs that tool calls started
	LatencyMS int64        `json:"latency_ms"`           // milliseconds since the run was started or resumed
	ErrorCode string       `json:"error_code,omitempty"` // "": the run did not fail
	Limit     string       `json:"limit,omitempty"`      // the limit that ended the run, by its key, such as "max_iterations"
	Blank     lathe.Blank  `json:"blank,omitempty"`      // why the answer is blank; "": it is not, or the run failed
	Answer    string       `json:"-"`
	Result    *Result      `json:"-"` // for the caller in the same process; not part of the JSON form
}

// EventType implements [Data], here and for the types below. It returns "RunStarted".
func (*RunStarted) EventType() string         { return "RunStarted" }
func (*ModelCallStarted) EventType() string   { return "ModelCallStarted" }
func (*TextDelta) EventType() string          { return "TextDelta" }
func (*ReasoningDelta) EventType() string     { return "ReasoningDelta" }
func (*CommentaryDelta) EventType() string    { return "CommentaryDelta" }
func (*ToolCallDelta) EventType() string      { return "ToolCallDelta" }
func (*ToolCallProgress) EventType() string   { return "ToolCallProgress" }
func (*ModelCallFinished) EventType() string  { return "ModelCallFinished" }
func (*ToolCallProposed) EventType() string   { return "ToolCallProposed" }
func (*ToolCallParseError) EventType() string { return "ToolCallParseError" }
func (*ToolCallPlanned) EventType() string    { return "ToolCallPlanned" }
func (*ApprovalRequested) EventType() string  { return "ApprovalRequested" }
func (*ApprovalResolved) EventType() string   { return "ApprovalResolved" }
func (*ToolCallExecuted) EventType() string   { return "ToolCallExecuted" }
func (*ToolsLoaded) EventType() string        { return "ToolsLoaded" }
func (*ToolCallResult) EventType() string     { return "ToolCallResult" }
func (*RunPaused) EventType() string          { return "RunPaused" }
func (*RunResumed) EventType() string         { return "RunResumed" }
func (*RunFinished) EventType() string        { return "RunFinished" }

// IsDelta reports whether d is of a type that is published and not stored: TextDelta, ReasoningDelta, CommentaryDelta, ToolCallDelta or
// ToolCallProgress.
func IsDelta(d Data) bool {
	switch d.(type) {
	case *TextDelta, *ReasoningDelta, *CommentaryDelta, *ToolCallDelta, *ToolCallProgress:
		return true
	default:
		return false
	}
}

// Content is the part of an event that goes only to the store and to the owner of the run. The
// structs hold pointers into the event, so that one form serves to write and to read.

func (e *RunStarted) content() any {
	labels := (*optionalLabels)(&e.Labels)
	return &struct {
		Messages  *[]lathe.Message `json:"messages"`
		Principal *optionalText    `json:"principal,omitzero"`
		Profile   *optionalText    `json:"profile,omitzero"`
		Labels    *optionalLabels  `json:"labels,omitzero"`
		Target    *optionalText    `json:"target,omitzero"`
		Input     *optionalRaw     `json:"input,omitzero"`
	}{&e.Messages, (*optionalText)(&e.Principal), (*optionalText)(&e.Profile), labels, (*optionalText)(&e.Target), (*optionalRaw)(&e.Input)}
}

func (e *ModelCallStarted) content() any {
	if e.Asked == "" {
		return nil
	}
	return &struct {
		Asked *optionalText `json:"asked,omitzero"`
	}{(*optionalText)(&e.Asked)}
}

func (e *TextDelta) content() any       { return textContent(&e.Text) }
func (e *ReasoningDelta) content() any  { return textContent(&e.Text) }
func (e *CommentaryDelta) content() any { return textContent(&e.Text) }
func (e *ToolCallDelta) content() any   { return textContent(&e.Text) }

func (e *ToolCallProgress) content() any {
	return &struct {
		Text *optionalText `json:"text,omitzero"`
	}{(*optionalText)(&e.Message)}
}

func textContent(s *string) any {
	return &struct {
		Text *string `json:"text"`
	}{s}
}

func (e *ModelCallFinished) content() any {
	return &struct {
		Message      **lathe.Message `json:"message"`
		ErrorMessage *optionalText   `json:"error_message,omitzero"`
	}{&e.Message, (*optionalText)(&e.ErrorMessage)}
}

func (e *ToolCallProposed) content() any {
	return &struct {
		ToolName *string `json:"tool_name"`
		RawArgs  *string `json:"raw_args"`
	}{&e.RawName, &e.RawArgs}
}

func (e *ToolCallParseError) content() any {
	return &struct {
		RawExcerpt *string `json:"raw_excerpt"`
	}{&e.RawExcerpt}
}

func (e *ToolCallPlanned) content() any { return nil }

func (e *ApprovalRequested) content() any {
	return &struct {
		Arguments *json.RawMessage `json:"arguments"`
	}{&e.Arguments}
}

func (e *ApprovalResolved) content() any {
	if e.Arguments == nil {
		return nil
	}
	return &struct {
		Arguments *json.RawMessage `json:"arguments"`
	}{&e.Arguments}
}

func (e *ToolCallExecuted) content() any { return nil }

func (e *ToolCallResult) content() any {
	return &struct {
		Result *string   `json:"result"`
		Blobs  *blobList `json:"blobs,omitzero"`
	}{&e.Result, (*blobList)(&e.Blobs)}
}

func (e *ToolsLoaded) content() any { return nil }
func (e *RunPaused) content() any   { return nil }
func (e *RunResumed) content() any  { return nil }

func (e *RunFinished) content() any {
	return &struct {
		Answer *string `json:"answer"`
	}{&e.Answer}
}
