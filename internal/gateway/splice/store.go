package splice

import (
	"container/list"
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/loop"
)

// A turnStore holds, in memory, the turns of runs that their clients did not see: the calls of this server, their results, and the text of the
// model as it was written. When a client sends the results of its own calls, these turns take the place of the message that it was shown.
//
// Turns are found by the ids of the client's calls, if this server has made them: see [CallIDs]. Else they are found by the principal, the end
// user, the model, the conversation before the message, and the ids, names and arguments of the calls that were handed over: all of it must be
// the same, since there are servers whose ids repeat from one conversation to the next. If turns are not found, the conversation is valid as
// the client has it. If there is a store, it has them too: see [loadedRuns].
type turnStore struct {
	max, maxBytes int
	ttl           time.Duration
	now           func() time.Time

	mu    sync.Mutex
	of    map[Key]*list.Element // of *Stored
	used  *list.List            // the latest first
	bytes int
	links links
}

// A Key is that under which turns are kept.
type Key [sha256.Size]byte

// Stored are turns that are kept: what one run did between two messages of its client.
type Stored struct {
	RunID    string // of the run that waits for the results; "": it has ended
	key      Key
	messages []lathe.Message     // ends with the message that has the calls, and the results of this server
	keeps    *event.RunRetention // what to keep of them when their turn is over; nil: all
	bytes    int
	until    time.Time
	link     link
}

func newTurnStore(o *Options) *turnStore {
	return &turnStore{max: o.MaxKept, maxBytes: o.MaxKeptBytes, ttl: o.KeepFor, now: o.Now, of: map[Key]*list.Element{}, used: list.New(), links: links{}}
}

// An Owner is the client to which turns belong.
type Owner struct{ Principal, User, Model string }

