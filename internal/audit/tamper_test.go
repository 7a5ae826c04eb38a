package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/testdata"
)

// Whatever is done to the lines of a log is found, and where.
func TestT36_TamperingIsFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	fill(t, l, 19)
	head := l.Head()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := func() [][]byte { return bytes.SplitAfter(bytes.Clone(whole), []byte("\n"))[:20] }
	swap := func(ls [][]byte, i, k int) [][]byte { ls[i], ls[k] = ls[k], ls[i]; return ls }
	change := func(ls [][]byte, i int, from, to string) [][]byte {
		ls[i] = bytes.Replace(ls[i], []byte(from), []byte(to), 1)
		return ls
	}
	for name, tt := range map[string]struct {
		lines [][]byte
		line  int // where it is found; 0: it is not, but by the head
		why   string
	}{
		"nothing":              {lines(), -1, ""},
		"a word changed":       {change(lines(), 4, `"principal":"ann"`, `"principal":"bob"`), 5, "the line was changed"},
		"the second last":      {change(lines(), 18, `"principal":"ann"`, `"principal":"bob"`), 19, "changed"},
		"the first":            {change(lines(), 0, `"n":1,`, `"n":1, `), 1, "changed"},
		"its hash changed":     {change(lines(), 4, string(lines()[4][60:80]), string(lines()[4][61:81])), 4, "the line, or the one after it"},
		"one removed":          {slices.Delete(lines(), 7, 8), 8, "line 8 is missing"},
		"several removed":      {slices.Delete(lines(), 7, 12), 8, "line 8 is missing"},
		"neighbours swapped":   {swap(lines(), 7, 8), 8, "line 8 is missing"},
		"far ones swapped":     {swap(lines(), 3, 12), 4, "line 4 is missing"},
		"one added":            {slices.Insert(lines(), 7, lines()[3]), 8, "line 4 stands where line 8"},
		"one written twice":    {slices.Insert(lines(), 7, lines()[6]), 8, "line 7 stands where line 8"},
		"a line of rubbish":    {slices.Insert(lines(), 7, []byte("hello\n")), 8, "no line of a log"},
		"the end cut off":      {lines()[:12], 0, "its end was cut off"},
		"the last one changed": {change(lines(), 19, `"principal":"ann"`, `"principal":"bob"`), 0, "not the one that was noted"},
		"half of the last one": {append(lines()[:19], lines()[19][:30]), 0, "its end was cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(copied, bytes.Join(tt.lines, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.line <= 0 {
				if _, err := audit.Verify(copied); err != nil {
					t.Fatal(err)
				}
			}
			r, err := audit.Verify(copied, head)
			var broken *audit.Break
			switch {
			case tt.line < 0:
				if err != nil || r.Last != head {
					t.Errorf("%+v, %v", r, err)
				}
			case !errors.As(err, &broken) || tt.line > 0 && broken.Line != tt.line || !strings.Contains(broken.Why, tt.why):
				t.Errorf("got %v, want line %d: %s", err, tt.line, tt.why)
			}
			var last int64
			for e, err := range audit.Lines(copied) {
				if err != nil {
					break
				}
				last = e.N
			}
			if tt.line > 0 && last >= int64(tt.line) {
				t.Errorf("line %d was handed on", last)
			}
		})
	}
}

// Every bit of every line but the last counts.
func TestT36_EveryByteCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	l := open(t, path, nil)
	fill(t, l, 2)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "copy.jsonl")
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		if err := os.WriteFile(copied, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Verify(copied, l.Head()); err == nil {
			t.Fatalf("byte %d may be changed", i)
		}
	}
}

