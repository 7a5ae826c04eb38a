package splice

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/seal"
)

// If a run may call tools of this server, the calls that it returns to its client have ids of the gateway. One such id is enough to find
// the hidden turns before its call, whatever else of the conversation the client has changed or left out. The id that the model server gave
// the call stays in the log and in memory, and is the one that the model receives. The id of the gateway is:
//
//	"call_" RUN "_" BASE64URL(turn, 2 bytes; hash of the model server's id, 4 bytes; mark, 12 bytes)
//
// RUN is the id of the run without its prefix. The mark (package seal) is bound to the key, so that no client can refer to a turn of
// another key. It is not bound to the user: agents send a session in that field, and continue a conversation in another session. Relayed
// answers, and answers of runs without tools of this server, keep the ids of the model server.

const (
	callPrefix   = "call_"
	callIDTurn   = 2
	callIDHash   = 4
	callIDTail   = (callIDTurn + callIDHash + seal.MarkSize) / 3 * 4 // characters of base64
	maxCallRunID = maxCallID - len(callPrefix) - 1 - callIDTail
	maxCallID    = 64
)

// CallIDs creates and parses the ids of calls that a run returns to its client.
type CallIDs struct {
	ring      *seal.Ring
	principal string
	run       string // run whose calls get ids
}

// NewCallIDs returns the CallIDs of a run for a client of the principal. It returns nil if the id of the run is too long or the key cannot
// be read, which is logged; the calls then keep the ids of the model server.
func (ht *Turns) NewCallIDs(ctx context.Context, principal, run string) *CallIDs {
	if len(strings.TrimPrefix(run, runlog.RunPrefix)) > maxCallRunID {
		return nil
	}
	ring, err := ht.opts.Seals.Get(ctx)
	if err != nil {
		ht.opts.Log.Error("the key of call ids could not be read: the answer has those of the model server", "run_id", run, "code", lathe.CodeOf(err))
		return nil
	}
	return NewCallIDs(ring, principal, run)
}

// NewCallIDs returns the CallIDs of a run for a client of the principal.
func NewCallIDs(ring *seal.Ring, principal, run string) *CallIDs {
	return &CallIDs{ring, principal, run}
}

// Original returns the model server's id of the call in messages, which are those of the run, for an id of the gateway; "" if there is
// none.
func (ids *CallIDs) Original(messages []lathe.Message, id string) string {
	ref, ok := ids.parse(id)
	if !ok || ref.run != ids.run {
		return ""
	}
	if original := matchCall(messages, id, ref); original != id {
		return original
	}
	return ""
}

// matchCall returns the id of the call with the hash of ref, in the last message that has one; id if none exists.
func matchCall(messages []lathe.Message, id string, ref callRef) string {
	for _, m := range slices.Backward(messages) {
		for _, call := range m.Calls() {
			if hashOfCall(call.ID) == ref.hash {
				return call.ID
			}
		}
	}
	return id
}

// A callRef is the content of a call id.
type callRef struct {
	run  string
	turn int
	hash [callIDHash]byte // hash of the model server's id
}

func (r *callRef) head() []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(r.turn)), r.hash[:]...)
}

func hashOfCall(id string) [callIDHash]byte {
	sum := sha256.Sum256([]byte(id))
	return [callIDHash]byte(sum[:])
}

func (ids *CallIDs) binding(run string) []string {
	return []string{"call", ids.principal, run}
}

// makes reports whether the calls of a turn get ids of the gateway. Calls of turns beyond the largest number in an id keep the ids of the
// model server, and are found by the conversation before them.
func (ids *CallIDs) makes(turn int) bool { return ids != nil && turn <= math.MaxUint16 }

// Of returns the id of the gateway for a call of a turn that has the given id from the model server.
func (ids *CallIDs) Of(turn int, id string) string {
	if !ids.makes(turn) {
		return id
	}
	ref := callRef{run: ids.run, turn: turn, hash: hashOfCall(id)}
	tail := ref.head()
	tail = append(tail, ids.ring.Mark(tail, ids.binding(ref.run)...)...)
	return callPrefix + strings.TrimPrefix(ref.run, runlog.RunPrefix) + "_" + base64.RawURLEncoding.EncodeToString(tail)
}

