package server

import "github.com/lathe-run/lathe"

// Clients prune their history: they replace the text of an older tool result or message, and everything after it is then
// another conversation than the one under which turns were kept. Such turns are found by the turn before them: if that one
// is in its place in this conversation, a turn that followed it with the same calls is of this conversation, too. Where two
// turns followed it with the same calls (a conversation that was continued twice), neither is taken.

// A link is how a turn can be found without the text of the conversation before it.
type link struct {
	chain turnKey // of the turn that was kept before it and its own calls; zero: it is the first
	calls turnKey // of its turnOwner and its calls; zero: it holds nothing that its client has not seen
}

// links find the turns of a [kept], which locks them.
type links struct {
	chain map[turnKey]successors
	calls map[turnKey]int // turns with these calls
}

// successors are the turns that followed one turn with the same calls.
type successors struct {
	n   int
	key turnKey // of the one; zero once there were two
}

func (l *links) add(t *storedTurns) {
	if l.chain == nil {
		l.chain, l.calls = map[turnKey]successors{}, map[turnKey]int{}
	}
	var zero turnKey
	if c := t.link.chain; c != zero {
		s := l.chain[c]
		if s.n++; s.n == 1 {
			s.key = t.key
		} else {
			s.key = zero
		}
		l.chain[c] = s
	}
	if t.link.calls != zero {
		l.calls[t.link.calls]++
	}
}

func (l *links) remove(t *storedTurns) {
	if s := l.chain[t.link.chain]; s.n > 1 {
		s.n--
		l.chain[t.link.chain] = s
	} else {
		delete(l.chain, t.link.chain)
	}
	if n := l.calls[t.link.calls]; n > 1 {
		l.calls[t.link.calls] = n - 1
	} else {
		delete(l.calls, t.link.calls)
	}
}

// follow returns the turn that was kept after the one with the key last and has these calls; nil if there is not just one.
func (k *turnStore) follow(last turnKey, calls []lathe.ToolCall) *storedTurns {
	if last == (turnKey{}) {
		return nil
	}
	k.mu.Lock()
	key := k.links.chain[conversationSum(last).key(calls)].key
	k.mu.Unlock()
	if key == (turnKey{}) {
		return nil
	}
	return k.find(key)
}

// hides reports whether a turn with these calls is kept that holds more than its client has seen.
func (k *turnStore) hides(who turnOwner, calls []lathe.ToolCall) bool {
	k.mu.Lock()
	none := len(k.links.calls) == 0
	k.mu.Unlock()
	if none {
		return false
	}
	key := newConversation(who).sum().key(calls)
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.links.calls[key] > 0
}

// linkOf returns the link of a turn with these calls, kept after the one with the key last, whose messages are own.
func linkOf(who turnOwner, last turnKey, calls []lathe.ToolCall, own []lathe.Message) (l link) {
	if last != (turnKey{}) {
		l.chain = conversationSum(last).key(calls)
	}
	if len(own) > 1 {
		l.calls = newConversation(who).sum().key(calls)
	}
	return l
}
