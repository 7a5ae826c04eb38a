package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Difference is one difference between a recorded run and its replay.
type Difference struct {
	EventID int64
	Type    string // type of the recorded event or, if none exists, of the new one
	Path    string // path in the event, such as data.status; "": the whole event
	// Recorded and Now are the recorded value and the new one as JSON, or the types of the two events; "": absent. They may contain content
	// of messages.
	Recorded, Now string
}

// times are the members with a time or a duration, which are not compared.
var times = map[string]bool{"time": true, "data.latency_ms": true, "data.first_token_ms": true, "data.expires_at": true}

// stored are the members that a store adds to an event after the run.
var stored = map[string]bool{"data.retention.applied": true}

// notRecorded are the members that differ if the tools return recorded results.
var notRecorded = map[string]bool{"data.output_size_bytes": true, "data.attempts": true}

// Compare returns the differences between the record and its replay, in event order. It ignores times and what a store added to events
// after the run. If recordedTools is true, it also ignores sizes of outputs before truncation and numbers of attempts. It stops at the
// first two events with different types, which are then the last difference.
func (r *Record) Compare(res *Result, recordedTools bool) ([]Difference, error) {
	was, is := r.Events[:min(res.Until, int64(len(r.Events)))], res.Events
	if res.Until < int64(len(r.Events)) || !r.Ended() && !waits(r.Events) {
		was = withoutTail(was)
		is = is[:min(len(is), len(was))]
	}
	was, is = inOrder(was), inOrder(is)
	var out []Difference
	for i := range max(len(was), len(is)) {
		d := Difference{EventID: int64(i) + 1}
		if i < len(was) {
			d.Recorded = was[i].Data.EventType()
		}
		if i < len(is) {
			d.Now = is[i].Data.EventType()
		}
		d.Type = cmp.Or(d.Recorded, d.Now)
		if d.Recorded != d.Now {
			return append(out, d), nil
		}
		more, err := compareEvents(&was[i], &is[i], recordedTools)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// seqOf returns the sequence number in the run of the call that an event belongs to; ok is false for other events.
func seqOf(d event.Data) (seq int, ok bool) {
	switch d := d.(type) {
	case *event.ToolCallProposed:
		return d.Seq, true
	case *event.ToolCallPlanned:
		return d.Seq, true
	case *event.ApprovalRequested:
		return d.Seq, true
	case *event.ApprovalResolved:
		return d.Seq, true
	case *event.ToolCallExecuted:
		return d.Seq, true
	case *event.ToolsLoaded:
		return d.Seq, true
	case *event.ToolCallResult:
		return d.Seq, true
	default:
		return 0, false
	}
}

// tailOf returns the index from which all events belong to calls.
func tailOf(events []event.Event) int {
	n := len(events)
	for n > 0 {
		if _, ok := seqOf(events[n-1].Data); !ok {
			break
		}
		n--
	}
	return n
}

// withoutTail removes concurrent calls at the end, because the order of their events is random.
func withoutTail(events []event.Event) []event.Event {
	n := tailOf(events)
	for i := n + 1; i < len(events); i++ {
		a, _ := seqOf(events[i-1].Data)
		if b, _ := seqOf(events[i].Data); a > b {
			return events[:n]
		}
	}
	return events
}

// inOrder sorts the events of concurrent calls by call, and numbers all events in the new order.
func inOrder(events []event.Event) []event.Event {
	out := slices.Clone(events)
	for rest := out; len(rest) > 0; {
		start := tailOf(rest)
		slices.SortStableFunc(rest[start:], func(a, b event.Event) int {
			x, _ := seqOf(a.Data)
			y, _ := seqOf(b.Data)
			return cmp.Compare(x, y)
		})
		rest = rest[:max(start-1, 0)] // without the event before, which belongs to no call
	}
	for i := range out {
		out[i].ID = int64(i) + 1
	}
	return out
}

// waits reports whether the last event is a pause.
func waits(events []event.Event) bool {
	if len(events) == 0 {
		return false
	}
	_, ok := events[len(events)-1].Data.(*event.RunPaused)
	return ok
}

func compareEvents(was, is *event.Event, recordedTools bool) ([]Difference, error) {
	a, err := tree(was)
	if err != nil {
		return nil, err
	}
	b, err := tree(is)
	if err != nil {
		return nil, err
	}
	c := &comparison{base: Difference{EventID: was.ID, Type: was.Data.EventType()}, recordedTools: recordedTools}
	c.values("", a, b)
	return c.found, nil
}

// tree returns the event as maps, lists and scalars. Numbers retain their digits.
func tree(e *event.Event) (any, error) {
	line, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return rawjson.Value(line)
}

type comparison struct {
	base          Difference
	recordedTools bool
	found         []Difference
}

func (c *comparison) values(path string, was, is any) {
	if times[path] || stored[path] || c.recordedTools && notRecorded[path] {
		return
	}
	if _, older := was.(missing); older && path == "data.blank" { // recorded by a version without this member
		return
	}
	switch a := was.(type) {
	case map[string]any:
		if b, ok := is.(map[string]any); ok {
			c.members(path, a, b)
			return
		}
	case []any:
		if b, ok := is.([]any); ok && len(a) == len(b) {
			for i := range a {
				c.values(path+"["+strconv.Itoa(i)+"]", a[i], b[i])
			}
			return
		}
	}
	if x, y := text(was), text(is); x != y {
		d := c.base
		d.Path, d.Recorded, d.Now = path, x, y
		c.found = append(c.found, d)
	}
}

// missing represents a member that does not exist.
type missing struct{}

func (c *comparison) members(path string, was, is map[string]any) {
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := any(missing{}), any(missing{})
		if v, ok := was[name]; ok {
			a = v
		}
		if v, ok := is[name]; ok {
			b = v
		}
		below := name
		if path != "" {
			below = path + "." + name
		}
		c.values(below, a, b)
	}
}

func text(v any) string {
	if _, ok := v.(missing); ok {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v) // values of a decoder can always be encoded
	}
	return string(b)
}
