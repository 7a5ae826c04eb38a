package event

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lathe-run/lathe"
)

// An Event records one step of a run. Loop fills Turn and Data; the engine stamps the rest before it
// stores the event and publishes it to the sinks.
//
// Stored events have an ID, dense from 1 within the run. The four delta events are live only:
// their ID is 0, After is the ID of the last stored event, and N numbers them within the model call from 1.
// The end of a run whose store failed is live only, too, with N 0.
type Event struct {
	ID        int64
	After, N  int64
	Time      time.Time
	RunID     string
	RequestID string
	SessionID string
	Turn      int // 0 before the first turn
	// Removed is the number of bytes of content that a store removed from the event after the end of the run, under the
	// run's retention settings.
	Removed int
	Data    Data
}

// Data is the typed content of an [Event]: one of the event types of this file, always as a pointer.
// The set is closed. Fields with the tag json:"-" are content: argument, output and message text,
// which goes only to the store and to the owner of the run. Everything else is free of such text.
//
// A receiver may retain Data, but must not change it.
//
//sumtype:decl
type Data interface {
	// EventType returns the type name of the contract.
	EventType() string
	content() any
}

// A Sink receives events in order. Emit must not block. It may retain e, but must not change its Data. Emit is called by one goroutine at
// a time for one run, and concurrently for several runs.
type Sink interface {
	Emit(ctx context.Context, e Event)
}

// RunStarted opens a run. It is always the first event.
type RunStarted struct {
	Model         string              `json:"model"`
	Provider      string              `json:"provider"`
	Dialect       string              `json:"dialect"`
	ToolUseMode   lathe.ToolUseMode   `json:"tool_use_mode"`
	FailurePolicy lathe.FailurePolicy `json:"tool_failure_policy"`
	Tools         ToolsDigest         `json:"tools"`
	Limits        LimitsView          `json:"limits"`
	// ParentRunID and ParentToolCallID name the tool call that started the run; "": no call did.
	ParentRunID      string `json:"parent_run_id,omitempty"`
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// Continues is the run whose executed calls and results this run took over: the last TakenOver of its
	// messages. "" and 0: none.
	Continues string `json:"continues,omitempty"`
	TakenOver int    `json:"taken_over,omitempty"`
	// Replays is the run whose conversation and tool results this run repeats with a model of its own; "": none.
	Replays string `json:"replays,omitempty"`
	// Executor names the engine that executes the run step by step, such as temporal; "": the processes that use the store do.
	Executor string          `json:"executor,omitempty"`
	Messages []lathe.Message `json:"-"`
	// Principal is the owner of the run, Profile and Labels are those of [lathe.RunInfo], and Target is the name of the run's
	// loop.
	Principal string            `json:"-"`
	Profile   string            `json:"-"`
	Labels    map[string]string `json:"-"`
	Target    string            `json:"-"`
	// Input holds what the loop needs besides Messages to resume the run; empty for a run that cannot be resumed. Its
	// format is private to package loop.
	Input json.RawMessage `json:"-"`
	// Retention says how much of the run's content a store keeps after the run has ended; nil: all of it.
	Retention *RunRetention `json:"retention,omitempty"`
}

// RunRetention holds the retention settings under which a run was started.
type RunRetention struct {
	Mode           string `json:"mode"` // of commentary
	StoreRaw       bool   `json:"store_raw_tool_output"`
	MaxOutputBytes int    `json:"max_output_bytes"`
	// Applied says that the content beyond these settings has been removed.
	Applied bool `json:"applied"`
}

// ToolsDigest counts and hashes the tools that a run may use.
type ToolsDigest struct {
	Count int    `json:"count"`
	Hash  string `json:"hash"` // hex SHA-256 of the definitions' canonical form, sorted by name
	// Withheld are tools that the run could have had and that its model is not offered, sorted by name: 50 at most, of
	// WithheldCount.
	Withheld      []WithheldTool `json:"withheld,omitempty"`
	WithheldCount int            `json:"withheld_count,omitempty"`
	// Deferred is the number of tools that the run's model can search for and whose definitions it is not sent; Count is
	// without them.
	Deferred int `json:"deferred,omitempty"`
}

// A WithheldTool is a registered tool that a run's model is not offered.
type WithheldTool struct {
	Tool   string         `json:"tool"`
	Reason WithheldReason `json:"reason"`
	Rule   string         `json:"rule,omitempty"` // the policy's rule, where the policy decided
}

