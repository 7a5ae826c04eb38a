package destination

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxChanged is the length from which a list of changes takes no more stop sequences and messages, which a client may send in any number.
// Later ones are changed but not listed. Fit also lists each other member that it changes, so that its list may be longer.
const maxChanged = 32

// effortNone is the effort of a request that turns thinking off.
const effortNone = "none"

// Fit changes the members of req that r does not accept, except for its messages, and returns the paths of what it changed or left out. w
// is the wire of the request. Fit replaces slices and pointers of req and does not modify what they refer to.
func (r *Row) Fit(w lathe.Wire, req *lathe.Request) (changed []string) {
	s := &req.Sampling
	note := func(path string) { changed = append(changed, path) }
	if r.MaxUser > 0 && utf8.RuneCountInString(req.User) > r.MaxUser {
		note("user")
		req.User = digest(req.User, r.MaxUser)
	}
	if r.MaxStop > 0 && len(s.Stop) > r.MaxStop {
		for i := r.MaxStop; i < len(s.Stop) && len(changed) < maxChanged; i++ {
			note("sampling.stop[" + strconv.Itoa(i) + "]")
		}
		s.Stop = slices.Clip(s.Stop[:r.MaxStop])
	}
	if t := s.MaxTokens; t != nil && *t < r.LeastOutput {
		note("sampling.max_tokens")
		s.MaxTokens = new(r.LeastOutput)
	}
	changed = append(changed, r.fitSampling(s)...)
	changed = append(changed, r.fitThinking(w, s)...)
	mayCall := len(req.Tools)+len(req.HostedTools) > 0 && req.ToolChoice.Mode != lathe.ChoiceNone
	if r.Format == formatAlone && mayCall && len(s.ResponseFormat) > 0 {
		note("sampling.response_format")
		s.ResponseFormat = nil
	}
	return changed
}

// fitSampling leaves out those of temperature, top_p and top_k that the column Sampling does not permit.
func (r *Row) fitSampling(s *lathe.Sampling) (changed []string) {
	neither := r.Sampling == samplingNone || r.Sampling == samplingEffortless && s.ReasoningEffort != effortNone
	if neither {
		changed = leaveOut(changed, "sampling.temperature", &s.Temperature)
	}
	if neither || r.Sampling == samplingOne && s.Temperature != nil {
		changed = leaveOut(changed, "sampling.top_p", &s.TopP)
	}
	if r.Sampling == samplingNone {
		changed = leaveOut(changed, "sampling.top_k", &s.TopK)
	}
	return changed
}

// leaveOut sets a member to nil, and appends its path to changed if it was set.
func leaveOut[T any](changed []string, path string, member **T) []string {
	if *member != nil {
		changed = append(changed, path)
	}
	*member = nil
	return changed
}

// fitThinking changes the effort and the budget of thinking to those that the model accepts. A budget of 0 turns thinking off, a negative one
// lets the model choose. The forms that only the Messages API has are left to its codec, which must also reconcile them with the token limit
// and the tool choice.
func (r *Row) fitThinking(w lathe.Wire, s *lathe.Sampling) (changed []string) {
	budget := s.ReasoningBudget
	onlyBudget := s.ReasoningEffort == "" && budget != nil && *budget > 0
	turnsOff := s.ReasoningEffort == effortNone && budget == nil
	switch {
	case r.Thinking == thinkingNone:
		if s.ReasoningEffort != "" && s.ReasoningEffort != effortNone {
			changed = append(changed, "sampling.reasoning_effort")
		}
		if budget != nil && *budget != 0 {
			changed = append(changed, "sampling.reasoning_budget")
		}
		s.ReasoningEffort, s.ReasoningBudget = "", nil
	case r.Thinking == thinkingEffort && w != lathe.WireMessages && onlyBudget:
		s.ReasoningEffort = effortOf(*budget) // the codecs of the wires without budgets leave out and list the budget
	case r.LeastThinking > 0 && turnsOff:
		changed = append(changed, "sampling.reasoning_effort")
		s.ReasoningEffort, s.ReasoningBudget = "", new(r.LeastThinking)
	case budget != nil && *budget >= 0 && *budget < r.LeastThinking:
		changed = append(changed, "sampling.reasoning_budget")
		s.ReasoningBudget = new(r.LeastThinking)
	}
	return changed
}

// effortOf returns the effort that replaces a thinking budget in tokens. The limits are halfway between the budgets that other components
// use for the efforts (2048, 8192, 16384).
func effortOf(budget int) string {
	switch {
	case budget <= 5120:
		return "low"
	case budget <= 12288:
		return "medium"
	}
	return "high"
}

// digest returns a hash of s as at most n hexadecimal digits.
func digest(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	text := hex.EncodeToString(sum[:])
	return text[:min(n, len(text))]
}
