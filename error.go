package lathe

import (
	"errors"
	"fmt"
	"time"
)

// A Code names the kind of an error, for programs that branch on it. A released code never changes its meaning. docs/errors.md lists all codes,
// each with what to do.
type Code string

// The codes of failed tool calls: a [ToolResult] with IsError set has one of them. Other errors may have them, too, such as CodeTimeout.
const (
	CodePayloadTooLarge   Code = "tool_payload_too_large"   // a call written as text exceeds MaxPayloadBytes, by default MaxToolArgsBytes + 4 KiB
	CodePayloadParseError Code = "tool_payload_parse_error" // a call that the model wrote as text cannot be parsed
	CodeInvalidJSON       Code = "invalid_json"             // the arguments are no JSON object, or exceed MaxJSONDepth or MaxJSONKeys
	CodeArgumentsTooLarge Code = "arguments_too_large"      // the argument text exceeds Limits.MaxToolArgsBytes
	CodeInvalidArguments  Code = "invalid_arguments"        // the arguments do not fit the tool's JSON Schema
	CodeUnknownTool       Code = "unknown_tool"             // the model was not offered a tool of this name
	CodePolicyDenied      Code = "policy_denied"            // the policy denied the call
	CodeApprovalDenied    Code = "approval_denied"          // the approver denied the call, or failed
	CodeApprovalExpired   Code = "approval_expired"         // the approver did not decide within Limits.ApprovalTTL
	CodeExecutionFailed   Code = "execution_failed"         // the tool returned an error or panicked
	CodeUnavailable       Code = "unavailable"              // the server, worker or store that is needed cannot be reached
	CodeTimeout           Code = "timeout"                  // the time limit of the tool or of the model call was exceeded
	CodeCancelled         Code = "cancelled"                // the run or its context was cancelled
	CodeInterrupted       Code = "interrupted"              // the process ended; whether a call took effect is unknown
	CodeRateLimited       Code = "rate_limited"             // the rate or concurrency limit of a tool or model server was exceeded
	CodeOutputTooLarge    Code = "tool_output_too_large"    // the output exceeds Limits.MaxOutputBytes
	CodeInvalidOutput     Code = "invalid_output"           // the output cannot be read, is not UTF-8, or does not fit the tool's output schema
	CodeRedactionFailed   Code = "redaction_failed"         // ToolSpec.Allowlist names no field of the output, or all its content had secrets
	CodeToolCallLimit     Code = "tool_call_limit"          // the run has made Limits.MaxToolCalls calls
	CodeMaxDepth          Code = "max_depth"                // the call would start a run deeper than Limits.MaxDepth
	CodeTooManyCalls      Code = "too_many_calls"           // the call is not the first of its turn, and Settings.ParallelToolCalls is false
	CodeIncompleteCall    Code = "incomplete_call"          // the model's output ended within the call
)

// The codes of errors that are not answers to a tool call.
const (
	CodeInvalidRequest   Code = "invalid_request"   // a request, or an argument of a function, is not valid
	CodeInvalidConfig    Code = "invalid_config"    // a configuration, tool definition or option is not valid
	CodeConflict         Code = "conflict"          // the run or session has changed since it was read, or another process owns it
	CodeNotFound         Code = "not_found"         // there is no such run, session, model or event
	CodeContentRemoved   Code = "content_removed"   // see [ErrContentRemoved]
	CodeUpstreamProtocol Code = "upstream_protocol" // the answer of a model server violates its protocol or exceeds a limit
	CodeUpstream         Code = "upstream_error"    // the model server refused the request or failed
	CodeInternal         Code = "internal"          // a fault of this module, of a sink or of a store
	CodeBudgetExhausted  Code = "budget_exhausted"  // the budget of an API key or of its group does not allow another model call
	CodePriceUnknown     Code = "price_unknown"     // the API key has a budget in US dollars, and the model has no price
	CodeTooManyTools     Code = "too_many_tools"    // the tool definitions exceed Limits.MaxTools or Limits.MaxToolsBytes
)

// An Error is an error with a code. Exported functions of this module return it if their documentation names a code; [CodeOf] finds it. The
// text of an Error contains no secrets, and no text of arguments, outputs or messages.
type Error struct {
	Code Code
	Op   string // the operation that failed, such as "provider: call openai"; may be empty
	Err  error  // the cause; may be nil
}