// Explain returns a sentence that says why the tool is not offered and what changes that, without a final period.
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

// A WithheldReason is the reason for which a tool is not offered.
type WithheldReason string

// The reasons.
const (
	WithheldPolicy     WithheldReason = "policy"            // the policy denies every call
	WithheldApproval   WithheldReason = "needs_approval"    // the policy asks, and there is no approver
	WithheldUndeclared WithheldReason = "undeclared_effect" // the same, of a tool without a declared effect, which counts as one that writes
	WithheldDepth      WithheldReason = "max_depth"         // it starts runs, and the run may start none
	WithheldMode       WithheldReason = "tool_use_mode"     // the run uses no tools
)

// LimitsView is the part of [lathe.Limits] that RunStarted records.
type LimitsView struct {
	MaxIterations    int   `json:"max_iterations"`
	MaxToolCalls     int   `json:"max_total_tool_calls"`
	MaxToolArgsBytes int   `json:"max_tool_args_bytes"`
	MaxOutputBytes   int   `json:"max_tool_output_bytes"`
	RunTimeoutMS     int64 `json:"run_timeout_ms"`
}

// ModelCallStarted opens one attempt of a model call.
type ModelCallStarted struct {
	Attempt    int    `json:"attempt"` // from 1 within the turn
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	Agent      string `json:"agent,omitempty"` // name of the agent that makes the call, if the run has several
	PromptHash string `json:"prompt_hash"`     // phv1: model, roles, texts and sampling
	// PromptHashV2 also covers tools, tool choice, calls, call ids and the response format.
	PromptHashV2 string `json:"prompt_hash_v2"`
	Messages     int    `json:"messages"`
	Tools        int    `json:"tools"`
	// Asked is the text of the loop's own request for an answer, which the messages end with; "" if they do not, or an earlier attempt had it.
	Asked string `json:"-"`
	// Request is for sinks in the same process, which must not change it. It is not part of the JSON form.
	Request *ModelRequest `json:"-"`
}

// A ModelRequest holds what an attempt of a model call sends, and where to.
type ModelRequest struct {
	Server   string     // host and port, as in [lathe.ModelInfo]
	Wire     lathe.Wire // likewise
	Messages []lathe.Message
	Tools    []*lathe.ToolSpec
}

// TextDelta is a piece of a model's answer text as it comes.
type TextDelta struct {
	Bytes int    `json:"bytes"`
	Text  string `json:"-"`
	// Delta, for sinks in the same process, is the delta of an answer if it is none of plain text: a refusal, whose text is also
	// in Text, or a [lathe.DeltaPart], [lathe.DeltaTextEnd] or [lathe.DeltaReasoningData], whose text is not in Text.
	Delta *lathe.Delta `json:"-"`
}

// ReasoningDelta is a piece of a model's reasoning.
type ReasoningDelta struct {
	Bytes int    `json:"bytes"`
	Text  string `json:"-"`
}

// CommentaryDelta is a piece of what a model says between calls.
type CommentaryDelta struct {
	Bytes int    `json:"bytes"`
	Text  string `json:"-"`
}

