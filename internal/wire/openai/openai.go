// Package openai turns the JSON of OpenAI's chat completions into Lathe's vocabulary and back, for
// both ends of the wire: what a client sends and reads ([Upstream], [Assembler],
// [ParseCompletion], [ParseError]) and what a server reads and sends ([ParseRequest],
// [AppendCompletion], [ChunkWriter], [AppendError]). It does no I/O.
//
// Writing is deterministic: the same values give the same bytes. Reading what servers send is
// lenient, and what had to be tolerated is counted as a [lathe.Fault]; reading what clients send
// is strict. Members that Lathe does not know are kept and sent again.
//
// Append functions append to dst and return it. Raw JSON that callers put into requests, messages
// and tools must be valid.
package openai

import (
	"github.com/lathe-run/lathe/internal/wire"
)

// Errors of answers that cannot be used: see package wire.
var (
	ErrIncomplete   = wire.ErrIncomplete
	ErrNoCompletion = wire.ErrNoAnswer
	ErrTooLarge     = wire.ErrTooLarge
	ErrTooManyBytes = wire.ErrTooManyBytes
	ErrTooManyCalls = wire.ErrTooManyCalls
)

// The kinds of [lathe.Fault] that reading an answer may count.
const (
	FaultEmptyLine        = "empty_line"            // data with nothing in it
	FaultBadLine          = "bad_line"              // data that is no JSON object of a known shape; skipped
	FaultDuplicateMember  = "duplicate_member"      // the last one counted
	FaultAfterDone        = "after_done"            // data after [DONE]; skipped
	FaultExtraChoice      = "extra_choice"          // a choice other than the first; skipped
	FaultUnknownContent   = "unknown_content"       // content or a call of a kind that is not known, or too many members; skipped
	FaultInvalidUTF8      = "invalid_utf8"          // became U+FFFD
	FaultSplitCharacter   = "split_character"       // a character cut in two; joined
	FaultIndexMissing     = "index_missing"         // a call without index
	FaultIndexInvalid     = "index_invalid"         // an index that is negative or no integer
	FaultIndexReused      = "index_reused"          // a new call under the index of another
	FaultIndexChanged     = "index_changed"         // a call went on under another index
	FaultIDMissing        = "id_missing"            // a call that never got an id
	FaultIDLate           = "id_late"               // the id came after the first piece of its call
	FaultIDChanged        = "id_changed"            // the first one counted
	FaultIDDuplicate      = "id_duplicate"          // two calls with one id
	FaultNameMissing      = "name_missing"          // a call that never got a name
	FaultNameLate         = "name_late"             // the name came after the first piece of its call
	FaultNameRepeated     = "name_repeated"         // the same name again
	FaultNameSplit        = "name_split"            // joined
	FaultArgsNotText      = "arguments_not_text"    // an object in place of its text; kept as its text
	FaultArgsReplaced     = "arguments_replaced"    // {} first, then others
	FaultCallRepeated     = "call_repeated"         // a whole call sent twice; counted once
	FaultCallsMalformed   = "tool_calls_malformed"  // tool_calls, or an element of it, of a wrong JSON type or that says nothing; skipped
	FaultFunctionCall     = "function_call"         // the old form of a call
	FaultFinishMissing    = "finish_reason_missing" // inferred
	FaultFinishMismatch   = "finish_reason_mismatch"
	FaultFinishRepeated   = "finish_reason_repeated"
	FaultFinishUnknown    = "finish_reason_unknown"
	FaultDoneMissing      = "done_missing"
	FaultCutAfterFinish   = "cut_after_finish" // the connection broke after the finish reason
	FaultUsageInvalid     = "usage_invalid"    // a count that is no number of tokens
	FaultUnreadableCall   = "unreadable_call"  // the server itself could not parse the call that the model wrote
	FaultReasoningRepeats = "reasoning_twice"  // two members with reasoning in one delta; one counted
)

// ReasoningSame as EncodeOptions.ReasoningField sends reasoning back under the member it came in.
const ReasoningSame = "*"

// defaultReasoningField is the member for reasoning that does not say where it came from, where
// Lathe is the server.
const defaultReasoningField = "reasoning_content"

// EncodeOptions say how a request is written. The zero value is a plain request.
type EncodeOptions = wire.EncodeOptions

// callName returns name as the wire allows it, ^[a-zA-Z0-9_-]{1,64}$, so that a conversation with a
// name that a model made up can still be sent.
func callName(name string) string {
	if name == "" {
		return "unknown"
	}
	return wire.Masked(name[:min(len(name), wire.MaxName)])
}
