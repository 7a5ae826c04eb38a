package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Newer models of Anthropic bind a block of thinking to the system text, the tools and all messages before it: a request in which any of
// them has changed is refused, or the block is dropped if the request asks for that. The model sim/fault-bound-thinking does so too. Its
// signatures contain a digest of what precedes them; cache_control does not count.

// bindingBeta is the beta that allows requests to choose what happens to thinking whose beginning has changed.
const bindingBeta = "thinking-binding-controls-2026-08-01"

// binds reports whether the model binds its thinking.
func (x *exchange) binds() bool {
	return x.spec.fault != nil && x.spec.fault.strictSignatures == boundSignatures
}

// before returns what the thinking of the answer depends on; "" if it depends on nothing.
func (x *exchange) before() string {
	if !x.binds() {
		return ""
	}
	return before(x.body, -1)
}

// before returns the digest of what precedes message i of a request of Messages; i < 0: of the whole request.
func before(body []byte, i int) string {
	var b []byte
	for _, name := range []string{"system", "tools"} {
		if v, ok := rawjson.Get(body, name); ok {
			b = appendUncached(append(b, name...), v)
		}
	}
	messages, _ := rawjson.Get(body, "messages")
	n := 0
	for m := range rawjson.Elements(messages) {
		if n++; i >= 0 && n > i {
			break
		}
		b = appendUncached(b, m)
	}
	return digest(string(b))
}

// appendUncached appends a JSON value without white space and without members cache_control. The order of members counts.
func appendUncached(dst, v []byte) []byte {
	switch v[0] {
	case '{':
		dst = append(dst, '{')
		for key, value := range rawjson.Members(v) {
			if !rawjson.EqualKey(key, "cache_control") {
				dst = appendUncached(append(append(dst, key...), ':'), value)
				dst = append(dst, ',')
			}
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for value := range rawjson.Elements(v) {
			dst = append(appendUncached(dst, value), ',')
		}
		return append(dst, ']')
	}
	return rawjson.AppendCompact(dst, v)
}

// refusedBinding returns the error of a request in which what precedes a block of thinking has changed.
func refusedBinding(body []byte, h http.Header) *wire.APIError {
	thinking, _ := rawjson.Get(body, "thinking")
	binding, chosen := rawjson.Get(thinking, "block_binding")
	if chosen && !slices.ContainsFunc(h.Values("Anthropic-Beta"), func(v string) bool { return strings.Contains(v, bindingBeta) }) {
		return badRequest("thinking.block_binding: Extra inputs are not permitted")
	}
	if behavior, _ := rawjson.Get(binding, "prefix_mismatch_behavior"); rawjson.Text(behavior) == "drop_block" {
		return nil
	}
	messages, _ := rawjson.Get(body, "messages")
	i := -1
	for m := range rawjson.Elements(messages) {
		i++
		content, _ := rawjson.Get(m, "content")
		if content == nil || content[0] != '[' {
			continue
		}
		j := -1
		for block := range rawjson.Elements(content) {
			j++
			data, ok := rawjson.Get(block, "signature")
			if !ok {
				continue
			}
			if s, ok := readSignature(rawjson.Text(data)); ok && s.before != "" && s.before != before(body, i) {
				return badRequest(fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "+
					"Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".", i, j))
			}
		}
	}
	return nil
}
