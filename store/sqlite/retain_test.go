package sqlite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

const planted = "canary-7d3e"

// plant puts a run into the store whose every text holds the canary: it goes on unless it has ended.
func plant(t *testing.T, s store.SignalStore, put store.Store, id, session, principal string, ended bool) {
	t.Helper()
	text := strings.Repeat(planted, 50)
	cost := 0.5
	events := []event.Data{
		&event.RunStarted{Principal: principal, Messages: []lathe.Message{lathe.User(text)}, Labels: map[string]string{"k": planted}, Input: json.RawMessage(`"` + text + `"`)},
		&event.ModelCallFinished{Status: "success", ProviderCost: &cost, Message: &lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: text}}}},
		&event.ToolCallProposed{ToolCallID: "c", RawArgs: text},
		&event.ApprovalRequested{ToolCallID: "c", Arguments: json.RawMessage(`"` + text + `"`)},
		&event.ToolCallResult{ToolCallID: "c", Result: text, Blobs: []lathe.Blob{{Data: []byte(text)}}},
	}
	var log []event.Event
	for i, d := range events {
		log = append(log, event.Event{ID: int64(i) + 1, RunID: id, SessionID: session, Time: time.Now(), Turn: 1, Data: d})
	}
	last, err := put.Append(t.Context(), id, 0, log...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutSignal(t.Context(), store.Signal{RunID: id, Kind: "approval", Key: "c", Body: json.RawMessage(`"` + text + `"`)}); err != nil {
		t.Fatal(err)
	}
	if !ended {
		return
	}
	end := event.Event{ID: last + 1, RunID: id, SessionID: session, Time: time.Now(), Turn: 1, Data: &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed", Answer: text}}
	if _, err := put.Append(t.Context(), id, last, end); err != nil {
		t.Fatal(err)
	}
}

// Whatever removes a run, nothing of its texts is left in the file or beside it.
func TestForgetsForGood(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(store.Retainer) error{
		"a session":   func(s store.Retainer) error { return s.DeleteSession(t.Context(), "mine") },
		"a principal": func(s store.Retainer) error { return s.DeletePrincipal(t.Context(), "ann") },
		"by age":      func(s store.Retainer) error { return s.DeleteBefore(t.Context(), time.Now().Add(time.Hour)) },
		"by room":     func(s store.Retainer) error { return s.Trim(t.Context(), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, filepath.Join(dir, "runs.db"))
			for i := range 30 {
				plant(t, s, s, fmt.Sprintf("run_%d", i), "mine", "ann", true)
			}
			kept := event.Event{ID: 1, RunID: "run_kept", SessionID: "theirs", Time: time.Now(), Data: &event.RunStarted{Principal: "bob"}}
			if _, err := s.Append(t.Context(), "run_kept", 0, kept); err != nil {
				t.Fatal(err)
			}
			count := func() (n int) {
				files, err := filepath.Glob(filepath.Join(dir, "*"))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					b, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					n += bytes.Count(b, []byte(planted))
				}
				return n
			}
			if count() == 0 {
				t.Fatal("the canary is not where it is looked for")
			}
			if err := do(s); err != nil {
				t.Fatal(err)
			}
			if n := count(); n != 0 {
				t.Errorf("%d canaries are left", n)
			}
			if rows, _, err := s.Runs(t.Context(), nil); err != nil || len(rows) != 1 || rows[0].RunID != "run_kept" {
				t.Errorf("%+v, %v", rows, err)
			}
		})
	}
}

// Trim keeps what there is room for: the newest.
func TestTrimKeepsTheNewest(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "runs.db"))
	for i := range 160 {
		id := fmt.Sprintf("run_%03d", i)
		end := event.Event{ID: 2, RunID: id, Time: time.Now(), Data: &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}}
		if _, err := s.Append(t.Context(), id, 0, started(id, id+strings.Repeat("x", 10_000)), end); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Trim(t.Context(), 1<<20); err != nil {
		t.Fatal(err)
	}
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{Limit: 1000})
	if err != nil || len(rows) < 20 || len(rows) > 140 || rows[0].RunID != "run_159" {
		t.Errorf("%d runs, %v", len(rows), err)
	}
}
