package tool

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxIDBytes is the maximum length of a call id. Some model servers put a signature into it.
const maxIDBytes = 4_096

// Adopt sets the final ids and names of the calls in msg. The caller must call it before it appends the message to the history.
//
// A call keeps the model's id, without surrounding white space. An id that is blank, longer than 4,096 bytes or contains control characters
// is replaced by a generated one; an id that the run already has gets a suffix __2, __3 and so on. A name that is an alias of a client's
// tool, or has residue of the model's format (functions.NAME, NAME<|channel|>…), is replaced by the tool's name. If a call changes,
// msg.Parts becomes a new slice; the old one is not modified.
func (w *Work) Adopt(msg *lathe.Message) {
	own := false
	for i, p := range msg.Parts {
		c, ok := p.(lathe.ToolCall)
		if !ok {
			continue
		}
		id := w.ids.fresh(c.ID, w.r.opts.NewID)
		w.ids.set(id, idAdopted)
		if name := w.tools.canonical(c.Name); id != c.ID || name != c.Name {
			if !own {
				msg.Parts, own = slices.Clone(msg.Parts), true
			}
			c.ID, c.Name = id, name
			msg.Parts[i] = c
		}
	}
}

// HasCall reports whether the run or its history has a call with this id.
func (w *Work) HasCall(id string) bool { return w.ids.get(id) != 0 }

// identify is stage 1. It gives an id to a call whose message was not passed to Adopt.
func identify(c *call) {
	ids := &c.w.ids
	if c.Parked == nil && ids.get(c.ID) != idAdopted {
		c.ID = ids.fresh(c.ID, c.w.r.opts.NewID)
	}
	ids.set(c.ID, idAnswered)
}

// ids are the call ids of a run. The zero value is empty.
type ids struct {
	states map[string]idState
	suffix map[string]int // the last suffix number given to an id
}

type idState uint8

const (
	idTaken    idState = iota + 1 // in the history of the run
	idAdopted                     // in a message of this run, without a result
	idParked                      // waits for an approval or for the client
	idAnswered                    // has a result, or will get it next
)

// answered reports whether a parked call has got a result since: it must not get another.
func (s *ids) answered(c *Call) bool {
	return c.Parked != nil && s.get(c.ID) == idAnswered
}

// get returns the state of id, or 0 if the run does not have it.
func (s *ids) get(id string) idState { return s.states[id] }

func (s *ids) set(id string, st idState) {
	if s.states == nil {
		s.states = map[string]idState{}
	}
	s.states[id] = st
}

// fresh returns an id that the run does not have.
func (s *ids) fresh(id string, newID func(string) string) string {
	id = strings.TrimSpace(id)
	if !plainID(id) {
		id = newID("call_")
	}
	if s.get(id) == 0 {
		return id
	}
	if s.suffix == nil {
		s.suffix = map[string]int{}
	}
	for n := max(s.suffix[id], 1) + 1; ; n++ {
		if next := id + "__" + strconv.Itoa(n); s.get(next) == 0 {
			s.suffix[id] = n
			return next
		}
	}
}

func plainID(id string) bool {
	if id == "" || len(id) > maxIDBytes || !utf8.ValidString(id) {
		return false
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] == 0x7f {
			return false
		}
	}
	return true
}
