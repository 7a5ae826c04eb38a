package rawjson

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe/internal/testdata"
)

var update = flag.Bool("update", false, "write the golden files")

// verdict is "accept" or the kind of the refusal.
func verdict(err error) string {
	var se *SyntaxError
	switch {
	case err == nil:
		return "accept"
	case errors.As(err, &se):
		return se.Kind
	}
	return "not a SyntaxError: " + err.Error()
}

// The cases that the suite accepts and that Check refuses, because two readers of such a text may
// see two values.
var refusedByDesign = map[string]string{
	"y_object_duplicated_key.json":           KindDuplicate,
	"y_object_duplicated_key_and_value.json": KindDuplicate,
}

func TestCheckParsingSuite(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "JSONTestSuite", "test_parsing")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[byte]int)
	free := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		counts[f.Name()[0]]++
		got := verdict(Check(text, Limits{}))
		switch f.Name()[0] {
		case 'y':
			want := "accept"
			if w, ok := refusedByDesign[f.Name()]; ok {
				want = w
			}
			if got != want {
				t.Errorf("%s: Check says %s, want %s", f.Name(), got, want)
			}
			if end, err := Scan(text, 0); err != nil || SkipSpace(text, end) != len(text) {
				t.Errorf("%s: Scan = %d, %v; want the end of the text", f.Name(), end, err)
			}
		case 'n':
			if got == "accept" {
				t.Errorf("%s: Check accepts", f.Name())
			}
		case 'i':
			free[f.Name()] = got
		}
	}
	// The published copy has no text that is not UTF-8: 12 of 188 and 13 of 35 are missing there.
	if counts['y'] < 95 || counts['n'] < 176 || counts['i'] < 22 {
		t.Errorf("the suite is not whole: %v", counts)
	}
	golden(t, "parsing_free.txt", free)
}

// The suite's texts without a verdict: what readers make of them differs, so what Check says is pinned.
func TestCheckTransformSuite(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "JSONTestSuite", "test_transform")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name()] = verdict(Check(text, Limits{}))
	}
	if len(got) < 19 {
		t.Errorf("the suite has %d texts, want 19 or 22", len(got))
	}
	golden(t, "transform.txt", got)
}

// golden compares the verdict on each file of a set with the lines "file verdict" of a golden file. The
// golden file may have lines for files that this copy of the set lacks.
func golden(t *testing.T, name string, got map[string]string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		var lines strings.Builder
		for _, file := range slices.Sorted(maps.Keys(got)) {
			fmt.Fprintf(&lines, "%s %s\n", file, got[file])
		}
		if err := os.WriteFile(path, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(b)) {
		file, verdict, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, ok := got[file]; ok {
			want[file] = verdict
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func TestCanonicalSuite(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "jcs-rfc8785")
	files, err := os.ReadDir(filepath.Join(dir, "input"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 6 {
		t.Errorf("the suite has %d cases, want 6", len(files))
	}
	for _, f := range files {
		in, err := os.ReadFile(filepath.Join(dir, "input", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, "output", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendCanonical(nil, in)
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name(), d)
		}
		hex, err := os.ReadFile(filepath.Join(dir, "outhex", strings.TrimSuffix(f.Name(), ".json")+".txt"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the module that publishes the set has one case without it
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(unhexText(t, hex), string(got)); d != "" {
			t.Errorf("%s, bytes (-want +got):\n%s", f.Name(), d)
		}
	}
}

// unhexText reads bytes in hexadecimal, with spaces between them.
func unhexText(t *testing.T, text []byte) string {
	t.Helper()
	var out []byte
	words := bufio.NewScanner(bytes.NewReader(text))
	words.Split(bufio.ScanWords)
	for words.Scan() {
		var b []byte
		if _, err := fmt.Sscanf(words.Text(), "%x", &b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return string(out)
}
