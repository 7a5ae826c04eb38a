// Package openai is the codec of OpenAI's chat completions. For requests to model servers it has [Upstream], [Assembler], [ParseCompletion]
// and [ParseError]; for requests of clients, [ParseRequest], [AppendCompletion], [ChunkWriter] and [AppendError]. It does no I/O.
//
// Encoding is deterministic: equal values give equal bytes. Parsing of answers is lenient, and each tolerated deviation is counted as a
// [lathe.Fault]. Parsing of requests is strict. Unknown members are stored and sent again.
//
// Append functions append to dst and return it. Raw JSON that callers put into requests, messages
// and tools must be valid.
package openai

import (
	"github.com/lathe-run/lathe/internal/wire"
)

// The kinds of [lathe.Fault] that an Assembler counts.
const (
	FaultEmptyLine        = "empty_line"            // an event without data
	FaultBadLine          = "bad_line"              // data that is not a JSON object of a known form; skipped
	FaultDuplicateMember  = "duplicate_member"      // a repeated member; the last one is used
	FaultAfterDone        = "after_done"            // data after [DONE]; skipped
	FaultExtraChoice      = "extra_choice"          // a choice other than the first; skipped
	FaultUnknownContent   = "unknown_content"       // content or a call of an unknown kind, or too many members; skipped
	FaultInvalidUTF8      = "invalid_utf8"          // replaced by U+FFFD
	FaultSplitCharacter   = "split_character"       // a character split between two pieces; joined
	FaultIndexMissing     = "index_missing"         // a call without index
	FaultIndexInvalid     = "index_invalid"         // an index that is negative or no integer
	FaultIndexReused      = "index_reused"          // a new call with the index of another call
	FaultIndexChanged     = "index_changed"         // a call continued with another index
	FaultIDMissing        = "id_missing"            // a call that received no id
	FaultIDLate           = "id_late"               // the id was received after the first piece of its call
	FaultIDChanged        = "id_changed"            // the first id is used
	FaultIDDuplicate      = "id_duplicate"          // two calls with the same id
	FaultNameMissing      = "name_missing"          // a call that received no name
	FaultNameLate         = "name_late"             // the name was received after the first piece of its call
	FaultNameRepeated     = "name_repeated"         // the same name was received again
	FaultNameSplit        = "name_split"            // the parts of the name are joined
	FaultArgsNotText      = "arguments_not_text"    // arguments that are an object and not a string; the JSON text is used
	FaultArgsReplaced     = "arguments_replaced"    // {} was followed by other arguments
	FaultCallRepeated     = "call_repeated"         // a complete call that was sent twice; used once
	FaultCallsMalformed   = "tool_calls_malformed"  // tool_calls, or an element of it, that has a wrong JSON type or is empty; skipped
	FaultFunctionCall     = "function_call"         // the deprecated form of a call
	FaultFinishMissing    = "finish_reason_missing" // derived from the content
	FaultFinishMismatch   = "finish_reason_mismatch"
	FaultFinishRepeated   = "finish_reason_repeated"
	FaultFinishUnknown    = "finish_reason_unknown"
	FaultDoneMissing      = "done_missing"
	FaultCutAfterFinish   = "cut_after_finish" // the connection broke after the finish reason
	FaultUsageInvalid     = "usage_invalid"    // a token count that is not a number
	FaultUnreadableCall   = "unreadable_call"  // the server could not parse the call that the model wrote
	FaultReasoningRepeats = "reasoning_twice"  // two members with reasoning in one delta; one is used
)

// ReasoningSame, as the value of EncodeOptions.ReasoningField, sends reasoning in the member in which it was received.
const ReasoningSame = "*"

// defaultReasoningField is the member in which an answer to a client has reasoning whose original member is not known.
const defaultReasoningField = "reasoning_content"

// EncodeOptions are the options of encoding a request. The zero value is valid.
type EncodeOptions = wire.EncodeOptions

// callName returns name in the form that the wire allows, ^[a-zA-Z0-9_-]{1,64}$, so that a conversation with an invalid name that a model
// wrote can still be sent.
func callName(name string) string {
	if name == "" {
		return "unknown"
	}
	return wire.Masked(name[:min(len(name), wire.MaxName)])
}
