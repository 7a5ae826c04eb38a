package tool

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// unknownTool stands in events for every name that is not registered.
const unknownTool = "unknown"

// find is stage 2: the tool of the exact name, else, with dots as underscores, of that one. What is
// hidden or kept from the run is unknown to it.
func (w *Work) find(c *call) {
	c.entry, c.client, c.tool = w.lookup(c.Name)
	c.foreign = c.client && w.client[c.tool] != nil
}

func (w *Work) lookup(name string) (e *entry, client bool, label string) {
	name = strings.TrimSpace(name)
	for range 2 {
		if e := w.has(name); e != nil && !e.spec.Hidden && w.may(name) {
			if e.spec.Owner == lathe.OwnerClient {
				return nil, true, e.spec.Name
			}
			return e, false, e.spec.Name
		}
		if spec := w.client[name]; spec != nil {
			return nil, true, spec.Name
		}
		if strings.IndexByte(name, '.') < 0 {
			break
		}
		name = strings.ReplaceAll(name, ".", "_")
	}
	return nil, w.handOver, unknownTool
}

// handedOver reports whether the client executes the call and answers it.
func (w *Work) handedOver(c *call) bool {
	return c.client && c.Answer == nil && c.Refuse == "" && c.ParseError == "" && !c.Incomplete && (w.handOver || c.seq < w.limits.MaxToolCalls)
}

// unknownName ends stage 2 for a name without a tool. The answer lists the names that there are.
func (w *Work) unknownName(c *call) (ended bool) {
	if c.entry != nil || c.client {
		return false
	}
	c.detailRaw("available_tools", w.advertised().names)
	return c.end(lathe.CodeUnknownTool)
}

// refused ends a call that its turn or its run refuses, one that the model did not finish, and one
// of the client that is beyond the limit on calls.
func (w *Work) refused(c *call) (ended bool) {
	switch {
	case c.Refuse != "":
		return c.end(c.Refuse)
	case c.ParseError != "":
		if c.ParseError == lathe.CodePayloadTooLarge {
			c.hit("max_payload_bytes", w.limits.MaxPayloadBytes)
		}
		return c.end(c.ParseError)
	case c.Incomplete:
		return c.end(lathe.CodeIncompleteCall)
	case c.client && c.Answer == nil:
		c.hit(keyMaxToolCalls, w.limits.MaxToolCalls)
		return c.end(lathe.CodeToolCallLimit)
	}
	return false
}
