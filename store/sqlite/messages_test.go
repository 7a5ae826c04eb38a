package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/store/sqlite"
)

// The file grows with the conversation, although each run of it begins with all messages, and has no message of a deleted run.
func TestMessagesAreStoredOnce(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	storetest.TestConversations(t, s)
	storetest.TestConversationsAtOnce(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if conversation := storetest.ConversationTurns * 2 * storetest.ConversationText; len(text) > 3*2*conversation {
		t.Errorf("two conversations of %d bytes take %d bytes", conversation, len(text))
	}
	if strings.Contains(string(text), "ann asks") || strings.Contains(string(text), "eve asks") {
		t.Error("the file has messages of a principal whose runs were deleted")
	}
	if found, err := sqlite.Verify(context.Background(), path); err != nil || len(found.Faults) > 0 {
		t.Errorf("%v %v", found, err)
	}
	for fault, change := range map[string]string{
		"the message before":    "DELETE FROM message WHERE previous IS NULL",
		"no run has":            "DELETE FROM conversation WHERE run_id = 'bob_11'",
		"a message of bob_7":    "UPDATE conversation SET last = x'00' WHERE run_id = 'bob_7'",
		"which has no event 80": "UPDATE conversation SET event_id = 80 WHERE run_id = 'bob_7'",
		"is not JSON":           "UPDATE message SET body = x'7b' WHERE previous IS NULL",
	} {
		t.Run(fault, func(t *testing.T) {
			damaged := filepath.Join(t.TempDir(), "runs.db")
			if err := os.WriteFile(damaged, text, 0o600); err != nil {
				t.Fatal(err)
			}
			execute(t, damaged, change)
			found, err := sqlite.Verify(context.Background(), damaged)
			if err != nil || !strings.Contains(strings.Join(found.Faults, "\n"), fault) {
				t.Errorf("%v %v, want %q", found, err, fault)
			}
		})
	}
}

// The messages of a file that has them in the events are stored apart by a compaction, which leaves the events as they are.
func TestCompactionStoresMessagesOnce(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	const turns = 12
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	bodies := map[string][]byte{}
	for n := range turns {
		storetest.AppendTurn(t, s, "ann", n)
		for e, err := range s.Read(t.Context(), fmt.Sprintf("ann_%d", n), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if body, err := e.MarshalJSON(); err != nil {
				t.Fatal(err)
			} else if e.ID == 1 {
				bodies[e.RunID] = body
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for run, body := range bodies {
		if _, err := db.ExecContext(t.Context(), "UPDATE event SET body = ? WHERE run_id = ? AND id = 1", body, run); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"message", "conversation"} {
		if _, err := db.ExecContext(t.Context(), "DELETE FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	for n := range turns {
		storetest.WantTurn(t, s, "ann", n)
		if err := s.Compact(t.Context(), fmt.Sprintf("ann_%d", n), func(e event.Event) event.Event { return e }); err != nil {
			t.Fatal(err)
		}
		storetest.WantTurn(t, s, "ann", n)
	}
	for row := range query(t, path, "SELECT (SELECT count(*) FROM message), (SELECT sum(length(body)) < 12000 FROM event)") {
		if fmt.Sprint(row...) != "23 1" {
			t.Errorf("%v: want 23 messages and events without them", row)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	freed, err := s.Shrink(t.Context())
	if err != nil || freed < before.Size()/4 {
		t.Errorf("the file is %d bytes smaller, %v", freed, err)
	}
	if after, err := os.Stat(path); err != nil || after.Size() != before.Size()-freed {
		t.Errorf("it has %d bytes, %v", after.Size(), err)
	}
	storetest.WantTurn(t, s, "ann", turns-1)
	storetest.AppendTurn(t, s, "ann", turns)
	if freed, err := s.Shrink(t.Context()); err != nil || freed != 0 {
		t.Errorf("a second time the file is %d bytes smaller, %v", freed, err)
	}
}
