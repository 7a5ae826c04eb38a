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
//
// A client may have shortened the conversation before the calls. Turns are then found by their link, which names the turn before them and
// the calls: see links.go.
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
	link     link      // zero: the turns cannot be found by a link
}

func newTurnStore(o *Options) *turnStore {
	return &turnStore{max: o.MaxKept, maxBytes: o.MaxKeptBytes, ttl: o.KeepFor, now: o.Now, of: map[Key]*list.Element{}, used: list.New(), links: links{}}
}

// An Owner is the client to which turns belong.
type Owner struct{ Principal, User, Model string }

// put stores the messages of a run that returned calls to its client, unless they are too large, and returns them. key is that of the
// calls. If l is not zero, the turns can also be found by it.
func (s *turnStore) put(key Key, l link, runID string, own []lathe.Message, keeps *event.RunRetention) *Stored {
	own = loop.KeptHistory(own, keeps)
	t := &Stored{key: key, RunID: runID, messages: own, keeps: keeps, until: s.now().Add(s.ttl), link: l, bytes: int(memory.SizeOf(own))}
	if t.bytes > s.maxBytes/4 {
		return t // storing it would remove too many others
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.of[t.key]; e != nil {
		if l == (link{}) { // read from the store, which does not record links
			t.link = e.Value.(*Stored).link
		}
		s.drop(e)
	}
	s.of[t.key] = s.used.PushFront(t)
	s.links.add(t)
	s.bytes += t.bytes
	for s.bytes > s.maxBytes || s.used.Len() > s.max {
		s.drop(s.used.Back())
	}
	return t
}

func (s *turnStore) drop(e *list.Element) {
	t := s.used.Remove(e).(*Stored)
	delete(s.of, t.key)
	s.links.remove(t)
	s.bytes -= t.bytes
}

// remove removes the turns with the key.
func (s *turnStore) remove(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.of[key]; e != nil {
		s.drop(e)
	}
}

func (s *turnStore) find(key Key) *Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of[key]
	if e == nil {
		return nil
	}
	t := e.Value.(*Stored)
	if s.now().After(t.until) {
		s.drop(e)
		return nil
	}
	t.until = s.now().Add(s.ttl)
	s.used.MoveToFront(e)
	return t
}

// A Spliced is a conversation with the hidden turns inserted.
type Spliced struct {
	Messages []lathe.Message  // if Changed is false, these are a part of the conversation of the client, and must not be written to
	Changed  bool             // Messages differ from those of the client
	Sum      Sum              // sum of the conversation of the client
	Lost     int              // number of turns to which the client refers and that are not in Messages
	Last     Key              // key of the last turn that was inserted
	Waits    *Stored          // turns of the run that waits for the results at the end of the conversation
	Failed   *problem.Problem // set if the store did not answer, so that hidden turns may be missing

	// What the store does not have:
	unknown []Key // keys of messages with answered calls
	latest  bool  // the conversation ends with the results of the last one of unknown
	texts   []Key // keys of answers that consist of text
}

