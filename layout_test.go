package lathe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lathe-run/lathe"

// A room is one row of the table that says who may import whom. The files are read with
// go/parser rather than asked of `go list`, so that the answer is never one from the test cache.
type room struct {
	path    string   // folder under the module; "" is the root, "x/*" every folder below x
	imports []string // rooms it may import; "*" all
	outside []string // outside modules (by prefix) it may import
	std     []string // standard packages among `guarded` that it may import
}

// guarded are the standard packages that only the rooms which name them may import.
var guarded = []string{"net", "net/http", "os", "os/exec", "os/signal", "database/sql", "syscall"}

var rooms = []room{
	{path: ""},
	{path: "internal/rawjson"},
	{path: "internal/nearest"},
	{path: "internal/lazy"},
	{path: "internal/stdlog"},
	{path: "internal/secret"},
	{path: "internal/sse", std: []string{"net/http"}},
	{path: "internal/egress", std: []string{"net", "net/http", "syscall"}},
	{path: "internal/plain", std: []string{"net", "os"}},
	{path: "internal/reconnect", std: []string{"net/http", "syscall"}},
	{path: "internal/form", imports: []string{"internal/rawjson"}},
	{path: "internal/oauth", imports: []string{"internal/egress", "internal/private", "internal/rawjson", "internal/secret"}, std: []string{"net", "net/http"}},
	{path: "internal/private", std: []string{"os", "syscall"}},
	{path: "internal/schema", imports: []string{"internal/rawjson"},
		outside: []string{"github.com/santhosh-tekuri/jsonschema", "github.com/google/jsonschema-go", "golang.org/x/text"}},
	{path: "internal/wasmrt", std: []string{"os"}, outside: []string{"github.com/tetratelabs/wazero"}},
	{path: "internal/wasmrt/wasmtest", std: []string{"os", "os/exec"}},
	{path: "internal/digest", imports: []string{"", "internal/rawjson"}},
	{path: "internal/wire/openai", imports: []string{"", "internal/rawjson"}},
	{path: "internal/callid", imports: []string{""}},
	{path: "internal/visible", imports: []string{""}},
	{path: "internal/wire/uistream", imports: []string{"", "internal/rawjson", "internal/visible"}},
	{path: "internal/wire/fleet", imports: []string{""}},
	{path: "internal/testdata", std: []string{"os"}},
	{path: "dialect", imports: []string{"", "internal/rawjson"}},
	{path: "dialect/dialecttest", imports: []string{"", "dialect"}},
	{path: "transform", imports: []string{"", "dialect", "internal/callid", "internal/nearest", "internal/rawjson", "internal/visible"}},
	{path: "preset", imports: []string{"", "transform", "internal/nearest", "internal/rawjson"}},
	{path: "audit", imports: []string{"", "internal/digest"}, std: []string{"os", "syscall"}},
	{path: "approval", imports: []string{"", "internal/digest", "internal/rawjson"}},
	{path: "policy", imports: []string{""}},
	{path: "policy/rules", imports: []string{"", "policy", "internal/rawjson"}, outside: []string{"cel.dev/cel-go"}},
	{path: "store", imports: []string{""}},
	{path: "store/storetest", imports: []string{""}, outside: []string{"github.com/google/go-cmp"}},
	{path: "store/sqlite", imports: []string{"", "store"}, std: []string{"database/sql", "os", "syscall"}, outside: []string{"modernc.org/sqlite"}},
	{path: "store/postgres", imports: []string{"", "store"}, outside: []string{"github.com/jackc/pgx/v5"}},
	{path: "store/postgres/pgtest", std: []string{"net", "os", "os/exec", "syscall"}, outside: []string{"github.com/jackc/pgx/v5"}},
	{path: "observe", imports: []string{"", "internal/digest"}, std: []string{"net/http"},
		outside: []string{"github.com/prometheus/", "go.opentelemetry.io/otel"}},
	{path: "tool", imports: []string{"", "internal/rawjson", "internal/schema", "internal/digest", "internal/secret"},
		outside: []string{"github.com/go-json-experiment/json"}},
	{path: "tool/builtin", imports: []string{"", "tool", "internal/rawjson"}},
	{path: "tool/mcptool", imports: []string{"", "tool", "internal/egress", "internal/form", "internal/oauth", "internal/private", "internal/rawjson", "internal/secret", "internal/sse"},
		std: []string{"net", "net/http", "os", "os/exec", "syscall"}, outside: []string{"github.com/modelcontextprotocol/go-sdk"}},
	{path: "tool/httptool", imports: []string{"", "tool", "internal/egress", "internal/oauth", "internal/rawjson", "internal/secret"}, std: []string{"net/http"},
		outside: []string{"github.com/getkin/kin-openapi", "go.yaml.in/yaml"}},
	{path: "tool/agenttool", imports: []string{"", "internal/rawjson", "loop", "tool"}},
	{path: "tool/wasmtool", imports: []string{"", "tool", "internal/lazy", "internal/rawjson", "internal/wasmrt"}, std: []string{"os"},
		outside: []string{"go.yaml.in/yaml"}},
	{path: "tool/remote", imports: []string{"", "tool"}},
	{path: "tool/remote/remotetest", imports: []string{"", "policy", "tool", "tool/remote"}},
	{path: "mcpserve", imports: []string{"", "tool", "internal/digest", "internal/lazy", "internal/rawjson", "internal/schema", "internal/secret"}, std: []string{"net", "net/http"},
		outside: []string{"github.com/modelcontextprotocol/go-sdk"}},
	{path: "provider", imports: []string{"", "dialect", "internal/callid", "internal/plain", "internal/rawjson", "internal/reconnect", "internal/secret", "internal/sse", "internal/visible", "internal/wire/openai"},
		std: []string{"net", "net/http", "syscall"}},
	{path: "sim", imports: []string{"", "dialect", "internal/lazy", "internal/rawjson", "internal/sse", "internal/wire/openai"},
		std: []string{"net", "net/http", "os"}},
	{path: "doctor", imports: []string{"", "dialect", "internal/plain", "internal/rawjson", "internal/reconnect", "internal/secret", "internal/sse", "internal/wire/openai"},
		std: []string{"net", "net/http"}},
	{path: "guest", imports: []string{"", "internal/rawjson", "internal/wasmrt", "internal/wire/openai", "policy", "tool"}, std: []string{"os"}},
	{path: "loop", imports: []string{"", "tool", "internal/digest", "internal/lazy", "internal/visible"}},
	{path: "engine", imports: []string{"", "loop"}},
	{path: "engine/enginetest", imports: []string{"", "approval", "engine", "loop", "observe", "tool"}},
	{path: "replay", imports: []string{"", "engine", "loop", "store", "tool"}},
	{path: "gateway/console", std: []string{"net/http"}},
	{path: "gateway", imports: []string{"", "approval", "engine", "loop", "observe", "store", "internal/nearest", "internal/rawjson", "internal/secret", "internal/sse", "internal/stdlog",
		"gateway/console", "internal/visible", "internal/wire/fleet", "internal/wire/openai", "internal/wire/uistream"}, std: []string{"net", "net/http"}, outside: []string{"github.com/klauspost/compress", "github.com/coder/websocket"}},
	{path: "worker", imports: []string{"", "tool", "internal/rawjson", "internal/secret", "internal/wire/fleet"}, std: []string{"net", "net/http"},
		outside: []string{"github.com/coder/websocket"}},
	{path: "eval", imports: []string{"", "config", "eval/mock", "internal/lazy", "internal/rawjson", "loop", "policy", "tool", "tool/builtin"}, std: []string{"os"},
		outside: []string{"go.yaml.in/yaml"}},
	{path: "eval/bfcl", imports: []string{"", "eval", "internal/lazy", "internal/rawjson", "internal/schema"}},
	{path: "eval/mock", imports: []string{""}},
	{path: "config", imports: []string{"", "approval", "internal/lazy", "internal/nearest", "internal/secret"}, std: []string{"os"},
		outside: []string{"go.yaml.in/yaml"}},
	{path: "cmd/lathe", imports: []string{"*"}, std: guarded,
		outside: []string{"github.com/spf13/", "golang.org/x/term", "go.yaml.in/yaml"}},
	{path: "examples/*", imports: []string{"*"}, std: guarded},
}

