package event

import "github.com/lathe-run/lathe"

// A Result says how a run ended or was parked.
type Result struct {
	RunID  string // "": the loop.Input has none
	Reason lathe.Reason
	// Answer is the text of the model's message that ended the run, even if that text was truncated. It is "" if the text is empty or the
	// run ended without such a message.
	Answer string
	// History contains all messages, from the first of the input to the answer. It can be sent to a model again: each tool call in it has
	// exactly one result, except for the calls in Pending.
	History []lathe.Message
	Usage   lathe.Usage // of the model calls, and of runs that tool calls started
	Cost    float64     // cost of these model calls and runs in US dollars; a model call of unknown cost adds nothing
	Trace   []TurnTrace // one for each turn, in order
	// ToolCalls is the number of tool calls, refused ones included.
	ToolCalls int
	// Withheld are the registered tools that the model was not offered, sorted by name; [WithheldTool.Explain] says why. Tools that
	// loop.Input.Allow excludes are not listed.
	Withheld []WithheldTool
	// Blank is the likely cause of a blank Answer; "": the answer is not blank, or the run failed.
	Blank lathe.Blank
	// Reasoning is the reasoning of the last message of the model, if that message contained nothing else. History does not contain such a
	// message.
	Reasoning string
	// FailedTools are the names of the tools whose failure ended the run with ReasonToolError, sorted.
	FailedTools []string
	// Pending are the calls that wait for a client's results or for an approval, in call order.
	Pending []lathe.ToolCall
	// Err is the error of a run that failed or was cancelled, and nil for other runs.
	Err error
}

// A TurnTrace describes one turn: a model call with its attempts, and the tool calls that it requested. It has no argument and no output text.
type TurnTrace struct {
	Turn             int                `json:"turn"` // from 1
	Model            string             `json:"model"`
	Agent            string             `json:"agent,omitempty"` // as in [ModelCallStarted]
	Messages         int                `json:"messages"`        // number of messages that were sent
	Tools            int                `json:"tools"`           // number of tool definitions that were sent
	Finish           lathe.FinishReason `json:"finish_reason"`   // "": the model call failed
	Usage            lathe.Usage        `json:"usage"`
	IgnoredToolCalls int                `json:"ignored_tool_calls,omitempty"` // number of calls that were removed because none were allowed
	Dropped          []string           `json:"dropped,omitempty"`            // members of the request that the model's wire cannot express
	Calls            []CallTrace        `json:"tool_calls,omitempty"`         // in call order
}

// A CallTrace describes one tool call.
type CallTrace struct {
	ID        string     `json:"id"`
	Tool      string     `json:"tool"`               // a registered name, or "unknown"
	Seq       int        `json:"seq"`                // number of the call within the run, from 0
	ArgsBytes int        `json:"args_bytes"`         // length of the argument text
	OK        bool       `json:"ok"`                 // the call has a result that is no error
	Code      lathe.Code `json:"code,omitempty"`     // of the error; "": none
	Executed  bool       `json:"executed"`           // the tool was called; false if the cache answered
	Repaired  bool       `json:"repaired,omitempty"` // the arguments were repaired
	LatencyMS int64      `json:"latency_ms"`         // milliseconds from the start of the first attempt to the end of the last; 0: no attempt
}
