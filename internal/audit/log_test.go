package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/leaktest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("LATHE_TEST_AUDIT"); path != "" {
		writeUntilKilled(path)
		return
	}
	leaktest.Main(m)
}

const canary = "canary-41c7"

func open(t testing.TB, path string, opts *audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func result(id int64) event.Event {
	return event.Event{ID: id, RunID: "run_1", RequestID: "req_1", SessionID: "s1", Time: time.Unix(0, id).UTC(), Turn: 1,
		Data: &event.ToolCallResult{ToolCallID: "call_1", Tool: "calculator", Status: "ok", PolicyDecision: "allow", PolicyRule: "r1", Result: canary}}
}

var ann = &lathe.RunInfo{RunID: "run_1", RequestID: "req_1", Principal: "ann"}

// fill writes n results.
func fill(t testing.TB, l *audit.Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Event(t.Context(), ann, result(int64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t testing.TB, path string) []audit.Entry {
	t.Helper()
	var out []audit.Entry
	for e, err := range audit.Lines(path) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func verify(t testing.TB, path string, lines int64, heads ...audit.Head) *audit.Report {
	t.Helper()
	r, err := audit.Verify(path, heads...)
	if err != nil || r.Lines != lines {
		t.Fatalf("%+v, %v; want %d lines", r, err, lines)
	}
	return r
}

func callInfo() *lathe.CallInfo {
	return &lathe.CallInfo{Run: ann, Turn: 1, Seq: 2, Call: &lathe.ToolCall{ID: "call_1", Name: "calculator"}, Args: json.RawMessage(`{"x":"` + canary + `"}`),
		Tool: &lathe.ToolSpec{Name: "calculator", Effect: lathe.ReadOnly, Schema: json.RawMessage(`{"type":"object"}`), Origin: "builtin"}}
}

func TestLinesHaveNoText(t *testing.T) {
	t.Parallel()
	for _, content := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := open(t, path, &audit.Options{Content: content})
		events := []event.Data{
			&event.RunStarted{Model: "m", Messages: []lathe.Message{lathe.User(canary)}, Principal: "ann"},
			&event.ModelCallFinished{Message: &lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: canary}}}},
			&event.ToolCallProposed{ToolCallID: "call_1", ToolName: "calculator", RawArgs: canary},
			&event.ApprovalResolved{ToolCallID: "call_1", By: "bob", Arguments: json.RawMessage(`"` + canary + `"`)},
			&event.ToolCallResult{Result: canary},
			&event.TextDelta{Text: canary},
			&event.RunFinished{Answer: canary},
		}
		for i, d := range events {
			if err := l.Event(t.Context(), ann, event.Event{ID: int64(i + 1), RunID: "run_1", Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Call(t.Context(), callInfo(), lathe.Verdict{Decision: lathe.Allow, Rule: "r1"}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b, []byte(canary)); n != 0 != content {
			t.Errorf("content %t: %d canaries", content, n)
		}
		lines := read(t, path)
		if len(lines) != len(events)+1 { // no delta, but the beginning and the call
			t.Fatalf("%d lines", len(lines))
		}
		for i, e := range lines {
			if e.N != int64(i+1) || e.Time.IsZero() || e.Kind == audit.OfEvent && (e.Principal != "ann" || !strings.HasPrefix(e.ContentHash, "sha256:")) {
				t.Errorf("line %d: %s", i+1, e.Raw)
			}
		}
		if a, b := lines[3].ContentHash, lines[5].ContentHash; a != b { // the same text
			t.Errorf("%s, %s", a, b)
		}
		c := lines[len(lines)-1].Call
		if c == nil || c.Tool != "calculator" || c.Effect != "read_only" || c.Decision != "allow" || c.Rule != "r1" || c.RunID != "run_1" || len(c.ToolHash) != 64 || len(c.ArgsDigest) != 64 {
			t.Errorf("the call: %+v", c)
		}
	}
}

// Who removed which run is in the chain.
func TestRemovals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	if err := l.Remove(t.Context(), "ann", &lathe.RunInfo{RunID: "run_1", SessionID: "s1", Principal: "ann"}); err != nil {
		t.Fatal(err)
	}
	verify(t, path, 2)
	e := read(t, path)[1]
	if e.Kind != audit.OfRemoval || e.Principal != "ann" || e.Removed == nil || *e.Removed != (audit.Removed{RunID: "run_1", SessionID: "s1", By: "ann"}) {
		t.Errorf("%s", e.Raw)
	}
	if f, err := e.Fields(); err != nil || f != (audit.Fields{RunID: "run_1", SessionID: "s1", Type: "Removed", By: "ann"}) {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestKeyedHashes(t *testing.T) {
	t.Parallel()
	hashes := map[string]bool{}
	for _, key := range []string{"", "one", "two"} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		fill(t, open(t, path, &audit.Options{HashKey: []byte(key)}), 1)
		h := read(t, path)[1].ContentHash
		if hashes[h] = true; strings.HasPrefix(h, "hmac-") != (key != "") {
			t.Errorf("key %q: %s", key, h)
		}
	}
	if len(hashes) != 3 {
		t.Errorf("%v", hashes)
	}
}

func TestSinkKnowsThePrincipal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	for i, d := range []event.Data{&event.RunStarted{Principal: "bob"}, &event.ToolCallPlanned{}, &event.RunFinished{}, &event.ToolCallPlanned{}} {
		l.Emit(t.Context(), event.Event{ID: int64(i + 1), RunID: "call_9", Data: d})
	}
	var got []string
	for _, e := range read(t, path)[1:] {
		got = append(got, e.Principal)
	}
	if want := []string{"bob", "bob", "bob", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Several logs on one file, as several processes have them, make one chain, across rotations.
func TestProcessesShareOneChain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	const logs, writers, each = 3, 4, 25
	var wg sync.WaitGroup
	for range logs {
		l := open(t, path, &audit.Options{MaxBytes: 4 << 10})
		for range writers {
			wg.Go(func() {
				for i := range each {
					if err := l.Event(t.Context(), ann, result(int64(i+1))); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	files, err := filepath.Glob(path + ".0*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	verify(t, path, int64(logs*writers*each+1+len(files)))
}

func TestGoesOnAcrossOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var heads []audit.Head
	for range 5 {
		l, err := audit.Open(path, &audit.Options{MaxBytes: 2_000})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, l, 3)
		heads = append(heads, l.Head())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Event(t.Context(), ann, result(1)); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("a closed log: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	}
	r, err := audit.Verify(path, heads...)
	if err != nil || r.Files < 3 || r.First.N != 1 || r.Last != heads[4] {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestHeads(t *testing.T) {
	t.Parallel()
	h := audit.Head{N: 12, Hash: strings.Repeat("ab", 32)}
	if got, err := audit.ParseHead(h.String()); err != nil || got != h {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "12", "0:" + h.Hash, "x:" + h.Hash, "12:abcd", "12:" + strings.Repeat("zz", 32)} {
		if _, err := audit.ParseHead(s); err == nil {
			t.Errorf("%q was read", s)
		}
	}
}

func TestCancelledWait(t *testing.T) {
	t.Parallel()
	l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The line of a caller that is gone may be written or not.
	if err := l.Event(ctx, ann, result(1)); err != nil && lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Error(err)
	}
}

func TestStrangeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"text": "hello\n", "json": "{}\n", "number": `{"n":0}` + "\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Open(path, nil); lathe.CodeOf(err) != lathe.CodeUnavailable || !strings.Contains(err.Error(), "last line is damaged") {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		var broken *audit.Break
		if _, err := audit.Verify(path); !errors.As(err, &broken) || broken.Line != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := audit.Open(filepath.Join(dir, "no folder", "audit"), nil); err == nil {
		t.Error("a folder was made")
	}
	if _, err := audit.Verify(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{Content: true})
	long := result(1)
	long.Data.(*event.ToolCallResult).Result = strings.Repeat(canary, 100_000)
	if err := l.Event(t.Context(), ann, long); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, nil) // which finds the last line
	fill(t, again, 1)
	verify(t, path, 3)
}

func BenchmarkEvent(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			l := open(b, filepath.Join(b.TempDir(), "audit.jsonl"), nil)
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for range b.N / writers {
						if err := l.Event(b.Context(), ann, result(1)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
