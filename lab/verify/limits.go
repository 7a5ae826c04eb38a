package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Limit says how large a value a server accepted: the number of tools, the size of arguments or the size of the context.
type Limit struct {
	ID   string `json:"id"` // tools, argument_bytes or context_bytes
	Unit string `json:"unit"`
	// Taken is the largest value that the server accepted, Refused the smallest that it refused; 0: it accepted all values up to Tried.
	Taken   int `json:"taken"`
	Refused int `json:"refused,omitempty"`
	Tried   int `json:"tried"`            // largest value that would be tried
	Status  int `json:"status,omitempty"` // HTTP status of the refusal
}

// precision is the inverse of the relative precision of a limit: an eighth.
const precision = 8

// bisections returns the largest number of requests to find a limit of at most most.
func bisections(most int) int { return bits.Len(uint(most)) + 1 }

// A limitProbe makes requests whose size is n units of a limit.
type limitProbe struct {
	id, unit string
	most     func(*Options) int
	bytes    int // bytes of one unit
	request  func(n int) *lathe.Request
}

var limitProbes = []limitProbe{
	{"tools", "tools", func(o *Options) int { return o.MaxTools }, 150, func(n int) *lathe.Request {
		req := prompt("Reply exactly with: yes")
		for i := range n {
			req.Tools = append(req.Tools, &lathe.ToolSpec{Name: fmt.Sprintf("tool_%04d", i+1), Description: "Does nothing.", Schema: ping.Schema})
		}
		return req
	}},
	{"argument_bytes", "bytes", func(o *Options) int { return o.MaxArguments }, 1, func(n int) *lathe.Request {
		value, err := json.Marshal(map[string]string{"city": strings.Repeat("x", max(n-len(`{"city":""}`), 0))})
		if err != nil {
			panic(err) // cannot happen: a map of strings can be encoded
		}
		return answered(triggers[0], calling("call_lathe_verify_0002", string(value)))
	}},
	{"context_bytes", "bytes", func(o *Options) int { return o.MaxContext }, 1, func(n int) *lathe.Request {
		const line = "This line is only there to be long.\n"
		return prompt(strings.Repeat(line, n/len(line)) + "Reply exactly with: yes")
	}},
}

func limitRequests(o *Options) int {
	n := 0
	for _, p := range limitProbes {
		n += bisections(p.most(o))
	}
	return n
}

// limitBytes estimates the bytes of all bisections: the largest request once, then halves.
func limitBytes(o *Options) int {
	n := 0
	for _, p := range limitProbes {
		n += 3 * p.most(o) * p.bytes
	}
	return n
}

// findLimits finds each limit by bisection between the largest accepted and the smallest refused value.
func findLimits(ctx context.Context, s *side) {
	s.limits = map[string]*Limit{}
	for _, p := range limitProbes {
		l := &Limit{ID: p.id, Unit: p.unit, Tried: p.most(s.opts)}
		left := bisections(l.Tried)
		try := func(n int) (measured bool) {
			left--
			a, o := s.ask(ctx, p.request(n), mode{mayRefuse: true})
			switch o {
			case refused:
				l.Refused, l.Status = n, a.Status
			case whole, cut:
				l.Taken = n
			case unmeasured, undelivered:
				return false
			}
			return true
		}
		measured := try(l.Tried)
		for measured && l.Refused > 0 && left > 0 && l.Refused-l.Taken > max(1, l.Taken/precision) {
			measured = try(l.Taken + (l.Refused-l.Taken)/2)
		}
		if l.Taken > 0 || l.Refused > 0 {
			s.limits[p.id] = l
		}
	}
}
