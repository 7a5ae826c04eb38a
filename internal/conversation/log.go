package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/store"
)

// A Log encodes and decodes the events of one run. The encoded form of an event is its JSON without what its row (the ids of the run and
// of the event) and the first event of the run (the ids of the request and of the session, unless they differ) have, and without the
// members of data that are the zero value of their type. Its time is a number: nanoseconds since the first event, and of the first event
// since 1970. A time that is no such number is a string, as in [event.Event]. Versions that encoded events whole refuse a number.
type Log struct {
	// Run is the row of the run, of which a Log uses the ids and the start. It is the zero value, but for RunID, for a Log that begins with
	// the first event: that event sets the others.
	Run store.RunSummary
}

// epoch is the time from which the first event of a run is counted.
var epoch = time.Unix(0, 0)

// begins sets what later events refer to.
func (l *Log) begins(e *event.Event) {
	if _, ok := e.Data.(*event.RunStarted); ok && e.ID == 1 {
		l.Run.RequestID, l.Run.SessionID, l.Run.Started = e.RequestID, e.SessionID, e.Time.Round(0)
	}
}

// since returns the run to which the event with the id refers.
func (l *Log) since(id int64) store.RunSummary {
	if id == 1 {
		return store.RunSummary{Started: epoch}
	}
	return l.Run
}

// A head has the members of an encoded event before its turn. RequestID and SessionID are nil where those of the run apply.
type head struct {
	Time      json.RawMessage `json:"time"`
	RequestID *string         `json:"request_id,omitempty"`
	SessionID *string         `json:"session_id,omitempty"`
}

// turn is the first member behind the head, in the encoded form and in the JSON of an event. It occurs nowhere before, since quotes in strings
// are escaped.
const turn = `,"turn":`

// pack returns the encoded form of an event from its JSON.
func (l *Log) pack(e *event.Event, body []byte) ([]byte, error) {
	run, at := l.since(e.ID), e.Time.Round(0)
	var h head
	if ns := at.Sub(run.Started); run.Started.Add(ns).Equal(at) {
		h.Time = strconv.AppendInt(nil, int64(ns), 10)
	} else {
		h.Time = at.UTC().AppendFormat(nil, `"`+time.RFC3339Nano+`"`)
	}
	if e.RequestID != run.RequestID {
		h.RequestID = &e.RequestID
	}
	if e.SessionID != run.SessionID {
		h.SessionID = &e.SessionID
	}
	out, err := json.Marshal(&h)
	if err != nil {
		return nil, err
	}
	from := bytes.Index(body, []byte(turn))
	data := from + bytes.Index(body[from:], []byte(`"data":`)) + len(`"data":`)
	end, err := rawjson.Scan(body, data)
	if err != nil {
		return nil, err
	}
	out = append(out[:len(out)-1], body[from:data]...)
	zero := zeros()[e.Data.EventType()]
	out = rawjson.AppendEdited(out, body[data:end], func(name string, value []byte) ([]byte, []byte, bool) {
		without, known := zero[name]
		return nil, value, !known || string(value) != without
	}, nil)
	return append(out, body[end:]...), nil
}

// unpack returns the event of an encoded form, or of the JSON of an event, as earlier versions stored it.
func (l *Log) unpack(id int64, body []byte) (e event.Event, err error) {
	if !bytes.HasPrefix(body, []byte(`{"time":`)) {
		return e, json.Unmarshal(body, &e)
	}
	start, rest, found := bytes.Cut(body, []byte(turn))
	if !found {
		return e, errors.New("the event has no turn")
	}
	var h head
	if err := json.Unmarshal(append(bytes.Clone(start), '}'), &h); err != nil {
		return e, err
	}
	if err := e.UnmarshalJSON(append([]byte(`{`+turn[1:]), rest...)); err != nil {
		return e, err
	}
	run := l.since(id)
	e.ID, e.RunID, e.RequestID, e.SessionID = id, l.Run.RunID, run.RequestID, run.SessionID
	if h.RequestID != nil {
		e.RequestID = *h.RequestID
	}
	if h.SessionID != nil {
		e.SessionID = *h.SessionID
	}
	ns, err := strconv.ParseInt(string(h.Time), 10, 64)
	if err != nil {
		return e, json.Unmarshal(h.Time, &e.Time)
	}
	e.Time = run.Started.Add(time.Duration(ns)).UTC()
	return e, nil
}

// zeros returns, by the type of an event, the members of its data that are left out, with their values: those of the zero value, but
// lists, of which an empty one is not the zero value.
var zeros = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, name := range event.Types() {
		var e event.Event
		err := e.UnmarshalJSON([]byte(`{"type":"` + name + `","data":{}}`))
		body, err2 := e.MarshalJSON()
		if err != nil || err2 != nil {
			panic(errors.Join(err, err2)) // a fault of this program
		}
		_, data, _ := bytes.Cut(body, []byte(`"data":`))
		all[name] = map[string]string{}
		for key, value := range rawjson.Members(data) {
			if value[0] != '[' {
				all[name][rawjson.Text(key)] = string(value)
			}
		}
	}
	return all
})
