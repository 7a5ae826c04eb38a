package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/audit"
)

// Lines that were removed from the beginning of a file show, and so does a file that was emptied.
func TestRemovedFirstLinesShow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 5 { // each opening that finds a half line writes one
		l, err := audit.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.WriteString("{")
		f.Close()
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("{")), []byte("\n"))
	if len(lines) < 5 {
		t.Fatalf("%d lines: %s", len(lines), whole)
	}
	for cut, why := range map[int]string{0: "", 1: "the lines before it were removed", 3: "the lines before it were removed", -1: "is empty"} {
		text := []byte{}
		if cut >= 0 {
			text = bytes.Join(lines[cut:], nil)
		}
		other := filepath.Join(t.TempDir(), "cut.jsonl")
		if err := os.WriteFile(other, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := audit.Verify(other)
		if (err == nil) != (why == "") || err != nil && (!strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "cut.jsonl:1: ")) {
			t.Errorf("without the first %d lines: %v, want %q", cut, err, why)
		}
		if _, err := audit.Verify(other, audit.Head{N: 2, Hash: strings.Repeat("0", 64)}); cut < 0 && (err == nil || strings.Contains(err.Error(), ":0:")) {
			t.Errorf("with a head: %v", err)
		}
	}
}
