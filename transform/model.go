package transform

import (
	"context"
	"io"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
)

// Wrap returns a model that applies chain to the requests and answers of model. If chain is nil or empty, it returns model
// itself.
//
// The returned model describes itself as model does. Within a session it caches the changed messages: when a conversation
// grows, it changes only the new messages, and the wrapped model continues to append to its own encoded conversation.
func Wrap(model lathe.Model, chain *Chain) lathe.Model {
	if chain.Empty() {
		return model
	}
	return &changed{model: model, chain: chain}
}

// A changed model is a model behind a chain.
type changed struct {
	model lathe.Model
	chain *Chain
}

// Relays returns the wire of the wrapped model if the chain does no more than fill blank arguments in, else "". In a request
// it still does; see [conversation.request]. An answer that is relayed has blank arguments where the server wrote them.
// changed has this method, and no Unwrap, since relayed bytes must not bypass a chain that changes answers.
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
		if s, ok := req.Session.(*session); ok && s.of == c && s.busy.CompareAndSwap(false, true) {
			defer s.busy.Store(false)
			s.conversation.generate(ctx, c.model, s.inner, req, yield)
			return
		}
		v := conversation{chain: c.chain} // of its own: the sequence may be run twice at once
		v.generate(ctx, c.model, nil, req, yield)
	}
}

// OpenSession returns the state of one run: the messages before and after the chain, and the wrapped model's session.
func (c *changed) OpenSession() io.Closer {
	s := &session{of: c, conversation: conversation{chain: c.chain}}
	if o, ok := lathe.ModelAs[interface{ OpenSession() io.Closer }](c.model); ok {
		s.inner = o.OpenSession()
	}
	return s
}

// A session is what a changed model keeps between the turns of one run.
type session struct {
	of           *changed
	inner        io.Closer // of the wrapped model; nil: none
	busy         atomic.Bool
	conversation conversation
}

// Close closes the session of the wrapped model.
func (s *session) Close() error {
	if s.inner != nil {
		return s.inner.Close()
	}
	return nil
}

// A conversation keeps what was sent, before and after the chain.
type conversation struct {
	chain       *Chain
	given, sent []lathe.Message
	ids         callid.Short
	tools       []*lathe.ToolSpec
	sentTools   []*lathe.ToolSpec
	req         lathe.Request
}

func (v *conversation) generate(ctx context.Context, model lathe.Model, inner io.Closer, req *lathe.Request, yield func(lathe.Delta, error) bool) {
	out := v.request(req)
	out.Session = inner
	if !v.chain.reads() {
		model.Generate(ctx, out)(yield)
		return
	}
	r := newReading(v, req, yield)
	for d, err := range model.Generate(ctx, out) {
		if err != nil {
			r.broken(err)
			return
		}
		if !r.take(&d) {
			return
		}
	}
}

// request returns req as it is sent. It is good until the next call.
func (v *conversation) request(req *lathe.Request) *lathe.Request {
	v.req = *req
	if v.chain.sends() {
		v.req.Messages = v.messages(req.Messages)
		if req.Relay != nil && req.Relay.Request != nil && !goesOn(req.Messages, v.req.Messages) {
			relay := *req.Relay
			relay.Request = nil // the caller's own bytes have what the chain changes
			v.req.Relay = &relay
		}
	}
	if len(v.chain.tools) > 0 {
		v.req.Tools = v.specs(req.Tools)
	}
	return &v.req
}

func (v *conversation) messages(given []lathe.Message) []lathe.Message {
	if !goesOn(v.given, given) {
		v.given, v.sent = v.given[:0], nil // the model beneath may still look at what it was sent
		v.ids.Forget()
	}
	for _, m := range given[len(v.given):] {
		v.sent = append(v.sent, v.chain.message(m, &v.ids))
	}
	v.given = append(v.given, given[len(v.given):]...)
	return v.sent
}

func (v *conversation) specs(given []*lathe.ToolSpec) []*lathe.ToolSpec {
	if len(given) == 0 {
		return given
	}
	if slices.Equal(v.tools, given) {
		return v.sentTools
	}
	v.tools = append(v.tools[:0], given...)
	v.sentTools = slices.Clone(given)
	for _, change := range v.chain.tools {
		for i, s := range v.sentTools {
			v.sentTools[i] = change(s)
		}
	}
	return v.sentTools
}

// goesOn reports whether now begins with the messages of before. Messages do not change once they
// are handed over, so the identity of their parts is enough.
func goesOn(before, now []lathe.Message) bool {
	if len(now) < len(before) {
		return false
	}
	for i := range before {
		a, b := &before[i], &now[i]
		if a.Role != b.Role || a.Name != b.Name || !same(a.Parts, b.Parts) || !same(a.Extra, b.Extra) {
			return false
		}
	}
	return true
}

func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