// put stores the messages of a run that handed calls over under the key of those, unless they are too large. It returns them. They can be
// found by l, too, unless it is zero.
func (k *turnStore) put(key Key, l link, runID string, own []lathe.Message, keeps *event.RunRetention) *Stored {
	own = loop.KeptHistory(own, keeps)
	t := &Stored{key: key, RunID: runID, messages: own, keeps: keeps, until: k.now().Add(k.ttl), link: l, bytes: int(memory.SizeOf(own))}
	if t.bytes > k.maxBytes/4 {
		return t // it would push out too much of others
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[t.key]; e != nil {
		if l == (link{}) { // read from the store again, which does not have it
			t.link = e.Value.(*Stored).link
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
	t := k.used.Remove(e).(*Stored)
	delete(k.of, t.key)
	k.links.remove(t)
	k.bytes -= t.bytes
}

// remove forgets what is kept under the key.
func (k *turnStore) remove(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[key]; e != nil {
		k.drop(e)
	}
}

func (k *turnStore) find(key Key) *Stored {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[key]
	if e == nil {
		return nil
	}
	t := e.Value.(*Stored)
	if k.now().After(t.until) {
		k.drop(e)
		return nil
	}
	t.until = k.now().Add(k.ttl)
	k.used.MoveToFront(e)
	return t
}

// A Spliced is a conversation with what was kept in its place.
type Spliced struct {
	given    []lathe.Message
	taken    int              // how many of given were kept or replaced
	Messages []lathe.Message  // a part of given, if Changed is false: they are not written to
	Sum      Sum              // of the conversation as the client has it
	lastUser int              // the index of the last message of a user in given: the turns before it are over
	Changed  bool             // Messages are not those that were given
	Lost     int              // turns that the client names and that are not in Messages
	Last     Key              // of the last turn that was put in its place
	unknown  []Key            // of messages with answered calls of which nothing is kept
	latest   bool             // the conversation ends with the answers of the last of unknown
	Waits    *Stored          // whose run waits for the results that the conversation ends with
	texts    []Key            // of answers that consist of text and of which nothing is kept
	Failed   *problem.Problem // the store did not answer: what is hidden is not known
}

// turnStarts say where the turns of runs begin in a conversation with its hidden turns: by the conversation of the client before
// them, and by the run, if the client has sent a call of it.
type turnStarts struct {
	sums map[Sum]int
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
	texts bool // what was kept behind texts, too: see [Sum.textKey]
	// callTurns are the turns of messages whose calls have ids of this server, by the index of the message.
	callTurns map[int]*CallTurn
}

// splice returns the messages with what was kept in its place, and with what became of the runs that waited in the
// place of the turns that said so. The messages passed checkAnswers, and are not changed.
//
// It takes time linear in the messages, and stops when ctx ends: what it returns then is not complete.
func (k *turnStore) splice(ctx context.Context, who Owner, messages []lathe.Message, waiting map[int]*waitingTurn, want spliceOptions) *Spliced {
	j := &Spliced{given: messages, lastUser: lastUser(messages)}
	c, keys := newHash(who), NewHash()
	starts := turnStarts{sums: map[Sum]int{}}
	for i := 0; i < len(messages) && ctx.Err() == nil; i++ {
		m := &messages[i]
		calls := m.Calls()
		if len(waiting) > 0 {
			starts.sums[c.Sum()] = len(j.Messages)
		}
		if t := waiting[i]; t != nil {
			j.replace(1, t.splice(j.Messages, m, &starts))
			c.Add(m)
			continue
		}
		if len(calls) == 0 {
			n := 0
			if want.texts {
				n = k.spliceText(j, c, keys, messages[i:])
			}
			if n == 0 {
				n = 1
				j.keep(n)
			}
			for range n {
				c.Add(&messages[i])
				i++
			}
			i--
			continue
		}
		k.spliceCalls(j, &starts, want.callTurns[i], calls, messages[i:], c, keys)
		for range len(calls) + 1 {
			c.Add(&messages[i])
			i++
		}
		i--
	}
	j.Sum = c.Sum()
	return j
}

// spliceCalls appends the message with calls that the messages begin with and its answers, or what was kept in their place. named is
// the turn that the ids of the calls name; without one, they are found by keys and the conversation before, c.
func (k *turnStore) spliceCalls(j *Spliced, starts *turnStarts, named *CallTurn, calls []lathe.ToolCall, messages []lathe.Message, c, keys *Hash) {
	answers := messages[1 : 1+len(calls)]
	atEnd := len(messages) == 1+len(calls)
	var t *Stored
	if named != nil {
		starts.begin(named.ref.run, len(j.Messages))
		t = named.turns
	} else {
		own := keys.key(c.Sum(), calls)
		if t = k.find(own); t == nil {
			t = k.follow(j.Last, calls)
		}
		if t == nil {
			j.unknown, j.latest = append(j.unknown, own), atEnd
		}
	}
	if t != nil {
		if t.RunID != "" && atEnd {
			j.Waits = t
		}
		if out, ok := pairs.Join(j.Messages, t.kept(j.taken < j.lastUser), answers); ok {
			j.replace(1+len(answers), out)
			j.Last = t.key
			return
		}
	}
	if named != nil && !slices.ContainsFunc(messages[0].Parts, IsCarrier) { // a carrier may have the turn, and is counted if it cannot be opened
		j.Lost++
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
func (t *Stored) kept(over bool) []lathe.Message {
	return runlog.KeptOf(t.messages, t.keeps, over)
}

// keep appends the next n of the messages that were given.
func (j *Spliced) keep(n int) {
	if j.Changed {
		j.Messages = append(j.Messages, j.given[j.taken:j.taken+n]...)
	}
	j.taken += n
	if !j.Changed {
		j.Messages = j.given[:j.taken:j.taken] // an append to it copies it
	}
}

// replace takes n of the messages that were given, and out as the messages up to there.
func (j *Spliced) replace(n int, out []lathe.Message) {
	j.Messages, j.Changed, j.taken = out, true, j.taken+n
}

// spliceText appends the answer of text that the messages begin with, or what was kept behind it, and returns how many messages
// the answer has. c is the conversation before it.
func (k *turnStore) spliceText(j *Spliced, c, keys *Hash, messages []lathe.Message) int {
	n, text := textTurns(messages)
	if n == 0 {
		return 0
	}
	key := keys.textKey(c.Sum(), text)
	if t := k.find(key); t != nil {
		j.replace(n, append(j.Messages, t.messages...))
		return n
	}
	j.keep(n)
	j.texts = append(j.texts, key)
	return n
}
