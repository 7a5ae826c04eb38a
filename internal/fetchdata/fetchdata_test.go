package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lathe-run/lathe/internal/testdata"
)

// opened returns an open function that serves the same files for every part and counts its calls.
func opened(files fstest.MapFS) (open func(*testdata.Part) (fs.FS, error), calls *int) {
	calls = new(int)
	return func(*testdata.Part) (fs.FS, error) {
		*calls++
		return files, nil
	}, calls
}

func wantFile(t *testing.T, want string, elem ...string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil || string(b) != want {
		t.Errorf("%s: %q, %v; want %q", filepath.Join(elem...), b, err, want)
	}
}

func TestFetchCopiesEachPartOnce(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	open, calls := opened(fstest.MapFS{
		"old/a.json": {Data: []byte("old")}, "old/deep/b.json": {Data: []byte("b")}, "new/a.json": {Data: []byte("new")}, "other": {Data: []byte("x")},
	})
	s := &testdata.Set{Name: "set", Parts: []testdata.Part{{Module: "m@v1", From: "old", To: "tests"}, {Module: "n@v1", From: "new", To: "tests"}}}
	for range 2 {
		if _, err := fetch(s, cache, open); err != nil {
			t.Fatal(err)
		}
	}
	if *calls != 2 {
		t.Errorf("%d parts opened, want each of 2 once", *calls)
	}
	wantFile(t, "new", cache, "set", "tests", "a.json")
	wantFile(t, "b", cache, "set", "tests", "deep", "b.json")
	if _, err := os.Stat(filepath.Join(cache, "set", "other")); err == nil {
		t.Error("a file outside the part was copied")
	}

	s.Parts = s.Parts[:1] // another version of the set
	if s.Fetched(filepath.Join(cache, "set")) {
		t.Error("a set with another pin counts as fetched")
	}
	if _, err := fetch(s, cache, open); err != nil {
		t.Fatal(err)
	}
	wantFile(t, "old", cache, "set", "tests", "a.json")
	if left, err := filepath.Glob(filepath.Join(cache, ".fetch-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary folders are left: %v, %v", left, err)
	}
}

func TestFetchThatFailsLeavesTheCache(t *testing.T) {
	t.Parallel()
	good := fstest.MapFS{"f/a": {Data: []byte("a")}}
	for name, open := range map[string]func(*testdata.Part) (fs.FS, error){
		"download": func(p *testdata.Part) (fs.FS, error) {
			if p.Module == "m@v2" {
				return nil, errors.New("refused")
			}
			return good, nil
		},
		"missing folder": func(p *testdata.Part) (fs.FS, error) {
			if p.Module == "m@v2" {
				return fstest.MapFS{}, nil
			}
			return good, nil
		},
		"large file": func(*testdata.Part) (fs.FS, error) {
			return fstest.MapFS{"f/a": {Data: make([]byte, maxFileBytes+1)}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := t.TempDir()
			before := &testdata.Set{Name: "set", Parts: []testdata.Part{{Module: "m@v1", From: "f", To: "."}}}
			whole, _ := opened(good)
			if _, err := fetch(before, cache, whole); err != nil {
				t.Fatal(err)
			}
			next := &testdata.Set{Name: "set", Parts: []testdata.Part{{Module: "m@v1", From: "f", To: "."}, {Module: "m@v2", From: "f", To: "."}}}
			if _, err := fetch(next, cache, open); err == nil {
				t.Error("no error")
			}
			wantFile(t, "a", cache, "set", "a")
			if left, _ := os.ReadDir(cache); len(left) != 1 {
				t.Errorf("the cache holds %v, want the set alone", left)
			}
		})
	}
}

func TestFetchWritesCases(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	open, _ := opened(fstest.MapFS{"data/parsing.js": {Data: []byte("// Generated\n\nexport default [\n" +
		`{"name":"y_one.json","input":"[1]\n"},{"name":"i_lost.json","input":"[\"\ufffd\"]"},{"name":"n_escape.json","input":"[\"\\uDADA\"]"}` + "\n]\n")}})
	s := &testdata.Set{Name: "set", Parts: []testdata.Part{{Package: "p@1", From: "data/parsing.js", To: "cases", Cases: true}}}
	if _, err := fetch(s, cache, open); err != nil {
		t.Fatal(err)
	}
	wantFile(t, "[1]\n", cache, "set", "cases", "y_one.json")
	wantFile(t, `["\uDADA"]`, cache, "set", "cases", "n_escape.json")
	if files, err := os.ReadDir(filepath.Join(cache, "set", "cases")); err != nil || len(files) != 2 {
		t.Errorf("files %v, %v; want 2: the third has lost its bytes", files, err)
	}
	for _, bad := range []string{"../x.json", "a/b.json", `a\\b.json`, ".pin", ""} {
		open, _ := opened(fstest.MapFS{"data/parsing.js": {Data: []byte(`export default [{"name":"` + bad + `","input":""}]`)}})
		if _, err := fetch(&testdata.Set{Name: "bad", Parts: s.Parts}, cache, open); err == nil {
			t.Errorf("a case named %q was written", bad)
		}
	}
}

