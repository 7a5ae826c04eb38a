package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notExecuted lists the documented commands that no test executes as printed, by page, with the reason.
var notExecuted = map[string]map[string]string{
	"README.md": {
		`git clone https://github.com/lathe-run/lathe && cd lathe`:                       "needs the network",
		`go run ./cmd/lathe run "What is 7 + 35, and what time is it in Tokyo?"`:         "compiles the program; cli.md executes it with the compiled one",
		`lathe run --base-url http://127.0.0.1:11434/v1 --model qwen3 "What is 7 + 35?"`: localServer,
		`go install ./cmd/lathe`: "writes into the folder of the user",
	},
	"docs/install.md": {
		`sha256sum --check --ignore-missing SHA256SUMS`: "needs the files of a release; make releasetest makes one",
		`tar -xzf lathe_0.2.0_linux_amd64.tar.gz`:       "needs the files of a release; make releasetest makes one",
		`install lathe ~/.local/bin/`:                   "writes into the folder of the user",
		`go install ./cmd/lathe`:                        "writes into the folder of the user",
		`export PATH="$PATH:$(go env GOPATH)/bin"`:      "changes the shell",
	},
	"docs/cli.md": {
		`lathe run --base-url http://127.0.0.1:11434/v1 --model qwen3 "What is 7 + 35?"`:                                         localServer,
		`lathe run --base-url https://api.openai.com/v1 --key-env OPENAI_API_KEY --model gpt-5-mini "What is 7 + 35?"`:           vendor,
		`lathe run --base-url https://api.anthropic.com --key-env ANTHROPIC_API_KEY --model claude-sonnet-4-5 "What is 7 + 35?"`: vendor,
		`lathe run --base-url http://127.0.0.1:8000/v1 --wire responses --model gpt-oss-20b "What is 7 + 35?"`:                   localServer,
		`lathe chat --base-url http://127.0.0.1:11434/v1 --model qwen3`:                                                          localServer,
	},
	"docs/doctor.md": {
		`lathe doctor --base-url http://127.0.0.1:11434/v1 qwen3`:                               localServer,
		`lathe doctor --base-url https://api.openai.com/v1 --key-env OPENAI_API_KEY gpt-5-mini`: vendor,
	},
	"docs/internals/clients.md": {
		`COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:8700/v1 COPILOT_PROVIDER_API_KEY=k COPILOT_MODEL=sim/demo copilot -p "What is 7 + 35?"`: "needs the program of another vendor",
	},
	"docs/cluster.md": {
		`head -c 32 /dev/urandom | base64 > /etc/lathe/cluster.key`: "writes into /etc",
		`lathe serve`: ownPostgres,
	},
	"docs/store-postgres.md": {
		`createdb tools`: ownPostgres,
		`export LATHE_STORE='postgres://app@db:5432/tools?sslmode=verify-full'`: ownPostgres,
		`lathe serve`: ownPostgres,
	},
	"examples/guest-c/README.md": {
		`clang --target=wasm32-wasi -O2 -Wl,--export-table -o sum.wasm sum.c`: guests,
		`lathe guest run sum.wasm`: guests,
	},
	"examples/guest-go/README.md": {
		`GOOS=wasip1 GOARCH=wasm go build -o sum.wasm ./examples/guest-go`: guests,
		`lathe guest run --quiet sum.wasm`:                                 guests,
	},
	"examples/guest-rust/README.md": {
		`rustup target add wasm32-wasip1`: guests,
		`rustc --edition 2021 --target wasm32-wasip1 -O -C link-arg=--export-table -o sum.wasm sum.rs`: guests,
		`lathe guest run sum.wasm`: guests,
	},
	"examples/openai-compatible/README.md": {
		`LATHE_BASE_URL=http://127.0.0.1:11434/v1 LATHE_MODEL=qwen3 go run ./examples/openai-compatible "Add a note with the text \"buy milk\"."`: "the test of the example runs it with the simulated server",
	},
	"examples/quickstart/README.md": {
		`go run ./examples/quickstart`: "the test of the example runs it",
	},
}

const (
	localServer = "needs a model server with weights"
	vendor      = "needs a key of a vendor"
	ownPostgres = "needs a PostgreSQL server of the reader; the tests of store/postgres start one"
	guests      = "compiles for WebAssembly; guest/source_test.go builds and runs it where the compiler is installed"
)

// fromOutside lists the commands that a test executes with a server that the page does not start.
var fromOutside = map[string]string{
	"lathe --config search.yaml tools doctor":                login,
	"lathe --config search.yaml tools login search --open":   login,
	"lathe --config search.yaml tools call search__read":     login,
	"lathe --config notes.yaml tools login read_note --open": login,
	"lathe --config notes.yaml tools call read_note":         login,
}

