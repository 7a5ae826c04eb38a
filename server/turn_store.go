package server

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/loop"
)

// A turnStore holds, in memory, the turns of runs that their clients did not see: the calls of this server, their results, and the text of the
// model as it was written. When a client sends the results of its own calls, these turns take the place of the message that it was shown.
//
// Turns are found by the ids of the client's calls, if this server has made them: see [callIDs]. Else they are found by the principal, the end
// user, the model, the conversation before the message, and the ids, names and arguments of the calls that were handed over: all of it must be
// the same, since there are servers whose ids repeat from one conversation to the next. If turns are not found, the conversation is valid as
// the client has it. If there is a store, it has them too: see [loadedRuns].
type turnStore struct {
	max, maxBytes int
	ttl           time.Duration
	now           func() time.Time

	mu    sync.Mutex
	of    map[turnKey]*list.Element // of *storedTurns
	used  *list.List                // the latest first
	bytes int
	links links
}

type turnKey [sha256.Size]byte

type storedTurns struct {
	key      turnKey
	runID    string              // of the run that waits for the results; "": it has ended
	messages []lathe.Message     // ends with the message that has the calls, and the results of this server
	keeps    *event.RunRetention // what to keep of them when their turn is over; nil: all
	bytes    int
	until    time.Time
	link     link
}

func newTurnStore(l *Limits, now func() time.Time) *turnStore {
	return &turnStore{max: l.MaxKept, maxBytes: l.MaxKeptBytes, ttl: l.KeepFor, now: now, of: map[turnKey]*list.Element{}, used: list.New(), links: links{}}
}

// A turnOwner is the client to which turns belong.
type turnOwner struct{ principal, user, model string }

// put stores the messages of a run that handed calls over under the key of those, unless they are too large. It returns them.
func (k *turnStore) put(key turnKey, runID string, own []lathe.Message, keeps *event.RunRetention) *storedTurns {
	return k.putLinked(key, link{}, runID, own, keeps)
}

