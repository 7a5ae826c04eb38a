package responses

import (
	"cmp"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendUsage appends a usage object with all members, because clients require them.
func appendUsage(dst wire.JSON, u *lathe.Usage) wire.JSON {
	return dst.Raw(wire.ObjectOf(
		"input_tokens", u.InputTokens, "input_tokens_details", wire.ObjectOf("cached_tokens", u.CachedTokens, "cache_write_tokens", u.CacheWriteTokens),
		"output_tokens", u.OutputTokens, "output_tokens_details", wire.ObjectOf("reasoning_tokens", u.ReasoningTokens),
		"total_tokens", cmp.Or(u.TotalTokens, u.InputTokens+u.OutputTokens)))
}

// readUsage parses a usage object. bad is the number of members that are not a number of tokens.
func readUsage(v []byte) (u lathe.Usage, bad int) {
	count := func(obj []byte, name string, to *int64) {
		v := get(obj, name)
		n, err := strconv.ParseInt(string(v), 10, 64)
		switch {
		case v == nil:
		case err != nil || n < 0:
			bad++
		default:
			*to = n
		}
	}
	count(v, "input_tokens", &u.InputTokens)
	count(v, "output_tokens", &u.OutputTokens)
	count(v, "total_tokens", &u.TotalTokens)
	details := get(v, "input_tokens_details")
	count(details, "cached_tokens", &u.CachedTokens)
	count(details, "cache_write_tokens", &u.CacheWriteTokens)
	count(get(v, "output_tokens_details"), "reasoning_tokens", &u.ReasoningTokens)
	if u.TotalTokens == 0 {
		u.TotalTokens = u.InputTokens + u.OutputTokens
	}
	return u, bad
}
