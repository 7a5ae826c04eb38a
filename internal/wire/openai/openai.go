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
	faultEmptyLine      = "empty_line"            // an event without data
	faultBadLine        = "bad_line"              // data that is not a JSON object of a known form; skipped
	faultAfterDone      = "after_done"            // data after [DONE]; skipped
	faultExtraChoice    = "extra_choice"          // a choice other than the first; skipped
	faultIndexMissing   = "index_missing"         // a call without index
	faultIndexInvalid   = "index_invalid"         // an index that is negative or no integer
	faultIndexReused    = "index_reused"          // a new call with the index of another call
	faultIDMissing      = "id_missing"            // a call that received no id
	faultIDLate         = "id_late"               // the id was received after the first piece of its call
	faultIDChanged      = "id_changed"            // the first id is used
	faultIDDuplicate    = "id_duplicate"          // two calls with the same id
	faultNameLate       = "name_late"             // the name was received after the first piece of its call
	faultNameRepeated   = "name_repeated"         // the same name was received again
	faultNameSplit      = "name_split"            // the parts of the name are joined
	faultArgsNotText    = "arguments_not_text"    // arguments that are an object and not a string; the JSON text is used
	faultArgsReplaced   = "arguments_replaced"    // {} was followed by other arguments
	faultCallsMalformed = "tool_calls_malformed"  // tool_calls, or an element of it, that has a wrong JSON type or is empty; skipped
	faultFunctionCall   = "function_call"         // the deprecated form of a call
	faultFinishMissing  = "finish_reason_missing" // derived from the content
	faultFinishMismatch = "finish_reason_mismatch"
	faultFinishRepeated = "finish_reason_repeated"
	faultFinishUnknown  = "finish_reason_unknown"
	faultDoneMissing    = "done_missing"
	faultCutAfterFinish = "cut_after_finish" // the connection broke after the finish reason
	faultUnreadableCall = "unreadable_call"  // the server could not parse the call that the model wrote

	// Those that package doctor describes in words of its own.
	FaultDuplicateMember  = "duplicate_member" // a repeated member; the last one is used
	FaultUnknownContent   = "unknown_content"  // content or a call of an unknown kind, or too many members; skipped
	FaultInvalidUTF8      = "invalid_utf8"     // replaced by U+FFFD
	FaultSplitCharacter   = "split_character"  // a character split between two pieces; joined
	FaultIndexChanged     = "index_changed"    // a call continued with another index
	FaultNameMissing      = "name_missing"     // a call that received no name
	FaultCallRepeated     = "call_repeated"    // a complete call that was sent twice; used once
	FaultUsageInvalid     = "usage_invalid"    // a token count that is not a number
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
