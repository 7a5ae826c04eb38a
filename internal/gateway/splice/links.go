package splice

import "github.com/lathe-run/lathe"

// Clients prune their history: they replace the text of an older tool result or message, and everything after it is then
// another conversation than the one under which turns were kept. Such turns are found by the turn before them: if that one
// is in its place in this conversation, a turn that followed it with the same calls is of this conversation, too. Where two
// turns followed it with the same calls (a conversation that was continued twice), neither is taken.

// A link is how a turn can be found without the text of the conversation before it.
type link Key // of the turn that was kept before it and its own calls; zero: it is the first

// links find the turns of a [turnStore], which locks them.
type links map[link]successors

// successors are the turns that followed one turn with the same calls.
type successors struct {
	n   int
	key Key // of the one; zero once there were two
}

func (l links) add(t *Stored) {
	if t.link == (link{}) {
		return
	}
	s := l[t.link]
	if s.n++; s.n == 1 {
		s.key = t.key
	} else {
		s.key = Key{}
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

// follow returns the turn that was kept after the one with the key last and has these calls; nil if there is not just one.
func (k *turnStore) follow(last Key, calls []lathe.ToolCall) *Stored {
	if last == (Key{}) {
		return nil
	}
	k.mu.Lock()
	key := k.links[link(Sum(last).key(calls))].key
	k.mu.Unlock()
	if key == (Key{}) {
		return nil
	}
	return k.find(key)
}

// linkOf returns the link of a turn with these calls, kept after the one with the key last.
func linkOf(last Key, calls []lathe.ToolCall) (l link) {
	if last != (Key{}) {
		l = link(Sum(last).key(calls))
	}
	return l
}
