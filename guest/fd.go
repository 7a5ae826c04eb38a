package guest

import (
	"maps"
	"math"
	"slices"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// The events of descriptors.
const (
	eventIn  = 0x01
	eventOut = 0x04
	eventErr = 0x08
	eventHup = 0x10
)

// An entry is an open descriptor. Exactly one of session, response and epoll is set.
type entry struct {
	session  *session
	response *response
	epoll    *epoll
	nonblock bool
}

// A response is the answer to a send, and its metrics, both in JSON.
type response struct {
	body, metrics []byte
}

// An epoll is a set of watched descriptors, each with the events that the guest requested.
type epoll struct{ watch map[int32]uint32 }

// fds are the open descriptors, at most most of them. Numbers are never reused. Closing frees a descriptor at once.
type fds struct {
	next int32
	open map[int32]*entry
	most int
}

// add returns the new descriptor of e, or -ENOMEM if there are too many.
func (t *fds) add(e *entry) int32 {
	if len(t.open) >= t.most || t.next == math.MaxInt32 {
		return -enomem
	}
	fd := t.next
	t.next++
	t.open[fd] = e
	return fd
}

// at returns the entry of a descriptor, an empty one if it is not open.
func (t *fds) at(fd int32) entry {
	if e := t.open[fd]; e != nil {
		return *e
	}
	return entry{}
}

// ready returns the current events of a descriptor. The event of a closed descriptor is a hang-up.
func (t *fds) ready(fd int32) uint32 {
	switch e := t.open[fd]; {
	case e == nil:
		return eventHup
	case e.response != nil:
		return eventIn
	}
	return 0
}

// control implements spear_epoll_ctl.
func (t *fds) control(epfd, op, fd int32, events uint32) int32 {
	const add, mod, del = 1, 2, 3
	ep := t.at(epfd).epoll
	if epfd == fd {
		return -einval
	}
	if ep == nil {
		return -ebadf
	}
	_, watched := ep.watch[fd]
	e := t.open[fd]
	switch {
	case e == nil && !watched:
		return -ebadf
	case e != nil && e.epoll != nil:
		return -einval
	}
	switch op {
	case add, mod:
		if e == nil {
			return -ebadf
		}
		if !watched && len(ep.watch) >= t.most {
			return -enomem
		}
		ep.watch[fd] = events
	case del:
		delete(ep.watch, fd)
	default:
		return -einval
	}
	return 0
}

// A readyFD is a descriptor with events.
type readyFD struct {
	fd     int32
	events uint32
}

// wait returns the ready descriptors, in ascending order. Errors and hang-ups are reported even if they were not requested. It does not
// block.
func (t *fds) wait(ep *epoll) []readyFD {
	var out []readyFD
	for _, fd := range slices.Sorted(maps.Keys(ep.watch)) {
		if events := t.ready(fd) & (ep.watch[fd] | eventErr | eventHup); events != 0 {
			out = append(out, readyFD{fd, events})
		}
	}
	return out
}

const nonblock = "O_NONBLOCK"

// setFlags applies {"set":[…],"clear":[…]}. Unknown flags are ignored.
func (e *entry) setFlags(arg []byte) int32 {
	if !rawjson.IsObject(arg, rawjson.Limits{}) {
		return -einval
	}
	for _, change := range []struct {
		name string
		on   bool
	}{{"set", true}, {"clear", false}} {
		list := rawjson.At(arg, change.name)
		names, ok := stringList(list)
		if list != nil && !ok {
			return -einval
		}
		if slices.Contains(names, nonblock) {
			e.nonblock = change.on
		}
	}
	return 0
}

func (e *entry) kind() string {
	switch {
	case e.session != nil:
		return "ChatSession"
	case e.response != nil:
		return "ChatResponse"
	}
	return "Epoll"
}

func (e *entry) flags() string {
	if e.nonblock {
		return `["` + nonblock + `"]`
	}
	return "[]"
}

// status returns the JSON of spear_fd_ctl for an open descriptor.
func (e *entry) status(events uint32) string {
	mask := "[]"
	if events&eventIn != 0 {
		mask = `["EPOLLIN"]`
	}
	return `{"closed":false,"flags":` + e.flags() + `,"kind":"` + e.kind() + `","poll_mask":` + mask + `}`
}
