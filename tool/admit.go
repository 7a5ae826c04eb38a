package tool

import "github.com/lathe-run/lathe"

// handedOver reports whether the client executes the call and answers it.
func (c *call) handedOver() bool {
	w := c.w
	return c.client && c.Answer == nil && c.Refuse == "" && c.ParseError == "" && !c.Incomplete && (w.tools.handOver || c.seq < w.limits.MaxToolCalls)
}

// admit ends a call that its turn or its run refuses, one that the model did not finish, and one of the client that is
// beyond the limit on calls.
func admit(c *call) ending {
	w := c.w
	switch {
	case c.Refuse != "":
		return fail(c.Refuse)
	case c.ParseError != "":
		if c.ParseError == lathe.CodePayloadTooLarge {
			c.hit("max_payload_bytes", w.limits.MaxPayloadBytes)
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
