package tool

import (
	"context"

	"github.com/lathe-run/lathe"
)

// OutcomeChecker is a [lathe.Tool] that can find out the outcome of a call that an earlier process began. The runner asks
// it about a call of a tool that writes, when a run is resumed whose process ended during the call. The call of another
// tool is answered `interrupted`, because it may have taken effect.
type OutcomeChecker interface {
	lathe.Tool
	// CheckOutcome returns the outcome of the call; ctx carries its [lathe.CallMeta], too. RecoveryNotRun says that the call
	// was not executed and never will be: the runner then executes it under the same idempotency key. CheckOutcome may wait
	// for a call that runs elsewhere, for as long as a call of the tool may take. An error, a panic and the end of ctx count
	// as RecoveryUnknown. It may be called on several goroutines at once.
	CheckOutcome(ctx context.Context, call *lathe.CallMeta) (Recovery, error)
}

// Recovery is the outcome of a call that an earlier process began.
type Recovery struct {
	Outcome RecoveryOutcome
	Output  *lathe.Output // of a call that is done: what [lathe.Tool.Call] would have returned
}

// RecoveryOutcome is the kind of a Recovery. The zero value is RecoveryUnknown.
type RecoveryOutcome uint8

// The outcomes.
const (
	RecoveryUnknown RecoveryOutcome = iota // it may have run: the call is answered `interrupted`
	RecoveryNotRun                         // it is executed again
	RecoveryDone                           // its output is the result
)

// A StoredApprover is a [lathe.Approver] that stores answers. StoredApproval returns an answer that the approver gave before the request
// expired and that no run has read yet.
type StoredApprover interface {
	lathe.Approver
	StoredApproval(ctx context.Context, req *lathe.ApprovalRequest) (a lathe.Approval, ok bool)
}