// splitCallID splits an id that has the form of the gateway's ids into the run, without its prefix, and the base64 text after it.
func splitCallID(id string) (run, tail string, ok bool) {
	rest, ok := strings.CutPrefix(id, callPrefix)
	at := len(rest) - callIDTail - 1
	if !ok || len(id) > maxCallID || at <= 0 || rest[at] != '_' {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}

// parse parses an id. ok is false if this server did not create it for this caller.
func (ids *CallIDs) parse(id string) (ref callRef, ok bool) {
	run, text, ok := splitCallID(id)
	tail, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(tail) != callIDTurn+callIDHash+seal.MarkSize { // the decoder ignores newlines, which shorten tail
		return ref, false
	}
	ref.run, ref.turn = runlog.RunPrefix+run, int(binary.BigEndian.Uint16(tail))
	copy(ref.hash[:], tail[callIDTurn:])
	head := tail[:callIDTurn+callIDHash]
	return ref, ids.ring.Marked(tail[len(head):], head, ids.binding(ref.run)...)
}

func (r *callRef) key() Key {
	c := newHash(Owner{})
	c.Text(r.run)
	c.Bytes(r.head()[:callIDTurn])
	return Key(c.Sum())
}

// IsGatewayID reports whether an id has the form of ids that this server creates. It does not check the mark.
func IsGatewayID(id string) bool {
	_, _, ok := splitCallID(id)
	return ok
}

// gatewayID returns the id of the call or result if it has the form of ids that this server creates, else "".
func gatewayID(p lathe.Part) string {
	id := ""
	switch p := p.(type) {
	case lathe.ToolCall:
		id = p.ID
	case lathe.ToolResult:
		id = p.CallID
	default: // other parts have no such id
	}
	if !IsGatewayID(id) {
		return ""
	}
	return id
}

// CallIDsIn returns CallIDs that can parse the ids of calls in messages, or nil if none has the form of the gateway's ids.
func (ht *Turns) CallIDsIn(ctx context.Context, principal string, messages []lathe.Message) (*CallIDs, *problem.Problem) {
	if !pairs.AnyPart(messages, func(p lathe.Part) bool { return gatewayID(p) != "" }) {
		return nil, nil
	}
	ring, err := ht.opts.Seals.Get(ctx)
	if err != nil {
		return nil, problem.NotNow(err)
	}
	return &CallIDs{ring: ring, principal: principal}, nil
}

// RestoreIDs replaces the gateway's ids in the messages of the request by those of the model server, and sets req.CallTurns to the turns of
// the messages with calls. If a client has joined several answers to one message, RestoreIDs splits it into one message for each turn.
func (ht *Turns) RestoreIDs(ctx context.Context, req *Request) *problem.Problem {
	ids, p := ht.CallIDsIn(ctx, req.Owner.Principal, req.Messages)
	if ids == nil {
		return p
	}
	r := &idRestorer{waiting: req.Waiting, of: map[string]*CallTurn{}, refs: map[string]callRef{}}
	if p := r.load(ctx, ht, ids, req); p != nil || len(r.refs) == 0 {
		return p
	}
	var out []lathe.Message
	turns := map[int]*CallTurn{}
	for rest := req.Messages; len(rest) > 0 && ctx.Err() == nil; {
		m := &rest[0]
		rest = rest[1:]
		if len(m.Calls()) == 0 {
			out = append(out, r.mapped(*m))
			continue
		}
		answers := leadingResults(rest)
		rest = rest[len(answers):]
		out = r.appendTurns(out, turns, m, answers)
	}
	if ctx.Err() == nil {
		req.Messages, req.CallTurns = out, turns
	}
	return nil
}

// leadingResults returns the tool results at the beginning of the messages.
func leadingResults(messages []lathe.Message) []lathe.Message {
	n := 0
	for n < len(messages) && messages[n].Role == lathe.RoleTool {
		n++
	}
	return messages[:n]
}

// A CallTurn is the turn to which the call ids in a message of a client refer.
type CallTurn struct {
	ref   callRef
	turns *Stored // nil: no turns are stored
}

// An idRestorer is the state of one call of [Turns.RestoreIDs].
type idRestorer struct {
	waiting *approval.Sentence
	of      map[string]*CallTurn // turn by the gateway's id of a call
	refs    map[string]callRef   // parsed id by the gateway's id of a call
}

// load finds the turns of all gateway ids in the messages of the request. It reads the log of a run at most once.
func (r *idRestorer) load(ctx context.Context, ht *Turns, ids *CallIDs, c *Request) *problem.Problem {
	known := map[Key]*CallTurn{}
	unread := map[string][]*CallTurn{} // turns to read from the log, by run
	var runs []string                  // keys of unread, in the order of the messages
	find := func(ref callRef) *CallTurn {
		key := ref.key()
		if t := known[key]; t != nil {
			return t
		}
		t := &CallTurn{ref: ref, turns: ht.store.find(key)}
		known[key] = t
		if t.turns == nil || t.turns.RunID != "" { // serve.max_calls bounds their number
			if unread[ref.run] == nil {
				runs = append(runs, ref.run)
			}
			unread[ref.run] = append(unread[ref.run], t)
		}
		return t
	}
	for _, m := range c.Messages {
		for _, p := range m.Parts {
			id := gatewayID(p)
			if _, has := r.refs[id]; id == "" || has {
				continue
			}
			if ref, ok := ids.parse(id); ok {
				r.of[id], r.refs[id] = find(ref), ref
			}
		}
	}
	for _, run := range runs {
		if p := ht.loadCallTurns(ctx, c, run, unread[run]); p != nil || ctx.Err() != nil {
			return p
		}
	}
	return nil
}

func (r *idRestorer) mapped(m lathe.Message) lathe.Message {
	return withIDs(m, func(id string) string {
		t := r.of[id]
		if t == nil || t.turns == nil {
			return id
		}
		return matchCall(t.turns.messages, id, r.refs[id])
	})
}

// Originals returns messages with the ids that their calls have in own, the messages of a run. If ids is nil, it returns messages as they
// are.
func (ids *CallIDs) Originals(messages, own []lathe.Message) []lathe.Message {
	if ids == nil {
		return messages
	}
	out := make([]lathe.Message, len(messages))
	for i := range messages {
		out[i] = withIDs(messages[i], func(id string) string {
			if ref, ok := ids.parse(id); ok {
				return matchCall(own, id, ref)
			}
			return id
		})
	}
	return out
}

// withIDs returns the message with other(id) in place of each id that has the form of the gateway's ids.
func withIDs(m lathe.Message, other func(id string) string) lathe.Message {
	cloned := false // a message without such ids keeps its parts, because package places compares their addresses
	for i, p := range m.Parts {
		id := gatewayID(p)
		if id == "" {
			continue
		}
		if !cloned {
			m.Parts, cloned = slices.Clone(m.Parts), true
		}
		switch p := p.(type) {
		case lathe.ToolCall:
			p.ID = other(id)
			m.Parts[i] = p
		case lathe.ToolResult:
			p.CallID = other(id)
			m.Parts[i] = p
		default: // gatewayID returned "" for other parts
		}
	}
	return m
}

// A turnShare is the part of a client's message that belongs to one turn.
type turnShare struct {
	turn    *CallTurn // nil: the calls have no ids of the gateway
	parts   []lathe.Part
	calls   int // index in parts after the last call
	answers []lathe.Message
}

// shares splits a message with calls, and the results of the calls, into the shares of its turns.
func (r *idRestorer) shares(m *lathe.Message, answers []lathe.Message) []*turnShare {
	last := &turnShare{}
	all := []*turnShare{last}
	of := map[string]*turnShare{} // by the id of a call
	for _, p := range m.Parts {
		if call, is := p.(lathe.ToolCall); is {
			t := r.of[call.ID]
			if last.calls > 0 && t != last.turn {
				last = last.split()
				all = append(all, last)
			}
			last.turn, last.calls = t, len(last.parts)+1
			of[call.ID] = last
		}
		last.parts = append(last.parts, p)
	}
	for i := range answers {
		share := cmp.Or(of[pairs.Answered(&answers[i])], last)
		share.answers = append(share.answers, answers[i])
	}
	if len(all) == 1 {
		last.parts = m.Parts // package places compares the addresses of parts
	}
	return all
}

// split moves the parts after the calls to a new share, since parts between the calls of two turns belong to the later one. Only a carrier
// directly after calls without an earlier carrier stays.
func (s *turnShare) split() *turnShare {
	end := s.calls
	if end < len(s.parts) && IsCarrier(s.parts[end]) && !slices.ContainsFunc(s.parts[:end], IsCarrier) {
		end++
	}
	later := &turnShare{parts: slices.Clone(s.parts[end:])}
	s.parts = s.parts[:end]
	return later
}

// appendTurns appends a message with calls and its results, as one message for each turn whose calls it contains.
func (r *idRestorer) appendTurns(out []lathe.Message, turns map[int]*CallTurn, m *lathe.Message, answers []lathe.Message) []lathe.Message {
	for _, share := range r.shares(m, answers) {
		if share.turn != nil {
			turns[len(out)] = share.turn
		}
		own := *m
		own.Parts = share.parts
		waiting := r.withdrawWaiting(&own, share.turn)
		out = append(out, r.mapped(own))
		for _, answer := range share.answers {
			out = append(out, r.mapped(answer))
		}
		if waiting != nil {
			out = append(out, *waiting)
		}
	}
	return out
}

// withdrawWaiting removes the sentence of a waiting run from a message that has calls of the same run, and returns it as a separate
// message; nil if none exists. The sentence was a separate answer, which the client has joined to this one.
func (r *idRestorer) withdrawWaiting(m *lathe.Message, turn *CallTurn) *lathe.Message {
	if turn == nil {
		return nil
	}
	for i, p := range m.Parts {
		text, is := p.(lathe.Text)
		if !is {
			continue
		}
		rest, run, waits := r.waiting.Split(text.Text)
		if !waits || run != turn.ref.run {
			continue
		}
		sentence := lathe.Message{Role: lathe.RoleAssistant, Wire: m.Wire, Parts: []lathe.Part{lathe.Text{Text: strings.TrimPrefix(text.Text, rest)}}}
		m.Parts = slices.Clone(m.Parts)
		m.Parts[i] = lathe.Text{Text: rest}
		if rest == "" {
			m.Parts = slices.Delete(m.Parts, i, i+1)
		}
		return &sentence
	}
	return nil
}

// loadCallTurns reads turns of a run from its log, which it reads once. It returns a problem if the store did not answer, or if the memory
// for the turns cannot be reserved.
func (ht *Turns) loadCallTurns(ctx context.Context, c *Request, run string, turns []*CallTurn) *problem.Problem {
	now := ht.opts.Now()
	turns = slices.DeleteFunc(turns, func(t *CallTurn) bool { return ht.absent.Has(t.ref.key(), now) })
	if ht.opts.Index == nil || len(turns) == 0 {
		return nil
	}
	v, p := c.Runs.View(ctx, run)
	if p != nil && !p.Absent() && slices.ContainsFunc(turns, func(t *CallTurn) bool { return t.turns == nil }) { // else all are in memory
		return p
	}
	for _, t := range turns {
		var own []lathe.Message
		waits := ""
		if p == nil {
			own, waits = turnOf(v, t.ref)
		}
		switch {
		case len(own) > 0:
			t.turns = ht.store.put(t.ref.key(), link{}, waits, own, v.State.Retention)
			if p := c.Memory.Load(t.turns.messages); p != nil {
				return p
			}
		case t.turns == nil && !ht.opts.Shared:
			ht.absent.Add(t.ref.key(), now)
		}
	}
	return nil
}

// turnOf returns the messages of the turn of ref: those of the run after the previous calls that it returned to the client, up to the calls
// of ref, with the results of the calls of this server. The results of the client's calls are in its request. waits is the id of the run if
// it has not ended.
func turnOf(v *runlog.View, ref callRef) (own []lathe.Message, waits string) {
	isClients := func(c lathe.ToolCall) bool { return v.Client[c.ID] }
	isMeant := func(c lathe.ToolCall) bool { return v.Turns[c.ID] == ref.turn && hashOfCall(c.ID) == ref.hash }
	messages := v.State.Messages
	begin := v.State.Start - v.State.TakenOver
	var calls []lathe.ToolCall // of ref's turn
	end := -1
	for i := begin; i < len(messages) && end < 0; i++ {
		calls = messages[i].Calls()
		switch {
		case !slices.ContainsFunc(calls, isClients): // a message within a turn
		case slices.ContainsFunc(calls, isMeant):
			end = v.AfterResults(i + 1)
		default:
			begin = v.AfterResults(i + 1)
		}
	}
	if end < 0 {
		return nil, ""
	}
	own = slices.DeleteFunc(slices.Clone(messages[begin:end]), func(m lathe.Message) bool { return v.Client[pairs.Answered(&m)] })
	for _, o := range v.State.Open {
		if !v.Client[o.ID] && slices.ContainsFunc(calls, func(c lathe.ToolCall) bool { return c.ID == o.ID }) {
			own = append(own, pairs.PendingResult(&o.ToolCall))
		}
	}
	if v.State.Finished == nil {
		waits = v.State.Run.RunID
	}
	return own, waits
}

// Unwrapped returns the JSON object in arguments that are in a code fence or encoded as a JSON string. Other arguments are returned as they
// are.
func Unwrapped(arguments string) string {
	text := strings.TrimSpace(arguments)
	if text == "" || text[0] == '{' {
		return arguments
	}
	if inner, ok := rawjson.UnwrapObject([]byte(text)); ok {
		return string(inner)
	}
	return arguments
}
