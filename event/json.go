package event

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lathe-run/lathe"
)

// eventJSON is the JSON form of an event, as it is read: the line that `lathe run --json` prints, from which stores make the form that they keep.
type eventJSON struct {
	ID        int64           `json:"event_id"`
	After     int64           `json:"after"`
	N         int64           `json:"n"`
	Time      time.Time       `json:"time"`
	RunID     string          `json:"run_id"`
	RequestID string          `json:"request_id"`
	SessionID string          `json:"session_id"`
	Turn      int             `json:"turn"`
	Removed   int             `json:"removed_bytes"`
	Type      string          `json:"type"`
	Data      json.RawMessage `json:"data"`
	Content   json.RawMessage `json:"content"`
}

// MarshalJSON returns the event's JSON form with content (see [Data]), for the store and the owner of the run. It returns an error if Data is
// nil.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendWithContent(nil) }

// MarshalData returns the event's JSON form without content (see [Data]), for logs, traces and all other readers. It returns an error if
// Data is nil.
func (e Event) MarshalData() ([]byte, error) { return e.AppendWithoutContent(nil) }

// AppendWithContent appends the result of MarshalJSON to dst: one line without a line end. On an error it returns dst unchanged.
func (e Event) AppendWithContent(dst []byte) ([]byte, error) { return e.appendJSON(dst, true) }

// AppendWithoutContent appends the result of MarshalData to dst: one line without a line end. On an error it returns dst unchanged.
func (e Event) AppendWithoutContent(dst []byte) ([]byte, error) { return e.appendJSON(dst, false) }

func (e Event) appendJSON(dst []byte, withContent bool) ([]byte, error) {
	if e.Data == nil {
		return dst, fmt.Errorf("lathe: event %d has no data", e.ID)
	}
	w := &appender{b: dst}
	if e.ID != 0 {
		w.b = strconv.AppendInt(append(w.b, `{"event_id":`...), e.ID, 10)
	} else { // live only
		w.b = strconv.AppendInt(append(w.b, `{"after":`...), e.After, 10)
		if e.N != 0 {
			w.b = strconv.AppendInt(append(w.b, `,"n":`...), e.N, 10)
		}
	}
	w.b = append(w.b, `,"time":"`...)
	w.b = e.Time.UTC().AppendFormat(w.b, time.RFC3339Nano)
	w.b = append(w.b, `","run_id":`...)
	w.value(e.RunID)
	w.b = append(w.b, `,"request_id":`...)
	w.value(e.RequestID)
	if e.SessionID != "" {
		w.b = append(w.b, `,"session_id":`...)
		w.value(e.SessionID)
	}
	w.b = strconv.AppendInt(append(w.b, `,"turn":`...), int64(e.Turn), 10)
	if e.Removed != 0 {
		w.b = strconv.AppendInt(append(w.b, `,"removed_bytes":`...), int64(e.Removed), 10)
	}
	w.b = append(w.b, `,"type":`...)
	w.value(e.Data.EventType())
	w.b = append(w.b, `,"data":`...)
	w.value(listed(e.Data))
	if c := e.Data.content(); withContent && c != nil {
		w.b = append(w.b, `,"content":`...)
		w.value(c)
	}
	if w.err != nil {
		return dst, w.err
	}
	return append(w.b, '}'), nil
}

// listed returns d with an empty list where a list of its data is nil: readers expect a list.
func listed(d Data) Data {
	switch d := d.(type) {
	case *ToolsLoaded:
		if d.Tools == nil {
			return &ToolsLoaded{ToolCallID: d.ToolCallID, Seq: d.Seq, Tools: []string{}, Hash: d.Hash}
		}
	case *RunPaused:
		if d.Pending == nil {
			return &RunPaused{Reason: d.Reason, Pending: []string{}}
		}
	case *RunResumed:
		if d.Pending == nil {
			return &RunResumed{Reason: d.Reason, Pending: []string{}}
		}
	default: // no lists
	}
	return d
}

// An appender appends JSON values and keeps the first error.
type appender struct {
	b   []byte
	err error
}

func (w *appender) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

