package verify

// SchemaAccuracy returns validated / finishedWithCalls: the share of the answers with finish reason tool_calls whose calls are all valid,
// as in the K2 Vendor Verifier. ok is false if finishedWithCalls is 0.
func SchemaAccuracy(validated, finishedWithCalls int) (rate float64, ok bool) {
	if finishedWithCalls == 0 {
		return 0, false
	}
	return float64(validated) / float64(finishedWithCalls), true
}

// A Similarity counts prompts by whether each of two endpoints, the target and the reference, calls a tool.
type Similarity struct {
	TP int `json:"tp"` // prompts for which both call
	FP int `json:"fp"` // prompts for which only the target calls
	FN int `json:"fn"` // prompts for which only the reference calls
	TN int `json:"tn"` // prompts for which neither calls
}

// Add counts one prompt; target and reference say whether that endpoint called a tool.
func (s *Similarity) Add(target, reference bool) {
	switch {
	case target && reference:
		s.TP++
	case target:
		s.FP++
	case reference:
		s.FN++
	default:
		s.TN++
	}
}

// F1 returns the harmonic mean of precision TP/(TP+FP) and recall TP/(TP+FN), as in the K2 Vendor Verifier; 0 if both are 0. ok is false if
// one of them is not defined.
func (s Similarity) F1() (f1 float64, ok bool) {
	if s.TP+s.FP == 0 || s.TP+s.FN == 0 || s.TP == 0 {
		return 0, s.TP+s.FP > 0 && s.TP+s.FN > 0
	}
	precision, recall := float64(s.TP)/float64(s.TP+s.FP), float64(s.TP)/float64(s.TP+s.FN)
	return 2 * precision * recall / (precision + recall), true
}
