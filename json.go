package lathe

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// eventJSON is the JSON form of an event, as it is read: the line that `lathe run --json` prints and that stores keep.
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

// MarshalJSON returns the event with its content.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil, true) }

// MarshalData returns the event's JSON form without content: what audit, logs and traces may see.
func (e Event) MarshalData() ([]byte, error) { return e.AppendJSON(nil, false) }

// AppendJSON appends the event's JSON form, one line without the line's end, with or without its
// content. On an error dst is returned as it was.
func (e Event) AppendJSON(dst []byte, withContent bool) ([]byte, error) {
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
func listed(d EventData) EventData {
	switch d := d.(type) {
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

// UnmarshalJSON reads what MarshalJSON wrote. An event type that this version does not know is an error.
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
	if a, ok := data.(*ApprovalResolved); ok && in.Content != nil {
		a.Arguments = json.RawMessage("null") // so that content has a place for it
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

// EventTypes are the names of all event types, in the order of the contract's table.
var EventTypes = []string{
	"RunStarted", "ModelCallStarted", "TextDelta", "ReasoningDelta", "CommentaryDelta", "ToolCallDelta",
	"ModelCallFinished", "ToolCallProposed", "ToolCallParseError", "ToolCallPlanned", "ApprovalRequested",
	"ApprovalResolved", "ToolCallExecuted", "ToolCallResult", "RunPaused", "RunResumed", "RunFinished",
}

func newEventData(name string) EventData {
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

// messageJSON is Lathe's own JSON form of a message. Fields are added, never renamed.
type messageJSON struct {
	Role      Role       `json:"role"`
	Name      string     `json:"name,omitempty"`
	Parts     []partJSON `json:"parts"`
	Extra     []Member   `json:"extra,omitempty"`
	Synthetic bool       `json:"synthetic,omitempty"`
}

type partJSON struct {
	Type       string          `json:"type"` // text, reasoning, refusal, blob, tool_call, tool_result
	Text       string          `json:"text,omitempty"`
	Commentary bool            `json:"commentary,omitempty"`
	Unreadable bool            `json:"unreadable,omitempty"`
	Field      string          `json:"field,omitempty"`
	MediaType  string          `json:"media_type,omitempty"`
	URL        string          `json:"url,omitempty"`
	Data       []byte          `json:"data,omitempty"`
	Detail     string          `json:"detail,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
	ID         string          `json:"id,omitempty"`
	Name       string          `json:"name,omitempty"`
	Arguments  *string         `json:"arguments,omitempty"`
	Dialect    string          `json:"dialect,omitempty"`
	Deprecated bool            `json:"deprecated,omitempty"`
	Recovered  bool            `json:"recovered,omitempty"`
	Incomplete bool            `json:"incomplete,omitempty"`
	ParseError Code            `json:"parse_error,omitempty"`
	Content    *string         `json:"content,omitempty"`
	Blobs      []partJSON      `json:"blobs,omitempty"`
	IsError    bool            `json:"is_error,omitempty"`
	Code       Code            `json:"code,omitempty"`
	Extra      []Member        `json:"extra,omitempty"`
}

// MarshalJSON returns Lathe's own form of the message, not a vendor's.
func (m Message) MarshalJSON() ([]byte, error) {
	out := messageJSON{Role: m.Role, Name: m.Name, Extra: m.Extra, Synthetic: m.Synthetic, Parts: make([]partJSON, 0, len(m.Parts))}
	for _, p := range m.Parts {
		pj, err := partToJSON(p)
		if err != nil {
			return nil, err
		}
		out.Parts = append(out.Parts, pj)
	}
	var w appender
	w.value(out)
	return w.b, w.err
}

func partToJSON(p Part) (partJSON, error) {
	switch p := p.(type) {
	case Text:
		return partJSON{Type: "text", Text: p.Text, Commentary: p.Commentary, Unreadable: p.Unreadable, Extra: p.Extra}, nil
	case Reasoning:
		return partJSON{Type: "reasoning", Text: p.Text, Field: p.Field}, nil
	case Refusal:
		return partJSON{Type: "refusal", Text: p.Text}, nil
	case Blob:
		return blobToJSON(p), nil
	case ToolCall:
		return partJSON{Type: "tool_call", ID: p.ID, Name: p.Name, Arguments: &p.Arguments, Dialect: p.Dialect, Deprecated: p.Deprecated,
			Recovered: p.Recovered, Incomplete: p.Incomplete, ParseError: p.ParseError, Extra: p.Extra}, nil
	case ToolResult:
		out := partJSON{Type: "tool_result", ID: p.CallID, Name: p.Name, Content: &p.Content, IsError: p.IsError, Code: p.Code, Extra: p.Extra}
		for _, b := range p.Blobs {
			out.Blobs = append(out.Blobs, blobToJSON(b))
		}
		return out, nil
	}
	return partJSON{}, fmt.Errorf("lathe: part %T has no JSON form", p)
}

func blobToJSON(b Blob) partJSON {
	return partJSON{Type: "blob", MediaType: b.MediaType, URL: b.URL, Data: b.Data, Name: b.Name, Detail: b.Detail, Raw: b.Raw}
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Message) UnmarshalJSON(b []byte) error {
	var in messageJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("lathe: reading a message: %w", err)
	}
	out := Message{Role: in.Role, Name: in.Name, Extra: in.Extra, Synthetic: in.Synthetic}
	for _, pj := range in.Parts {
		p, err := pj.part()
		if err != nil {
			return err
		}
		out.Parts = append(out.Parts, p)
	}
	*m = out
	return nil
}

func (p *partJSON) part() (Part, error) {
	deref := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	switch p.Type {
	case "text":
		return Text{Text: p.Text, Commentary: p.Commentary, Unreadable: p.Unreadable, Extra: p.Extra}, nil
	case "reasoning":
		return Reasoning{Text: p.Text, Field: p.Field}, nil
	case "refusal":
		return Refusal{Text: p.Text}, nil
	case "blob":
		return p.blob(), nil
	case "tool_call":
		return ToolCall{ID: p.ID, Name: p.Name, Arguments: deref(p.Arguments), Dialect: p.Dialect, Deprecated: p.Deprecated,
			Recovered: p.Recovered, Incomplete: p.Incomplete, ParseError: p.ParseError, Extra: p.Extra}, nil
	case "tool_result":
		out := ToolResult{CallID: p.ID, Name: p.Name, Content: deref(p.Content), IsError: p.IsError, Code: p.Code, Extra: p.Extra}
		for i := range p.Blobs {
			out.Blobs = append(out.Blobs, p.Blobs[i].blob())
		}
		return out, nil
	}
	return nil, fmt.Errorf("lathe: unknown part type %q", p.Type)
}

func (p *partJSON) blob() Blob {
	return Blob{MediaType: p.MediaType, URL: p.URL, Data: p.Data, Name: p.Name, Detail: p.Detail, Raw: p.Raw}
}

// optionalRaw is a JSON value that is left out where there is none.
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

// blobList is the JSON form of blobs outside of a message. It is left out where there are none.
type blobList []Blob

func (l *blobList) IsZero() bool { return len(*l) == 0 }

func (l *blobList) MarshalJSON() ([]byte, error) {
	out := make([]partJSON, len(*l))
	for i, b := range *l {
		out[i] = blobToJSON(b)
	}
	var w appender
	w.value(out)
	return w.b, w.err
}

func (l *blobList) UnmarshalJSON(b []byte) error {
	var in []partJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*l = make([]Blob, len(in))
	for i := range in {
		(*l)[i] = in[i].blob()
	}
	return nil
}
