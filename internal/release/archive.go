package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A file is one file of an archive.
type file struct {
	name    string
	mode    os.FileMode
	content []byte
}

// shells maps the shells for which the program writes completions to the usual name of the file.
var shells = map[string]string{"bash": "lathe.bash", "zsh": "_lathe", "fish": "lathe.fish", "powershell": "lathe.ps1"}

// common returns the files that every archive has: manual pages and completions, which the program at the path host writes, and licences.
func (r *release) common(ctx context.Context, host, work string) ([]file, error) {
	var files []file
	man := filepath.Join(work, "man1")
	if out, err := exec.CommandContext(ctx, host, "man", "--dir", man).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("manual pages: %w\n%s", err, out)
	}
	pages, err := os.ReadDir(man)
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		b, err := os.ReadFile(filepath.Join(man, p.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{"man/man1/" + p.Name(), 0o644, b})
	}
	for shell, name := range shells {
		b, err := exec.CommandContext(ctx, host, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion of %s: %w", shell, err)
		}
		files = append(files, file{"completions/" + name, 0o644, b})
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		b, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, b})
	}
	licences, err := r.licences(ctx)
	return append(files, licences...), err
}

// licences returns the licence and notice files of the modules in the program, on any platform.
func (r *release) licences(ctx context.Context) ([]file, error) {
	folders := map[string]string{} // module path → folder of the module
	for _, platform := range r.platforms {
		system, arch, _ := strings.Cut(platform, "/")
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", "./cmd/lathe")
		cmd.Dir = r.root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOFLAGS=")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				Module *struct {
					Path, Dir string
					Main      bool
				}
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module != nil && !p.Module.Main {
				folders[p.Module.Path] = p.Module.Dir
			}
		}
	}
	var files []file
	for module, dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range entries {
			upper := strings.ToUpper(e.Name())
			if !e.Type().IsRegular() || !strings.HasPrefix(upper, "LICENSE") && !strings.HasPrefix(upper, "LICENCE") && !strings.HasPrefix(upper, "COPYING") && !strings.HasPrefix(upper, "NOTICE") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			files, found = append(files, file{path.Join("licenses", module, e.Name()), 0o644, b}), true
		}
		if !found {
			return nil, fmt.Errorf("the module %s has no file with its licence", module)
		}
	}
	return files, nil
}

// writeArchive writes a zip or tar.gz archive. The files are sorted by name and are below a folder with the name of the archive.
func writeArchive(dist, name string, asZip bool, files []file) (err error) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	suffix := ".tar.gz"
	if asZip {
		suffix = ".zip"
	}
	f, err := os.OpenFile(filepath.Join(dist, name+suffix), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if asZip {
		w := zip.NewWriter(f)
		for _, file := range files {
			h := &zip.FileHeader{Name: name + "/" + file.name, Method: zip.Deflate, Modified: modified}
			h.SetMode(file.mode)
			to, err := w.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := to.Write(file.content); err != nil {
				return err
			}
		}
		return w.Close()
	}
	z := gzip.NewWriter(f)
	for i := range files {
		files[i].name = name + "/" + files[i].name
	}
	if err := writeTar(z, files); err != nil {
		return err
	}
	return z.Close()
}

// writeTar writes a tar archive in which all files belong to user 0.
func writeTar(w io.Writer, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		if err := addFile(t, f.name, int64(f.mode.Perm()), f.content); err != nil {
			return err
		}
	}
	return t.Close()
}

// writeSums writes SHA256SUMS, in the format of `sha256sum -c`, for all files in dist.
func writeSums(dist string) error {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dist, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(b), e.Name())
	}
	return os.WriteFile(filepath.Join(dist, "SHA256SUMS"), []byte(text.String()), 0o644)
}

// hashOf returns the SHA-256 of a file, in hex.
func hashOf(path string) (string, error) {
	b, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(b)), err
}
