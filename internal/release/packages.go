package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// downloads is the address of the published files of a version, by its tag.
const downloads = "https://github.com/lathe-run/lathe/releases/download/"

// formula is a formula for Homebrew. An archive has one folder, into which Homebrew changes before it installs.
var formula = template.Must(template.New("lathe.rb").Parse(`class Lathe < Formula
  desc "Runtime for tool calls of language models: library, gateway and command"
  homepage "https://github.com/lathe-run/lathe"
  version "{{.Version}}"
  license "Apache-2.0"
{{range .Systems}}
  on_{{.Name}} do{{range .Archives}}
    on_{{.Arch}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end{{end}}
  end
{{end}}
  def install
    bin.install "lathe"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/lathe.bash" => "lathe"
    zsh_completion.install "completions/_lathe"
    fish_completion.install "completions/lathe.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lathe version")
  end
end
`))

// A packedArchive is an archive in a description for a package manager.
type packedArchive struct{ Arch, URL, Sum string }

// writePackages writes the formula for Homebrew (lathe.rb) and the manifest for Scoop (lathe.json), if the release has archives for their
// systems, and the text of the release (RELEASE.md) from the section of the version in CHANGELOG.md, or from that of unreleased changes.
func (r *release) writePackages(dist string) error {
	version := strings.TrimPrefix(r.version, "v")
	archives := func(system, suffix string, names map[string]string) (out []packedArchive, err error) {
		for _, arch := range []string{"amd64", "arm64"} {
			file := r.name(system+"/"+arch) + suffix
			sum, err := hashOf(filepath.Join(dist, file))
			if errors.Is(err, os.ErrNotExist) { // the release has no such platform
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, packedArchive{names[arch], downloads + r.version + "/" + file, sum})
		}
		return out, nil
	}
	type system struct {
		Name     string
		Archives []packedArchive
	}
	var systems []system
	for _, s := range [][2]string{{"macos", "darwin"}, {"linux", "linux"}} {
		found, err := archives(s[1], ".tar.gz", map[string]string{"amd64": "intel", "arm64": "arm"})
		if err != nil {
			return err
		}
		if len(found) > 0 {
			systems = append(systems, system{s[0], found})
		}
	}
	if len(systems) > 0 {
		var text bytes.Buffer
		if err := formula.Execute(&text, map[string]any{"Version": version, "Systems": systems}); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dist, "lathe.rb"), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	windows, err := archives("windows", ".zip", map[string]string{"amd64": "64bit", "arm64": "arm64"})
	if err != nil {
		return err
	}
	if len(windows) > 0 {
		if err := writeScoop(filepath.Join(dist, "lathe.json"), version, windows); err != nil {
			return err
		}
	}
	changes, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := r.text(string(changes))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, "RELEASE.md"), []byte(text), 0o644)
}

// writeScoop writes a manifest for Scoop.
func writeScoop(path, version string, archives []packedArchive) error {
	architecture := map[string]any{}
	for _, a := range archives {
		_, file, _ := strings.Cut(a.URL, "/lathe_")
		architecture[a.Arch] = map[string]string{"url": a.URL, "hash": a.Sum, "extract_dir": "lathe_" + strings.TrimSuffix(file, ".zip")}
	}
	b, err := json.MarshalIndent(map[string]any{
		"version": version, "description": "Runtime for tool calls of language models: library, gateway and command",
		"homepage": "https://github.com/lathe-run/lathe", "license": "Apache-2.0", "bin": "lathe.exe", "architecture": architecture,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// text returns the text of the release.
func (r *release) text(changes string) (string, error) {
	_, section, found := strings.Cut(changes, "\n## ["+strings.TrimPrefix(r.version, "v")+"]")
	if !found { // before the section is named: see docs/internals/release.md
		_, section, found = strings.Cut(changes, "\n## [Unreleased]")
	}
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has neither a section for %s nor one for unreleased changes", r.version)
	}
	_, section, _ = strings.Cut(section, "\n") // the date
	section, _, _ = strings.Cut(section, "\n## ")
	return fmt.Sprintf("# Lathe %s\n\nArchives for six platforms, a container image, an SBOM for each binary, and SHA256SUMS. `go install github.com/lathe-run/lathe/cmd/lathe@%[1]s` builds the command from source.\n\n%s\n", r.version, strings.TrimSpace(section)), nil
}
