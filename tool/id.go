package tool

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxIDBytes bounds the id of a call. Some model servers put a signature into it.
const maxIDBytes = 4_096

// Adopt sets the final ids of the calls in msg. A call keeps the model's id, with white space trimmed. It gets a generated id
// if the model's is blank, longer than 4 096 bytes or not plain text, and a suffix __2, __3 and so on if the run already has
// a call with that id. A call by an alias of a tool of the client, and one by a name with residue of the model's format
// (functions.NAME, NAME<|channel|>…), gets the tool's name. The caller calls Adopt before it appends the message to the history. If a call changes, Adopt sets
// msg.Parts to a new slice and does not modify the old one.
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

// HasCall reports whether a call of the run or of its history has that id. Adopt then changes the id of a new call.
func (w *Work) HasCall(id string) bool { return w.ids.get(id) != 0 }

// identify is stage 1. A call whose message was not adopted gets its id here.
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
	suffix map[string]int // the last suffix given to an id
}

type idState uint8

const (
	idTaken    idState = iota + 1 // by what the run started from
	idAdopted                     // in a message of this run, not yet answered
	idParked                      // waits for an approval or for the client
	idAnswered                    // or about to be
)

// answered reports whether a parked call has been answered since: it is not answered again.
func (s *ids) answered(c *Call) bool {
	return c.Parked != nil && s.get(c.ID) == idAnswered
}

// get returns the state of id, 0 when the run does not have it.
func (s *ids) get(id string) idState { return s.states[id] }

func (s *ids) set(id string, st idState) {
	if s.states == nil {
		s.states = map[string]idState{}
	}
	s.states[id] = st
}

func (s *ids) park(id string) { s.set(id, idParked) }

// fresh returns an id that the run does not have yet.
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
