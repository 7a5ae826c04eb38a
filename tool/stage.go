package tool

import "github.com/lathe-run/lathe"

// An ending is what a stage returns: proceed, parked, or the code with which the call is answered.
type ending lathe.Code

const (
	proceed ending = ""           // with the next stage
	parked  ending = "\x00parked" // the call waits for an approval, of its own or of a call before it
)

// fail returns the ending of a call that is answered with the code, or with execution_failed for what is no code of a
// call.
func fail(code lathe.Code) ending { return ending(callCode(code)) }

// A source says where the output of a call comes from.
type source uint8

const (
	fromTool     source = iota
	fromRecovery        // the tool's [OutcomeChecker] knows what a call of an earlier process returned
	fromClient          // the client executed the call
	fromApprover        // the approver answered in place of the tool
	fromCache           // an equal call of the same principal was answered with it
)
