package splice

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/loop"
)

// Clients return the answers that they received, most of them without the calls that ran on this server. On wires whose clients return
// opaque reasoning unchanged, an answer contains carriers: reasoning items whose opaque data is a sealed text (package seal) with the
// messages that the model received or wrote. In the conversation of the next request, the messages of a carrier replace the parts between
// the previous carrier and this one, and the calls after it that the messages also contain:
//
//	shown:   text A, carrier 1, text B, carrier 2, call c
//	opened:  carrier 1 = [assistant(text A, call s), tool(s)], carrier 2 = [assistant(text B, call c)]
//	history: assistant(text A, call s), tool(s), assistant(text B, call c)
//
// A carrier is written before the first text of a turn that follows calls of this server, and beside the calls that the client executes:
// before them, or after them if a stream had already begun one of them. It is bound to the key, the user, the session and the conversation
// before its message. A carrier that cannot be opened is removed and counted as a lost turn. Carriers are never sent to a model.

const (
	// maxCarried limits the messages of one carrier, in bytes of JSON. If they are larger, the carrier contains the id of the run instead,
	// whose log contains the messages.
	maxCarried = 48 << 10
	// maxCarriers limits the carriers that are opened per request, and maxReferred those of them that refer to a run.
	maxCarriers = 256
	maxReferred = 32
)

// carried is the content of a carrier.
type carried struct {
	Messages []lathe.Message `json:"messages,omitempty"`
	// If Messages is empty, the carrier refers to the messages [From, To) that the run RunID added to its conversation.
	RunID string `json:"run_id,omitempty"`
	From  int    `json:"from,omitempty"`
	To    int    `json:"to,omitempty"`
	// Keeps is the retention that applies to Messages once their turn is over; nil: all are kept. A run has its own retention.
	Keeps *event.RunRetention `json:"keeps,omitempty"`
}

// Carriers creates the carriers of one answer.
type Carriers struct {
	turns   *Turns
	ring    *seal.Ring
	binding func() []string // reads the whole conversation at its first call
	runID   string
	state   loop.State // state of the run after the last event passed to Note
	lost    bool       // the state could not be computed from the events: the last carrier covers all messages
	covered int        // number of messages of the run that earlier carriers cover
}

// sealBinding returns the texts to which a carrier is bound. before is the sum of the conversation before its message.
func sealBinding(who Owner, session string, before Sum) []string {
	return []string{"carrier", who.Principal, who.User, session, hex.EncodeToString(before[:])}
}

// sealOwner returns the owner of the conversation, without its model: a client may continue with another model.
func (r *Request) sealOwner() Owner {
	return Owner{Principal: r.Owner.Principal, User: r.Owner.User}
}

// Binding returns the texts to which the carriers are bound. It reads the whole conversation at its first call.
func (c *Carriers) Binding() []string { return c.binding() }

// StoredCarriers returns the Carriers of an earlier answer with its binding, or nil if the server has no keys for them.
func (ht *Turns) StoredCarriers(ctx context.Context, binding []string, runID string) *Carriers {
	ring, err := ht.opts.Seals.Get(ctx)
	if err != nil {
		return nil
	}
	return &Carriers{turns: ht, ring: ring, binding: func() []string { return binding }, runID: runID}
}

// NewCarriers returns the Carriers of an answer, or nil if the server has no keys for them, which is logged.
func (ht *Turns) NewCarriers(ctx context.Context, req *Request, runID string) *Carriers {
	ring, err := ht.opts.Seals.Get(ctx)
	if err != nil {
		ht.opts.Log.Error("the key of Carriers could not be read: the next request does not have what this run does on the gateway",
			"request_id", req.ID, "code", lathe.CodeOf(err))
		return nil
	}
	who, session, messages := req.sealOwner(), req.Session, req.Messages
	binding := sync.OnceValue(func() []string { // most answers have no carrier
		c := newHash(who)
		c.anonymous = true
		for i := range messages {
			c.Add(&messages[i])
		}
		return sealBinding(who, session, c.Sum())
	})
	return &Carriers{turns: ht, ring: ring, binding: binding, runID: runID}
}

// Note updates the state with an event of the run. c may be nil.
func (c *Carriers) Note(e *event.Event) {
	if c == nil || e.ID == 0 || c.lost {
		return
	}
	c.lost = c.state.Apply(e) != nil
}

