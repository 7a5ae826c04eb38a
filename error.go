package lathe

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Code names what went wrong, for programs. Codes are part of the contract and never change.
type Code string

// The codes of a tool call that was not answered with a result of the tool.
const (
	CodePayloadTooLarge   Code = "tool_payload_too_large"
	CodePayloadParseError Code = "tool_payload_parse_error"
	CodeInvalidJSON       Code = "invalid_json"
	CodeArgumentsTooLarge Code = "arguments_too_large"
	CodeInvalidArguments  Code = "invalid_arguments"
	CodeUnknownTool       Code = "unknown_tool"
	CodePolicyDenied      Code = "policy_denied"
	CodeApprovalDenied    Code = "approval_denied"
	CodeApprovalExpired   Code = "approval_expired"
	CodeExecutionFailed   Code = "execution_failed"
	CodeUnavailable       Code = "unavailable"
	CodeTimeout           Code = "timeout"
	CodeCancelled         Code = "cancelled"
	CodeInterrupted       Code = "interrupted"
	CodeRateLimited       Code = "rate_limited"
	CodeOutputTooLarge    Code = "tool_output_too_large"
	CodeInvalidOutput     Code = "invalid_output"
	CodeRedactionFailed   Code = "redaction_failed"
	CodeToolCallLimit     Code = "tool_call_limit"
	CodeMaxDepth          Code = "max_depth"
	CodeTooManyCalls      Code = "too_many_calls"
	CodeIncompleteCall    Code = "incomplete_call"
)

// The codes of errors that are not answers to a tool call.
const (
	CodeInvalidRequest   Code = "invalid_request"
	CodeInvalidConfig    Code = "invalid_config"
	CodeConflict         Code = "conflict"
	CodeNotFound         Code = "not_found"
	CodeContentRemoved   Code = "content_removed"
	CodeUpstreamProtocol Code = "upstream_protocol"
	CodeUpstream         Code = "upstream_error"
	CodeInternal         Code = "internal"
	CodeBudgetExhausted  Code = "budget_exhausted"
	CodePriceUnknown     Code = "price_unknown"
	CodeTooManyTools     Code = "too_many_tools"
)

// An Error is the error type of exported functions: what went wrong (Code), in which operation (Op), and the cause (Err). Its
// text holds no secret and no argument, output or message text.
type Error struct {
	Code Code
	Op   string // such as "provider: call openai"
	Err  error
}

// Error returns "op: code: cause", leaving out what is empty.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	b.WriteString(string(e.Code))
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Wrap returns the [Error] of an operation that failed with this code because of err.
func (c Code) Wrap(op string, err error) *Error { return &Error{Code: c, Op: op, Err: err} }

// Errorf returns the [Error] of an operation that failed with this code. Its cause is that of [fmt.Errorf] for the format and args.
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

// HTTPStatus returns the HTTP status for a request of a client of yours that ended with the code. It is 500 for a code without a status of
// its own, and for "". The server of package server uses it where it does not know more of the cause.
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

// UpstreamKind is the kind of an upstream failure.
type UpstreamKind string

// The kinds of upstream failure.
const (
	UpstreamTimeout     UpstreamKind = "timeout"
	UpstreamRateLimited UpstreamKind = "rate_limited"
	Upstream4xx         UpstreamKind = "upstream_4xx"
	Upstream5xx         UpstreamKind = "upstream_5xx"
	UpstreamAborted     UpstreamKind = "aborted" // no connection, or one that broke off
	UpstreamBadProtocol UpstreamKind = "protocol"
	UpstreamLoading     UpstreamKind = "loading" // the server is there, and has not loaded the model yet
)

// CodeContextLength is the ProviderCode of a conversation that exceeds the model's context window, in whatever
// words the server said so.
const CodeContextLength = "context_length_exceeded"

// An UpstreamError says how a model server failed. Message is bounded (at most 500 bytes) and
// scrubbed of keys; it may still quote the request or name an address, so events and logs hold Detail
// in its place, and Error leaves both out.
type UpstreamError struct {
	Kind         UpstreamKind
	Status       int    // HTTP status, 0 when there was none
	ProviderCode string // at most 64 bytes of [A-Za-z0-9_.-]
	Message      string
	// Detail is Message for logs and for the content of events: the server's words without what they quote of the
	// request, or the kind of a transport's error, such as "connection refused", without addresses. At most 500 bytes.
	Detail     string
	RequestID  string
	InBand     bool // said within a response of status 200; Status is the one that the error itself gives
	Connect    bool // the connection could not be made: the request was not sent
	Continued  bool // the server had answered a part of the turn before: see max_continuations
	Retryable  bool
	Unparsed   bool // the server could not parse what the model wrote, such as a call or marks of another template
	RetryAfter time.Duration
	Err        error // the transport's error, nil for an answer of the server
}

// Error describes the failure without the server's own words.
func (e *UpstreamError) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	if e.Status != 0 {
		b.WriteString(" (HTTP ")
		if e.InBand {
			b.WriteString("200, error ")
		}
		b.WriteString(strconv.Itoa(e.Status))
		b.WriteByte(')')
	}
	if e.ProviderCode != "" {
		b.WriteString(" code ")
		b.WriteString(e.ProviderCode)
	}
	return b.String()
}

// Unwrap returns the transport's error.
func (e *UpstreamError) Unwrap() error { return e.Err }

// Sentinels that callers branch on.
var (
	// ErrPending is returned by an [Approver] that will answer later.
	ErrPending = errors.New("approval pending")
	// ErrConflict is returned by [Store.Append] when the log has moved on.
	ErrConflict = errors.New("the log has moved on")
	// ErrStoreFull is wrapped by the errors of a [Store] whose disk is full.
	ErrStoreFull = errors.New("the disk of the store is full")
	// ErrStoreDisk is wrapped by the errors of a [Store] whose disk fails to write.
	ErrStoreDisk = errors.New("the disk of the store fails")
	// ErrStoreReplaced is wrapped by the errors of a [Store] of which a file was removed or replaced while
	// it was open. The store refuses further writes, because they would be lost.
	ErrStoreReplaced = errors.New("a file of the store was removed or replaced while it was open")
	// ErrNotFound is returned for a session, run or event that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrContentRemoved is returned for an operation that needs content which a store removed under the retention
	// settings of the run.
	ErrContentRemoved = errors.New("content of the run was removed, as tool_calling.retention says")
	// ErrLeft, in the cause of a context that has ended, says that another process continues the run:
	// what a call has begun in a worker continues, too.
	ErrLeft = errors.New("the run is left for another process")
)
