package tool

import "github.com/lathe-run/lathe"

// textOf returns the fixed text that a model receives for a call that ended with the code, with the next step. It returns "" if code is not
// the code of a call.
func textOf(code lathe.Code) string {
	switch code {
	case lathe.CodePayloadTooLarge:
		return "The call is longer than a call written as text may be. Write a shorter one."
	case lathe.CodePayloadParseError:
		return "The call could not be read. Write it again in the required form, with the name of a tool and one JSON object of arguments."
	case lathe.CodeInvalidJSON:
		return "The arguments are not one valid JSON object. Call the tool again with a JSON object and nothing around it."
	case lathe.CodeArgumentsTooLarge:
		return "The arguments are too large. Call the tool again with smaller arguments."
	case lathe.CodeInvalidArguments:
		return "The arguments are not what the tool takes. Correct what the error names and call the tool again."
	case lathe.CodeUnknownTool:
		return "There is no tool of this name. Call one of the available tools by its exact name, or answer without a tool."
	case lathe.CodePolicyDenied:
		return "This call is not allowed. Do not repeat it; go on without it."
	case lathe.CodeApprovalDenied:
		return "The call was not approved. Do not repeat it; go on without it, or ask the user what to do."
	case lathe.CodeApprovalExpired:
		return "The call was not approved in time and did not run. Go on without it, or ask the user what to do."
	case lathe.CodeExecutionFailed:
		return "The tool failed. Check the arguments and try once more, or go on without it."
	case lathe.CodeUnavailable:
		return "The tool cannot be reached at the moment. Go on without it."
	case lathe.CodeTimeout:
		return "The tool did not finish in time. What it was to do may have been done: check before you repeat the call, or ask for less."
	case lathe.CodeCancelled:
		return "The call was cancelled before it finished."
	case lathe.CodeInterrupted:
		return "The call was interrupted, and it is not known whether it took effect. Check before you repeat it."
	case lathe.CodeRateLimited:
		return "The tool is busy. Wait before you call it again, or go on without it."
	case lathe.CodeOutputTooLarge:
		return "The tool's output is too large to be shown. Call it again and ask for less."
	case lathe.CodeInvalidOutput:
		return "The tool returned something that is not a valid result. Go on without it."
	case lathe.CodeRedactionFailed:
		return "The tool's result may not be shown. Go on without it."
	case lathe.CodeToolCallLimit:
		return "No more tool calls are allowed in this run. Answer with what you know."
	case lathe.CodeMaxDepth:
		return "A run that was started by a tool may not start another one here. Do the work yourself or go on without it."
	case lathe.CodeTooManyCalls:
		return "Only one tool call is allowed at a time, and this one did not run. Make it again, alone."
	case lathe.CodeIncompleteCall:
		return "The call was cut off before it was complete and did not run. Make it again, shorter."
	default:
		return ""
	}
}

// Text returns the fixed text that a model receives for a tool call that ended with this code; "" if no tool call ends with it.
func Text(code lathe.Code) string { return textOf(code) }

// callCode returns code if it is the code of a call, and execution_failed otherwise.
func callCode(code lathe.Code) lathe.Code {
	if textOf(code) == "" {
		return lathe.CodeExecutionFailed
	}
	return code
}