// Before returns a carrier with the messages of the run between the previous carrier and its current turn, or "" if none exist.
func (c *Carriers) Before() string {
	if c.lost || len(c.state.Open) > 0 || len(c.state.Messages) == 0 {
		return ""
	}
	own := c.state.Messages[c.state.Start:]
	if len(own) <= c.covered {
		return ""
	}
	last := &own[len(own)-1]
	if last.Role != lathe.RoleTool && !last.Synthetic {
		return ""
	}
	return c.seal(own, own[c.covered:], c.state.Retention)
}

// End returns a carrier with the remaining messages of a run that added own to the conversation and returns calls to the client. It returns
// "" if the client receives all of their parts anyway.
func (c *Carriers) End(own []lathe.Message, client func(lathe.ToolCall) bool, retention *event.RunRetention) string {
	if len(own) <= c.covered || !slices.ContainsFunc(own[c.covered:], func(m lathe.Message) bool { return hides(&m, client) }) {
		return ""
	}
	return c.seal(own, loop.KeptHistory(own[c.covered:], retention), retention)
}

// hides reports whether a message has parts that the client does not return.
func hides(m *lathe.Message, client func(lathe.ToolCall) bool) bool {
	return slices.ContainsFunc(m.Parts, func(p lathe.Part) bool {
		switch p := p.(type) {
		case lathe.Reasoning:
			return p.Data != "" || p.Text != ""
		case lathe.ToolCall:
			return !client(p)
		case lathe.ToolResult, lathe.Opaque:
			return true
		default: // text, a refusal or a blob
			return false
		}
	})
}

// seal returns a carrier with messages, and counts all of own as covered. It returns "" if messages are too large and no store contains
// them.
func (c *Carriers) seal(own, messages []lathe.Message, keeps *event.RunRetention) string {
	from := c.covered
	c.covered = len(own)
	content, err := json.Marshal(&carried{Messages: messages, Keeps: keeps})
	if err != nil || len(content) > maxCarried {
		if c.turns.opts.Index == nil {
			c.turns.opts.Log.Warn("what a run did on the gateway is too large for a carrier, and no store keeps it: the next request does not have it",
				"run_id", c.runID, "bytes", len(content))
			return ""
		}
		if content, err = json.Marshal(&carried{RunID: c.runID, From: from, To: len(own)}); err != nil {
			return ""
		}
	}
	return c.ring.Seal(content, c.binding()...)
}

// An opener opens the carriers of one request.
type opener struct {
	turns    *Turns
	request  *Request
	ring     *seal.Ring
	ids      *CallIDs
	bindings map[string]openBinding // by the sealed text
	failed   *problem.Problem       // set by content if the store did not answer

	// The progress: Open sets over before each message, and content counts the runs and reads their logs.
	over     bool         // the turn of the current message is over
	referred int          // number of carriers that refer to a run
	runID    string       // run whose log was read last; the carriers of one run are consecutive
	view     *runlog.View // log of the run runID
}

// An openBinding is the binding of a carrier, and the one that earlier versions gave it, which includes the ids of calls.
type openBinding struct{ current, former []string }

// Open replaces the carriers in the conversation by their messages. Carriers that cannot be opened are removed and counted as lost.
func (ht *Turns) Open(ctx context.Context, req *Request, spliced *Spliced) {
	messages := spliced.Messages
	if !pairs.AnyPart(messages, IsCarrier) {
		return
	}
	out := make([]lathe.Message, 0, len(messages))
	o := &opener{turns: ht, request: req, bindings: map[string]openBinding{}}
	var err error
	if o.ring, err = ht.opts.Seals.Get(ctx); err != nil {
		spliced.Failed = problem.NotNow(err)
		return
	}
	o.ids = &CallIDs{ring: o.ring, principal: req.Owner.Principal}
	o.bind()
	newest := lastUser(messages)
	for next := 0; next < len(messages) && ctx.Err() == nil; {
		m := &messages[next]
		o.over = next < newest
		next++
		if !slices.ContainsFunc(m.Parts, IsCarrier) {
			out = append(out, *m)
			continue
		}
		answers := leadingResults(messages[next:])
		next += len(answers)
		var refused int
		out, refused = o.appendOpened(ctx, out, m, answers)
		spliced.Lost += refused
	}
	spliced.Messages, spliced.Changed, spliced.Failed = out, true, o.failed
}

