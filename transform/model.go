package transform

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
)

// Wrap returns a model that applies chain to the requests and answers of model, and describes itself as model does. If chain is nil or
// empty, it returns model.
func Wrap(model lathe.Model, chain *Chain) lathe.Model {
	if chain.Empty() {
		return model
	}
	return &changed{model: model, chain: chain}
}

// changed is a model whose requests and answers pass through a chain.
type changed struct {
	model lathe.Model
	chain *Chain
	tools atomic.Pointer[changedTools]
}

// changedTools are the tools of a request before (given) and after (sent) the chain.
type changedTools struct{ given, sent []*lathe.ToolSpec }

// Relays returns the wire of the wrapped model if the chain only fills in blank arguments, and "" otherwise. The blank arguments of a relayed
// request are still filled in: see [changed.request]. Those of a relayed answer are not. changed has this method, and no
// Unwrap, since relayed bytes must not bypass a chain that changes answers.
func (c *changed) Relays() lathe.Wire {
	r, ok := lathe.ModelAs[interface{ Relays() lathe.Wire }](c.model)
	if !ok || !c.chain.fillsOnly() {
		return ""
	}
	return r.Relays()
}

// Describe returns the description of the wrapped model, with WritesCalls if the chain reads calls from text.
func (c *changed) Describe() lathe.ModelInfo {
	info := c.model.Describe()
	info.WritesCalls = info.WritesCalls || c.chain.tagCalls
	return info
}

// Generate makes one call; see [lathe.Model].
func (c *changed) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		out, ids := c.request(req)
		if !c.chain.changesAnswers() {
			c.model.Generate(ctx, out)(yield)
			return
		}
		r := newReading(c.chain, ids, req, yield)
		for d, err := range c.model.Generate(ctx, out) {
			if err != nil {
				r.broken(err)
				return
			}
			if !r.take(&d) {
				return
			}
		}
	}
}

// request returns a copy of req in the form in which it is sent, and the short ids of its calls.
func (c *changed) request(req *lathe.Request) (*lathe.Request, *callid.Short) {
	out, ids := *req, &callid.Short{}
	if c.chain.changesMessages() {
		out.Messages = make([]lathe.Message, len(req.Messages))
		for i, m := range req.Messages {
			out.Messages[i] = c.chain.message(m, ids)
		}
		if req.Relay != nil && req.Relay.Request != nil && !slices.EqualFunc(req.Messages, out.Messages, unchanged) {
			relay := *req.Relay
			relay.Request = nil // the bytes of the caller still contain what the chain has changed
			out.Relay = &relay
		}
	}
	if len(c.chain.tools) > 0 && len(req.Tools) > 0 {
		out.Tools = c.specs(req.Tools)
	}
	return &out, ids
}

// specs returns the changed definitions of tools. If the tools are the same as in the last request, it returns the same pointers, because
// models recognise definitions that they have already encoded by their address.
func (c *changed) specs(given []*lathe.ToolSpec) []*lathe.ToolSpec {
	if last := c.tools.Load(); last != nil && slices.Equal(last.given, given) {
		return last.sent
	}
	sent := slices.Clone(given)
	for _, change := range c.chain.tools {
		for i, s := range sent {
			sent[i] = change(s)
		}
	}
	c.tools.Store(&changedTools{slices.Clone(given), sent})
	return sent
}

// unchanged reports whether b is a as it was. Messages are immutable once passed, so comparing the addresses of their parts is enough.
func unchanged(a, b lathe.Message) bool {
	return a.Role == b.Role && a.Name == b.Name && same(a.Parts, b.Parts) && same(a.Extra, b.Extra)
}

func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
