package tool

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxIDBytes bounds the id of a call. Some servers carry a signature of their own in it.
const maxIDBytes = 4_096

// Adopt makes the ids of the message's calls what they stay until the end: the model's own,
// trimmed; made here where that is blank, longer than 4 096 bytes or not plain text; with __2, __3
// and so on where the run has that id already. Adopt comes before the message enters the history.
// Where an id changes, msg gets parts of its own: the model's may be somebody else's too.
func (w *Work) Adopt(msg *lathe.Message) {
	own := false
	for i, p := range msg.Parts {
		c, ok := p.(lathe.ToolCall)
		if !ok {
			continue
		}
		id := w.ids.fresh(c.ID, w.r.opts.NewID)
		w.ids.set(id, idAdopted)
		if id != c.ID {
			if !own {
				msg.Parts, own = slices.Clone(msg.Parts), true
			}
			c.ID = id
			msg.Parts[i] = c
		}
	}
}

// HasCall reports whether a call of the run, or of what it started from, has that id: another call does not keep it.
func (w *Work) HasCall(id string) bool { return w.ids.get(id) != 0 }

// identify is stage 1. A call whose message was not adopted gets its id here.
func (w *Work) identify(c *call) {
	switch {
	case c.Parked != nil || w.ids.get(c.ID) == idAdopted:
		w.ids.set(c.ID, idAnswered)
	default:
		c.ID = w.ids.fresh(c.ID, w.r.opts.NewID)
		w.ids.add(c.ID, idAnswered)
	}
}

// ids are the call ids of a run.
type ids struct {
	few    [16]idEntry // the first ones: most runs have no more
	used   int
	more   map[string]idState
	suffix map[string]int // the last suffix given to an id
}

func (s *ids) emptied() ids { return ids{more: emptiedMap(s.more)} }

type idState uint8

const (
	idTaken    idState = iota + 1 // by what the run started from
	idAdopted                     // in a message of this run, not yet answered
	idParked                      // waits for an approval or for the client
	idAnswered                    // or about to be
)

type idEntry struct {
	id    string
	state idState
}

// answered reports whether a parked call has been answered meanwhile: it is not answered again.
func (w *Work) answered(c *Call) bool {
	return c.Parked != nil && w.ids.get(c.ID) == idAnswered
}

// get returns the state of id, 0 when the run does not have it.
func (s *ids) get(id string) idState {
	if i := s.find(id); i >= 0 {
		return s.few[i].state
	}
	return s.more[id]
}

func (s *ids) set(id string, st idState) {
	if i := s.find(id); i >= 0 {
		s.few[i].state = st
		return
	}
	s.add(id, st)
}

// add is set for an id that the run may have only among more.
func (s *ids) add(id string, st idState) {
	if s.used < len(s.few) {
		s.few[s.used] = idEntry{id, st}
		s.used++
		return
	}
	if s.more == nil {
		s.more = map[string]idState{}
	}
	s.more[id] = st
}

// find looks at the newest first, and at their last bytes first: ids begin alike.
func (s *ids) find(id string) int {
	end := len(id) - 1
	for i := s.used - 1; i >= 0; i-- {
		if e := &s.few[i]; len(e.id) == len(id) && (end < 0 || e.id[end] == id[end]) && e.id == id {
			return i
		}
	}
	return -1
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
