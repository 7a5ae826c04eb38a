package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const testVersion = "v0.99.0"

// full reports whether the tests build what is published, for one platform, and run it alone in a root of its own: `make
// releasetest`. Otherwise the program is the one that `go build` makes here.
var full = os.Getenv("LATHE_RELEASE_FULL") != ""

// made are the files of two releases for this machine's architecture on Linux, from the same tree.
var made [2]string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		panic(err)
	}
	code := func() int {
		for i := range made {
			made[i] = filepath.Join(dir, fmt.Sprint(i))
			r := release{version: testVersion, root: filepath.Join("..", ".."), out: made[i], platforms: []string{"linux/" + runtime.GOARCH}, native: !full, twice: full && i == 0, log: func(string, ...any) {}}
			if err := r.all(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}()
	if err := os.RemoveAll(dir); err != nil && code == 0 {
		code = 1
	}
	os.Exit(code)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Two releases of one tree have the same files with the same bytes, and SHA256SUMS has the hash of each other file.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	var names []string
	entries, err := os.ReadDir(made[0])
	if err != nil {
		t.Fatal(err)
	}
	sums := string(read(t, filepath.Join(made[0], "SHA256SUMS")))
	for _, e := range entries {
		names = append(names, e.Name())
		a := read(t, filepath.Join(made[0], e.Name()))
		if !bytes.Equal(a, read(t, filepath.Join(made[1], e.Name()))) {
			t.Errorf("%s differs", e.Name())
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(a), e.Name()); e.Name() != "SHA256SUMS" && !strings.Contains(sums, line) {
			t.Errorf("SHA256SUMS lacks %s", line)
		}
	}
	base := "lathe_0.99.0_linux_" + runtime.GOARCH
	if want := []string{"RELEASE.md", "SHA256SUMS", "lathe.rb", base + ".cdx.json", base + ".tar.gz", "lathe_0.99.0_oci.tar"}; !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(made[0]), ".release-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The descriptions for Homebrew and Scoop name each archive of their systems with its hash, and the text of the release has the changes of its
// version.
func TestPackages(t *testing.T) {
	t.Parallel()
	dist := t.TempDir()
	r := release{version: testVersion, root: filepath.Join("..", "..")}
	sums := map[string]string{}
	for _, platform := range platforms {
		name := r.name(platform) + map[bool]string{true: ".zip", false: ".tar.gz"}[strings.HasPrefix(platform, "windows/")]
		sums[name] = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
		if err := os.WriteFile(filepath.Join(dist, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writePackages(dist); err != nil {
		t.Fatal(err)
	}
	brew, scoop := string(read(t, filepath.Join(dist, "lathe.rb"))), read(t, filepath.Join(dist, "lathe.json"))
	for name, sum := range sums {
		in := brew
		if strings.HasSuffix(name, ".zip") {
			in = string(scoop)
		}
		if url := "https://github.com/lathe-run/lathe/releases/download/v0.99.0/" + name; strings.Count(in, url) != 1 || strings.Count(in, sum) != 1 {
			t.Errorf("no description has %s with its hash", name)
		}
	}
	if a, b := strings.Count(brew, " do\n"), strings.Count(brew, "  end\n"); a != 7 || b != a+1 { // the method install has no do
		t.Errorf("%d blocks begin and %d end:\n%s", a, b, brew)
	}
	var manifest struct {
		Version      string
		Architecture map[string]struct {
			ExtractDir string `json:"extract_dir"`
		}
	}
	if err := json.Unmarshal(scoop, &manifest); err != nil || manifest.Version != "0.99.0" || manifest.Architecture["64bit"].ExtractDir != "lathe_0.99.0_windows_amd64" {
		t.Errorf("%v %+v", err, manifest)
	}
	const changes = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.99.0] - 2026-11-29\n\n### Added\n- a thing\n\n## [0.98.0]\n- old\n"
	for version, want := range map[string]string{"v0.99.0": "### Added\n- a thing", "v1.0.0": "- new"} {
		text, err := (&release{version: version}).text(changes)
		if err != nil || !strings.HasSuffix(text, "\n\n"+want+"\n") || !strings.HasPrefix(text, "# Lathe "+version+"\n") {
			t.Errorf("%s: %v %q", version, err, text)
		}
	}
	if _, err := r.text("# Changelog\n"); err == nil {
		t.Error("a release without changes has a text")
	}
}

// The archive has the program, its manual, completions for four shells, and the licence of each module in it; the program says
// its version.
func TestArchive(t *testing.T) {
	t.Parallel()
	base := "lathe_0.99.0_linux_" + runtime.GOARCH
	z, err := gzip.NewReader(bytes.NewReader(read(t, filepath.Join(made[0], base+".tar.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, z, t.TempDir())
	for _, name := range []string{"lathe", "LICENSE", "README.md", "CHANGELOG.md", "man/man1/lathe.1", "man/man1/lathe-store-backup.1", "completions/lathe.bash",
		"completions/_lathe", "completions/lathe.fish", "completions/lathe.ps1", "licenses/modernc.org/sqlite/LICENSE", "licenses/github.com/spf13/cobra/LICENSE.txt"} {
		if !slices.Contains(got.names, base+"/"+name) {
			t.Errorf("the archive has no %s", name)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(got.dir, base, "lathe"), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "lathe "+testVersion+" go1.") {
		t.Errorf("%v, %q", err, out)
	}
	// The same files as a zip archive, for Windows.
	dir := t.TempDir()
	if err := writeArchive(dir, "w", true, []file{{"b", 0o644, []byte("2")}, {"a", 0o755, []byte("1")}}); err != nil {
		t.Fatal(err)
	}
	r, err := zip.OpenReader(filepath.Join(dir, "w.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(r.File) != 2 || r.File[0].Name != "w/a" || r.File[0].Mode().Perm() != 0o755 || r.File[1].Name != "w/b" || !r.File[1].Modified.Equal(modified) {
		t.Errorf("%+v", r.File)
	}
}

// The SBOM has the shape of CycloneDX, and the modules that `go version -m` shows.
func TestSBOM(t *testing.T) {
	t.Parallel()
	var b bom
	dec := json.NewDecoder(bytes.NewReader(read(t, filepath.Join(made[0], "lathe_0.99.0_linux_"+runtime.GOARCH+".cdx.json"))))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Spec != "1.6" || b.Version != 1 || !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.Serial) {
		t.Errorf("%+v", b)
	}
	if p := b.Metadata.Component; p.Type != "application" || p.Purl != "pkg:golang/github.com/lathe-run/lathe@"+testVersion || len(p.Hashes) != 1 || len(p.Hashes[0].Content) != 64 {
		t.Errorf("%+v", p)
	}
	z, err := gzip.NewReader(bytes.NewReader(read(t, filepath.Join(made[0], "lathe_0.99.0_linux_"+runtime.GOARCH+".tar.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, z, t.TempDir())
	binary := filepath.Join(got.dir, "lathe_0.99.0_linux_"+runtime.GOARCH, "lathe")
	if sum, err := hashOf(binary); err != nil || sum != b.Metadata.Component.Hashes[0].Content {
		t.Errorf("the hash of the program: %s, %v", sum, err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(string(out), -1) {
		want = append(want, "pkg:golang/"+m[1]+"@"+m[2])
	}
	refs := map[string]bool{}
	var have []string
	for _, c := range b.Components {
		if refs[c.Ref] || c.Ref == "" || c.Type != "library" || c.Version == "" {
			t.Errorf("%+v", c)
		}
		refs[c.Ref] = true
		if c.Name != "std" {
			have = append(have, c.Purl)
		}
	}
	if len(want) < 10 || !slices.Equal(have, want) || len(b.Dependencies) != 1 || len(b.Dependencies[0].On) != len(want)+1 {
		t.Errorf("components %v\nwant %v", have, want)
	}
}

// unpacked is what an archive had.
type unpacked struct {
	dir     string
	names   []string
	headers map[string]*tar.Header
}

func unpack(t *testing.T, r io.Reader, dir string) unpacked {
	t.Helper()
	u := unpacked{dir: dir, headers: map[string]*tar.Header{}}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return u
		}
		if err != nil || !filepath.IsLocal(h.Name) || !h.ModTime.Equal(modified) {
			t.Fatalf("%+v, %v", h, err)
		}
		u.names, u.headers[h.Name] = append(u.names, h.Name), h
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, h.FileInfo().Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// A stored image, as one that loads it reads it.
type stored struct {
	t   *testing.T
	dir string
}

// blob reads what a descriptor refers to, and checks its digest and size.
func (s stored) blob(d descriptor) []byte {
	s.t.Helper()
	sum, ok := strings.CutPrefix(d.Digest, "sha256:")
	b := read(s.t, filepath.Join(s.dir, "blobs", "sha256", sum))
	if got := fmt.Sprintf("%x", sha256.Sum256(b)); !ok || got != sum || len(b) != d.Size {
		s.t.Fatalf("the blob %s has the digest %s and %d bytes, want %d", d.Digest, got, len(b), d.Size)
	}
	return b
}

func (s stored) json(d descriptor, mediaType string, into any) {
	s.t.Helper()
	if d.MediaType != mediaType {
		s.t.Fatalf("%+v, want the type %s", d, mediaType)
	}
	if err := json.Unmarshal(s.blob(d), into); err != nil {
		s.t.Fatal(err)
	}
}

// maxImage is the largest size of the compressed layers of an image that is published.
const maxImage = 20_000_000

// The image is a layout whose digests are those of its blobs. What it unpacks to has the program, certificates, and a state
// folder of its user, and the program runs in it: as its user in a root of its own, where the test may do that.
func TestImage(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(made[0], "lathe_0.99.0_oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := stored{t, t.TempDir()}
	files := unpack(t, f, s.dir)
	if got := string(read(t, filepath.Join(s.dir, "oci-layout"))); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Error(got)
	}
	type list struct {
		SchemaVersion int          `json:"schemaVersion"`
		Manifests     []descriptor `json:"manifests"`
	}
	var top, index list
	if err := json.Unmarshal(read(t, filepath.Join(s.dir, "index.json")), &top); err != nil || top.SchemaVersion != 2 || len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "0.99.0" {
		t.Fatalf("%+v, %v", top, err)
	}
	s.json(top.Manifests[0], typeIndex, &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform["os"] != "linux" || index.Manifests[0].Platform["architecture"] != runtime.GOARCH {
		t.Fatalf("%+v", index)
	}
	var manifest struct {
		Config descriptor   `json:"config"`
		Layers []descriptor `json:"layers"`
	}
	s.json(index.Manifests[0], typeManifest, &manifest)
	var config struct {
		Architecture string         `json:"architecture"`
		OS           string         `json:"os"`
		Config       map[string]any `json:"config"`
		RootFS       struct {
			Type string   `json:"type"`
			IDs  []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	s.json(manifest.Config, typeConfig, &config)
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.RootFS.Type != "layers" || len(config.RootFS.IDs) != len(manifest.Layers) {
		t.Errorf("%+v", config)
	}
	root, err := os.MkdirTemp("", "image") // whose folders its user may pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	size := 0
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	if full && size > maxImage {
		t.Errorf("the image takes %d bytes, want at most %d", size, maxImage)
	}
	for i, layer := range manifest.Layers {
		z, err := gzip.NewReader(bytes.NewReader(s.blob(layer)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if id := fmt.Sprintf("sha256:%x", sha256.Sum256(plain)); layer.MediaType != typeLayer || id != config.RootFS.IDs[i] {
			t.Errorf("layer %d is %s, want %s", i, id, config.RootFS.IDs[i])
		}
		u := unpack(t, bytes.NewReader(plain), root)
		for name, want := range map[string]tar.Header{"lathe": {Mode: 0o755}, "var/lib/lathe/": {Mode: 0o700, Uid: imageUser, Gid: imageUser}, "tmp/": {Mode: 0o1777}} {
			if h := u.headers[name]; h != nil && (h.Mode != want.Mode || h.Uid != want.Uid || h.Gid != want.Gid) {
				t.Errorf("%s: %+v", name, h)
			}
		}
	}
	if blobs := len(manifest.Layers) + 3; len(files.names) != blobs+2 {
		t.Errorf("files %v, want %d blobs", files.names, blobs)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(read(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))) {
		t.Error("the image has no certificates")
	}
	runImage(t, root, config.Config)
}

// TestImageIsTheContainerfile: the image that is built without an engine is configured as the one of deploy/Containerfile.
func TestImageIsTheContainerfile(t *testing.T) {
	t.Parallel()
	text := string(read(t, filepath.Join("..", "..", "deploy", "Containerfile")))
	_, text, _ = strings.Cut(text, "FROM scratch")
	line := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + ` (.*)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the Containerfile has no %s", name)
		}
		return m[1]
	}
	words := func(text string) []string {
		var out []string
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(text, err)
		}
		return out
	}
	c := imageConfig(testVersion)
	health := c["Healthcheck"].(map[string]any)
	probe := words(line("HEALTHCHECK")[strings.Index(line("HEALTHCHECK"), "["):])
	for name, equal := range map[string]bool{
		"USER":        c["User"] == line("USER"),
		"ENV":         slices.Equal(c["Env"].([]string), strings.Fields(line("ENV"))),
		"ENTRYPOINT":  slices.Equal(c["Entrypoint"].([]string), words(line("ENTRYPOINT"))),
		"CMD":         slices.Equal(c["Cmd"].([]string), words(line("CMD"))),
		"VOLUME":      c["Volumes"].(map[string]any)[line("VOLUME")] != nil,
		"EXPOSE":      c["ExposedPorts"].(map[string]any)[line("EXPOSE")+"/tcp"] != nil,
		"HEALTHCHECK": slices.Equal(health["Test"].([]string), append([]string{"CMD"}, probe...)) && strings.Contains(line("HEALTHCHECK"), fmt.Sprintf("--interval=%ds --timeout=%ds --start-period=%ds ", health["Interval"].(int64)/1e9, health["Timeout"].(int64)/1e9, health["StartPeriod"].(int64)/1e9)),
	} {
		if !equal {
			t.Errorf("%s differs: %q and %v", name, line(name), c)
		}
	}
}

// TestReleaseRefuses: what is asked for is checked before anything is built.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	for _, tc := range []struct {
		r    release
		want string
	}{
		{release{version: "0.1.0", out: "x"}, "want vMAJOR.MINOR.PATCH"},
		{release{version: "v01.0.0", out: "x"}, "want vMAJOR.MINOR.PATCH"},
		{release{version: "v0.1.0"}, "want -out"},
		{release{version: "v0.1.0", out: "x", platforms: []string{"plan9/386"}}, `"plan9/386" is none of linux/amd64`},
		{release{version: "v0.1.0", out: there}, "exists"},
	} {
		if err := tc.r.all(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.r, err, tc.want)
		}
	}
}
