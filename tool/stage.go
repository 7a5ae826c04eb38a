package tool

import "github.com/lathe-run/lathe"

// An ending is the result of a stage: proceed, parked, or the code with which the call ends.
type ending lathe.Code

const (
	proceed ending = ""           // continue with the next stage
	parked  ending = "\x00parked" // this call, or an earlier one of the turn, waits for an approval
)

// fail returns the ending of a call with the code, or with execution_failed if code is not the code of a call.
func fail(code lathe.Code) ending { return ending(callCode(code)) }

// A source is the origin of the output of a call.
type source uint8

const (
	fromTool     source = iota
	fromRecovery        // the tool's [OutcomeChecker] returned the output of a call of an earlier process
	fromClient          // the client executed the call
	fromApprover        // the approver gave the output in place of the tool
	fromCache           // the cached output of an equal call of the same principal
)
