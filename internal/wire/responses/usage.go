package responses

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendUsage appends a usage object with all members, because clients require them.
func appendUsage(dst wire.JSON, u *lathe.Usage) wire.JSON {
	dst = dst.Lit("{").Num("input_tokens", u.InputTokens).Obj("input_tokens_details").Num("cached_tokens", u.CachedTokens).
		Num("cache_write_tokens", u.CacheWriteTokens).Lit("}").Num("output_tokens", u.OutputTokens).Obj("output_tokens_details").
		Num("reasoning_tokens", u.ReasoningTokens).Lit("}")
	total := u.TotalTokens
	if total == 0 {
		total = u.InputTokens + u.OutputTokens
	}
	return dst.Num("total_tokens", total).Lit("}")
}

// readUsage parses a usage object. bad is the number of members that are not a number of tokens.
func readUsage(v []byte) (u lathe.Usage, bad int) {
	count := func(obj []byte, name string, to *int64) {
		raw := get(obj, name)
		if raw == nil {
			return
		}
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n < 0 {
			bad++
			return
		}
		*to = n
	}
	count(v, "input_tokens", &u.InputTokens)
	count(v, "output_tokens", &u.OutputTokens)
	count(v, "total_tokens", &u.TotalTokens)
	if d := get(v, "input_tokens_details"); d != nil {
		count(d, "cached_tokens", &u.CachedTokens)
		count(d, "cache_write_tokens", &u.CacheWriteTokens)
	}
	if d := get(v, "output_tokens_details"); d != nil {
		count(d, "reasoning_tokens", &u.ReasoningTokens)
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.InputTokens + u.OutputTokens
	}
	return u, bad
}
