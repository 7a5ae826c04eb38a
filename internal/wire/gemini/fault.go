package gemini

// The kinds of [lathe.Fault] that an Assembler counts, with the same names as for chat completions.
const (
	faultBadLine        = "bad_line"           // data that is not the JSON of an answer
	faultDuplicate      = "duplicate_member"   // or a lone surrogate: JSON that readers take differently
	faultExtraChoice    = "extra_choice"       // a candidate other than the first; skipped
	faultUnknownContent = "unknown_content"    // a part that cannot be read as what it says it is; kept as it is
	faultArgsNotText    = "arguments_not_text" // arguments that are no object, or pieces that do not fit together
	faultIDMissing      = "id_missing"         // a call without an id; it gets one that is made of the answer's
	faultIDDuplicate    = "id_duplicate"       // two calls with one id
	faultNameMissing    = "name_missing"       // a call without a name
	faultFinishMismatch = "finish_reason_mismatch"
	faultFinishRepeated = "finish_reason_repeated"
	faultFinishUnknown  = "finish_reason_unknown"
	faultCutAfterFinish = "cut_after_finish" // the connection broke after the finish reason
	faultUsageInvalid   = "usage_invalid"    // a count that is no number of tokens
)