func TestT36_RotatedFilesCount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{MaxBytes: 2_000})
	fill(t, l, 30)
	files, err := filepath.Glob(path + ".0*")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	r, err := audit.Verify(path, l.Head())
	if err != nil || r.Files != len(files)+1 {
		t.Fatalf("%+v, %v", r, err)
	}
	early := read(t, path)[1]
	noted := audit.Head{N: early.N, Hash: read(t, path)[2].Prev}
	if err := os.Remove(files[0]); err != nil { // kept elsewhere, or so it is said
		t.Fatal(err)
	}
	if r, err := audit.Verify(path); err != nil || r.First.N == 1 {
		t.Errorf("without the oldest file: %+v, %v", r, err)
	}
	if _, err := audit.Verify(path, noted); err == nil || !strings.Contains(err.Error(), "bring back") {
		t.Errorf("a head of it: %v", err)
	}
	if err := os.Remove(files[2]); err != nil {
		t.Fatal(err)
	}
	var broken *audit.Break
	if _, err := audit.Verify(path); !errors.As(err, &broken) || !strings.Contains(broken.Why, "missing here") {
		t.Errorf("without one in the middle: %v", err)
	}
	fill(t, l, 1) // which goes on
}

// A file that was cut off or replaced under a log takes nothing more.
func TestT36_CutOffWhileOpen(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(path string, b []byte) error{
		"cut off": func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) },
		"replaced": func(path string, b []byte) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, b[:bytes.IndexByte(b, '\n')+1], 0o600)
		},
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := open(t, path, nil)
		fill(t, l, 4)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := do(path, b); err != nil {
			t.Fatal(err)
		}
		if err := l.Event(t.Context(), ann, result(1)); lathe.CodeOf(err) != lathe.CodeUnavailable || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A log that is gone leaves a gap, not a new beginning.
func TestT36_RemovedWhileOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	fill(t, l, 4)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1)
	if r := verify(t, path, 2); r.First.N != 6 {
		t.Errorf("%+v", r)
	}
}

func TestTornEndIsRecovered(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{0, 1, 40, 100} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := open(t, path, nil)
		fill(t, l, 3)
		head := l.Head()
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		torn := append(bytes.Clone(whole), whole[:keep]...)
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := audit.Verify(path, head); err != nil || r.Torn != int64(keep) {
			t.Errorf("%+v, %v", r, err)
		}
		again := open(t, path, nil)
		fill(t, again, 1)
		lines := read(t, path)
		at := lines[4]
		if keep == 0 {
			if at.Kind != audit.OfEvent {
				t.Errorf("%s", at.Raw)
			}
			continue
		}
		if at.Kind != audit.Recovered || at.Torn == nil || at.Torn.Bytes != int64(keep) || len(lines) != 6 {
			t.Errorf("%d bytes: %s", keep, at.Raw)
		}
	}
	// A file in which nothing is whole begins anew.
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(`{"n":1,"ti`), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
	if lines := read(t, path); len(lines) != 2 || lines[0].Kind != audit.Begin || lines[1].Kind != audit.Recovered {
		t.Errorf("%+v", lines)
	}
}

// writeUntilKilled says each line that was acknowledged.
func writeUntilKilled(path string) {
	l, err := audit.Open(path, &audit.Options{MaxBytes: 64 << 10})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for range 4 {
		go func() {
			for {
				if err := l.Event(context.Background(), ann, result(1)); err != nil {
					fmt.Println("error", err)
					return
				}
				fmt.Println(l.Head().N)
			}
		}()
	}
	select {}
}

// Two processes write one log and are killed, again and again: what was acknowledged is there, and the
// chain is whole.
func TestT36_KilledWhileWriting(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var newest int64
	for round := range 6 {
		var cmds []*exec.Cmd
		var outs []*bufio.Scanner
		for range 2 {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "LATHE_TEST_AUDIT="+path)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds, outs = append(cmds, cmd), append(outs, bufio.NewScanner(out))
		}
		for i, out := range outs {
			for n := 0; out.Scan(); n++ {
				acked, err := strconv.ParseInt(out.Text(), 10, 64)
				if err != nil {
					t.Errorf("round %d: %s", round, out.Text())
				}
				newest = max(newest, acked)
				if n == 100+37*round {
					if err := cmds[i].Process.Kill(); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = cmds[i].Wait() // it was killed
		}
	}
	open(t, path, nil)
	r, err := audit.Verify(path)
	if err != nil || r.Last.N < newest || newest < 100 {
		t.Errorf("%+v, %v; line %d was acknowledged", r, err, newest)
	}
}
