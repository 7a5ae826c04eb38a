package audit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A badDisk fails at one of its operations.
type badDisk struct {
	at, n int
	short bool // a write keeps half of what it was given
	fails bool // it is a sync that fails
}

func (d *badDisk) write(f *os.File, b []byte) (int, error) {
	if d.fails {
		return f.Write(b)
	}
	if d.n++; d.n != d.at {
		return f.Write(b)
	}
	if !d.short {
		return 0, syscall.ENOSPC
	}
	n, err := f.Write(b[:len(b)/2])
	return n, errors.Join(err, syscall.ENOSPC)
}

func (d *badDisk) sync(f *os.File) error {
	if !d.fails {
		return f.Sync()
	}
	if d.n++; d.n == d.at {
		return syscall.EIO
	}
	return f.Sync()
}

// The disk fails at each operation in turn: the line is refused, the chain stays whole, and a full
// disk that has room again is written on.
func TestDiskFailures(t *testing.T) {
	t.Parallel()
	run := &lathe.RunInfo{}
	event := event.Event{ID: 1, RunID: "run_1", Data: &event.ToolCallPlanned{ToolCallID: "call_1"}}
	for at := 1; at <= 12; at++ {
		for _, d := range []*badDisk{{at: at}, {at: at, short: true}, {at: at, fails: true}} {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l, err := Open(path, &Options{MaxBytes: 1_000})
			if err != nil {
				t.Fatal(err)
			}
			l.file.disk = d
			kept, failed := 0, 0
			for range 10 {
				if err := l.Event(t.Context(), run, event); err == nil {
					kept++
				} else if failed++; lathe.CodeOf(err) != lathe.CodeUnavailable {
					t.Error(err)
				}
			}
			if want := map[bool]int{false: 9, true: -1}[d.fails]; failed == 0 && d.n >= at || want > 0 && d.n > at && kept != want {
				t.Errorf("operation %d of %+v: %d lines were kept, %d refused", at, d, kept, failed)
			}
			if d.fails && failed > 0 && l.file.err == nil {
				t.Errorf("operation %d: the log goes on after a failed sync", at)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if l, err = Open(path, nil); err != nil {
				t.Fatalf("operation %d of %+v: %v", at, d, err)
			}
			if err := l.Event(t.Context(), run, event); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			events := 0
			for e, err := range Lines(path) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == OfEvent {
					events++
				}
			}
			if events < kept+1 {
				t.Errorf("operation %d of %+v: %d of %d lines are left", at, d, events, kept+1)
			}
		}
	}
}
