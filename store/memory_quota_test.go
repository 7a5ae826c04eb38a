package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A crowd is principals that share a store in memory.
type crowd struct {
	*store.Memory
	t *testing.T
}

func share(t *testing.T, o store.MemoryOptions) *crowd {
	t.Helper()
	o.Share = 4
	return &crowd{store.NewMemory(&o), t}
}

// begin begins a run of the principal with a text of n bytes.
func (c *crowd) begin(principal, runID string, n int) error {
	c.t.Helper()
	e := event.Event{ID: 1, RunID: runID, Data: &event.RunStarted{Principal: principal, Messages: []lathe.Message{lathe.User(strings.Repeat("x", n))}}}
	_, err := c.Append(c.t.Context(), runID, 0, e)
	if err != nil && lathe.CodeOf(err) != lathe.CodeUnavailable {
		c.t.Fatal(err)
	}
	return err
}

// end ends a run that has begun and nothing else.
func (c *crowd) end(runID string, reason lathe.Reason) {
	c.t.Helper()
	if _, err := c.Append(c.t.Context(), runID, 1, finish(runID, 2, reason)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crowd) whole(principal, runID string, n int) {
	c.t.Helper()
	if err := c.begin(principal, runID, n); err != nil {
		c.t.Fatal(err)
	}
	c.end(runID, lathe.ReasonAnswered)
}

// check compares the runs that are there with those that are to be.
func (c *crowd) check(what string, there, gone []string) {
	c.t.Helper()
	for want, runs := range map[bool][]string{true: there, false: gone} {
		for _, run := range runs {
			if has(c.t, c, run) != want {
				c.t.Errorf("%s: %s is there: got %v, want %v", what, run, !want, want)
			}
		}
	}
}

// Runs of one principal that wait for ever leave the others three quarters of the store.
func TestMemoryBoundsWhatOnePrincipalHasWaiting(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]store.MemoryOptions{"max_runs": {MaxRuns: 8}, "max_bytes": {MaxBytes: 40_000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := share(t, o)
			c.whole("bob", "old", 2_000)
			for i := range 2 {
				run := fmt.Sprint("ann", i)
				if err := c.begin("ann", run, 2_500); err != nil {
					t.Fatal(err)
				}
				c.end(run, lathe.ReasonAwaitingToolResults)
			}
			if err := c.begin("ann", "ann2", 2_500); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("a run beyond the part of its principal: %v, want unavailable that names %s", err, name)
			}
			c.check("a run was refused", []string{"old", "ann0", "ann1"}, []string{"ann2"})
			for i := range 2 {
				if err := c.begin("bob", fmt.Sprint("bob", i), 2_500); err != nil {
					t.Errorf("the other principal: %v", err)
				}
			}
			if err := c.begin("", "principal", 2_500); err != nil {
				t.Errorf("no principal: %v", err)
			}
			if err := c.Delete(t.Context(), "ann0"); err != nil {
				t.Fatal(err)
			}
			if err := c.begin("ann", "ann2", 2_500); err != nil {
				t.Errorf("after one of the two was deleted: %v", err)
			}
		})
	}
}

// A run that grows beyond the part of its principal stops that one, and costs no other its runs.
func TestMemoryBoundsWhatGrowsBeyondItsPart(t *testing.T) {
	t.Parallel()
	c := share(t, store.MemoryOptions{MaxBytes: 40_000})
	c.whole("bob", "old", 2_000)
	if err := c.begin("ann", "grows", 10); err != nil {
		t.Fatal(err)
	}
	message := lathe.Assistant(strings.Repeat("x", 100_000))
	if _, err := c.Append(t.Context(), "grows", 1, event.Event{ID: 2, RunID: "grows", Data: &event.ModelCallFinished{Message: &message}}); err != nil {
		t.Fatal(err)
	}
	if err := c.begin("ann", "more", 10); err == nil {
		t.Error("a principal beyond its part began a run")
	}
	if err := c.begin("bob", "new", 2_000); err != nil {
		t.Errorf("the other principal: %v", err)
	}
	c.check("beside a run that has grown", []string{"old", "new", "grows"}, nil)
	if _, err := c.Append(t.Context(), "grows", 2, finish("grows", 3, lathe.ReasonAnswered)); err != nil {
		t.Fatal(err)
	}
	if err := c.begin("ann", "more", 10); err != nil {
		t.Errorf("once the run that has grown may be forgotten: %v", err)
	}
	c.check("after it", []string{"old", "new", "more"}, []string{"grows"})
}

// The principal with the most finished runs loses one first, and its new runs displace its own.
func TestMemoryForgetsRunsOfThePrincipalWithMost(t *testing.T) {
	t.Parallel()
	c := share(t, store.MemoryOptions{MaxFinished: 3})
	for i, principal := range []string{"bob", "ann", "ann", "ann", "ann"} {
		c.whole(principal, fmt.Sprint(principal, i), 10)
	}
	c.check("max_finished", []string{"bob0", "ann3", "ann4"}, []string{"ann1", "ann2"})

	c = share(t, store.MemoryOptions{MaxRuns: 4})
	for i, principal := range []string{"bob", "ann", "ann", "ann", "ann"} {
		c.whole(principal, fmt.Sprint(principal, i), 10)
	}
	c.check("max_runs", []string{"bob0", "ann2", "ann3", "ann4"}, []string{"ann1"})

	c = share(t, store.MemoryOptions{MaxBytes: 40_000})
	for i, principal := range []string{"bob", "ann", "ann", "ann", "ann"} {
		c.whole(principal, fmt.Sprint(principal, i), 2_500)
	}
	c.check("max_bytes", []string{"bob0", "ann3", "ann4"}, []string{"ann1", "ann2"})
}

// However many runs of one principal are removed, it is remembered which of another's were.
func TestMemoryRemembersWhatIsGoneOfOthers(t *testing.T) {
	t.Parallel()
	c := share(t, store.MemoryOptions{MaxFinished: 1})
	c.whole("bob", "old", 10)
	for i := range 10_500 {
		c.whole("ann", fmt.Sprint("ann", i), 10)
	}
	for _, err := range c.Read(t.Context(), "old", 0) {
		var gone *store.GoneError
		if !errors.As(err, &gone) || gone.Principal != "bob" {
			t.Errorf("got %v, want that it is gone", err)
		}
	}
}
