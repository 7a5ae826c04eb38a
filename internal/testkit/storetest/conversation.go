package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A ConversationStore is a store that can delete and compact runs.
type ConversationStore interface {
	store.Retainer
	store.Compactor
}

// ConversationTurns and ConversationText are the number of turns of each conversation of [TestConversations], and the size of each of its
// messages. The turn n is the run PRINCIPAL_n with 2n+1 messages.
const (
	ConversationTurns = 12
	ConversationText  = 5_000
)

// AppendTurn appends a run with the messages of a conversation up to the turn n.
func AppendTurn(t *testing.T, s store.Store, principal string, n int) {
	t.Helper()
	if err := appendTurn(t, s, principal, fmt.Sprintf("%s_%d", principal, n), n); err != nil {
		t.Fatal(err)
	}
}

func appendTurn(t *testing.T, s store.Store, principal, run string, n int) error {
	_, err := s.Append(t.Context(), run, 0,
		event.Event{ID: 1, RunID: run, Data: &event.RunStarted{Model: "m", Principal: principal, Messages: turns(principal, n)}},
		event.Event{ID: 2, RunID: run, Data: &event.RunFinished{Reason: lathe.ReasonAnswered}})
	return err
}

// turns returns the messages of a conversation up to the question of the turn n.
func turns(principal string, n int) (out []lathe.Message) {
	for i := range n + 1 {
		if i > 0 {
			out = append(out, lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: fmt.Sprintf("answer %d %s", i, strings.Repeat("a", ConversationText))}}})
		}
		out = append(out, lathe.User(fmt.Sprintf("%s asks %d %s", principal, i, strings.Repeat("q", ConversationText))))
	}
	return out
}

// WantTurn fails t unless the run of the turn n has all of its messages.
func WantTurn(t *testing.T, s store.Store, principal string, n int) {
	t.Helper()
	wantTurn(t, s, principal, fmt.Sprintf("%s_%d", principal, n), n)
}

func wantTurn(t *testing.T, s store.Store, principal, run string, n int) {
	t.Helper()
	events := read(t, s, run, 0)
	want := event.Event{Data: &event.RunStarted{Messages: turns(principal, n)}}
	got := event.Event{Data: &event.RunStarted{Messages: events[0].Data.(*event.RunStarted).Messages}}
	if len(events) != 2 || string(encode(t, got)) != string(encode(t, want)) {
		t.Errorf("%s has %d events and other messages than those that were stored", run, len(events))
	}
}

// TestConversations checks that runs with the same messages keep all of them while others of their conversation are compacted and deleted.
// At its end, s has the runs of the principal bob.
func TestConversations(t *testing.T, s ConversationStore) {
	t.Helper()
	principals := []string{"ann", "bob"}
	for n := range ConversationTurns {
		for _, p := range principals {
			AppendTurn(t, s, p, n)
		}
	}
	for n := range ConversationTurns {
		WantTurn(t, s, "ann", n)
	}
	if err := s.Compact(t.Context(), "ann_5", func(e event.Event) event.Event {
		if d, ok := e.Data.(*event.RunStarted); ok {
			for i := range d.Messages {
				if d.Messages[i].Role == lathe.RoleAssistant {
					d.Messages[i].Parts = []lathe.Part{lathe.Text{Text: "removed"}}
				}
			}
		}
		return e
	}); err != nil {
		t.Fatal(err)
	}
	WantTurn(t, s, "ann", 4)
	if m := read(t, s, "ann_5", 0)[0].Data.(*event.RunStarted).Messages; len(m) != 11 || m[1].Text() != "removed" {
		t.Errorf("after the compaction the run has %d messages", len(m))
	}
	if err := s.Delete(t.Context(), "ann_7"); err != nil {
		t.Fatal(err)
	}
	AppendTurn(t, s, "ann", 7)
	WantTurn(t, s, "ann", 7)
	for n := range ConversationTurns - 1 {
		if err := s.Delete(t.Context(), fmt.Sprintf("ann_%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	WantTurn(t, s, "ann", ConversationTurns-1)
	if err := s.DeletePrincipal(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	for n := range ConversationTurns {
		WantTurn(t, s, "bob", n)
	}
}

// TestConversationsAtOnce appends and deletes runs of one conversation concurrently. At its end, s has none of them.
func TestConversationsAtOnce(t *testing.T, s ConversationStore) {
	t.Helper()
	const rounds, at = 12, 4
	var all sync.WaitGroup
	for worker := range at {
		all.Go(func() {
			for n := range rounds {
				run := fmt.Sprintf("eve_%d_%d", worker, n)
				if err := appendTurn(t, s, "eve", run, n); err != nil {
					t.Errorf("%s: %v", run, err)
					return
				}
				wantTurn(t, s, "eve", run, n)
				if err := s.Delete(t.Context(), run); err != nil {
					t.Errorf("deleting %s: %v", run, err)
				}
			}
		})
	}
	all.Wait()
}
