package splice

import "github.com/lathe-run/lathe"

// Clients shorten their history: they replace the text of an older tool result or message, and the sum of everything after it then differs
// from the one under which turns were stored. Such turns are found by the turn before them: if that turn was found in the conversation, a
// turn that followed it with the same calls also belongs to the conversation. If two turns followed it with the same calls (a conversation
// that was continued twice), neither is used.

// A link is the key by which a turn can be found without the conversation before it.
type link Key // hash of the key of the previous turn and of the turn's own calls; zero: it is the first turn

// links map links to the turns of a [turnStore]. The lock of the store guards them.
type links map[link]successors

// successors are the turns that followed the same turn with the same calls.
type successors struct {
	n   int // number of turns
	key Key // key of the only turn; zero once there were two
}

func (l links) add(t *Stored) {
	if t.link == (link{}) {
		return
	}
	s := successors{n: l[t.link].n + 1}
	if s.n == 1 {
		s.key = t.key
	}
	l[t.link] = s
}

func (l links) remove(t *Stored) {
	if s := l[t.link]; s.n > 1 {
		s.n--
		l[t.link] = s
	} else {
		delete(l, t.link)
	}
}

// findAfter returns the turn with these calls that was stored after the turn with the key last; nil unless there is exactly one.
func (s *turnStore) findAfter(last Key, calls []lathe.ToolCall) *Stored {
	s.mu.Lock()
	key := s.links[linkOf(last, calls)].key // the zero link is not in links
	s.mu.Unlock()
	if key == (Key{}) {
		return nil
	}
	return s.find(key)
}

// linkOf returns the link of a turn with these calls that is stored after the turn with the key last; zero if last is zero.
func linkOf(last Key, calls []lathe.ToolCall) (l link) {
	if last != (Key{}) {
		l = link(Sum(last).key(calls))
	}
	return l
}