func TestUnpackRefusesAnotherHash(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for _, name := range []string{"package/data/a.js", "package/../../escape", "elsewhere/b"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 1, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(archive.Bytes())
	hash := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	files, err := unpack(archive.Bytes(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if m := files.(fstest.MapFS); len(m) != 1 || m["data/a.js"] == nil {
		t.Errorf("files %v, want data/a.js alone", m)
	}
	if _, err := unpack(append(archive.Bytes(), 0), hash); err == nil || !strings.Contains(err.Error(), "want sha512-") {
		t.Errorf("a changed archive: %v", err)
	}
}

// Every part pins one version and a hash of the right kind.
func TestSetsArePinned(t *testing.T) {
	t.Parallel()
	for _, s := range testdata.Sets {
		if (len(s.Parts) == 0) == (s.Source == "") {
			t.Errorf("%s has %d parts and the source %q", s.Name, len(s.Parts), s.Source)
		}
		for _, p := range s.Parts {
			name, kind := p.Module, "h1:"
			if p.Package != "" {
				name, kind = p.Package, "sha512-"
			}
			if (p.Module == "") == (p.Package == "") || !strings.Contains(name, "@") || !strings.HasPrefix(p.Hash, kind) || p.License == "" || p.From == "" || p.To == "" {
				t.Errorf("%s: part %+v", s.Name, p)
			}
		}
	}
}

// skipper is a test that Dir may skip.
type skipper struct {
	testing.TB
	output string
}

func (s *skipper) Helper() {}
func (s *skipper) Skipf(format string, args ...any) {
	s.output = fmt.Sprintf(format, args...)
	panic(s)
}

func dir(t *testing.T, set string, elem ...string) (path, skipped string) {
	t.Helper()
	s := &skipper{TB: t}
	defer func() {
		if e := recover(); e != nil && e != any(s) {
			panic(e)
		}
		skipped = s.output
	}()
	return testdata.Dir(s, set, elem...), ""
}

func TestDirPrefersSharedThenCache(t *testing.T) {
	shared, cache := t.TempDir(), t.TempDir()
	t.Chdir("../..") // as absent expects
	t.Setenv("LATHE_SHARED", shared)
	t.Setenv("LATHE_TESTDATA", cache)
	s := &testdata.Sets[0]

	if _, skipped := dir(t, s.Name); !strings.Contains(skipped, s.Name) || !strings.Contains(skipped, "go run ./internal/fetchdata") || strings.Contains(skipped, "\n") {
		t.Errorf("skip of a published set: %q", skipped)
	}
	if _, skipped := dir(t, "bfcl"); !strings.Contains(skipped, "data/bfcl") || !strings.Contains(skipped, "LATHE_SHARED") || strings.Contains(skipped, "\n") {
		t.Errorf("skip of a set that is not published: %q", skipped)
	}
	if err := os.MkdirAll(filepath.Join(cache, s.Name, "tests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if line := absent(); !strings.Contains(line, s.Name) || !strings.Contains(line, "bfcl") || strings.Contains(line, "\n") {
		t.Errorf("absent sets: %q", line)
	}
	if got, skipped := dir(t, s.Name, "tests"); skipped == "" {
		t.Errorf("Dir = %s, a folder without the pin", got)
	}
	if err := os.WriteFile(filepath.Join(cache, s.Name, testdata.PinFile), []byte(s.Pin()), 0o600); err != nil {
		t.Fatal(err)
	}
	if line := absent(); strings.Contains(line, s.Name) || !strings.Contains(line, "bfcl") {
		t.Errorf("absent sets: %q", line)
	}
	if got, skipped := dir(t, s.Name, "tests"); got != filepath.Join(cache, s.Name, "tests") {
		t.Errorf("Dir = %q, skipped %q; want the cache", got, skipped)
	}
	t.Setenv("LATHE_TESTDATA", "cache")
	if cache, err := testdata.Cache(); err == nil {
		t.Errorf("a relative cache folder is taken: %s", cache)
	}
	t.Setenv("LATHE_TESTDATA", cache)
	if err := os.MkdirAll(filepath.Join(shared, "data", s.Name, "tests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, skipped := dir(t, s.Name, "tests"); got != filepath.Join(shared, "data", s.Name, "tests") {
		t.Errorf("Dir = %q, skipped %q; want the shared folder", got, skipped)
	}
}
