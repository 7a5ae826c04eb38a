package sim

import (
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

var (
	onResponses = []lathe.Wire{lathe.WireResponses}
	onMessages  = []lathe.Wire{lathe.WireMessages}
	onGemini    = []lathe.Wire{lathe.WireGemini}
	// typed are the wires whose events have types.
	typed = []lathe.Wire{lathe.WireResponses, lathe.WireMessages}
	// notChat are the wires with signatures and with an event that ends an answer.
	notChat = []lathe.Wire{lathe.WireResponses, lathe.WireMessages, lathe.WireGemini}
)

// wireFaults are the faults that chat completions do not have.
var wireFaults = []Fault{
	{Name: "end-missing", Does: "the stream ends in order, without the event that ends an answer", Ends: lathe.ReasonUpstreamError, Wires: notChat, edit: endMissing},
	{Name: "cut-before-end", Does: "the connection breaks off before the event that ends an answer", Ends: lathe.ReasonUpstreamError, Wires: notChat, edit: cutBeforeEnd},
	editFault("event-nameless", "events without their type in the line event:", typed, nameless),
	editFault("unknown-event", "an event of an unknown type", notChat, unknownEvent),
	editFault("unknown-item", "an item, block or part of an unknown type", notChat, unknownItem),
	{Name: "keep-alive-flood", Does: "1000 keep-alives in the form of the wire", Wires: notChat, flow: flow{keepAlives: 1000}},
	editFault("calls-interleaved", "the pieces of parallel calls in turn", typed, interleave),
	{Name: "args-one-piece", Does: "the arguments of each call in one piece", Wires: typed, flow: flow{wholeArgs: true}},
	editFault("args-at-once", "arguments without any piece: in the head of the block, or in the end of the item", typed, argsAtOnce),
	editFault("args-partial", "arguments as values with the paths of their places", onGemini, partialArgs),
	editFault("args-empty", "no arguments at all in place of {}", notChat, argsEmpty),
	editFault("usage-missing", "no usage", notChat, usageMissing),
	editFault("usage-split", "input tokens in the first event, output tokens in the last", onMessages, usageSplit),
	editFault("usage-late", "the usage in an event after the finish reason", onGemini, usageLate),
	{Name: "signature-missing", Does: "thinks and does not sign it", Wires: notChat, turn: thinkUnsigned},
	{Name: "reasoning-hidden", Does: "thinks and shows the signature alone", Wires: notChat, turn: thinkHidden},
	{Name: "reasoning-redacted", Does: "thinks in blocks of type redacted_thinking", Wires: onMessages, turn: thinkRedacted},
	{Name: "strict-signatures", Does: "thinks, signs it, and refuses a history whose signature is missing, changed, of another model or out of place",
		Wires: notChat, turn: thinkStrictly, strictSignatures: placedSignatures},
	{Name: "bound-thinking", Does: "thinks, and refuses a history in which anything before a block of thinking is not as it was when the block was written",
		Wires: onMessages, turn: thinkStrictly, strictSignatures: boundSignatures},
	{Name: "pause-turn", Does: "stop_reason pause_turn where the answer ends, unless it continues one", Wires: onMessages, edit: stopReason("pause_turn"), firstPart: true},
	{Name: "malformed-call", Does: "MALFORMED_FUNCTION_CALL in place of each call", Ends: lathe.ReasonUpstreamError, Wires: onGemini, edit: malformedCall},
	editFault("terminal-differs", "other arguments in the object that ends the response than in its events: the calls are not executed", onResponses, terminalDiffers),
	{Name: "error-flat", Does: "an error in the stream in the flat form alone, without response.failed", Ends: lathe.ReasonUpstreamError, Wires: onResponses,
		flow: flow{errorAfter: 2}, edit: errorFlat},
	{Name: "error-nested", Does: "an error in the stream in the nested form alone, without response.failed", Ends: lathe.ReasonUpstreamError, Wires: onResponses,
		flow: flow{errorAfter: 2}, edit: errorNested},
	{Name: "failed-only", Does: "response.failed without the event error", Ends: lathe.ReasonUpstreamError, Wires: onResponses, flow: flow{errorAfter: 2}, edit: failedOnly},
	{Name: "overloaded-in-band", Does: "overloaded_error in the middle of the stream", Ends: lathe.ReasonUpstreamError, Wires: onMessages,
		flow: flow{errorAfter: 2}, edit: overloaded},
	{Name: "status-529", Does: "529 overloaded_error the first time that a request comes", Wires: onMessages, status: 529, once: true,
		fail: &wire.APIError{Message: "Overloaded", Type: "overloaded_error"}},
	{Name: "status-429-delay", Does: "429 that says when to come back in its body, the first time that a request comes", Wires: onGemini,
		status: http.StatusTooManyRequests, once: true, fail: &wire.APIError{Message: "Resource has been exhausted", Type: "RESOURCE_EXHAUSTED", RetryAfter: 0.01}},
	{Name: "status-400-context", Does: "400: the prompt is too long", Ends: lathe.ReasonUpstreamError, Wires: notChat, status: http.StatusBadRequest,
		fail: &wire.APIError{Message: "prompt is too long: 250000 tokens > 200000 maximum", Type: "invalid_request_error", Code: lathe.CodeContextLength}},
}

// editFault returns a fault in the events of an answer that clients must tolerate.
func editFault(name, does string, wires []lathe.Wire, e edit) Fault {
	return Fault{Name: name, Does: does, Wires: wires, edit: e}
}

func thinkUnsigned(req *lathe.Request, t *Turn) {
	think(req, t)
	t.unsigned = true
}

func thinkHidden(_ *lathe.Request, t *Turn) { t.hidden = thought }

func thinkRedacted(_ *lathe.Request, t *Turn) { t.hidden, t.redacted = thought, true }

// thinkStrictly gives calls ids that name the model, so that strictSignatures can require a signature for them.
func thinkStrictly(req *lathe.Request, t *Turn) {
	think(req, t)
	total := readConversation(req).total
	for i := range t.Calls {
		t.Calls[i].ID = ownID(req.Model, total+i+1)
	}
}