// scripts lists the pages with blocks of the language sh, with the test that executes them, or the reason why none does.
var scripts = map[string]struct{ test, why string }{
	"docs/deploy.md":            {why: "installs into the system, or needs a container engine"},
	"docs/operating.md":         {test: "TestPostgresBackupOfTheDocument"},
	"docs/tutorial-gateway.md":  {test: "TestPrometheusOfTheTutorial"},
	"docs/internals/release.md": {why: "builds for six platforms; the tests of internal/release build for one"},
}

const login = "the test starts a server with OAuth"

// documents returns the pages with commands for users, by their paths from the root of the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	pages := map[string]string{}
	for _, pattern := range []string{"README.md", "AGENTS.md", "docs/*.md", "docs/go/*.md", "docs/internals/*.md", "examples/*.md", "examples/*/*.md", "deploy/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			pages[filepath.ToSlash(name)] = string(b)
		}
	}
	return pages
}

var indentedCommand = regexp.MustCompile(`(?m)^ {4}\$ (.*)$`)

// TestEveryDocumentedCommandIsExecuted counts the commands of all documents. Each is executed by the script that follows its
// page, or is listed above with the reason why not. The script of a page has no files: they are those that the page shows.
func TestEveryDocumentedCommandIsExecuted(t *testing.T) {
	t.Parallel()
	followed := map[string]bool{}
	followers, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	ofPostgres, err := filepath.Glob(filepath.Join("testdata", "postgres", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	followers = append(followers, ofPostgres...)
	page := regexp.MustCompile(`(?m)^docs \$DOCS/(\S+)$`)
	own := regexp.MustCompile(`(?m)^(?:#.*|\[.*\] skip .*|docs \S+|protected|gosource|)\n`)
	for _, script := range followers {
		b, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		m := page.FindSubmatch(b)
		if m == nil {
			continue
		}
		followed["docs/"+string(m[1])] = true
		if rest := own.ReplaceAllString(string(b), ""); rest != "" {
			t.Errorf("%s prepares more than an empty folder:\n%s", script, rest)
		}
	}
	for _, b := range []string{"README.md"} { // `serves` starts its servers
		if script, err := os.ReadFile(filepath.Join("testdata", "docs_readme.txtar")); err != nil || !strings.Contains(string(script), "serves $DOCS/../"+b) {
			t.Errorf("no script starts the servers of %s", b)
		}
	}
	all, executed := 0, 0
	outside, used := maps.Clone(fromOutside), map[string]bool{}
	for name, text := range documents(t) {
		missing := maps.Clone(notExecuted[name])
		count := func(line string, runs bool) {
			all++
			_, listed := missing[line]
			delete(missing, line)
			switch {
			case runs && listed:
				t.Errorf("%s: %q is executed, and listed as not executed", name, line)
			case runs:
				executed++
			case !listed:
				t.Errorf("%s: no test executes %q", name, line)
			}
			delete(outside, line)
		}
		var shown string // the text before a group of file blocks
		for _, b := range blocks(text) {
			if strings.TrimSpace(b.before) != "" {
				shown = b.before
			}
			if b.file != "" {
				if !strings.Contains(shown, "`"+b.file+"`") {
					t.Errorf("%s: the text before a file block does not name %s", name, b.file)
				}
				continue
			}
			for _, c := range b.commands() {
				count(c.line, followed[name] && b.language == "console" || name == "README.md" && strings.HasPrefix(c.line, "lathe serve"))
			}
			if b.language == "sh" { // a script without answers
				reason, listed := scripts[name]
				if !listed {
					t.Errorf("%s has a block of the language sh: write the commands as `console`, each after \"$ \", or list the page in scripts", name)
				}
				lines := strings.Count(strings.ReplaceAll(b.body, "\\\n", ""), "\n")
				all += lines
				if reason.test != "" {
					executed += lines
				}
				used[name] = true
			}
		}
		for _, m := range indentedCommand.FindAllStringSubmatch(text, -1) {
			count(m[1], false)
		}
		for line := range missing {
			t.Errorf("%s does not have the listed command %q", name, line)
		}
	}
	for name := range notExecuted {
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(name))); err != nil {
			t.Errorf("a listed page: %v", err)
		}
	}
	for name := range scripts {
		if !used[name] {
			t.Errorf("%s has no block of the language sh", name)
		}
	}
	for line := range outside {
		t.Errorf("no page has the listed command %q", line)
	}
	t.Logf("%d commands on %d pages, %d executed as printed, %d of them with a server that the reader brings, %d not executed", all, len(documents(t)), executed, len(fromOutside), all-executed)
	for _, name := range slices.Sorted(maps.Keys(notExecuted)) {
		for _, line := range slices.Sorted(maps.Keys(notExecuted[name])) {
			t.Logf("not executed: %s: %s: %s", name, line, notExecuted[name][line])
		}
	}
	if executed < 200 {
		t.Errorf("%d commands are executed: the search is broken", executed)
	}
}