// apart are folders with a go.mod of their own: the rules of this module do not reach them.
func apart(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return dir != "." && err == nil
}

func TestLayout(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for dir, files := range packages(t) {
		r := findRoom(dir)
		if r == nil {
			t.Errorf("%s: no row in layout_test.go: say what it may import", dir)
			continue
		}
		seen[r.path] = true
		for _, f := range files {
			for _, spec := range f.file.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatalf("%s: %v", f.name, err)
				}
				if why := r.forbids(name); why != "" {
					t.Errorf("%s imports %s: %s", f.name, name, why)
				}
			}
		}
	}
	for _, r := range rooms {
		if !seen[r.path] && !strings.HasSuffix(r.path, "/*") {
			t.Errorf("layout_test.go has a row for %q, which holds no Go file", r.path)
		}
	}
}

// tape is the one tool that stands around another: the runner calls it, and it keeps what the other says.
const tape = "eval/tape_tools.go"

// Only the runner may call a tool: Call with a context and arguments, on anything, stands once there.
func TestOnlyRunnerCallsTools(t *testing.T) {
	t.Parallel()
	found := 0
	for dir, files := range packages(t) {
		for _, f := range files {
			ast.Inspect(f.file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 2 {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Call" || !mentionsContext(call.Args[0]) {
					return true
				}
				if f.name == tape {
					return true
				}
				found++
				if dir != "tool" {
					t.Errorf("%s calls a tool: only the runner may", f.name)
				}
				return true
			})
		}
	}
	if found != 1 {
		t.Errorf("tools are called in %d places, want 1", found)
	}
}

