package lathe

import "context"

// A Verifier is a [Tool] that can find out what became of a call that an earlier process began. It is
// asked about a call of a tool that writes, when the run goes on after its process ended in the middle
// of the call: without it nobody knows whether the tool has done what it was asked, and the call is
// answered `interrupted`.
type Verifier interface {
	Tool
	// Verify says what became of the call; ctx carries its [CallMeta], too. Whoever says FateNotRun knows
	// that the call was not run and never will be, and it is then made again under the same key. It may
	// wait for a call that goes on elsewhere, as long as a call of the tool may take. An error, a panic
	// and the end of ctx count as FateUnknown. It may be called on several goroutines at once.
	Verify(ctx context.Context, call *CallMeta) (Verified, error)
}

// Verified is what became of a call.
type Verified struct {
	Fate   Fate
	Output *Output // of a call that is done: what [Tool.Call] would have returned
}

// A Fate says what became of a call. The zero value is FateUnknown.
type Fate uint8

// The fates.
const (
	FateUnknown Fate = iota // it may have run: the call is answered `interrupted`
	FateNotRun              // it is made again
	FateDone                // its output is told
)
