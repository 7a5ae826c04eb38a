package callid

import (
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
)

// A Unique gives each call of a conversation an id that no other call of the conversation has: some models restart the numbers of their
// calls in each turn, and servers of most protocols refuse a history with two calls of one id. The first call with an id gets that id; the
// n-th call gets the id followed by _n. The new id of a call depends on the calls before it, so that a conversation gets the same ids when
// it grows. The zero value is ready to use.
type Unique struct {
	calls map[string]uses     // by the id in the conversation, and by each id that Call has returned
	open  map[string][]string // repeated id → the unique ids of its calls that have no result yet, in call order
}

// uses counts the calls with one id.
type uses struct {
	last int  // the number of the last call with the id; the first has 1
	open bool // the first call has no result yet, and the id was not repeated: then Unique.open has the call
}

// Call returns the unique id of the next call of the conversation, whose id in the conversation is id.
func (u *Unique) Call(id string) string {
	if u.calls == nil {
		u.calls = map[string]uses{}
	}
	if !u.has(id) {
		u.calls[id] = uses{last: 1, open: true}
		return id
	}
	same := u.calls[id]
	own := id
	for u.has(own) {
		same.last++
		own = id + "_" + strconv.Itoa(same.last)
	}
	if u.open == nil {
		u.open = map[string][]string{}
	}
	if same.open {
		u.open[id] = append(u.open[id], id)
	}
	u.open[id] = append(u.open[id], own)
	u.calls[id], u.calls[own] = uses{last: same.last}, uses{last: 1}
	return own
}

func (u *Unique) has(id string) bool { _, ok := u.calls[id]; return ok }

// Result returns the unique id of the call that the next result belongs to: the first call with this id that has no result.
func (u *Unique) Result(id string) string {
	if open := u.open[id]; len(open) > 0 {
		u.open[id] = open[1:]
		return open[0]
	}
	if same := u.calls[id]; same.open {
		u.calls[id] = uses{last: same.last}
	}
	return id
}

// Apply returns m, the next message of the conversation, with unique ids in its calls and its result. m is not changed.
func (u *Unique) Apply(m lathe.Message) lathe.Message {
	return withIDs(m, u.Call, u.Result)
}

// withIDs returns m with the ids of its calls replaced by call and the id of its result replaced by result. m is not changed.
func withIDs(m lathe.Message, call, result func(string) string) lathe.Message {
	copied := false
	for i, p := range m.Parts {
		switch part := p.(type) {
		case lathe.ToolCall:
			own := call(part.ID)
			if own == part.ID {
				continue
			}
			part.ID = own
			p = part
		case lathe.ToolResult:
			own := result(part.CallID)
			if own == part.CallID {
				continue
			}
			part.CallID = own
			p = part
		default:
			continue
		}
		if !copied {
			m.Parts, copied = slices.Clone(m.Parts), true
		}
		m.Parts[i] = p
	}
	return m
}
