package transform

import (
	"context"
	"iter"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
)

// Wrap returns model with the chain between it and its caller. Around nothing to do there is
// nothing: with an empty chain, or none, it returns model itself.
//
// The model that it returns describes itself as model does. Opened, it keeps what it has changed:
// of a conversation that goes on, only what is new is changed, and the model beneath goes on
// appending.
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

var (
	_ lathe.Model     = (*changed)(nil)
	_ lathe.Describer = (*changed)(nil)
	_ lathe.Opener    = (*changed)(nil)
	_ lathe.Relayer   = (*changed)(nil)
	_ lathe.Relayer   = (*session)(nil)
)

// Relays reports whether answers may be shown as the server wrote them: the model beneath does that, and the chain
// does no more than fill blank arguments in. In a request it still does; see [conversation.request]. An
// answer that is relayed has blank arguments where the server wrote them. See [lathe.Relayer].
func (c *changed) Relays() bool { return relays(c.model, c.chain) }

func relays(m lathe.Model, chain *Chain) bool {
	r, ok := m.(lathe.Relayer)
	return ok && r.Relays() && chain.fillsOnly()
}

// Describe names the model; see [lathe.Describer].
func (c *changed) Describe() lathe.ModelInfo {
	info := describe(c.model)
	info.WritesCalls = info.WritesCalls || c.chain.tagCalls
	return info
}

func describe(m lathe.Model) lathe.ModelInfo {
	if d, ok := m.(lathe.Describer); ok {
		return d.Describe()
	}
	return lathe.ModelInfo{}
}

// Generate makes one call; see [lathe.Model].
func (c *changed) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		v := conversation{chain: c.chain} // of its own: the sequence may be run twice at once
		v.generate(ctx, c.model, req, yield)
	}
}

// Open returns the model for the turns of one run; see [lathe.Opener].
func (c *changed) Open() (lathe.Model, func()) {
	s := &session{model: c.model, conversation: conversation{chain: c.chain}}
	closeFn := func() {}
	if o, ok := c.model.(lathe.Opener); ok {
		s.model, closeFn = o.Open()
	}
	return s, closeFn
}

// A session is a changed model within one run.
type session struct {
	model        lathe.Model
	conversation conversation
}

// Describe names the model.
func (s *session) Describe() lathe.ModelInfo { return describe(s.model) }

// Relays is Relays of the changed model.
func (s *session) Relays() bool { return relays(s.model, s.conversation.chain) }

// Generate makes the next call of the run.
func (s *session) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		s.conversation.generate(ctx, s.model, req, yield)
	}
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

func (v *conversation) generate(ctx context.Context, model lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool) {
	out := v.request(req)
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
