package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Lines wait for one another, but not for long, and never behind what has to be seen.
func TestLogIsGathered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var writes writeList
		g := &gatheredLog{w: &writes}
		base, err := NewLog(g, "info", "")
		if err != nil {
			t.Fatal(err)
		}
		log := g.logger(base)
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			g.mu.Lock()
			defer g.mu.Unlock()
			if len(writes) != len(want) {
				t.Fatalf("%s: %d writes, want %d: %q", what, len(writes), len(want), writes)
			}
			for i := range want {
				if got := strings.Count(writes[i], "\n"); got != strings.Count(want[i], ".") {
					t.Errorf("%s: write %d has %d lines, want %d", what, i, got, strings.Count(want[i], "."))
				}
			}
			writes = nil
		}

		log.Info("one")
		log.With("key", 1).Info("two")
		expect("within the delay")
		time.Sleep(logDelay)
		expect("after the delay", "..")

		log.Info("one")
		log.WithGroup("a").Warn("two")
		expect("a warning", "..")

		log.Info("one")
		if _, err := g.direct().Write([]byte("a note\n")); err != nil {
			t.Fatal(err)
		}
		expect("a note", ".", ".")

		log.Info("one", slog.String("long", strings.Repeat("x", logSpace)))
		expect("much", ".")

		log.Info("one")
		g.flush()
		expect("the end", ".")
		time.Sleep(2 * logDelay)
		expect("nothing more")
	})
}

// A writeList is what was written, one text a write.
type writeList []string

func (l *writeList) Write(b []byte) (int, error) {
	*l = append(*l, string(b))
	return len(b), nil
}