// A splicer inserts hidden turns into one conversation. It processes the messages of the client in order: each step processes the next
// ones, and either appends them unchanged (keep) or sets a result with other messages in their place (replace).
type splicer struct {
	*Spliced // the result, complete for the messages that were processed
	store    *turnStore
	given    []lathe.Message // the conversation of the client
	taken    int             // number of given that were processed
	lastUser int             // index of the last user message in given; the turns before it are over
	before   *Hash           // of the first messages of given, up to those that the current step processes
	keys     *Hash           // scratch space for the computation of keys
	starts   turnStarts
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

// splice returns the messages of a request with the stored turns inserted, and with the current messages of waiting runs in place
// of the messages that announced the wait. The messages must have passed [pairs.Check], and are not modified.
//
// splice takes time linear in the messages. It stops when ctx ends; the result is then incomplete.
func (s *turnStore) splice(ctx context.Context, req *Request, waiting map[int]*waitingTurn) *Spliced {
	messages := req.Messages
	sp := &splicer{Spliced: &Spliced{}, store: s, given: messages, lastUser: lastUser(messages), before: newHash(req.Owner), keys: NewHash(),
		starts: turnStarts{map[Sum]int{}, map[string]int{}}}
	for next := 0; next < len(messages) && ctx.Err() == nil; next = sp.taken {
		m := &messages[next]
		calls := m.Calls()
		if len(waiting) > 0 {
			sp.starts.sums[sp.before.Sum()] = len(sp.Messages)
		}
		t := waiting[next]
		switch {
		case t != nil:
			sp.replace(1, t.splice(sp.Messages, m, &sp.starts))
		case len(calls) > 0:
			sp.spliceCalls(req.CallTurns[next], calls)
		case req.Texts && isTextTurn(m):
			sp.spliceText()
		default:
			sp.keep(1)
		}
		for i := next; i < sp.taken; i++ {
			sp.before.Add(&messages[i])
		}
	}
	sp.Sum = sp.before.Sum()
	return sp.Spliced
}

// spliceCalls processes a message with calls and their results: the turns in which the client received the calls are inserted in their
// place. named is the turn to which the ids of the calls refer; if it is nil, the turns are found by the keys of the calls. If there are no
// turns, or they do not match the results, the messages remain unchanged.
func (sp *splicer) spliceCalls(named *CallTurn, calls []lathe.ToolCall) {
	n := 1 + len(calls)
	end := sp.taken + n
	var t *Stored
	if named != nil {
		sp.starts.begin(named.ref.run, len(sp.Messages))
		t = named.turns
	} else {
		t = sp.findByCalls(calls, end == len(sp.given))
	}
	if t != nil {
		if t.RunID != "" && end == len(sp.given) {
			sp.Waits = t
		}
		if out, ok := pairs.Join(sp.Messages, t.kept(sp.taken < sp.lastUser), sp.given[sp.taken+1:end]); ok {
			sp.replace(n, out)
			sp.Last = t.key
			return
		}
	}
	if named != nil && !slices.ContainsFunc(sp.given[sp.taken].Parts, IsCarrier) { // a carrier, in which the client returns hidden turns, may have the turn
		sp.Lost++
	}
	sp.keep(n)
}

// findByCalls returns the turns with calls that have no ids of the gateway: by the conversation before them and the calls, or else by the
// turn inserted last and the calls. If it finds none, it records the key of the calls as unknown.
func (sp *splicer) findByCalls(calls []lathe.ToolCall, atEnd bool) *Stored {
	key := sp.keys.key(sp.before.Sum(), calls)
	t := sp.store.find(key)
	if t == nil {
		t = sp.store.findAfter(sp.Last, calls)
	}
	if t == nil {
		sp.unknown, sp.latest = append(sp.unknown, key), atEnd
	}
	return t
}

// lastUser returns the index of the last user message; 0 if none exists.
func lastUser(messages []lathe.Message) int {
	for i := range slices.Backward(messages) {
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

// keep processes the next n messages of given, and appends them unchanged. As long as nothing was replaced, Messages is the beginning of
// given, without a copy.
func (sp *splicer) keep(n int) {
	from := sp.taken
	sp.taken += n
	if sp.Changed {
		sp.Messages = append(sp.Messages, sp.given[from:sp.taken]...)
	} else {
		sp.Messages = sp.given[:sp.taken:sp.taken] // an append then copies the slice
	}
}

// replace processes the next n messages of given, in whose place out has others. out is all of Messages, not only what is appended.
func (sp *splicer) replace(n int, out []lathe.Message) {
	sp.Messages, sp.Changed, sp.taken = out, true, sp.taken+n
}

// spliceText processes an answer of text, in whose place the turns stored after it are inserted.
func (sp *splicer) spliceText() {
	n, text := textTurns(sp.given[sp.taken:])
	key := sp.keys.textKey(sp.before.Sum(), text)
	if t := sp.store.find(key); t != nil {
		sp.replace(n, append(sp.Messages, t.messages...))
		return
	}
	sp.keep(n)
	sp.texts = append(sp.texts, key)
}
