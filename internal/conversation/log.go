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

// A Log encodes and decodes the events of one run. The encoded form of the first event is its JSON, and that of the others their JSON
// without what their row (the ids of the run and of the event) and the first event (the ids of the request and of the session) have, and
// without the members of data that are the zero value of their type. The time is the number of nanoseconds since the first event, which
// versions that encoded events whole refuse. An event with another id or a time that is no such number is encoded whole. For example, the
// second line is the encoded form of the event whose JSON is the first one:
//
//	{"event_id":7,"time":"2026-11-23T10:00:01.5Z","run_id":"r1","request_id":"q1","turn":2,"type":"ToolCallPlanned","data":{"tool_call_id":"a",…,"seq":0,…}}
//	{"time":1500000000,"turn":2,"type":"ToolCallPlanned","data":{"tool_call_id":"a",…}}
type Log struct {
	// Run is the row of the run, of which a Log uses the ids and the start. It is the zero value, but for RunID, for a Log that begins with
	// the first event: that event sets the others.
	Run store.RunSummary
}

// begins sets what later events refer to.
func (l *Log) begins(e *event.Event) {
	if _, ok := e.Data.(*event.RunStarted); ok && e.ID == 1 {
		l.Run.RequestID, l.Run.SessionID, l.Run.Started = e.RequestID, e.SessionID, e.Time.Round(0)
	}
}

// An encoded event that is not whole begins with its time and its turn. In the JSON of an event turn occurs nowhere before its turn, since
// quotes in strings are escaped.
const (
	head = `{"time":`
	turn = `,"turn":`
	data = `"data":`
)

// pack returns the encoded form of an event from its JSON.
func (l *Log) pack(e *event.Event, body []byte) ([]byte, error) {
	run, at := &l.Run, e.Time.Round(0)
	since := at.Sub(run.Started)
	fits := run.Started.Add(since).Equal(at) // a Duration spans about 292 years
	if e.ID == 1 || e.RequestID != run.RequestID || e.SessionID != run.SessionID || !fits {
		return body, nil
	}
	turnAt := bytes.Index(body, []byte(turn))
	dataAt := turnAt + bytes.Index(body[turnAt:], []byte(data)) + len(data)
	dataEnd, err := rawjson.Scan(body, dataAt)
	if err != nil {
		return nil, err
	}
	out := strconv.AppendInt(append(make([]byte, 0, len(body)), head...), int64(since), 10)
	out = append(out, body[turnAt:dataAt]...)
	zero := zeros()[e.Data.EventType()]
	out = rawjson.AppendEdited(out, body[dataAt:dataEnd], func(name string, value []byte) ([]byte, []byte, bool) {
		without, known := zero[name]
		return nil, value, !known || string(value) != without
	}, nil)
	return append(out, body[dataEnd:]...), nil
}

// unpack returns the event of an encoded form.
func (l *Log) unpack(id int64, body []byte) (e event.Event, err error) {
	start, rest, _ := bytes.Cut(body, []byte(turn))
	since, packed := bytes.CutPrefix(start, []byte(head))
	if !packed {
		return e, json.Unmarshal(body, &e)
	}
	ns, err := strconv.ParseInt(string(since), 10, 64)
	if err == nil {
		err = e.UnmarshalJSON(append([]byte(`{`+turn[1:]), rest...))
	}
	run := &l.Run
	e.ID, e.RunID, e.RequestID, e.SessionID, e.Time = id, run.RunID, run.RequestID, run.SessionID, run.Started.Add(time.Duration(ns)).UTC()
	return e, err
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
		_, members, _ := bytes.Cut(body, []byte(data))
		all[name] = map[string]string{}
		for key, value := range rawjson.Members(members) {
			if value[0] != '[' {
				all[name][rawjson.Text(key)] = string(value)
			}
		}
	}
	return all
})
