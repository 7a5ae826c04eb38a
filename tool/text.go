package tool

import "github.com/lathe-run/lathe"

// texts are the fixed texts, with the next step, by the codes of a call.
var texts = map[lathe.Code]string{
	lathe.CodePayloadTooLarge:   "The call is longer than a call written as text may be. Write a shorter one.",
	lathe.CodePayloadParseError: "The call could not be read. Write it again in the required form, with the name of a tool and one JSON object of arguments.",
	lathe.CodeInvalidJSON:       "The arguments are not one valid JSON object. Call the tool again with a JSON object and nothing around it.",
	lathe.CodeArgumentsTooLarge: "The arguments are too large. Call the tool again with smaller arguments.",
	lathe.CodeInvalidArguments:  "The arguments are not what the tool takes. Correct what the error names and call the tool again.",
	lathe.CodeUnknownTool:       "There is no tool of this name. Call one of the available tools by its exact name, or answer without a tool.",
	lathe.CodePolicyDenied:      "This call is not allowed. Do not repeat it; go on without it.",
	lathe.CodeApprovalDenied:    "The call was not approved. Do not repeat it; go on without it, or ask the user what to do.",
	lathe.CodeApprovalExpired:   "The call was not approved in time and did not run. Go on without it, or ask the user what to do.",
	lathe.CodeExecutionFailed:   "The tool failed. Check the arguments and try once more, or go on without it.",
	lathe.CodeUnavailable:       "The tool cannot be reached at the moment. Go on without it.",
	lathe.CodeTimeout:           "The tool did not finish in time. What it was to do may have been done: check before you repeat the call, or ask for less.",
	lathe.CodeCancelled:         "The call was cancelled before it finished.",
	lathe.CodeInterrupted:       "The call was interrupted, and it is not known whether it took effect. Check before you repeat it.",
	lathe.CodeRateLimited:       "The tool is busy. Wait before you call it again, or go on without it.",
	lathe.CodeOutputTooLarge:    "The tool's output is too large to be shown. Call it again and ask for less.",
	lathe.CodeInvalidOutput:     "The tool returned something that is not a valid result. Go on without it.",
	lathe.CodeRedactionFailed:   "The tool's result may not be shown. Go on without it.",
	lathe.CodeToolCallLimit:     "No more tool calls are allowed in this run. Answer with what you know.",
	lathe.CodeMaxDepth:          "A run that was started by a tool may not start another one here. Do the work yourself or go on without it.",
	lathe.CodeTooManyCalls:      "Only one tool call is allowed at a time, and this one did not run. Make it again, alone.",
	lathe.CodeIncompleteCall:    "The call was cut off before it was complete and did not run. Make it again, shorter.",
}

// Text returns the fixed text that a model receives for a tool call that ended with this code; "" if no tool call ends with it.
func Text(code lathe.Code) string { return texts[code] }

// callCode returns code if it is the code of a call, and execution_failed otherwise.
func callCode(code lathe.Code) lathe.Code {
	if texts[code] == "" {
		return lathe.CodeExecutionFailed
	}
	return code
}
