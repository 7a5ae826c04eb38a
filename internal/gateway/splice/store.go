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

// A turnStore stores, in memory, the turns of runs that their clients did not see: the calls of this server, their results, and the text of
// the model as the model wrote it. When a client sends the results of its own calls, these turns replace the message that the client
// received.
//
// Turns are found by the ids of the client's calls if this server created them: see [CallIDs]. Otherwise they are found by the principal,
// the end user, the model, the conversation before the message, and the ids, names and arguments of the calls that the client received. All
// of these must be equal, since some model servers repeat ids in different conversations. If no turns are found, the conversation is used
// as the client sent it. Turns may also be read from a store: see [loadedRuns].
type turnStore struct {
	max, maxBytes int
	ttl           time.Duration
	now           func() time.Time

	mu    sync.Mutex
	of    map[Key]*list.Element // elements of used
	used  *list.List            // of *Stored, the most recently used first
	bytes int                   // sum of Stored.bytes
	links links
}

// A Key is the key under which turns are stored.
type Key [sha256.Size]byte

// Stored are the turns of one run between two messages of its client.
type Stored struct {
	RunID    string // id of the run that waits for the results; "": the run has ended
	key      Key
	messages []lathe.Message     // ends with the message that has the calls, and the results of this server
	keeps    *event.RunRetention // retention of the messages once their turn is over; nil: all are kept
	bytes    int
	until    time.Time // time at which the turns expire
	link     link
}

func newTurnStore(o *Options) *turnStore {
	return &turnStore{max: o.MaxKept, maxBytes: o.MaxKeptBytes, ttl: o.KeepFor, now: o.Now, of: map[Key]*list.Element{}, used: list.New(), links: links{}}
}

// An Owner is the client to which turns belong.
type Owner struct{ Principal, User, Model string }

// put stores the messages of a run that returned calls to its client, unless they are too large, and returns them. key is that of the
// calls. If l is not zero, the turns can also be found by it.
func (k *turnStore) put(key Key, l link, runID string, own []lathe.Message, keeps *event.RunRetention) *Stored {
	own = loop.KeptHistory(own, keeps)
	t := &Stored{key: key, RunID: runID, messages: own, keeps: keeps, until: k.now().Add(k.ttl), link: l, bytes: int(memory.SizeOf(own))}
	if t.bytes > k.maxBytes/4 {
		return t // storing it would remove too many others
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[t.key]; e != nil {
		if l == (link{}) { // read from the store, which does not record links
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

// remove removes the turns with the key.
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

// A Spliced is a conversation with the hidden turns inserted.
type Spliced struct {
	given    []lathe.Message  // the conversation of the client
	taken    int              // number of given that were processed
	Messages []lathe.Message  // if Changed is false, these are a part of given, and must not be written to
	Sum      Sum              // sum of the conversation of the client
	lastUser int              // index of the last user message in given; the turns before it are over
	Changed  bool             // Messages differ from those given
	Lost     int              // number of turns to which the client refers and that are not in Messages
	Last     Key              // key of the last turn that was inserted
	unknown  []Key            // keys of messages with answered calls for which no turns are stored
	latest   bool             // the conversation ends with the results of the last one of unknown
	Waits    *Stored          // turns of the run that waits for the results at the end of the conversation
	texts    []Key            // keys of answers that consist of text and for which no turns are stored
	Failed   *problem.Problem // set if the store did not answer, so that hidden turns may be missing
}

// turnStarts map the starts of runs to indexes in the conversation with hidden turns: by the sum of the client's conversation before them,
// and by the id of the run, if the client sent a call of it.
type turnStarts struct {
	sums map[Sum]int
	runs map[string]int
}

// begin records the index of the first turn of a run. Later turns of the run are ignored.
func (s *turnStarts) begin(run string, at int) {
	if _, has := s.runs[run]; !has {
		s.runs[run] = at
	}
}

// spliceOptions select the hidden turns for which [turnStore.splice] searches.
type spliceOptions struct {
	texts bool // also turns behind texts: see [Sum.textKey]
	// callTurns are the turns of messages whose calls have ids of the gateway, by the index of the message.
	callTurns map[int]*CallTurn
}

// splice returns the messages with the stored turns inserted, and with the current messages of waiting runs in place of the messages that
// announced the wait. The messages must have passed [pairs.Check], and are not modified.
//
// splice takes time linear in the messages. It stops when ctx ends; the result is then incomplete.
func (k *turnStore) splice(ctx context.Context, who Owner, messages []lathe.Message, waiting map[int]*waitingTurn, want spliceOptions) *Spliced {
	j := &Spliced{given: messages, lastUser: lastUser(messages)}
	c, keys := newHash(who), NewHash()
	starts := turnStarts{map[Sum]int{}, map[string]int{}}
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

// spliceCalls appends the message with calls at the beginning of messages and its results, or the stored turns in their place. named is the
// turn to which the ids of the calls refer. If it is nil, the turns are found by keys of the calls and the conversation before them, c.
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
	if named != nil && !slices.ContainsFunc(messages[0].Parts, IsCarrier) { // else a carrier may have the turn
		j.Lost++
	}
	j.keep(1 + len(answers))
}

// lastUser returns the index of the last user message; 0 if none exists.
func lastUser(messages []lathe.Message) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == lathe.RoleUser {
			return i
		}
	}
	return 0
}

// kept returns the messages of the turn, reduced by its retention if the turn is over.
func (t *Stored) kept(over bool) []lathe.Message {
	return runlog.KeptOf(t.messages, t.keeps, over)
}

// keep appends the next n messages of given unchanged.
func (j *Spliced) keep(n int) {
	if j.Changed {
		j.Messages = append(j.Messages, j.given[j.taken:j.taken+n]...)
	}
	j.taken += n
	if !j.Changed {
		j.Messages = j.given[:j.taken:j.taken] // an append then copies the slice
	}
}

// replace sets Messages to out, in which the next n messages of given are replaced.
func (j *Spliced) replace(n int, out []lathe.Message) {
	j.Messages, j.Changed, j.taken = out, true, j.taken+n
}

// spliceText appends the answer of text at the beginning of messages, or the turns stored behind it. It returns the number of messages of
// the answer, 0 if there is no such answer. c is the hash of the conversation before it.
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