// Error returns "Op: Code: Err". It omits an empty Op and a nil Err.
func (e *Error) Error() string {
	text := string(e.Code)
	if e.Op != "" {
		text = e.Op + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Wrap returns an [Error] with the code c and the cause err, which may be nil. The result is never nil, so call Wrap only for a failure.
func (c Code) Wrap(op string, err error) *Error { return &Error{Code: c, Op: op, Err: err} }

// Errorf returns an [Error] with the code c and the cause fmt.Errorf(format, args...).
func (c Code) Errorf(op, format string, args ...any) *Error {
	return c.Wrap(op, fmt.Errorf(format, args...))
}

// CodeOf returns the code of the first [Error] in err's tree. It returns "" if err is nil, and [CodeInternal] if the tree has
// no [Error].
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// HTTPStatus returns the HTTP status of the response to a request that failed with this code, such as 404 for [CodeNotFound]. For "" and
// for codes without a status of their own it returns 500. Package server uses it unless the cause of the error suggests another status.
func (c Code) HTTPStatus() int {
	switch c {
	case CodeInvalidRequest, CodeInvalidArguments, CodeInvalidJSON, CodeTooManyTools, CodeArgumentsTooLarge, CodeMaxDepth:
		return 400
	case CodePolicyDenied, CodeApprovalDenied, CodePriceUnknown:
		return 403
	case CodeNotFound:
		return 404
	case CodeConflict, CodeCancelled, CodeApprovalExpired:
		return 409
	case CodeContentRemoved:
		return 410
	case CodeUnknownTool, Code(ReasonNoToolCalls), Code(ReasonToolError):
		return 422
	case CodeRateLimited, CodeBudgetExhausted:
		return 429
	case CodeUpstream, CodeUpstreamProtocol, Code(ReasonInvalidAnswer), Code(ReasonEmptyAnswer), Code(ReasonContentFilter):
		return 502
	case CodeUnavailable, CodeInterrupted:
		return 503
	case CodeTimeout:
		return 504
	}
	return 500
}

// UpstreamKind is the kind of a failure of a model server.
type UpstreamKind string

// The kinds of upstream failure.
const (
	UpstreamTimeout     UpstreamKind = "timeout"      // the connection, the answer or its next piece did not arrive in time, or status 408
	UpstreamRateLimited UpstreamKind = "rate_limited" // status 429
	Upstream4xx         UpstreamKind = "upstream_4xx" // another status from 400 to 499, or a 500 that is about the request
	Upstream5xx         UpstreamKind = "upstream_5xx" // a status from 500 on
	UpstreamAborted     UpstreamKind = "aborted"      // the connection failed or was lost, other than by a timeout
	UpstreamBadProtocol UpstreamKind = "protocol"     // the answer violates the protocol
	UpstreamLoading     UpstreamKind = "loading"      // the server is reachable and has not loaded the model yet
)

// CodeContextLength is the [UpstreamError].ProviderCode of a failure because the conversation exceeds the model's context window. Providers
// set it in place of the code that the server sent.
const CodeContextLength = "context_length_exceeded"

// An UpstreamError is the failure of one request to a model server.
type UpstreamError struct {
	Kind         UpstreamKind
	Status       int    // HTTP status; 0: the server sent none
	ProviderCode string // the server's own error code, at most 64 bytes of [A-Za-z0-9_.-], or [CodeContextLength]; "": none
	// Message is the server's message without API keys, at most 500 bytes. It may quote the request or name an address, so do not
	// log it: use Detail.
	Message string
	// Detail is a text that may be logged: Message without the parts that quote the request or, for an error of the transport, the kind of
	// that error without addresses, such as "connection refused". It has at most 500 bytes. In events it is content: see package event.
	Detail     string
	RequestID  string        // the server's id of the request; "": none
	InBand     bool          // the error was sent in a response with HTTP status 200; Status is the one that the error names
	Connect    bool          // no connection could be made: the request was not sent
	Continued  bool          // the server had answered a part of the turn, and a further request for the rest failed: see max_continuations
	Retryable  bool          // the same request may succeed later
	Unparsed   bool          // the server could not parse the model's output, such as a call or marks of another template
	RetryAfter time.Duration // the wait that the server asks for; 0: none
	Err        error         // the transport's error; nil if the server answered
}

// Error returns the kind, the status and the provider's code, such as "rate_limited (HTTP 429) code quota". It contains no text of the
// server.
func (e *UpstreamError) Error() string {
	text := string(e.Kind)
	switch {
	case e.Status != 0 && e.InBand:
		text += fmt.Sprintf(" (HTTP 200, error %d)", e.Status)
	case e.Status != 0:
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.ProviderCode != "" {
		text += " code " + e.ProviderCode
	}
	return text
}

// Unwrap returns Err, the transport's error or nil.
func (e *UpstreamError) Unwrap() error { return e.Err }

// Errors to test for with [errors.Is].
var (
	// ErrPending is returned by an [Approver] that does not decide now. The run is then parked: it stops and can be resumed. When it is
	// resumed, the approver is called again.
	ErrPending = errors.New("approval pending")
	// ErrConflict is wrapped by the error of a store if another writer has appended events since the caller read the log.
	ErrConflict = errors.New("the log has moved on")
	// ErrStoreFull is wrapped by the errors of a store whose disk is full.
	ErrStoreFull = errors.New("the disk of the store is full")
	// ErrStoreDisk is wrapped by the errors of a store whose disk cannot be written.
	ErrStoreDisk = errors.New("the disk of the store fails")
	// ErrStoreReplaced is wrapped by the errors of a store one of whose files was removed or replaced while it was open. The store
	// refuses further writes, because they would be lost.
	ErrStoreReplaced = errors.New("a file of the store was removed or replaced while it was open")
	// ErrNotFound is wrapped by the errors for a session, run or event that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrContentRemoved is wrapped by the errors of operations that need texts of a run, such as its messages or results of tools, which a
	// store has removed, as the run's retention settings require.
	ErrContentRemoved = errors.New("content of the run was removed, as tool_calling.retention says")
	// ErrLeft is wrapped by the cause ([context.Cause]) of a context that was cancelled because another process will continue the run. A
	// tool that has a call executed on another system must then not cancel it there.
	ErrLeft = errors.New("the run is left for another process")
)
