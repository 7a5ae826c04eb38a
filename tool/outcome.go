package tool

import (
	"context"

	"github.com/lathe-run/lathe"
)

// An OutcomeChecker is a [lathe.Tool] that can determine the outcome of a call that an earlier process started. If a process stops during a
// call and the run is resumed, the runner calls CheckOutcome. It does so only for tools that are neither read-only nor idempotent, because
// calls of the others are repeated. Without CheckOutcome, a call that may have taken effect gets the result interrupted.
type OutcomeChecker interface {
	lathe.Tool
	// CheckOutcome returns the outcome of the call. [lathe.CallMetaFrom] also returns call. RecoveryNotRun must mean that the call was not
	// executed and never will be: the runner then executes it with the same idempotency key. CheckOutcome may wait for a call that is still
	// executing elsewhere, for as long as the timeout of the tool. The runner treats an error, a panic and the end of ctx as
	// RecoveryUnknown. CheckOutcome may be called from several goroutines at once.
	CheckOutcome(ctx context.Context, call *lathe.CallMeta) (Recovery, error)
}

// Recovery is the outcome of a call that an earlier process started. The zero value is an unknown outcome.
type Recovery struct {
	Outcome RecoveryOutcome // the kind of the outcome
	Output  *lathe.Output   // if Outcome is RecoveryDone: what [lathe.Tool.Call] would have returned
}

// RecoveryOutcome is the kind of a Recovery. The zero value is RecoveryUnknown.
type RecoveryOutcome uint8

// The outcomes of a call that an earlier process started.
const (
	RecoveryUnknown RecoveryOutcome = iota // it may have been executed: the call gets the result interrupted
	RecoveryNotRun                         // it was not executed: the runner executes it now
	RecoveryDone                           // it was executed: Recovery.Output is its result
)

// A StoredApprover is a [lathe.Approver] that stores the answers of approvers until a run reads them.
type StoredApprover interface {
	lathe.Approver
	// StoredApproval is called for a request that has expired. If an approver answered it before it expired and no run has read the answer,
	// StoredApproval must return the answer and true, and must not return it again. In all other cases, also if the answers cannot be read,
	// it must return false: the call then ends with approval_expired.
	StoredApproval(ctx context.Context, req *lathe.ApprovalRequest) (a lathe.Approval, ok bool)
}
