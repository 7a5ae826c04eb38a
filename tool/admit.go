package tool

import (
	"math"

	"github.com/lathe-run/lathe"
)

// handedOver reports whether the client must execute the call.
func (c *call) handedOver() bool {
	if !c.client || c.Answer != nil || c.Refuse != "" || c.ParseError != "" || c.Incomplete {
		return false
	}
	return c.w.tools.handOver || c.seq < c.w.limits.MaxToolCalls
}

// admit ends a call that its turn or its run refuses, an unreadable or incomplete call, and a call of the client beyond the limit on calls.
func admit(c *call) ending {
	w := c.w
	switch {
	case c.Refuse != "":
		return fail(c.Refuse)
	case c.ParseError != "":
		if c.ParseError == lathe.CodePayloadTooLarge {
			c.hit(c.payloadLimit())
		}
		return fail(c.ParseError)
	case c.Incomplete:
		return fail(lathe.CodeIncompleteCall)
	case c.client && c.Answer == nil:
		c.hit(keyMaxToolCalls, w.limits.MaxToolCalls)
		return fail(lathe.CodeToolCallLimit)
	}
	return proceed
}

// maxToolPayload is the limit on a payload in harmony's channel `tool`, in bytes, if max_payload_bytes is not set.
const maxToolPayload = 8 << 10

// payloadLimit returns the limit that a call in text has exceeded, as key and value.
func (c *call) payloadLimit() (key string, limit int) {
	switch most := c.w.limits.MaxPayloadBytes; {
	case most != math.MaxInt:
		return "max_payload_bytes", most
	case c.Dialect == "harmony" && len(c.Arguments) <= maxToolPayload:
		return "max_payload_bytes", maxToolPayload
	}
	return "max_tool_args_bytes", c.w.limits.MaxToolArgsBytes
}
