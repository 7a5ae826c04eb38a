package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
)

// downloadTimeout bounds the download of one package.
const downloadTimeout = 10 * time.Minute

// downloads caches the downloaded packages: the parts of a set that come from one package share it.
type downloads struct {
	dir  string // for temporary files
	done map[string]fs.FS
}

// open returns the files of the package of a part. It downloads the package once and checks its hash.
func (d *downloads) open(p *testdata.Part) (fs.FS, error) {
	name := p.Module + p.Package
	if files := d.done[name]; files != nil {
		return files, nil
	}
	get := d.module
	if p.Package != "" {
		get = d.npm
	}
	files, err := get(name, p.Hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if d.done == nil {
		d.done = map[string]fs.FS{}
	}
	d.done[name] = files
	return files, nil
}

// module downloads a Go module. The go command checks the module against the checksum database; module checks it against the pinned sum.
func (d *downloads) module(name, hash string) (fs.FS, error) {
	out, err := d.command("go", "mod", "download", "-json", name)
	var m struct{ Dir, Sum, Error string }
	if json.Unmarshal(out, &m) == nil && m.Error != "" {
		return nil, errors.New(m.Error)
	}
	if err != nil {
		return nil, err
	}
	if m.Sum != hash {
		return nil, fmt.Errorf("the sum is %s, want %s", m.Sum, hash)
	}
	return os.DirFS(m.Dir), nil
}

// npm downloads an npm package without running its scripts and unpacks it in memory.
func (d *downloads) npm(name, hash string) (fs.FS, error) {
	dir, err := os.MkdirTemp(d.dir, "npm-")
	if err != nil {
		return nil, err
	}
	if _, err := d.command("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", dir, name); err != nil {
		return nil, err
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return nil, fmt.Errorf("npm wrote %d archives", len(archives))
	}
	f, err := os.Open(archives[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	archive, err := readAll(f, "the archive")
	if err != nil {
		return nil, err
	}
	return unpack(archive, hash)
}

// unpack checks the sha512 hash of an npm archive and returns the files below its folder package/.
func unpack(archive []byte, hash string) (fs.FS, error) {
	sum := sha512.Sum512(archive)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != hash {
		return nil, fmt.Errorf("the hash is %s, want %s", got, hash)
	}
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	r := tar.NewReader(z)
	for len(files) <= maxFiles {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name, inside := strings.CutPrefix(h.Name, "package/")
		if h.Typeflag != tar.TypeReg || !inside || !fs.ValidPath(name) {
			continue
		}
		b, err := readAll(r, name)
		if err != nil {
			return nil, err
		}
		files[name] = &fstest.MapFile{Data: b}
	}
	return nil, fmt.Errorf("more than %d files", maxFiles)
}

// command runs a program for at most downloadTimeout and returns its output. The working folder is outside the module, so that its go.mod,
// go.work and package.json have no effect.
func (d *downloads) command(name string, args ...string) ([]byte, error) {
	if _, err := exec.LookPath(name); err != nil {
		return nil, fmt.Errorf("%s is not installed", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), downloadTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = d.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return out, fmt.Errorf("%s: %w: %s", name, err, lines[len(lines)-1])
	}
	return out, nil
}
