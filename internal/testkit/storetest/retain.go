package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// TestRetention runs the tests for [store.Retainer]. open is as of [Test].
func TestRetention(t *testing.T, open func() store.Retainer) {
	t.Helper()
	run(t, open, []testOf[store.Retainer]{
		{"removes what is old and has ended", removesOld},
		{"removes until there is room", trims},
		{"removes a session and a principal", removesNamed},
		{"reports what it removed, and forgets that on demand", remembersGone},
	})
}

// fillKept puts nine runs into the store, of one day each: of each three one has ended, one waits, one goes on.
// Runs that have ended hold a kilobyte of text.
func fillKept(t *testing.T, s store.Retainer) {
	t.Helper()
	for i := range 9 {
		id := fmt.Sprintf("run_%d", i)
		text := "x"
		if i%3 == 0 {
			text = strings.Repeat("y", 1<<10)
		}
		day := i * 24 * 3600
		mustAppend(t, s, id, 0, at(id, 1, day, &event.RunStarted{Principal: fmt.Sprintf("p%d", i%2), Input: []byte(`{"version":1}`), Messages: []lathe.Message{lathe.User(text)}}))
		switch i % 3 {
		case 0:
			mustAppend(t, s, id, 1, at(id, 2, day+1, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}))
		case 1:
			mustAppend(t, s, id, 1, at(id, 2, day+1, &event.RunPaused{Reason: lathe.ReasonAwaitingToolResults, Pending: []string{"c"}}))
		}
	}
}

func left(t *testing.T, s store.Retainer) []string {
	t.Helper()
	rows, next, err := s.Runs(t.Context(), &store.RunFilter{Limit: 100})
	if err != nil || next != "" {
		t.Fatalf("%q, %v", next, err)
	}
	var ids []string
	for _, r := range rows {
		ids = append(ids, strings.TrimPrefix(r.RunID, "run_"))
	}
	slices.Sort(ids)
	return ids
}

func wantLeft(t *testing.T, s store.Retainer, want string) {
	t.Helper()
	if got := strings.Join(left(t, s), ""); got != want {
		t.Errorf("%s are left, want %s", got, want)
	}
}

func removesOld(t *testing.T, s store.Retainer) {
	fillKept(t, s)
	if err := s.DeleteBefore(t.Context(), epoch); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "012345678")
	if err := s.DeleteBefore(t.Context(), epoch.Add(4*24*time.Hour)); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "1245678")
	if err := s.DeleteBefore(t.Context(), epoch.Add(1000*24*time.Hour)); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "124578")
}

func trims(t *testing.T, s store.Retainer) {
	fillKept(t, s)
	if err := s.Trim(t.Context(), 1<<40); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "012345678")
	if err := s.Trim(t.Context(), 1); err != nil { // there is no room for anything, and yet
		t.Error(err)
	}
	wantLeft(t, s, "124578")
}

func removesNamed(t *testing.T, s store.Retainer) {
	fillKept(t, s)
	for _, do := range []func() error{
		func() error { return s.DeleteSession(t.Context(), "") },
		func() error { return s.DeletePrincipal(t.Context(), "") },
		func() error { return s.DeletePrincipal(t.Context(), "no-principal") },
	} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	wantLeft(t, s, "012345678")
	if err := s.DeleteSession(t.Context(), "s_4"); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "01235678")
	if err := s.DeletePrincipal(t.Context(), "p1"); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "0268")
}

func remembersGone(t *testing.T, s store.Retainer) {
	fillKept(t, s)
	read := func(id string) error {
		for _, err := range s.Read(t.Context(), id, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.DeleteBefore(t.Context(), epoch.Add(1000*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"run_0", "run_3"} {
		var gone *store.GoneError
		if err := read(id); !errors.As(err, &gone) || lathe.CodeOf(err) != lathe.CodeNotFound || !errors.Is(err, lathe.ErrNotFound) ||
			gone.RunID != id || gone.Principal != map[string]string{"run_0": "p0", "run_3": "p1"}[id] || gone.Time.IsZero() {
			t.Errorf("%s: %+v, %v", id, gone, err)
		}
	}
	for _, do := range []func() error{
		func() error { return s.Delete(t.Context(), "run_0") },
		func() error { return s.DeletePrincipal(t.Context(), "p1") },
	} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"run_0", "run_3", "run_none"} {
		var gone *store.GoneError
		if err := read(id); lathe.CodeOf(err) != lathe.CodeNotFound || errors.As(err, &gone) {
			t.Errorf("%s: %v", id, err)
		}
	}
	mustAppend(t, s, "run_6", 0, at("run_6", 1, 0, &event.RunStarted{})) // it came back
	if err := read("run_6"); err != nil {
		t.Error(err)
	}
}
