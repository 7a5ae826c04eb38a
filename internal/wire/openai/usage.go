package openai

import (
	"math"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

func appendUsage(dst wire.JSON, u *lathe.Usage, cost *float64) wire.JSON {
	return dst.Raw(wire.ObjectOf("prompt_tokens", u.InputTokens, "completion_tokens", u.OutputTokens, "total_tokens", u.TotalTokens,
		"prompt_tokens_details", wire.ObjectOf("cached_tokens", u.CachedTokens), "completion_tokens_details", wire.ObjectOf("reasoning_tokens", u.ReasoningTokens),
		"cost", cost))
}

// takeUsage reads a usage object. If a server sends one in every chunk, the counts are cumulative and the last one applies.
func (r *content) takeUsage(raw []byte) {
	if kind(raw) != '{' {
		return
	}
	var u lathe.Usage
	bad := 0
	count := func(v []byte, to *int64) {
		if v == nil || string(v) == "null" {
			return
		}
		n, ok := tokens(v)
		if !ok {
			bad++
			return
		}
		*to = n
	}
	for k, v := range rawjson.Members(raw) {
		switch string(k) {
		case `"prompt_tokens"`, `"input_tokens"`:
			count(v, &u.InputTokens)
		case `"completion_tokens"`, `"output_tokens"`:
			count(v, &u.OutputTokens)
		case `"total_tokens"`:
			count(v, &u.TotalTokens)
		case `"prompt_tokens_details"`, `"input_tokens_details"`:
			count(rawjson.At(v, "cached_tokens"), &u.CachedTokens)
		case `"completion_tokens_details"`, `"output_tokens_details"`:
			count(rawjson.At(v, "reasoning_tokens"), &u.ReasoningTokens)
		case `"cost"`:
			if kind(v) == '{' {
				v = rawjson.At(v, "total_cost")
			}
			if f, ok := number(v); ok && f >= 0 {
				r.cost = &f
			}
		}
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.InputTokens + u.OutputTokens
	}
	r.usage = u
	r.Faults = wire.CountFault(r.Faults, FaultUsageInvalid, bad)
}

// tokens parses a number of tokens, which may also be a string or a float. It returns false if it is negative or not a number.
func tokens(v []byte) (int64, bool) {
	v = value(v).body()
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return max(n, 0), n >= 0
	}
	f, ok := number(v)
	if !ok || f < 0 || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// number parses a number, which may also be a string. It returns false if it is not a finite number.
func number(v []byte) (float64, bool) {
	v = value(v).body()
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil && math.Abs(f) <= math.MaxFloat64
}
