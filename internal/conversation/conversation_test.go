package conversation_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
	"github.com/lathe-run/lathe/store"
)

// started returns a RunStarted with the texts as messages, whose other members hold what could be taken for the place of the messages.
func started(principal string, texts ...string) *event.Event {
	d := &event.RunStarted{Model: `"content":{"messages":null`, Principal: principal, Labels: map[string]string{`"content":{"messages":null`: "x"},
		Input: []byte(`{"content":{"messages":null}}`)}
	for _, text := range texts {
		d.Messages = append(d.Messages, lathe.User(text))
	}
	return &event.Event{ID: 1, RunID: "run_1", Data: d}
}

// encode encodes the first event of a run.
func encode(e *event.Event) (conversation.Event, error) { return new(conversation.Log).Encode(e) }

// decode decodes e with the messages that a store would read for it, from the last one to the first.
func decode(t *testing.T, e *conversation.Event) event.Event {
	t.Helper()
	var bodies [][]byte
	if last := e.Last(); last != nil {
		var read []conversation.Message
		for i := len(e.Messages) - 1; i >= 0; i-- {
			read = append(read, e.Messages[i])
		}
		var err error
		if bodies, err = conversation.Chain(last, read); err != nil {
			t.Fatal(err)
		}
	}
	log := conversation.Log{Run: store.RunSummary{RunID: "run_1"}}
	out, err := log.Decode(1, e.Body, e.Last(), bodies)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An event is the same after it was encoded and decoded as after its JSON was read, and decodes without its messages, too.
func FuzzEncode(f *testing.F) {
	f.Add("ann", "hello", 1)
	f.Add("", `"content":{"messages":null`, 5000)
	f.Add("bob", "<&>\u2028\xff", 2000)
	f.Fuzz(func(t *testing.T, principal, text string, times int) {
		text = strings.Repeat(text, min(max(times, 1), 10_000)%(1<<16/(len(text)+1)+1)+1)
		e := started(principal, text, "", text+"!")
		encoded, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, m := range e.Data.(*event.RunStarted).Messages {
			size += m.Size()
		}
		if apart := encoded.Messages != nil; apart != (size >= conversation.MinBytes) {
			t.Errorf("messages of %d bytes: apart is %v", size, apart)
		}
		got := decode(t, &encoded)
		raw, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var want event.Event
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decoded %+v, want %+v", got, want)
		}
		bare, err := (&conversation.Log{Run: store.RunSummary{RunID: "run_1"}}).Decode(1, encoded.Body, encoded.Last(), nil)
		if err != nil || bare.RunID != "run_1" || bare.Data.(*event.RunStarted).Principal != got.Data.(*event.RunStarted).Principal {
			t.Errorf("without its messages: %v", err)
		}
	})
}

// Equal beginnings of conversations of one principal have equal digests; another message or another principal changes all that follow.
func TestDigests(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", conversation.MinBytes)
	digests := func(e *event.Event) (out []string) {
		encoded, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range encoded.Messages {
			out = append(out, string(m.Digest))
		}
		return out
	}
	a, b, c, other := digests(started("ann", long, "1", "2")), digests(started("ann", long, "1", "2", "3")), digests(started("ann", long, "0", "2")), digests(started("bob", long, "1", "2"))
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("message %d of a longer conversation has another digest", i)
		}
		if (i > 0) == (a[i] == c[i]) {
			t.Errorf("message %d behind a changed message: equal is %v", i, a[i] == c[i])
		}
		if a[i] == other[i] {
			t.Errorf("message %d of another principal has the same digest", i)
		}
	}
}

// A chain that is incomplete, or not the one that an event refers to, is an error.
func TestIncompleteChain(t *testing.T) {
	t.Parallel()
	e, err := encode(started("ann", strings.Repeat("x", conversation.MinBytes), "1", "2"))
	if err != nil {
		t.Fatal(err)
	}
	m := e.Messages
	for name, read := range map[string][]conversation.Message{
		"nothing": nil, "without the first": {m[2], m[1]}, "without the last": {m[1], m[0]}, "in the middle": {m[2], m[0]}, "too many": {m[2], m[1], m[0], m[0]},
	} {
		if _, err := conversation.Chain(e.Last(), read); !errors.Is(err, conversation.ErrMissing) || lathe.CodeOf(err) != lathe.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := new(conversation.Log).Decode(1, []byte(`{"event_id":1}`), e.Last(), nil); err == nil {
		t.Error("a body without the place of its messages was decoded")
	}
}

// The events of a log are decoded as they were encoded, from the first one on and from any other one with the row of the run, whether they
// are encoded, or whole as earlier versions stored them.
func TestLog(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 29, 12, 0, 0, 5, time.UTC)
	first := started("ann", "hello")
	first.Time, first.RequestID, first.SessionID = start, "req_1", "s1"
	zero := 0
	events := []event.Event{*first,
		{Time: start.Add(time.Second), RequestID: "req_1", SessionID: "s1", Turn: 1, Data: &event.ModelCallStarted{Model: "m"}},
		{Time: start.Add(-time.Hour), RequestID: `,"turn":1`, SessionID: "s2", Turn: 1, Data: &event.ToolCallExecuted{RC: &zero}},
		{Time: start.AddDate(1000, 0, 0), Turn: 1, Removed: 7, Data: &event.RunPaused{Pending: []string{}}},
		{Time: start.In(time.FixedZone("", 3600)), RequestID: "req_1", SessionID: "s1", Data: &event.RunResumed{}},
		{RequestID: "req_1", SessionID: "s1", Data: &event.RunFinished{Answer: `"data":{}`}},
	}
	row := store.Summary{}
	for i := range events {
		events[i].ID, events[i].RunID = int64(i)+1, "run_1"
	}
	encoded, err := conversation.EncodeAll(&row.Run, events)
	if err != nil {
		t.Fatal(err)
	}
	row.Apply(&events[0])
	later, err := conversation.EncodeAll(&row.Run, events[2:])
	if err != nil {
		t.Fatal(err)
	}
	for from := range events {
		log := conversation.Log{Run: row.Run}
		if from == 0 {
			log.Run = store.RunSummary{RunID: "run_1"}
		}
		for i := from; i < len(events); i++ {
			want, err := events[i].MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			bodies := [][]byte{encoded[i].Body, want}
			if i >= 2 {
				bodies = append(bodies, later[i-2].Body)
			}
			for _, body := range bodies {
				e, err := log.Decode(int64(i)+1, body, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := e.MarshalJSON(); err != nil || string(got) != string(want) {
					t.Errorf("%s: %s, want %s, %v", body, got, want, err)
				}
			}
		}
	}
	if n := len(encoded[1].Body); n > 100 {
		t.Errorf("an event without values has %d bytes: %s", n, encoded[1].Body)
	}
	if _, err := new(conversation.Log).Decode(2, []byte(`{"time":1}`), nil, nil); err == nil {
		t.Error("an event without a turn was decoded")
	}
}