// putLinked is put for turns that can be found by l, too.
func (k *turnStore) putLinked(key turnKey, l link, runID string, own []lathe.Message, keeps *event.RunRetention) *storedTurns {
	own = loop.KeptHistory(own, keeps)
	t := &storedTurns{key: key, runID: runID, messages: own, keeps: keeps, until: k.now().Add(k.ttl), link: l, bytes: int(memory.SizeOf(own))}
	if t.bytes > k.maxBytes/4 {
		return t // it would push out too much of others
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[t.key]; e != nil {
		if l == (link{}) { // read from the store again, which does not have it
			t.link = e.Value.(*storedTurns).link
		}
		k.drop(e)
	}
	k.of[t.key] = k.used.PushFront(t)
	k.links.add(t)
	k.bytes += t.bytes
	for k.bytes > k.maxBytes || k.used.Len() > k.max {
		k.drop(k.used.Back())
	}
	return t
}

func (k *turnStore) drop(e *list.Element) {
	t := k.used.Remove(e).(*storedTurns)
	delete(k.of, t.key)
	k.links.remove(t)
	k.bytes -= t.bytes
}

// remove forgets what is kept under the key.
func (k *turnStore) remove(key turnKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[key]; e != nil {
		k.drop(e)
	}
}

func (k *turnStore) find(key turnKey) *storedTurns {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[key]
	if e == nil {
		return nil
	}
	t := e.Value.(*storedTurns)
	if k.now().After(t.until) {
		k.drop(e)
		return nil
	}
	t.until = k.now().Add(k.ttl)
	k.used.MoveToFront(e)
	return t
}

// A spliced is a conversation with what was kept in its place.
type spliced struct {
	given    []lathe.Message
	taken    int             // how many of given were kept or replaced
	messages []lathe.Message // a part of given, if changed is false: they are not written to
	sum      conversationSum // of the conversation as the client has it
	lastUser int             // the index of the last message of a user in given: the turns before it are over
	changed  bool            // messages are not those that were given
	lost     int             // turns that the client names and that are not in messages
	last     turnKey         // of the last turn that was put in its place
	unknown  []turnKey       // of messages with answered calls of which nothing is kept
	latest   bool            // the conversation ends with the answers of the last of unknown
	waits    *storedTurns    // whose run waits for the results that the conversation ends with
	texts    []turnKey       // of answers that consist of text and of which nothing is kept
	failed   *problem        // the store did not answer: what is hidden is not known
}

// turnStarts say where the turns of runs begin in a conversation with its hidden turns: by the conversation of the client before
// them, and by the run, if the client has sent a call of it.
type turnStarts struct {
	sums map[conversationSum]int
	runs map[string]int
}

// begin notes that a turn of the run stands at an index.
func (s *turnStarts) begin(run string, at int) {
	if s.runs == nil {
		s.runs = map[string]int{}
	}
	if _, has := s.runs[run]; !has {
		s.runs[run] = at
	}
}

// spliceOptions say what [turnStore.splice] looks for.
type spliceOptions struct {
	texts    bool // what was kept behind texts, too: see [conversationSum.textKey]
	onlyKept bool // the caller does not use unknown and latest
	// callTurns are the turns of messages whose calls have ids of this server, by the index of the message.
	callTurns map[int]*callTurn
}

// splice returns the messages with what was kept in its place, and with what became of the runs that waited in the
// place of the turns that said so. The messages passed checkAnswers, and are not changed.
//
// It takes time linear in the messages, and stops when ctx ends: what it returns then is not complete.
func (k *turnStore) splice(ctx context.Context, who turnOwner, messages []lathe.Message, waiting map[int]*waitingTurn, want spliceOptions) *spliced {
	j := &spliced{given: messages, lastUser: lastUser(messages)}
	c := newConversation(who)
	if want.onlyKept && !want.texts && len(waiting) == 0 && len(want.callTurns) == 0 && k.empty() {
		for i := 0; i < len(messages) && ctx.Err() == nil; i++ {
			c.add(&messages[i])
		}
		j.messages, j.sum = messages, c.sum()
		return j
	}
	var keys callKeys
	var calls []lathe.ToolCall
	starts := turnStarts{sums: map[conversationSum]int{}}
	for i := 0; i < len(messages) && ctx.Err() == nil; i++ {
		m := &messages[i]
		calls = pairs.AppendCalls(calls[:0], m)
		if len(waiting) > 0 {
			starts.sums[c.sum()] = len(j.messages)
		}
		if t := waiting[i]; t != nil {
			j.replace(1, t.splice(j.messages, m, &starts))
			c.add(m)
			continue
		}
		if len(calls) == 0 {
			n := 0
			if want.texts {
				n = k.spliceText(j, c, &keys, messages[i:])
			}
			if n == 0 {
				n = 1
				j.keep(n)
			}
			for range n {
				c.add(&messages[i])
				i++
			}
			i--
			continue
		}
		k.spliceCalls(j, &starts, want.callTurns[i], calls, messages[i:], c, &keys)
		for range len(calls) + 1 {
			c.add(&messages[i])
			i++
		}
		i--
	}
	j.sum = c.sum()
	return j
}

// spliceCalls appends the message with calls that the messages begin with and its answers, or what was kept in their place. named is
// the turn that the ids of the calls name; without one, they are found by keys and the conversation before, c.
func (k *turnStore) spliceCalls(j *spliced, starts *turnStarts, named *callTurn, calls []lathe.ToolCall, messages []lathe.Message, c *conversation, keys *callKeys) {
	answers := messages[1 : 1+len(calls)]
	atEnd := len(messages) == 1+len(calls)
	var t *storedTurns
	if named != nil {
		starts.begin(named.ref.run, len(j.messages))
		t = named.turns
	} else {
		own := keys.key(c.sum(), calls)
		if t = k.find(own); t == nil {
			t = k.follow(j.last, calls)
		}
		if t == nil {
			j.unknown, j.latest = append(j.unknown, own), atEnd
		}
	}
	if t != nil {
		if t.runID != "" && atEnd {
			j.waits = t
		}
		if out, ok := pairs.Join(j.messages, t.kept(j.taken < j.lastUser), answers); ok {
			j.replace(1+len(answers), out)
			j.last = t.key
			return
		}
	}
	if named != nil && !slices.ContainsFunc(messages[0].Parts, isCarrier) { // a carrier may have the turn, and is counted if it cannot be opened
		j.lost++
	}
	j.keep(1 + len(answers))
}

// lastUser returns the index of the last message of a user; 0 if there is none.
func lastUser(messages []lathe.Message) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == lathe.RoleUser {
			return i
		}
	}
	return 0
}

// kept returns the messages of the turn: what is kept of them, if it is over.
func (t *storedTurns) kept(over bool) []lathe.Message {
	return runlog.KeptOf(t.messages, t.keeps, over)
}

// keep appends the next n of the messages that were given.
func (j *spliced) keep(n int) {
	if j.changed {
		j.messages = append(j.messages, j.given[j.taken:j.taken+n]...)
	}
	j.taken += n
	if !j.changed {
		j.messages = j.given[:j.taken:j.taken] // an append to it copies it
	}
}