func (w *appender) value(v any) {
	if w.err != nil {
		return
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // events are read by people
	if w.err = enc.Encode(v); w.err == nil {
		w.b = w.b[:len(w.b)-1] // Encode ends with a line end
	}
}

// UnmarshalJSON reads an event in the form of MarshalJSON or MarshalData. Content that the form does not contain leaves the fields of Data
// zero. An event type that this version does not know is an error. On an error e is unchanged.
func (e *Event) UnmarshalJSON(b []byte) error {
	var in eventJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("lathe: reading an event: %w", err)
	}
	data := newEventData(in.Type)
	if data == nil {
		return fmt.Errorf("lathe: unknown event type %q", in.Type)
	}
	if err := json.Unmarshal(in.Data, data); err != nil {
		return fmt.Errorf("lathe: reading %s: %w", in.Type, err)
	}
	if in.Content != nil { // content returns a place for these fields only if they are set
		switch d := data.(type) {
		case *ApprovalResolved:
			d.Arguments = json.RawMessage("null")
		case *ModelCallStarted:
			d.Asked = " "
		default:
		}
	}
	if c := data.content(); c != nil && in.Content != nil {
		if err := json.Unmarshal(in.Content, c); err != nil {
			return fmt.Errorf("lathe: reading %s: %w", in.Type, err)
		}
	}
	*e = Event{ID: in.ID, After: in.After, N: in.N, Time: in.Time, RunID: in.RunID, RequestID: in.RequestID,
		SessionID: in.SessionID, Turn: in.Turn, Removed: in.Removed, Data: data}
	return nil
}

// Types returns the names of all event types, in the order in which a run publishes them. The caller may change the slice.
func Types() []string { return slices.Clone(types[:]) }

var types = [...]string{
	"RunStarted", "ModelCallStarted", "TextDelta", "ReasoningDelta", "CommentaryDelta", "ToolCallDelta", "ToolCallProgress",
	"ModelCallFinished", "ToolCallProposed", "ToolCallParseError", "ToolCallPlanned", "ApprovalRequested",
	"ApprovalResolved", "ToolCallExecuted", "ToolsLoaded", "ToolCallResult", "RunPaused", "RunResumed", "RunFinished",
}

func newEventData(name string) Data {
	switch name {
	case "RunStarted":
		return new(RunStarted)
	case "ModelCallStarted":
		return new(ModelCallStarted)
	case "TextDelta":
		return new(TextDelta)
	case "ReasoningDelta":
		return new(ReasoningDelta)
	case "CommentaryDelta":
		return new(CommentaryDelta)
	case "ToolCallDelta":
		return new(ToolCallDelta)
	case "ToolCallProgress":
		return new(ToolCallProgress)
	case "ModelCallFinished":
		return new(ModelCallFinished)
	case "ToolCallProposed":
		return new(ToolCallProposed)
	case "ToolCallParseError":
		return new(ToolCallParseError)
	case "ToolCallPlanned":
		return new(ToolCallPlanned)
	case "ApprovalRequested":
		return new(ApprovalRequested)
	case "ApprovalResolved":
		return new(ApprovalResolved)
	case "ToolCallExecuted":
		return new(ToolCallExecuted)
	case "ToolsLoaded":
		return new(ToolsLoaded)
	case "ToolCallResult":
		return new(ToolCallResult)
	case "RunPaused":
		return new(RunPaused)
	case "RunResumed":
		return new(RunResumed)
	case "RunFinished":
		return new(RunFinished)
	}
	return nil
}

// optionalRaw is a JSON value that is left out if it is empty.
type optionalRaw json.RawMessage

func (r *optionalRaw) IsZero() bool                 { return len(*r) == 0 }
func (r *optionalRaw) MarshalJSON() ([]byte, error) { return *r, nil }
func (r *optionalRaw) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// optionalText and optionalLabels are left out where they are empty.
type (
	optionalText   string
	optionalLabels map[string]string
)

func (t *optionalText) IsZero() bool   { return *t == "" }
func (l *optionalLabels) IsZero() bool { return len(*l) == 0 }

// blobList is left out where it is empty.
type blobList []lathe.Blob

func (l *blobList) IsZero() bool { return len(*l) == 0 }
