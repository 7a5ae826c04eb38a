package callid

import (
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
)

// A Unique gives each call of a conversation an id that no other call of it has: some models count their calls anew in each turn, and
// servers of most wires refuse a history with two calls of one id. The first call with an id keeps it; the n-th gets the id with _n
// behind it. The id of a call depends on the calls before it, so that a conversation keeps its ids when it grows. The zero value is
// ready to use.
type Unique struct {
	calls map[string]*uses // by the id in the conversation
	given map[string]bool
}

// uses are the calls with one id.
type uses struct {
	last int      // the number of the last one
	open []string // ids of those without a result
}

// Forget removes all ids.
func (u *Unique) Forget() { *u = Unique{} }

// Call returns the id of the next call of the conversation, which has the given id in it.
func (u *Unique) Call(id string) string {
	if u.calls == nil {
		u.calls, u.given = map[string]*uses{}, map[string]bool{}
	}
	same := u.calls[id]
	if same == nil {
		same = &uses{}
		u.calls[id] = same
	}
	own := id
	for same.last++; u.given[own]; {
		same.last = max(same.last, 2)
		if own = id + "_" + strconv.Itoa(same.last); u.given[own] {
			same.last++
		}
	}
	u.given[own] = true
	same.open = append(same.open, own)
	return own
}

// Result returns the id of the call that the next result answers: the first call with the id that has none.
func (u *Unique) Result(id string) string {
	same := u.calls[id]
	if same == nil || len(same.open) == 0 {
		return id
	}
	own := same.open[0]
	same.open = same.open[1:]
	return own
}

// Apply returns m, the next message of the conversation, with the ids of its calls and of its result. m is not changed.
func (u *Unique) Apply(m lathe.Message) lathe.Message {
	return withIDs(m, u.Call, u.Result)
}

// withIDs returns m with the ids that call and result return for those of its calls and of its result.
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
