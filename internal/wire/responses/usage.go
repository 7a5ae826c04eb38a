package responses

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendUsage appends a usage object with all its members: clients require them.
func appendUsage(dst []byte, u *lathe.Usage) []byte {
	dst = appendInt(append(dst, '{'), "input_tokens", u.InputTokens)
	dst = appendInt(append(wire.AppendKey(dst, "input_tokens_details"), '{'), "cached_tokens", u.CachedTokens)
	dst = append(appendInt(dst, "cache_write_tokens", u.CacheWriteTokens), '}')
	dst = appendInt(dst, "output_tokens", u.OutputTokens)
	dst = append(appendInt(append(wire.AppendKey(dst, "output_tokens_details"), '{'), "reasoning_tokens", u.ReasoningTokens), '}')
	total := u.TotalTokens
	if total == 0 {
		total = u.InputTokens + u.OutputTokens
	}
	return append(appendInt(dst, "total_tokens", total), '}')
}

// readUsage reads a usage object. It returns how many of its members are no number of tokens.
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
