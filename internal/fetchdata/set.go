package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/testdata"
)

// Limits of one part of a set.
const (
	maxFiles     = 5000
	maxFileBytes = 16 << 20
)

// fetch puts a set into the cache, unless the cache has the set with the same pin. open returns the files of the package that a part names.
// The folder of the set is renamed into place, so that it is complete or does not exist.
func fetch(s *testdata.Set, cache string, open func(*testdata.Part) (fs.FS, error)) (done string, err error) {
	target := filepath.Join(cache, s.Name)
	if s.Fetched(target) {
		return "in the cache", nil
	}
	dir, err := os.MkdirTemp(cache, ".fetch-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files := 0
	for i := range s.Parts {
		p := &s.Parts[i]
		from, err := open(p)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, filepath.FromSlash(p.To))
		n := 0
		if p.Cases {
			n, err = writeCases(from, p.From, to)
		} else {
			n, err = copyFiles(from, p.From, to)
		}
		if err != nil {
			return "", fmt.Errorf("%s%s: %w", p.Module, p.Package, err)
		}
		if n == 0 {
			return "", fmt.Errorf("%s%s has no files in %s", p.Module, p.Package, p.From)
		}
		files += n
	}
	if err := os.WriteFile(filepath.Join(dir, testdata.PinFile), []byte(s.Pin()), 0o644); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.RemoveAll(target); err != nil {
		return "", err
	}
	if err := os.Rename(dir, target); err != nil && !s.Fetched(target) { // another process may have put it into the cache
		return "", err
	}
	return fmt.Sprintf("fetched, %d files", files), nil
}

// copyFiles copies the regular files below a folder and returns their number.
func copyFiles(from fs.FS, folder, to string) (n int, err error) {
	err = fs.WalkDir(from, folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if n++; n > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		b, err := readFile(from, p)
		if err != nil {
			return err
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(p, folder), "/")
		return writeFile(filepath.Join(to, filepath.FromSlash(rest)), b)
	})
	return n, err
}

// writeCases writes the test cases that an ECMAScript file exports as one JSON list, each into the file that has the name of the case, and
// returns their number. It skips a case that contains U+FFFD, because the package has lost the original bytes of that case.
func writeCases(from fs.FS, file, to string) (n int, err error) {
	b, err := readFile(from, file)
	if err != nil {
		return 0, err
	}
	_, list, ok := bytes.Cut(b, []byte("export default "))
	if !ok {
		return 0, fmt.Errorf("%s exports no list", file)
	}
	var cases []struct{ Name, Input string }
	if err := json.Unmarshal(bytes.TrimRight(list, "; \n"), &cases); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	for _, c := range cases {
		if c.Name == "" || c.Name != path.Base(c.Name) || strings.HasPrefix(c.Name, ".") || strings.Contains(c.Name, `\`) {
			return n, fmt.Errorf("%s: case %q is not named like a file", file, c.Name)
		}
		if strings.ContainsRune(c.Input, utf8.RuneError) {
			continue
		}
		if n++; n > maxFiles {
			return n, fmt.Errorf("more than %d cases", maxFiles)
		}
		if err := writeFile(filepath.Join(to, c.Name), []byte(c.Input)); err != nil {
			return n, err
		}
	}
	return n, nil
}

func readFile(from fs.FS, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, name)
}

// readAll reads a file of at most maxFileBytes.
func readAll(r io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err == nil && len(b) > maxFileBytes {
		err = errors.New(name + " is larger than 16 MiB")
	}
	return b, err
}

func writeFile(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o644)
}
