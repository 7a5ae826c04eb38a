package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Neither the caller of Append nor a reader can change the input of a run that is kept.
func TestMemoryKeepsTheInputsOfRuns(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), NewMemory(nil)
	add := func(id, input string) {
		e := event.Event{ID: 1, RunID: id, Data: &event.RunStarted{Input: json.RawMessage(input)}}
		if _, err := s.Append(ctx, id, 0, e); err != nil {
			t.Fatal(err)
		}
		clear(e.Data.(*event.RunStarted).Input)
	}
	read := func(id string) json.RawMessage {
		for e, err := range s.Read(ctx, id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			return e.Data.(*event.RunStarted).Input
		}
		return nil
	}
	for id, input := range map[string]string{"a": `{"version":1}`, "b": ""} {
		add(id, input)
		got := read(id)
		if string(got) != input {
			t.Fatalf("%s: %.40q, want %.40q", id, got, input)
		}
		clear(append(got[:0:cap(got)], got...))
		if again := read(id); string(again) != input {
			t.Errorf("%s: a reader has changed the log to %.40q", id, again)
		}
	}
}

func TestMemoryKeepsInputsOfGoroutines(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), NewMemory(nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				id, input := fmt.Sprint(i, "-", k), bytes.Repeat([]byte{byte('0' + i%2)}, 100)
				if _, err := s.Append(ctx, id, 0, event.Event{ID: 1, RunID: id, Data: &event.RunStarted{Input: input}}); err != nil {
					t.Error(err)
				}
				for e, err := range s.Read(ctx, id, 0) {
					if err != nil || !bytes.Equal(e.Data.(*event.RunStarted).Input, input) {
						t.Errorf("%v: %s, want %s", err, e.Data.(*event.RunStarted).Input, input)
					}
				}
			}
		})
	}
	all.Wait()
}

// The messages of a log that is read share memory for their parts: changing one message, or appending to it, changes neither another nor
// the log.
func TestMemoryKeepsTheMessagesOfARunApart(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), NewMemory(nil)
	given := []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant}, {Role: lathe.RoleUser, Parts: []lathe.Part{}}, {Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: "b"}, lathe.Opaque{JSON: []byte(`{"c":1}`)}}}, lathe.User("d")}
	want := fmt.Sprintf("%#v", given)
	if _, err := s.Append(ctx, "r", 0, event.Event{ID: 1, RunID: "r", Data: &event.RunStarted{Messages: given}}); err != nil {
		t.Fatal(err)
	}
	spoil := func(messages []lathe.Message) {
		for i := range messages {
			for k, p := range messages[i].Parts {
				if o, ok := p.(lathe.Opaque); ok {
					clear(o.JSON)
				}
				messages[i].Parts[k] = lathe.Text{Text: "spoilt"}
			}
			messages[i].Parts = append(messages[i].Parts, lathe.Text{Text: "more"})
		}
	}
	spoil(given)
	for range 2 {
		for e, err := range s.Read(ctx, "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			messages := e.Data.(*event.RunStarted).Messages
			if got := fmt.Sprintf("%#v", messages); got != want {
				t.Fatalf("the log has %s, want %s", got, want)
			}
			messages[0].Parts = append(messages[0].Parts, lathe.Text{Text: "more"})
			if text := messages[3].Text(); text != "b" {
				t.Errorf("an append to one message has changed another to %q", text)
			}
			spoil(messages)
		}
	}
}
