// Command release builds the files that `make release` publishes: binaries in archives with manual pages, completions and licences, a
// container image as an OCI layout, an SBOM for each binary, descriptions for Homebrew and Scoop, the text of the release, and SHA256SUMS. The bytes depend only on the tree, the version and the Go
// toolchain. No container engine and no clock is used, and no network except by the go command for missing modules.
//
// It is a separate module, so that the program does not require modules that only releases need.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// platforms are the platforms of a release.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// modified is the time of all files in archives and images: the earliest time of the zip format.
var modified = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// versionPattern matches a semantic version with a v, as in Go modules.
var versionPattern = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)

// A release has the options of the command.
type release struct {
	version   string // with the leading v
	root      string // root directory of the repository
	out       string
	platforms []string
	twice     bool // build each binary again, elsewhere and without a cache, and compare the bytes
	native    bool // build with the settings and the cache of `go build`, on this platform only: for tests
	log       func(format string, args ...any)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var list string
	r := release{log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	flag.StringVar(&r.version, "version", "", "`version`, such as v0.2.0")
	flag.StringVar(&r.root, "root", filepath.Join("..", ".."), "`folder` of the repository")
	flag.StringVar(&r.out, "out", "", "`folder` that is made, and must not exist")
	flag.StringVar(&list, "platforms", strings.Join(platforms, ","), "`platforms`, separated by commas")
	flag.BoolVar(&r.twice, "twice", false, "build each binary twice, the second time from a copy of the tree and without a cache, and compare")
	flag.Parse()
	r.platforms = strings.Split(list, ",")
	if err := r.all(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// all builds the release in a temporary directory, which it renames to out when the release is complete.
func (r *release) all(ctx context.Context) (err error) {
	switch {
	case !versionPattern.MatchString(r.version):
		return fmt.Errorf("-version %q: want vMAJOR.MINOR.PATCH, such as v0.2.0", r.version)
	case r.out == "":
		return errors.New("want -out, a folder that does not exist")
	}
	for _, p := range r.platforms {
		if !slices.Contains(platforms, p) {
			return fmt.Errorf("-platforms: %q is none of %s", p, strings.Join(platforms, ", "))
		}
	}
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if _, err := os.Lstat(r.out); err == nil {
		return fmt.Errorf("%s exists: remove it, or name another folder", r.out)
	}
	work, err := os.MkdirTemp(filepath.Dir(filepath.Clean(r.out)), ".release-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	dist := filepath.Join(work, "dist")
	if err := os.Mkdir(dist, 0o755); err != nil {
		return err
	}
	if err := r.files(ctx, work, dist); err != nil {
		return err
	}
	return os.Rename(dist, r.out)
}

// files writes the files of the release into dist.
func (r *release) files(ctx context.Context, work, dist string) error {
	here := runtime.GOOS + "/" + runtime.GOARCH
	host, err := r.build(ctx, r.root, filepath.Join(work, "host"), here)
	if err != nil {
		return err
	}
	common, err := r.common(ctx, host, work)
	if err != nil {
		return err
	}
	var images []platformBinary
	for _, platform := range r.platforms {
		binary := host
		if platform != here {
			r.log("building for %s", platform)
			if binary, err = r.build(ctx, r.root, filepath.Join(work, strings.ReplaceAll(platform, "/", "_")), platform); err != nil {
				return err
			}
		}
		if r.twice {
			if err := r.same(ctx, work, platform, binary); err != nil {
				return err
			}
		}
		content, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		name := r.name(platform)
		sbom, err := sbomOf(binary, r.version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dist, name+".cdx.json"), sbom, 0o644); err != nil {
			return err
		}
		files := append(slices.Clone(common), file{name: filepath.Base(binary), mode: 0o755, content: content})
		if err := writeArchive(dist, name, strings.HasPrefix(platform, "windows/"), files); err != nil {
			return err
		}
		if system, arch, _ := strings.Cut(platform, "/"); system == "linux" {
			images = append(images, platformBinary{arch, content})
		}
	}
	if len(images) > 0 {
		if err := writeImage(filepath.Join(dist, "lathe_"+strings.TrimPrefix(r.version, "v")+"_oci.tar"), r.version, images); err != nil {
			return err
		}
	}
	if err := r.writePackages(dist); err != nil {
		return err
	}
	return writeSums(dist)
}

// name returns the name of the archive for a platform, without suffix.
func (r *release) name(platform string) string {
	return "lathe_" + strings.TrimPrefix(r.version, "v") + "_" + strings.ReplaceAll(platform, "/", "_")
}

// build builds the program for a platform into dir and returns its path. more is added to the environment.
func (r *release) build(ctx context.Context, root, dir, platform string, more ...string) (string, error) {
	system, arch, _ := strings.Cut(platform, "/")
	path := filepath.Join(dir, "lathe")
	if system == "windows" {
		path += ".exe"
	}
	args, env := []string{"build", "-buildvcs=false"}, os.Environ()
	if !r.native {
		args = append(args, "-trimpath", "-mod=readonly")
		env = append(env, "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-ldflags=-s -w -buildid= -X main.release="+r.version, "-o", path, "./cmd/lathe")...)
	cmd.Dir, cmd.Env = root, append(env, more...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building for %s: %w\n%s", platform, err, out)
	}
	return path, nil
}

// same builds a platform again, from a copy of the tree and without the build cache, and compares the bytes.
func (r *release) same(ctx context.Context, work, platform, binary string) error {
	r.log("building again for %s, without a cache", platform)
	again := filepath.Join(work, "again")
	defer func() { _ = os.RemoveAll(again) }() // an error is ignored: work is removed later
	tree := filepath.Join(again, "tree")
	if err := copyTree(r.root, tree); err != nil {
		return err
	}
	second, err := r.build(ctx, tree, filepath.Join(again, "out"), platform, "GOCACHE="+filepath.Join(again, "cache"))
	if err != nil {
		return err
	}
	a, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(second)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s: two builds differ", platform)
	}
	return nil
}

// copyTree copies the files of the main module without nested modules, .git and node_modules.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if !e.IsDir() {
			if !e.Type().IsRegular() {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, rel), b, 0o644)
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && rel != "." {
			return filepath.SkipDir
		}
		if name := e.Name(); rel != "." && (name == "node_modules" || name == ".git") {
			return filepath.SkipDir
		}
		return os.MkdirAll(filepath.Join(to, rel), 0o755)
	})
}
