package messages

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A usage contains the token counts of the wire: input excludes tokens read from or written to the prompt cache.
type usage struct{ input, written, read, output, thinking int64 }

// takeUsage reads a usage object. Counts are cumulative, so the largest received value applies.
func (a *assembler) takeUsage(v []byte) {
	if rawjson.Kind(v) != '{' {
		return
	}
	take := func(v []byte, to *int64) {
		if isNull(v) {
			return
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || n < 0 || n > 1<<53 {
			a.fault(faultUsage)
			return
		}
		*to = max(*to, n)
	}
	for key, v := range rawjson.Members(v) {
		switch string(key) {
		case `"input_tokens"`:
			take(v, &a.usage.input)
		case `"cache_creation_input_tokens"`:
			take(v, &a.usage.written)
		case `"cache_read_input_tokens"`:
			take(v, &a.usage.read)
		case `"output_tokens"`:
			take(v, &a.usage.output)
		case `"output_tokens_details"`:
			if n := get(v, "thinking_tokens"); n != nil {
				take(n, &a.usage.thinking)
			}
		}
	}
}

// internal converts the usage to the internal form, in which input tokens include those of the cache.
func (u usage) internal() lathe.Usage {
	in := u.input + u.written + u.read
	return lathe.Usage{InputTokens: in, OutputTokens: u.output, TotalTokens: in + u.output,
		CachedTokens: u.read, CacheWriteTokens: u.written, ReasoningTokens: u.thinking}
}

// appendUsage appends the usage object of the wire.
func appendUsage(dst wire.JSON, u *lathe.Usage) wire.JSON {
	return dst.Raw(wire.ObjectOf("input_tokens", max(u.InputTokens-u.CachedTokens-u.CacheWriteTokens, 0), "cache_creation_input_tokens", u.CacheWriteTokens,
		"cache_read_input_tokens", u.CachedTokens, "output_tokens", u.OutputTokens,
		"output_tokens_details", wire.ObjectOf("thinking_tokens", u.ReasoningTokens)))
}
