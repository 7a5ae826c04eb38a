package verify

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/doctor"
)

// A Budget bounds a verification. The verification makes at most Requests requests, and starts no request that could exceed Tokens.
type Budget struct {
	// Requests includes a reserve for repeated requests: one in twenty, and at least two for each endpoint.
	Requests int `json:"requests"`
	// InputTokens is an estimate: one token for four bytes. OutputTokens is the sum of the token limits of the answers, most of which use
	// far less.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// Tokens is the sum of InputTokens and OutputTokens, or Options.MaxTokens if that is lower. It limits the usage that the server reports
	// or, if the server reports none, an estimate.
	Tokens int64 `json:"max_tokens"`
}

// bytesPerToken is the ratio for estimates.
const bytesPerToken = 4

// requestBytes is the approximate size in bytes of a request, except those of limits.
const requestBytes = 1200

// maxCounted is the largest number of tokens that is counted for one answer, whatever usage the server reports.
const maxCounted = 1 << 40

// Plan returns the budget that [Run] would have with these options. It makes no requests. opts may be nil.
func Plan(opts *Options, reference bool) Budget {
	o := opts.withDefaults()
	target, other := o.plans()
	if !reference {
		target.Tokens = o.least(target.Tokens)
		return target
	}
	return Budget{target.Requests + other.Requests, target.InputTokens + other.InputTokens, target.OutputTokens + other.OutputTokens, o.least(target.Tokens + other.Tokens)}
}

// plans returns the budgets of the target and of the reference, which gets some requests twice.
func (o *Options) plans() (target, reference Budget) {
	n, bytes := 0, 0
	for _, s := range steps {
		if s.limits && !o.Limits {
			continue
		}
		n += s.requests(o)
		if s.bytes != nil {
			bytes += s.bytes(o)
		}
	}
	plan := func(n int) Budget {
		n += max(2, n/20)
		in := int64(n*requestBytes+bytes) / bytesPerToken
		out := int64(n) * int64(o.Doctor.MaxTokens)
		return Budget{n, in, out, in + out}
	}
	return plan(n), plan(n + len(triggers))
}

// least returns the smaller of n and Options.MaxTokens, if that is set.
func (o *Options) least(n int64) int64 {
	if o.MaxTokens > 0 {
		return min(n, o.MaxTokens)
	}
	return n
}

// share returns the part of the whole budget for one endpoint: its tokens are proportional to its requests.
func (b Budget) share(whole Budget) Budget {
	b.Tokens = int64(float64(whole.Tokens) * float64(b.Requests) / float64(whole.Requests))
	return b
}

// sizeOf estimates the number of tokens of a request.
func sizeOf(req *lathe.Request) int64 {
	n := requestBytes / 2
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case lathe.Text:
				n += len(p.Text)
			case lathe.ToolCall:
				n += len(p.Arguments)
			case lathe.Reasoning:
				n += len(p.Text) + len(p.Data)
			case lathe.Opaque:
				n += len(p.JSON)
			case lathe.ToolResult, lathe.Refusal, lathe.Blob: // short, or not used in these requests
			}
		}
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return int64(n) / bytesPerToken
}

// counted returns the number of tokens to count for a number that a server reported: 0 to maxCounted.
func counted(n int64) int64 { return min(max(n, 0), maxCounted) }

// used returns the number of tokens of a request and its answer, as reported by the server or estimated by size.
func used(a *doctor.Answer) int64 {
	if a.Finish != nil {
		n := counted(a.Finish.Usage.InputTokens) + counted(a.Finish.Usage.OutputTokens)
		if n > 0 {
			return n
		}
	}
	return int64(a.Sent+a.Received) / bytesPerToken
}
