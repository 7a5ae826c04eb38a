package gemini

// The kinds of [lathe.Fault] that an Assembler counts. They have the same names as on chat completions.
const (
	faultBadLine        = "bad_line"           // data that is not a JSON object
	faultDuplicate      = "duplicate_member"   // a repeated member or a lone surrogate: JSON decoders differ in reading it
	faultExtraChoice    = "extra_choice"       // a candidate other than the first; it is skipped
	faultUnknownContent = "unknown_content"    // a part that cannot be parsed as its type; it is kept unchanged
	faultArgsNotText    = "arguments_not_text" // arguments that are not an object, or pieces that do not fit together
	faultIDMissing      = "id_missing"         // a call without an id; its id is derived from that of the answer
	faultIDDuplicate    = "id_duplicate"       // two calls with the same id
	faultNameMissing    = "name_missing"       // a call without a name
	faultFinishMismatch = "finish_reason_mismatch"
	faultFinishRepeated = "finish_reason_repeated"
	faultFinishUnknown  = "finish_reason_unknown"
	faultCutAfterFinish = "cut_after_finish" // the connection broke after the finish reason
	faultUsageInvalid   = "usage_invalid"    // a token count that is not a number
)
