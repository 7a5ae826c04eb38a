package lathe

import (
	"context"
	"encoding/json"
	"time"
)

// A Policy decides what a run may do next. Package tool calls Tool and Call of the policy in its Options, and package loop calls Step of the policy
// in its own Options: a policy that also limits model calls must be set in both.
//
// Equal inputs must give equal verdicts. The methods may be called from several goroutines at once and must not change what their arguments point
// to. The zero [Verdict] denies, and so does a method that panics.
type Policy interface {
	// Tool decides whether the run's model is offered a tool. A tool with the decision Ask is offered only if there is an [Approver]. Tool
	// must return Deny if Call would return Deny for all arguments.
	Tool(*RunInfo, *ToolSpec) Verdict
	// Step decides about the next model call. Any decision other than Allow ends the run with [ReasonBudgetExceeded].
	Step(*StepInfo) Verdict
	// Call decides about one tool call, after its arguments were validated. If it returns Ask, an [Approver] decides; without an Approver,
	// the call is denied.
	Call(*CallInfo) Verdict
}

// A Decision is the decision of a [Policy]. The zero value is Deny.
type Decision uint8

// The decisions of a policy, the strictest first.
const (
	Deny  Decision = iota // refuse
	Ask                   // request an approval
	Allow                 // permit
)

// String returns "allow", "ask" or "deny", as in events and metrics. Unknown values are "deny".
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

// A Verdict is a decision and the rule that led to it. Rule and Reason appear in events and logs: they must be fixed texts of the policy
// and must not quote the model.
type Verdict struct {
	Decision Decision
	Rule     string // the name of the rule, such as "effect.read_only"
	Reason   string // for people; may be empty
}

// RunInfo identifies a run and its owner.
type RunInfo struct {
	RunID, RequestID, SessionID string // SessionID is "" for a run without a session
	// Principal is the owner of the run: the name of an API key, or the subject that an identity provider has reported; "": the program
	// does not use keys.
	Principal string
	// Profile names the entry in the configuration section `keys` whose rights and limits apply to the run. It is set if an identity
	// provider has reported the principal. "": the entry has the name of the principal.
	Profile string
	Depth   int               // 0, or for a run that a tool call started, 1 more than that of the calling run
	Labels  map[string]string // set by the caller of the run; nil: none
	// ParentRunID and ParentCallID name the tool call that started the run; "": no call did.
	ParentRunID, ParentCallID string
}

// StepInfo describes a model call before it is made.
type StepInfo struct {
	Run       *RunInfo
	Turn      int     // number of the model call in the run, from 1
	Usage     Usage   // of the model calls so far
	Cost      float64 // of the model calls so far, in US dollars; calls of unknown cost are not counted
	ToolCalls int     // tool calls of the run so far, refused ones included
}

// CallInfo describes a tool call before it is executed. A receiver may retain it, but must not change it or what it points to.
type CallInfo struct {
	Run  *RunInfo
	Turn int       // number of the model call that requested the tool call, from 1
	Seq  int       // number of the tool call within the run, from 0
	Call *ToolCall // as the model wrote it
	Tool *ToolSpec
	// Args is the JSON object that the tool would receive. It satisfies the tool's schema. It is nil for a call with invalid arguments;
	// policies and approvers do not receive such a call.
	Args json.RawMessage
	// Used lists the tools that the run has used before this call, in the order of their first use; nil: none. It is set for policies and
	// for the Journal of a tool.Runner, and nil for approvers.
	Used []ToolUse
}

// A ToolUse says how often a run has used a tool. Calls that were refused before the tool ran do not count. If a tool call started another
// run, the tools of that run count as used by the calling run, too: see [ChildRun].Tools.
type ToolUse struct {
	Name  string
	Spec  *ToolSpec // nil if the tool is no longer registered
	Calls int       // calls of this run in which the tool ran, or the cache answered in its place
	// Earlier says that the messages with which the run started contain a result of the tool. Calls does not count that call.
	Earlier bool
}

// An Approver decides about the calls for which the verdict of the policy is Ask. Approve may block until ctx is done. If it returns
// [ErrPending], the run is parked; any other error refuses the call. Approve may be called from several goroutines at once.
type Approver interface {
	Approve(ctx context.Context, req *ApprovalRequest) (Approval, error)
}

// An ApprovalRequest requests a decision about one call. The decision may be used once, before ExpiresAt, and only for a call with this
// Digest.
type ApprovalRequest struct {
	CallInfo
	Verdict Verdict // of the policy, with the decision Ask
	// Digest is the SHA-256, in hex, of the run id, the call id, the tool, its schema and the arguments in the form of RFC 8785.
	Digest    string
	ExpiresAt time.Time
}

// An Approval is an approver's decision. The zero value denies. Arguments and Result have an effect only if Approved is true; if both are set,
// Result is used.
type Approval struct {
	Approved   bool
	By         string // who decided
	ReasonCode string // from the approver's fixed vocabulary, such as "denied_by_user"; may be empty
	// Arguments replace the arguments of the call, if they are not nil. They are validated, and the policy decides about them: if it denies, the
	// call is refused; if it asks, no further approval is requested.
	Arguments json.RawMessage
	// Result is a JSON value that answers the call in place of the tool, if it is not nil. The tool is not called. The limits
	// of an output apply.
	Result json.RawMessage
	// InRequest says that the approver decided in an API request to the gateway, and that the response to this request continues with the
	// output of the run.
	InRequest bool
}