// ToolCallDelta is a piece of a call's argument text. Tool is a registered name or "unknown".
type ToolCallDelta struct {
	Index      int    `json:"index"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	Tool       string `json:"tool,omitempty"`
	Bytes      int    `json:"bytes"`
	Text       string `json:"-"`
}

// ToolCallProgress is a report of a tool on a call that it executes: Done of Total, in a unit of the tool. A Total of 0 is unknown.
type ToolCallProgress struct {
	ToolCallID string  `json:"tool_call_id"`
	Tool       string  `json:"tool"`
	Done       float64 `json:"done"`
	Total      float64 `json:"total,omitzero"`
	Message    string  `json:"-"`
}

// ModelCallFinished closes one attempt of a model call. It is the record that summaries are made of.
type ModelCallFinished struct {
	Attempt           int                `json:"attempt"`
	Provider          string             `json:"provider"`
	Model             string             `json:"model"`
	Status            string             `json:"status"` // "success" or "error"
	ErrorCode         string             `json:"error_code,omitempty"`
	FinishReason      lathe.FinishReason `json:"finish_reason"`
	Usage             lathe.Usage        `json:"usage"`
	LatencyMS         int64              `json:"latency_ms"`
	FirstTokenMS      int64              `json:"first_token_ms"`
	ToolCalls         int                `json:"tool_calls"`
	IgnoredToolCalls  int                `json:"ignored_tool_calls,omitempty"`
	UpstreamRequestID string             `json:"upstream_request_id"`     // at most 128 bytes of printable ASCII
	ResponseID        string             `json:"response_id,omitempty"`   // of the server's answer, likewise
	ProviderCost      *float64           `json:"provider_cost,omitempty"` // in US dollars, where the server says it
	Cost              *float64           `json:"cost,omitempty"`          // in US dollars, by the price of the model
	Faults            []lathe.Fault      `json:"faults,omitempty"`
	Dropped           []string           `json:"dropped,omitempty"` // members of the request that the model's wire cannot express
	// UpstreamStatus and ProviderCode are the HTTP status and the server's code of a failed attempt, as in [lathe.UpstreamError].
	UpstreamStatus int            `json:"upstream_status,omitempty"`
	ProviderCode   string         `json:"provider_code,omitempty"` // at most 64 bytes of printable ASCII
	Message        *lathe.Message `json:"-"`
	// ErrorMessage is what the server said about a failed attempt, or the kind of a lost connection: UpstreamError.Detail.
	ErrorMessage string `json:"-"`
}

// Dollars returns what the attempt cost: Cost where the model has a price, else ProviderCost; nil: it is not known.
func (e *ModelCallFinished) Dollars() *float64 {
	if e.Cost != nil {
		return e.Cost
	}
	return e.ProviderCost
}

// ToolCallProposed says that the model asked for a call.
type ToolCallProposed struct {
	ToolCallID       string `json:"tool_call_id"`
	ToolName         string `json:"tool_name"` // a registered name or "unknown"
	Seq              int    `json:"seq"`
	Dialect          string `json:"dialect"`
	DeprecatedSyntax bool   `json:"deprecated_syntax"`
	Recovered        bool   `json:"recovered,omitempty"`
	Client           bool   `json:"client,omitempty"` // the caller declared the tool, for this run
	ArgsBytes        int    `json:"args_bytes"`
	ArgsPreviewHash  string `json:"args_preview_hash"`
	RawName          string `json:"-"`
	RawArgs          string `json:"-"`
}

// ToolCallParseError says that a call written as text could not be read.
type ToolCallParseError struct {
	Dialect      string     `json:"dialect"`
	Error        lathe.Code `json:"error"`
	ExcerptBytes int        `json:"excerpt_bytes"`
	RawExcerpt   string     `json:"-"` // at most 200 bytes
}

// ToolCallPlanned says that a call was accepted into the run. It comes before its ToolCallResult.
type ToolCallPlanned struct {
	ToolCallID        string `json:"tool_call_id"`
	Tool              string `json:"tool"`
	Seq               int    `json:"seq"`
	ArgsPreviewHash   string `json:"args_preview_hash"`
	ArgsSchemaVersion string `json:"args_schema_version"`
}

// ApprovalRequested says that a call waits for the decision of an approver.
type ApprovalRequested struct {
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Seq        int             `json:"seq"`
	ArgsDigest string          `json:"args_digest"`
	Rule       string          `json:"rule,omitempty"`
	ExpiresAt  time.Time       `json:"expires_at"`
	Arguments  json.RawMessage `json:"-"`
}

// ApprovalResolved holds the decision about a call.
type ApprovalResolved struct {
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Seq        int             `json:"seq"`
	Decision   string          `json:"decision"` // "approved", "edited", "answered" (in place of the tool), "denied", "expired"
	By         string          `json:"by"`
	ReasonCode string          `json:"reason_code"`
	Arguments  json.RawMessage `json:"-"` // the edited ones
	// InRequest is set if the client of the run decided in a request, which is answered with what the run does after the decision.
	InRequest bool `json:"in_request,omitempty"`
}

// ToolCallExecuted says that tool code ran, or that the cache answered in its place.
type ToolCallExecuted struct {
	ToolCallID      string `json:"tool_call_id"`
	ToolName        string `json:"tool_name"`
	Seq             int    `json:"seq"`
	Success         bool   `json:"success"`
	LatencyMS       int64  `json:"latency_ms"`
	OutputTruncated bool   `json:"output_truncated"`
	OutputSizeBytes int    `json:"output_size_bytes"`
	Cached          bool   `json:"cached"`
	Attempts        int    `json:"attempts"`
	RC              *int   `json:"rc,omitempty"`
	// ChildRunID is the run that the call started, "" where it started none. ChildUsage and ChildCost are what that run
	// spent on model calls; the run of the call counts them as its own.
	ChildRunID string       `json:"child_run_id,omitempty"`
	ChildUsage *lathe.Usage `json:"child_usage,omitempty"`
	ChildCost  float64      `json:"child_cost,omitempty"` // in US dollars, as far as servers report it
}

// ToolsLoaded says that the definitions of tools are sent to the model from the next model call on, because a search found
// them or because the model called one of them. It comes before the ToolCallResult of that call. Only a run that defers its
// tools has it.
type ToolsLoaded struct {
	ToolCallID string   `json:"tool_call_id"`
	Seq        int      `json:"seq"`   // of that call
	Tools      []string `json:"tools"` // registered names, in the order in which the definitions follow those that were sent
	Hash       string   `json:"hash"`  // of all definitions that are sent from then on, as [ToolsDigest] has it
}

// A Repair is the kind of a repair of a call's arguments, or several kinds, joined with commas. The text that the model wrote is in [ToolCallProposed].
type Repair string

// The repairs.
const (
	RepairCodeFence  Repair = "code_fence"        // a Markdown code fence around the object was removed
	RepairJSONString Repair = "json_string"       // the object was written as a JSON string
	RepairBOM        Repair = "bom"               // a byte order mark in front of the object was removed
	RepairCharacter  Repair = "control_character" // line ends and tabs in strings were escaped
	RepairComma      Repair = "trailing_comma"    // a comma before a closing bracket was removed
)

// ToolCallResult holds the answer of a call that the model will be sent. There is exactly one for each ToolCallPlanned.
type ToolCallResult struct {
	ToolCallID     string       `json:"tool_call_id"`
	Tool           string       `json:"tool"`
	Seq            int          `json:"seq"`
	Status         string       `json:"status"` // "ok" or "error"
	ErrorType      lathe.Code   `json:"error_type,omitempty"`
	Message        string       `json:"message,omitempty"` // the fixed text of the code
	Cause          string       `json:"cause,omitempty"`   // why it failed, for operators; at most 200 bytes, no argument and no output
	LatencyMS      int64        `json:"latency_ms"`
	Client         bool         `json:"client,omitempty"` // the caller declared the tool, for this run
	Repaired       bool         `json:"repaired,omitempty"`
	Repair         Repair       `json:"repair,omitempty"`          // what was repaired; empty in logs of earlier versions
	PolicyDecision string       `json:"policy_decision,omitempty"` // where policy was asked
	PolicyRule     string       `json:"policy_rule,omitempty"`
	Limit          string       `json:"limit,omitempty"` // the limit that was hit, by its config key
	Result         string       `json:"-"`
	Blobs          []lathe.Blob `json:"-"` // of the result
}

// RunPaused says that a run waits for something outside. Of a run that can be resumed it is the last
// event until a RunResumed.
type RunPaused struct {
	Reason  lathe.Reason `json:"reason"`
	Pending []string     `json:"pending"` // the ids of the calls that wait
	// Result is set where no RunFinished follows. It is not part of the JSON form.
	Result *Result `json:"-"`
}

// RunResumed says that a run is resumed that was parked, or whose process ended: the reason is
// `interrupted` then.
type RunResumed struct {
	Reason  lathe.Reason `json:"reason"`
	Pending []string     `json:"pending"`
}

// RunFinished ends a run. It is always the last event, and there is exactly one.
type RunFinished struct {
	Reason    lathe.Reason `json:"reason"`
	Status    string       `json:"status"`
	Turns     int          `json:"turns"`
	ToolCalls int          `json:"tool_calls"`
	Usage     lathe.Usage  `json:"usage"`
	LatencyMS int64        `json:"latency_ms"`
	ErrorCode string       `json:"error_code,omitempty"`
	Limit     string       `json:"limit,omitempty"` // the limit that ended the run, by its config key
	Blank     lathe.Blank  `json:"blank,omitempty"` // why the answer is blank, where the run itself did not fail
	Answer    string       `json:"-"`
	Result    *Result      `json:"-"` // for the caller in the same process; not part of the JSON form
}

// EventType returns the name of the contract, here and below.
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

// IsDelta reports whether d is one of the five live-only event types.
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
