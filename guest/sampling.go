package guest

import (
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// samplingOf separates the sampling options of a request's parameters from the others, which it returns as rest. A parameter that is not
// valid as an option is in rest and passed to the model unchanged.
func samplingOf(req *Request) (s lathe.Sampling, rest []lathe.Member) {
	s.ResponseFormat = req.ResponseFormat
	for _, m := range req.Overrides {
		switch m.Name {
		case "temperature", "top_p", "max_tokens", "seed", "stop", "reasoning_effort":
			next := s
			if len(m.Value) > 0 && json.Unmarshal(wire.ObjectOf(m.Name, wire.JSON(m.Value)), &next) == nil {
				s = next
				continue
			}
		}
		rest = append(rest, m)
	}
	return s, rest
}

// replaced returns the members of by, followed by those members of base whose names are not in by.
func replaced(base, by []lathe.Member) []lathe.Member {
	out := slices.Clone(by)
	for _, m := range base {
		if !slices.ContainsFunc(by, func(o lathe.Member) bool { return o.Name == m.Name }) {
			out = append(out, m)
		}
	}
	return out
}
