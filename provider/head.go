package provider

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
)

// A headKey remembers what the encoded head of a request was made from, everything but the
// messages, so that it is made again only when something of that changed.
type headKey struct {
	set      bool
	whole    bool // no stream is asked for
	model    string
	tools    []*lathe.ToolSpec // specs do not change, so their identity is enough
	choice   lathe.ToolChoice
	parallel optional[bool]
	sampling lathe.Sampling // its pointers and slices are copies
	temp     optional[float64]
	topP     optional[float64]
	presence optional[float64]
	frequent optional[float64]
	topK     optional[int]
	budget   optional[int]
	hosted   []json.RawMessage // copies
	max      optional[int]
	seed     optional[int64]
	extra    []lathe.Member
	user     string
}

// An optional is what a pointer in a request pointed to.
type optional[T comparable] struct {
	set bool
	v   T
}

func valueOf[T comparable](p *T) optional[T] {
	if p == nil {
		return optional[T]{}
	}
	return optional[T]{true, *p}
}

// matches reports whether r has the head that k remembers.
func (k *headKey) matches(r *lathe.Request) bool {
	s := &r.Sampling
	return k.set && k.whole == asksWhole(r) && k.model == r.Model && k.choice == r.ToolChoice && k.user == r.User &&
		k.parallel == valueOf(r.ParallelToolCalls) && k.temp == valueOf(s.Temperature) && k.topP == valueOf(s.TopP) &&
		k.max == valueOf(s.MaxTokens) && k.seed == valueOf(s.Seed) && k.sampling.ReasoningEffort == s.ReasoningEffort &&
		k.sampling.ReasoningSummary == s.ReasoningSummary && k.topK == valueOf(s.TopK) && k.budget == valueOf(s.ReasoningBudget) &&
		k.presence == valueOf(s.PresencePenalty) && k.frequent == valueOf(s.FrequencyPenalty) &&
		slices.EqualFunc(k.hosted, r.HostedTools, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) &&
		slices.Equal(k.tools, r.Tools) && slices.Equal(k.sampling.Stop, s.Stop) &&
		bytes.Equal(k.sampling.ResponseFormat, s.ResponseFormat) && slices.EqualFunc(k.extra, r.Overrides, sameMember)
}

func sameMember(a, b lathe.Member) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }

// remember takes over the head of r.
func (k *headKey) remember(r *lathe.Request) {
	s := &r.Sampling
	k.whole = asksWhole(r)
	k.set, k.model, k.choice, k.user = true, r.Model, r.ToolChoice, r.User
	k.parallel, k.temp, k.topP = valueOf(r.ParallelToolCalls), valueOf(s.Temperature), valueOf(s.TopP)
	k.max, k.seed, k.sampling.ReasoningEffort = valueOf(s.MaxTokens), valueOf(s.Seed), s.ReasoningEffort
	k.sampling.ReasoningSummary, k.topK, k.budget = s.ReasoningSummary, valueOf(s.TopK), valueOf(s.ReasoningBudget)
	k.presence, k.frequent = valueOf(s.PresencePenalty), valueOf(s.FrequencyPenalty)
	k.hosted = k.hosted[:0]
	for _, t := range r.HostedTools {
		k.hosted = append(k.hosted, bytes.Clone(t))
	}
	k.tools = append(k.tools[:0], r.Tools...)
	k.sampling.Stop = append(k.sampling.Stop[:0], s.Stop...)
	k.sampling.ResponseFormat = append(k.sampling.ResponseFormat[:0], s.ResponseFormat...)
	k.extra = k.extra[:0]
	for _, m := range r.Overrides {
		k.extra = append(k.extra, lathe.Member{Name: m.Name, Value: bytes.Clone(m.Value)})
	}
}

// forget clears all references and keeps the allocated memory.
func (k *headKey) forget() {
	clear(k.tools[:cap(k.tools)])
	clear(k.extra[:cap(k.extra)])
	clear(k.hosted[:cap(k.hosted)])
	*k = headKey{tools: k.tools[:0], extra: k.extra[:0], hosted: k.hosted[:0]}
}

// samePrefix reports whether msgs goes on from the messages that were sent. It looks at the
// identity of their parts, which is enough because a message does not change once it was handed over.
func samePrefix(sent, msgs []lathe.Message) bool {
	if len(msgs) < len(sent) {
		return false
	}
	for i := range sent {
		a, b := &sent[i], &msgs[i]
		if len(a.Parts) != len(b.Parts) || len(a.Parts) > 0 && &a.Parts[0] != &b.Parts[0] || a.Role != b.Role || !sameText(a.Name, b.Name) ||
			!sameText(string(a.Wire), string(b.Wire)) || len(a.Extra)|len(b.Extra) != 0 && !sameSlice(a.Extra, b.Extra) {
			return false
		}
	}
	return true
}

// sameText is a == b, without a call where both are empty: each turn compares all messages of its conversation.
func sameText(a, b string) bool { return len(a) == len(b) && (a == "" || a == b) }

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
