package destination

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxChanged is the largest number of paths that a list of changes has. Later changes are applied but not listed.
const maxChanged = 32

// efforts are the efforts that replace a thinking budget, each with the largest budget in tokens for which it is used. A larger budget
// becomes high. The limits are halfway between the budgets that other components use for the efforts (2048, 8192, 16384).
var efforts = []struct {
	effort string
	most   int
}{{"low", 5120}, {"medium", 12288}}

// Fit changes the members of req that r does not accept, except for its messages, and returns the paths of what it changed or left out. w
// is the wire of the request. Fit replaces slices and pointers of req and does not modify what they refer to.
func (r *Row) Fit(w lathe.Wire, req *lathe.Request) (changed []string) {
	s := &req.Sampling
	drop := func(path string) { changed = append(changed, path) }
	if r.MaxUser > 0 && utf8.RuneCountInString(req.User) > r.MaxUser {
		drop("user")
		req.User = digest(req.User, r.MaxUser)
	}
	if r.MaxStop > 0 && len(s.Stop) > r.MaxStop {
		for i := r.MaxStop; i < len(s.Stop) && len(changed) < maxChanged; i++ {
			drop("sampling.stop[" + strconv.Itoa(i) + "]")
		}
		s.Stop = slices.Clip(s.Stop[:r.MaxStop])
	}
	if t := s.MaxTokens; t != nil && *t < r.LeastOutput {
		drop("sampling.max_tokens")
		s.MaxTokens = &r.LeastOutput
	}
	changed = append(changed, r.fitSampling(s)...)
	changed = append(changed, r.fitThinking(w, s)...)
	if r.Format == alone && len(s.ResponseFormat) > 0 && len(req.Tools)+len(req.HostedTools) > 0 && req.ToolChoice.Mode != lathe.ChoiceNone {
		drop("sampling.response_format")
		s.ResponseFormat = nil
	}
	return changed
}

func (r *Row) fitSampling(s *lathe.Sampling) (changed []string) {
	if r.Sampling == one {
		if s.Temperature != nil && s.TopP != nil {
			s.TopP = nil
			return []string{"sampling.top_p"}
		}
		return nil
	}
	if r.Sampling != none && (r.Sampling != effortless || s.ReasoningEffort == none) {
		return nil
	}
	if s.Temperature != nil {
		changed = append(changed, "sampling.temperature")
	}
	if s.TopP != nil {
		changed = append(changed, "sampling.top_p")
	}
	s.Temperature, s.TopP = nil, nil
	if r.Sampling == none && s.TopK != nil {
		changed = append(changed, "sampling.top_k")
		s.TopK = nil
	}
	return changed
}

// fitThinking changes the parameters of thinking to those that the model accepts. The forms that only the Messages API has are left to its
// codec, which must also reconcile them with the token limit and the tool choice.
func (r *Row) fitThinking(w lathe.Wire, s *lathe.Sampling) (changed []string) {
	switch budget := s.ReasoningBudget; {
	case r.Thinking == none:
		if s.ReasoningEffort != "" && s.ReasoningEffort != none {
			changed = append(changed, "sampling.reasoning_effort")
		}
		if budget != nil && *budget != 0 {
			changed = append(changed, "sampling.reasoning_budget")
		}
		s.ReasoningEffort, s.ReasoningBudget = "", nil
	case r.Thinking == effort && w != lathe.WireMessages && budget != nil && *budget > 0 && s.ReasoningEffort == "":
		s.ReasoningEffort = "high"
		for _, e := range slices.Backward(efforts) {
			if *budget <= e.most {
				s.ReasoningEffort = e.effort
			}
		}
	case r.LeastThinking > 0 && s.ReasoningEffort == none && budget == nil:
		changed = append(changed, "sampling.reasoning_effort")
		s.ReasoningEffort, s.ReasoningBudget = "", &r.LeastThinking
	case r.LeastThinking > 0 && budget != nil && *budget >= 0 && *budget < r.LeastThinking:
		changed = append(changed, "sampling.reasoning_budget")
		s.ReasoningBudget = &r.LeastThinking
	}
	return changed
}

// digest returns a hash of s as at most n hexadecimal digits.
func digest(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	text := hex.EncodeToString(sum[:])
	return text[:min(n, len(text))]
}