// replace takes n of the messages that were given, and out as the messages up to there.
func (j *spliced) replace(n int, out []lathe.Message) {
	j.messages, j.changed, j.taken = out, true, j.taken+n
}

// empty reports whether nothing is kept.
func (k *turnStore) empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.used.Len() == 0
}

// spliceText appends the answer of text that the messages begin with, or what was kept behind it, and returns how many messages
// the answer has. c is the conversation before it.
func (k *turnStore) spliceText(j *spliced, c *conversation, keys *callKeys, messages []lathe.Message) int {
	n, text := textTurns(messages)
	if n == 0 {
		return 0
	}
	key := keys.textKey(c.sum(), text)
	if t := k.find(key); t != nil {
		j.replace(n, append(j.messages, t.messages...))
		return n
	}
	j.keep(n)
	j.texts = append(j.texts, key)
	return n
}

// A conversation is a hash of what was said so far, as a client would say it again. System text does
// not count: clients put the time of day there.
type conversation struct {
	h         hash.Hash
	buf       []byte // what h gets next, at most hashPiece bytes
	anonymous bool   // the ids of calls do not count
}

// hashPiece is the number of bytes of one write to a hash, a multiple of its block size. A text is written in such pieces and is not
// copied as a whole.
const hashPiece = 4 << 10

func newConversation(who turnOwner) *conversation {
	c := &conversation{h: sha256.New()}
	c.text(who.principal)
	c.text(who.user)
	c.text(who.model)
	return c
}

// text writes a text after its length.
func (c *conversation) text(s string) {
	c.length(len(s))
	for {
		n := min(len(s), hashPiece-len(c.buf))
		c.buf = append(c.buf, s[:n]...)
		if s = s[n:]; s == "" {
			return
		}
		c.flush()
	}
}

// bytes is text for bytes.
func (c *conversation) bytes(b []byte) {
	c.length(len(b))
	c.raw(b)
}

func (c *conversation) length(n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	c.raw(b[:])
}

// raw writes bytes without their length.
func (c *conversation) raw(b []byte) {
	for {
		n := min(len(b), hashPiece-len(c.buf))
		c.buf = append(c.buf, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return
		}
		c.flush()
	}
}

func (c *conversation) flush() {
	c.h.Write(c.buf)
	c.buf = c.buf[:0]
}

func (c *conversation) add(m *lathe.Message) {
	if m.Role == lathe.RoleSystem || m.Role == lathe.RoleDeveloper {
		return
	}
	c.text(string(m.Role))
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			c.text(p.Text)
		case lathe.Blob:
			c.text(p.URL)
			c.text(string(p.Data))
		case lathe.ToolCall:
			c.id(p.ID)
			c.text(p.Name)
		case lathe.ToolResult:
			c.id(p.CallID)
			c.text(p.Content)
		case lathe.Reasoning, lathe.Refusal, lathe.Opaque: // not every client sends them again
		}
	}
}

func (c *conversation) id(id string) {
	if !c.anonymous {
		c.text(id)
	}
}

// A conversationSum is what a conversation came to.
type conversationSum [sha256.Size]byte

func (c *conversation) sum() (s conversationSum) {
	c.flush()
	c.buf = c.h.Sum(c.buf)
	copy(s[:], c.buf)
	c.buf = c.buf[:0]
	return s
}

// key returns the key of a message with these calls after that conversation.
func (s conversationSum) key(calls []lathe.ToolCall) turnKey {
	var keys callKeys
	return keys.key(s, calls)
}

// callKeys computes keys of messages, one after the other, in the same memory. The zero value is ready.
type callKeys struct {
	part       conversation
	said, args []byte
}

// begin resets part to the hash of s.
func (c *callKeys) begin(s *conversationSum) {
	if c.part.h == nil {
		c.part.h = sha256.New()
	}
	c.part.h.Reset()
	c.part.buf = append(c.part.buf[:0], s[:]...)
}

// key is [conversationSum.key] of s.
func (c *callKeys) key(s conversationSum, calls []lathe.ToolCall) turnKey {
	c.begin(&s)
	for i := range calls {
		call := &calls[i]
		c.part.text(call.ID)
		c.part.text(call.Name)
		c.said = append(c.said[:0], unwrapped(call.Arguments)...) // as the client received them
		args, err := rawjson.AppendCanonical(c.args[:0], c.said)  // clients write them anew
		if c.args = args; err != nil {
			args = bytes.TrimSpace(c.said)
		}
		if len(args) == 0 {
			args = []byte("{}") // as the wire has it
		}
		c.part.bytes(args)
	}
	return turnKey(c.part.sum())
}
