package verify

// SchemaAccuracy is the formula of the K2 Vendor Verifier: of the answers with finish reason tool_calls, those whose calls all
// validate. ok is false without such answers.
func SchemaAccuracy(validated, finishedWithCalls int) (rate float64, ok bool) {
	if finishedWithCalls == 0 {
		return 0, false
	}
	return float64(validated) / float64(finishedWithCalls), true
}

// A Similarity compares on which prompts two endpoints call a tool.
type Similarity struct {
	TP int `json:"tp"` // both call
	FP int `json:"fp"` // only the target calls
	FN int `json:"fn"` // only the reference calls
	TN int `json:"tn"` // neither calls
}

// Add counts one prompt.
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

// F1 is the harmonic mean of precision TP/(TP+FP) and recall TP/(TP+FN), the formula of the K2 Vendor Verifier. ok is false where
// one of them is not defined; where both are 0, so is F1.
func (s Similarity) F1() (f1 float64, ok bool) {
	if s.TP+s.FP == 0 || s.TP+s.FN == 0 || s.TP == 0 {
		return 0, s.TP+s.FP > 0 && s.TP+s.FN > 0
	}
	precision, recall := float64(s.TP)/float64(s.TP+s.FP), float64(s.TP)/float64(s.TP+s.FN)
	return 2 * precision * recall / (precision + recall), true
}
