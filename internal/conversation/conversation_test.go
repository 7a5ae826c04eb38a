package conversation_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
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
	out, err := conversation.Decode(e.Body, e.Last(), bodies)
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
		encoded, err := conversation.Encode(e)
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
		bare, err := conversation.Decode(encoded.Body, encoded.Last(), nil)
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
		encoded, err := conversation.Encode(e)
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
	e, err := conversation.Encode(started("ann", strings.Repeat("x", conversation.MinBytes), "1", "2"))
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
	if _, err := conversation.Decode([]byte(`{"event_id":1}`), e.Last(), nil); err == nil {
		t.Error("a body without the place of its messages was decoded")
	}
}