// bind computes the bindings of the first maxCarriers carriers in the conversation of the client.
func (o *opener) bind() {
	who, session := o.request.sealOwner(), o.request.Session
	current, former := newHash(who), newHash(who)
	current.anonymous = true
	for i := range o.request.Messages {
		m := &o.request.Messages[i]
		for _, p := range m.Parts {
			if IsCarrier(p) && len(o.bindings) < maxCarriers {
				o.bindings[p.(lathe.Reasoning).Data] = openBinding{sealBinding(who, session, current.Sum()), sealBinding(who, session, former.Sum())}
			}
		}
		current.Add(m)
		former.Add(m)
	}
}

// IsCarrier reports whether a part has the form of a carrier.
func IsCarrier(p lathe.Part) bool {
	r, ok := p.(lathe.Reasoning)
	return ok && seal.Sealed(r.Data)
}

// appendOpened appends the messages in place of a message that has carriers, and its results. refused is the number of carriers that could
// not be opened.
func (o *opener) appendOpened(ctx context.Context, dst []lathe.Message, m *lathe.Message, answers []lathe.Message) (_ []lathe.Message, refused int) {
	rest := *m
	rest.Parts = nil
	var own []lathe.Message // messages of the carriers
	for _, p := range m.Parts {
		if !IsCarrier(p) {
			rest.Parts = append(rest.Parts, p)
			continue
		}
		opened, ok := o.content(ctx, p.(lathe.Reasoning).Data)
		if !ok {
			refused++
			continue
		}
		own, rest.Parts = append(own, opened...), nil // they replace the parts before the carrier
	}
	if len(own) == 0 {
		return appendShown(dst, &rest, answers), refused
	}
	rest, answers = o.ids.Originals([]lathe.Message{rest}, own)[0], o.ids.Originals(answers, own)
	open := pairs.OpenCalls(own)
	rest.Parts = slices.DeleteFunc(rest.Parts, func(p lathe.Part) bool {
		call, ok := p.(lathe.ToolCall)
		return ok && slices.ContainsFunc(open, func(c lathe.ToolCall) bool { return c.ID == call.ID })
	})
	if len(open) == 0 {
		return appendShown(append(dst, own...), &rest, answers), refused
	}
	joined, ok := pairs.Join(dst, own, answers)
	if !ok { // the client sent results of calls that the carrier does not contain
		shown := *m
		shown.Parts = slices.DeleteFunc(slices.Clone(m.Parts), IsCarrier)
		return appendShown(dst, &shown, answers), refused + 1
	}
	return joined, refused
}

// appendShown appends a message as the client sent it, unless it is empty, and its results.
func appendShown(dst []lathe.Message, m *lathe.Message, answers []lathe.Message) []lathe.Message {
	if len(m.Parts) > 0 {
		dst = append(dst, *m)
	}
	return append(dst, answers...)
}

// content returns the messages of the carrier whose sealed text is text. ok is false if it cannot be opened.
func (o *opener) content(ctx context.Context, text string) ([]lathe.Message, bool) {
	binding, bound := o.bindings[text]
	if !bound {
		return nil, false
	}
	content, err := o.ring.Open(text, binding.current...)
	if err != nil {
		content, err = o.ring.Open(text, binding.former...)
	}
	if err != nil {
		return nil, false
	}
	var c carried
	if err := json.Unmarshal(content, &c); err != nil { // written by a newer version
		return nil, false
	}
	if c.RunID == "" {
		return runlog.KeptOf(c.Messages, c.Keeps, o.over), len(c.Messages) > 0
	}
	o.referred++
	if o.referred > maxReferred || o.turns.opts.Index == nil {
		return nil, false
	}
	if c.RunID != o.runID {
		v, p := o.request.Runs.View(ctx, c.RunID)
		if p != nil {
			if !p.Absent() {
				o.failed = p
			}
			return nil, false
		}
		o.runID, o.view = c.RunID, v
	}
	v := o.view
	added := v.State.Messages[v.State.Start:]
	if c.From < 0 || c.From >= c.To || c.To > len(added) {
		return nil, false
	}
	return runlog.KeptOf(added[c.From:c.To], v.State.Retention, o.over), true
}

// Replay sets the state of the run to the state after own, the messages that the run added to its conversation.
func (c *Carriers) Replay(own []lathe.Message, l *loop.Loop) {
	c.lost, c.state = false, loop.State{Messages: own, Retention: l.Retention()}
}
