package lathe

import (
	"context"
	"encoding/json"
	"time"
)

// A Policy decides what a run may do next. It is pure: the same input gives the same verdict.
// The zero [Verdict] denies. Its methods may be called from several goroutines at once.
type Policy interface {
	// Tool says whether a tool may be advertised. Its verdict is Deny if Call would return Deny for all
	// arguments.
	Tool(*RunInfo, *ToolSpec) Verdict
	// Step is asked before a model call.
	Step(*StepInfo) Verdict
	// Call is asked before a tool call, with arguments that are valid.
	Call(*CallInfo) Verdict
}

// A Decision is what a [Policy] wants. The zero value is Deny.
type Decision uint8

// The decisions.
const (
	Deny Decision = iota
	Ask
	Allow
)

// String returns the decision's name in events and metrics.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	default:
		return "deny"
	}
}

// A Verdict is a decision with the rule that made it. Rule and Reason are fixed text of the
// policy, never text of the model.
type Verdict struct {
	Decision Decision
	Rule     string
	Reason   string
}

// RunInfo says which run asks.
type RunInfo struct {
	RunID, RequestID, SessionID string
	Principal                   string
	// Profile is the name of the key under whose rights and limits the run is, where that is not the principal: of a
	// caller whom an identity provider has identified. "": the principal is the key.
	Profile string
	Depth   int
	Labels  map[string]string
	// ParentRunID and ParentCallID name the tool call that started the run, empty for a run that no call started.
	ParentRunID, ParentCallID string
}

// StepInfo describes a model call that is about to be made.
type StepInfo struct {
	Run       *RunInfo
	Turn      int // from 1
	Usage     Usage
	Cost      float64 // in US dollars: the sum of the costs of its model calls, as far as they are known
	ToolCalls int     // calls planned so far
}

// CallInfo describes a tool call that is about to be made. A receiver may keep it and must not change it, nor what it
// points to.
type CallInfo struct {
	Run  *RunInfo
	Turn int
	Seq  int
	Call *ToolCall // as the model asked, with its stable id
	Tool *ToolSpec
	// Args is the argument value that the tool would get. It is valid and must not be changed.
	Args json.RawMessage
	// Used are the tools that the run has used before this call, in the order of their first use. It is set for policies
	// and journals, and nil for others.
	Used []ToolUse
}

// A ToolUse says how much a run has used a tool. Calls that were refused before the tool ran do not count.
type ToolUse struct {
	Name  string
	Spec  *ToolSpec // nil if the tool is no longer registered
	Calls int       // calls of this run in which the tool ran, or the cache answered in its place
	// Earlier says that the messages with which the run started hold a result of the tool.
	Earlier bool
}

// An Approver decides a call for which the policy's verdict is Ask. It may return [ErrPending]: then the run is parked, and
// no goroutine waits. It may block until ctx is done. It may be called from several goroutines at once.
type Approver interface {
	Approve(ctx context.Context, req *ApprovalRequest) (Approval, error)
}

// An ApprovalRequest asks an approver about one call. An approval is valid for exactly the call
// whose Digest it names, once, until ExpiresAt.
type ApprovalRequest struct {
	CallInfo
	Verdict Verdict
	// Digest is the hex SHA-256 that binds run, call id, tool, schema hash and the RFC 8785 form
	// of the arguments.
	Digest    string
	ExpiresAt time.Time
}

// An Approval is an approver's decision. The zero value denies.
type Approval struct {
	Approved   bool
	By         string
	ReasonCode string // from the approver's fixed vocabulary, such as "denied_by_user"
	// Arguments, when set, replace the arguments of the call. They are validated again.
	Arguments json.RawMessage
	// Result, when set, is the JSON value that answers the call. The tool is not called. Result is
	// subject to the same limits as an output of the tool.
	Result json.RawMessage
	// InRequest is set if the client of the run decided in a request, which is answered with what the run does after the decision.
	InRequest bool
}