func mentionsContext(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && strings.Contains(strings.ToLower(id.Name), "ctx")
}

func (r *room) forbids(name string) string {
	if name == module || strings.HasPrefix(name, module+"/") {
		to := strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
		if slices.Contains(r.imports, "*") || slices.Contains(r.imports, to) {
			return ""
		}
		return "the row of " + strconv.Quote(r.path) + " does not list that room"
	}
	if !strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
		if slices.Contains(guarded, name) && !slices.Contains(r.std, name) {
			return "this room does no I/O of that kind"
		}
		return ""
	}
	for _, p := range r.outside {
		if strings.HasPrefix(name, p) {
			return ""
		}
	}
	return "outside modules enter through the rooms that list them"
}

func findRoom(dir string) *room {
	for i := range rooms {
		if rooms[i].path == dir {
			return &rooms[i]
		}
		if base, ok := strings.CutSuffix(rooms[i].path, "/*"); ok && path.Dir(dir) == base {
			return &rooms[i]
		}
	}
	return nil
}

type parsed struct {
	name string
	file *ast.File
}

// packages returns the non-test files of each folder of the module.
func packages(t *testing.T) map[string][]parsed {
	t.Helper()
	fset := token.NewFileSet()
	out := map[string][]parsed{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if p != "." && (name == "testdata" && p != filepath.Join("internal", "testdata") || strings.HasPrefix(name, ".") || name == "node_modules" || apart(p)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(p))
		if dir == "." {
			dir = ""
		}
		out[dir] = append(out[dir], parsed{p, f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// No file may grow past 800 lines: by then it holds a second noun.
func TestFilesStaySmall(t *testing.T) {
	t.Parallel()
	for _, files := range packages(t) {
		for _, f := range files {
			b, err := os.ReadFile(f.name)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), "\n"); n > 800 {
				t.Errorf("%s has %d lines, want at most 800", f.name, n)
			}
		}
	}
}
