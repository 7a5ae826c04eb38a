package tool

import (
	"context"

	"github.com/lathe-run/lathe"
)

// OutcomeChecker is a [lathe.Tool] that can determine the outcome of a call that an earlier process started. If a run is resumed whose
// process stopped during a call, the runner calls CheckOutcome for a tool that writes. The call of a tool without it gets the result
// `interrupted`, because it may have taken effect.
type OutcomeChecker interface {
	lathe.Tool
	// CheckOutcome returns the outcome of the call; ctx also contains its [lathe.CallMeta]. RecoveryNotRun means that the call was not
	// executed and never will be: the runner then executes it under the same idempotency key. CheckOutcome may wait for a call that another
	// process executes, for as long as the timeout of the tool. An error, a panic and the end of ctx count as RecoveryUnknown. It may be
	// called from several goroutines at once.
	CheckOutcome(ctx context.Context, call *lathe.CallMeta) (Recovery, error)
}

// Recovery is the outcome of a call that an earlier process started.
type Recovery struct {
	Outcome RecoveryOutcome
	Output  *lathe.Output // for RecoveryDone: the output that [lathe.Tool.Call] would have returned
}

// RecoveryOutcome is the kind of a Recovery. The zero value is RecoveryUnknown.
type RecoveryOutcome uint8

// The outcomes of a call that an earlier process started.
const (
	RecoveryUnknown RecoveryOutcome = iota // it may have been executed: the call gets the result `interrupted`
	RecoveryNotRun                         // it was not executed: it is executed now
	RecoveryDone                           // Output is its result
)

// A StoredApprover is a [lathe.Approver] that stores answers. StoredApproval returns an answer that was given before the request expired
// and that no run has read.
// expired and that no run has read yet.
type StoredApprover interface {
	lathe.Approver
	StoredApproval(ctx context.Context, req *lathe.ApprovalRequest) (a lathe.Approval, ok bool)
}
