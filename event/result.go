package event

import "github.com/lathe-run/lathe"

// A Result says how a run ended. History can always be sent to a model again: each call id in it
// is answered exactly once, except the Pending ones of a run that was parked or handed over.
type Result struct {
	RunID   string // "" of a loop whose input has none
	Reason  lathe.Reason
	Answer  string
	History []lathe.Message // everything from the first message on, the answer included
	Usage   lathe.Usage
	Cost    float64 // in US dollars: the sum of the costs of its model calls, as far as they are known
	Trace   []TurnTrace
	// ToolCalls counts the calls that were planned.
	ToolCalls int
	// Withheld are registered tools that the model was not offered, sorted by name, with the reason, which
	// [WithheldTool.Explain] puts into words; those that the input's Allow leaves out are not among them.
	Withheld []WithheldTool
	// Blank is the likely cause of a blank Answer of a run that did not fail; empty for other runs.
	Blank lathe.Blank
	// Reasoning is the reasoning of the last message if that message has nothing else; such a message is not in History.
	Reasoning string
	// FailedTools are the names of the tools whose failure ended the run with ReasonToolError, sorted.
	FailedTools []string
	// Pending are the calls that wait for a client's results or for an approval, in call order.
	Pending []lathe.ToolCall
	// Err is set when the run failed or was cancelled.
	Err error
}

// A TurnTrace says what happened in one turn. It holds no argument and no output text.
type TurnTrace struct {
	Turn             int                `json:"turn"`
	Model            string             `json:"model"`
	Agent            string             `json:"agent,omitempty"` // of the model call, as in ModelCallStarted
	Messages         int                `json:"messages"`
	Tools            int                `json:"tools"`
	Finish           lathe.FinishReason `json:"finish_reason"`
	Usage            lathe.Usage        `json:"usage"`
	IgnoredToolCalls int                `json:"ignored_tool_calls,omitempty"`
	Dropped          []string           `json:"dropped,omitempty"` // members of the request that the model's wire cannot express
	Calls            []CallTrace        `json:"tool_calls,omitempty"`
}

// A CallTrace says how one call went.
type CallTrace struct {
	ID        string     `json:"id"`
	Tool      string     `json:"tool"` // a registered name or "unknown"
	Seq       int        `json:"seq"`
	ArgsBytes int        `json:"args_bytes"`
	OK        bool       `json:"ok"`
	Code      lathe.Code `json:"code,omitempty"`
	Executed  bool       `json:"executed"`
	Repaired  bool       `json:"repaired,omitempty"`
	LatencyMS int64      `json:"latency_ms"`
}
