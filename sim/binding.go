package sim

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Newer models of Anthropic bind a block of thinking to the system text, the tools and all messages before it. If any of them changes, a
// request is refused, or the block is dropped if the request says so. The model sim/fault-bound-thinking does the same: its signatures
// contain a digest of what precedes them, without cache_control.

// bindingBeta is the beta header that allows requests to choose what happens to thinking whose preceding messages have changed.
const bindingBeta = "thinking-binding-controls-2026-08-01"

// binds reports whether the model binds its thinking to the preceding messages.
func (x *exchange) binds() bool {
	return x.spec.fault != nil && x.spec.fault.strictSignatures == boundSignatures
}

// before returns the digest to which the thinking of the answer is bound; "" if the model does not bind it.
func (x *exchange) before() string {
	if !x.binds() {
		return ""
	}
	return before(x.body, math.MaxInt)
}

// before returns the digest of what precedes message i of a request on the wire Messages: the system text, the tools and the messages before
// it. An i beyond the last message means the whole request.
func before(body []byte, i int) string {
	var b []byte
	for _, name := range []string{"system", "tools"} {
		if v := rawjson.At(body, name); v != nil {
			b = appendUncached(append(b, name...), v)
		}
	}
	n := 0
	for m := range rawjson.Elements(rawjson.At(body, "messages")) {
		if n++; n > i {
			break
		}
		b = appendUncached(b, m)
	}
	return digest(string(b))
}

// appendUncached appends a JSON value without white space and without members named cache_control. It retains the order of members.
func appendUncached(dst, v []byte) []byte {
	if v[0] != '{' && v[0] != '[' {
		return rawjson.AppendCompact(dst, v)
	}
	return rawjson.AppendEach(dst, v, func(dst, key, value []byte) []byte {
		if rawjson.EqualKey(key, "cache_control") {
			return dst
		}
		return appendUncached(dst, value)
	})
}

// refusedBinding returns the error of a request in which something before a block of thinking has changed, or nil.
func refusedBinding(body []byte, h http.Header) *wire.APIError {
	binding := rawjson.At(body, "thinking", "block_binding")
	if binding != nil && !slices.ContainsFunc(h.Values("Anthropic-Beta"), func(v string) bool { return strings.Contains(v, bindingBeta) }) {
		return badRequest("thinking.block_binding: Extra inputs are not permitted")
	}
	if rawjson.TextAt(binding, "prefix_mismatch_behavior") == "drop_block" {
		return nil
	}
	i := -1
	for m := range rawjson.Elements(rawjson.At(body, "messages")) {
		i++
		j := -1
		for block := range rawjson.Elements(rawjson.At(m, "content")) {
			j++
			if s, ok := readSignature(rawjson.TextAt(block, "signature")); ok && s.before != "" && s.before != before(body, i) {
				return badRequest(fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "+
					"Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".", i, j))
			}
		}
	}
	return nil
}
