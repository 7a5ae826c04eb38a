package agent_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/store/sqlite"
)

// An agent on a closed store says so when it is made, and when it is asked what waits.
func TestClosedStore(t *testing.T) {
	t.Parallel()
	runs, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, lathetest.NewModel(), &agent.Options{Store: runs})
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		if lathe.CodeOf(err) != lathe.CodeUnavailable || !strings.Contains(err.Error(), "the store is closed: close it after everything") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = a.Waiting(t.Context())
	check("Waiting", err)
	_, err = a.Run(t.Context(), lathe.User("hi"))
	check("Run", err)
	_, err = a.Wait(t.Context(), "run_1")
	if lathe.CodeOf(err) != lathe.CodeUnavailable {
		t.Errorf("Wait: %v", err)
	}
	_, err = agent.New(lathetest.NewModel(), &agent.Options{Store: runs})
	check("New", err)
}
