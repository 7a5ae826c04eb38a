package app

import (
	"fmt"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Runs of one key that wait leave room for those of others.
func TestMemoryStoreIsShared(t *testing.T) {
	t.Parallel()
	s := NewMemoryStore()
	begin := func(principal string, i int) error {
		run := fmt.Sprint(principal, i)
		_, err := s.Append(t.Context(), run, 0, event.Event{ID: 1, RunID: run, Data: &event.RunStarted{Principal: principal}})
		return err
	}
	for i := range maxMemoryRuns / memoryShare {
		if err := begin("ann", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := begin("ann", maxMemoryRuns); lathe.CodeOf(err) != lathe.CodeUnavailable {
		t.Errorf("beyond its part: %v, want unavailable", err)
	}
	if err := begin("bob", 0); err != nil {
		t.Errorf("another key: %v", err)
	}
}
