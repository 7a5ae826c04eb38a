package structure

import (
	"bytes"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lathe-run/lathe"

// A rule is one row of the table of allowed imports.
type rule struct {
	path    string   // folder under the module; "" is the root, "x/*" every folder below x
	imports []string // packages of this module that it may import; "*" all
	outside []string // outside modules (by prefix) it may import
	std     []string // standard packages among `guarded` that it may import
}

// guarded are the standard packages that only packages with a rule for them may import.
var guarded = []string{"net", "net/http", "os", "os/exec", "os/signal", "database/sql", "syscall"}

var rules = []rule{
	{path: "", imports: []string{"internal/rawjson", "internal/setting"}},
	{path: "internal/setting"},
	{path: "internal/setting/limittest", imports: []string{"", "event", "internal/setting", "lathetest", "policy", "provider", "tool"}},
	{path: "internal/rawjson"},
	{path: "internal/yamljson", imports: []string{"internal/rawjson"}, outside: []string{"go.yaml.in/yaml"}},
	{path: "internal/runinput", imports: []string{""}},
	{path: "internal/text"},
	{path: "internal/markdown"},
	{path: "internal/report", imports: []string{"internal/text"}},
	{path: "internal/progress"},
	{path: "internal/stack"},
	{path: "internal/connect", imports: []string{"internal/lazy", "internal/rawjson"}, std: []string{"os"}, outside: []string{"github.com/BurntSushi/toml", "go.yaml.in/yaml"}},
	{path: "internal/httpname", std: []string{"net"}},
	{path: "internal/jsonlines"},
	{path: "internal/jsonrpc2", imports: []string{"internal/rawjson"}},
	{path: "internal/lazy"},
	{path: "internal/startgc", std: []string{"os"}},
	{path: "internal/stdlog"},
	{path: "secret"},
	{path: "internal/seal", imports: []string{"", "secret"}},
	{path: "internal/sse", std: []string{"net/http"}},
	{path: "event", imports: []string{""}},
	{path: "remote", imports: []string{"", "event", "internal/rawjson"}},
	{path: "egress", std: []string{"net", "net/http", "syscall"}},
	{path: "internal/plain", std: []string{"net", "os"}},
	{path: "internal/reconnect", std: []string{"net/http", "syscall"}},
	{path: "internal/form", imports: []string{"internal/rawjson", "internal/text"}},
	{path: "internal/oauth", imports: []string{"egress", "internal/private", "internal/rawjson", "internal/text", "secret", "internal/httpname"}, std: []string{"net", "net/http"},
		outside: []string{"github.com/go-jose/go-jose", "github.com/modelcontextprotocol/go-sdk/oauthex", "golang.org/x/oauth2"}},
	{path: "internal/oidc", imports: []string{"internal/httpname", "internal/rawjson"}, std: []string{"net/http"}, outside: []string{"github.com/go-jose/go-jose"}},
	{path: "internal/webhook", imports: []string{"event"}, std: []string{"log/slog", "net/http"}},
	{path: "internal/oidc/oidctest", std: []string{"net/http"}, outside: []string{"github.com/go-jose/go-jose"}},
	{path: "internal/private", imports: []string{"internal/regular"}, std: []string{"os", "syscall"}},
	{path: "internal/regular", std: []string{"os", "syscall"}},
	{path: "internal/schema", imports: []string{"internal/lazy", "internal/rawjson", "internal/text"},
		outside: []string{"github.com/dlclark/regexp2/v2", "github.com/google/jsonschema-go", "github.com/santhosh-tekuri/jsonschema/v6"}},
	{path: "internal/wasmrt", imports: []string{"internal/rawjson", "internal/text"}, std: []string{"os"}, outside: []string{"github.com/tetratelabs/wazero"}},
	{path: "internal/wasmrt/wasmtest", std: []string{"os", "os/exec"}},
	{path: "internal/digest", imports: []string{"", "internal/rawjson"}},
	{path: "internal/destination", imports: []string{"", "internal/rawjson", "internal/text"}},
	{path: "internal/wire", imports: []string{"", "internal/destination", "internal/lazy", "internal/rawjson"}},
	// OpenAI's two protocols have one form of errors.
	{path: "internal/wire/responses", imports: []string{"", "internal/destination", "internal/rawjson", "internal/text", "internal/wire", "internal/wire/openai"}},
	{path: "internal/wire/upstreams", imports: []string{"", "internal/wire", "internal/wire/gemini", "internal/wire/messages", "internal/wire/openai", "internal/wire/responses"}},
	{path: "internal/wire/wiretest", imports: []string{"", "internal/wire"}, std: []string{"net/http"}},
	{path: "internal/wire/openai", imports: []string{"", "internal/destination", "internal/rawjson", "internal/text", "internal/wire"}},
	{path: "internal/wire/messages", imports: []string{"", "internal/destination", "internal/lazy", "internal/rawjson", "internal/text", "internal/wire"}},
	{path: "internal/wire/gemini", imports: []string{"", "internal/callid", "internal/destination", "internal/rawjson", "internal/text", "internal/wire"}},
	{path: "internal/vendor", imports: []string{"", "internal/rawjson"}},
	{path: "internal/callid", imports: []string{""}},
	{path: "internal/visible", imports: []string{""}},
	{path: "internal/wire/uistream", imports: []string{"", "event", "internal/rawjson", "internal/visible", "internal/wire"}},
	{path: "internal/wire/workers", imports: []string{"", "internal/lazy", "remote"}},
	{path: "internal/testdata", std: []string{"os"}},
	{path: "internal/reflecttest", imports: []string{""}},
	{path: "internal/leaktest", outside: []string{"go.uber.org/goleak"}},
	{path: "internal/fetchdata", imports: []string{"internal/testdata"}, std: []string{"os", "os/exec"}},
	{path: "internal/gbnf", imports: []string{"internal/rawjson", "internal/text"}},
	{path: "dialect", imports: []string{"", "internal/gbnf", "internal/rawjson", "internal/text"}},
	{path: "internal/testkit/dialecttest", imports: []string{"", "dialect", "internal/testdata"}},
	{path: "transform", imports: []string{"", "dialect", "internal/callid", "internal/text", "internal/rawjson", "internal/visible"}},
	{path: "internal/budget", imports: []string{"", "internal/rawjson", "loop", "internal/price", "store"}},
	{path: "internal/price", imports: []string{"", "internal/lazy"}},
	{path: "preset", imports: []string{"", "transform", "internal/text", "internal/rawjson"}},
	{path: "internal/audit", imports: []string{"", "event", "internal/digest"}, std: []string{"os", "syscall"}},
	{path: "approval", imports: []string{"", "internal/digest", "internal/rawjson", "loop", "store", "tool", "internal/text"}},
	{path: "policy", imports: []string{""}},
	{path: "policy/rules", imports: []string{"", "policy", "internal/lazy", "internal/rawjson", "internal/text"}, outside: []string{"cel.dev/cel-go"}},
	{path: "internal/conversation", imports: []string{"", "event", "internal/rawjson", "store"}},
	{path: "store", imports: []string{"", "event", "remote"}},
	{path: "internal/testkit/storetest", imports: []string{"", "event", "remote", "store"}, outside: []string{"github.com/google/go-cmp"}},
	{path: "internal/migrate"},
	{path: "internal/migrate/migratetest", imports: []string{"", "engine", "event", "lathetest", "loop", "policy", "remote", "store", "tool"}},
	{path: "store/sqlite", imports: []string{"", "event", "internal/conversation", "internal/migrate", "remote", "store"}, std: []string{"database/sql", "os", "syscall"}, outside: []string{"modernc.org/sqlite"}},
	{path: "store/postgres", imports: []string{"", "event", "internal/conversation", "internal/migrate", "remote", "store"}, outside: []string{"github.com/jackc/pgx/v5"}},
	{path: "internal/testkit/pgtest", std: []string{"net", "os", "os/exec", "syscall"}, outside: []string{"github.com/jackc/pgx/v5"}},
	{path: "observe", imports: []string{"", "event", "internal/digest", "internal/setting"}, std: []string{"net/http"},
		outside: []string{"github.com/prometheus/", "go.opentelemetry.io/otel"}},
	{path: "tool", imports: []string{"", "event", "internal/digest", "internal/lazy", "internal/rawjson", "internal/schema", "internal/setting", "policy", "secret", "tool/search", "internal/text", "internal/stack"},
		outside: []string{"github.com/go-json-experiment/json", "github.com/google/jsonschema-go"}},
	{path: "tool/search", imports: []string{"", "internal/rawjson"}},
	{path: "tool/builtin", imports: []string{"", "tool", "internal/lazy", "internal/rawjson"}},
	{path: "tool/mcptool", imports: []string{"", "egress", "event", "internal/form", "internal/lazy", "internal/oauth", "internal/private", "internal/rawjson", "internal/reconnect", "internal/schema", "internal/sse", "policy", "secret", "tool", "internal/text", "internal/httpname", "internal/jsonlines", "internal/jsonrpc2"},
		std: []string{"net", "net/http", "os", "os/exec", "syscall"}, outside: []string{"github.com/modelcontextprotocol/go-sdk"}},
	{path: "tool/httptool", imports: []string{"", "egress", "event", "internal/lazy", "internal/oauth", "internal/rawjson", "internal/reconnect", "internal/schema", "policy", "secret", "tool", "internal/text", "internal/httpname", "internal/yamljson"}, std: []string{"net/http"},
		outside: []string{"go.yaml.in/yaml"}},
	{path: "tool/agenttool", imports: []string{"", "event", "internal/rawjson", "internal/runinput", "loop", "tool"}},
	{path: "tool/wasmtool", imports: []string{"", "tool", "internal/lazy", "internal/rawjson", "internal/regular", "internal/wasmrt", "internal/yamljson"}, std: []string{"os"},
		outside: []string{"go.yaml.in/yaml"}},
	{path: "tool/remotetool", imports: []string{"", "event", "internal/reconnect", "remote", "tool"}},
	{path: "internal/testkit/remotetest", imports: []string{"", "event", "policy", "remote", "tool", "tool/remotetool"}},
	{path: "internal/gateway/middleware", imports: []string{"secret", "internal/httpname"}, std: []string{"net", "net/http"}, outside: []string{"github.com/klauspost/compress"}},
	{path: "internal/gateway/mcp", imports: []string{"", "event", "internal/digest", "internal/lazy", "internal/rawjson", "internal/schema", "secret", "internal/gateway/middleware", "tool", "internal/httpname", "internal/jsonlines", "internal/jsonrpc2", "internal/setting"}, std: []string{"net", "net/http"},
		outside: []string{"github.com/modelcontextprotocol/go-sdk"}},
	{path: "provider", imports: []string{"", "dialect", "event", "internal/callid", "internal/destination", "internal/lazy", "internal/plain", "internal/rawjson", "internal/reconnect", "internal/sse", "internal/visible", "internal/wire", "internal/wire/messages", "internal/wire/openai", "internal/wire/upstreams", "secret", "internal/text", "internal/httpname"},
		std: []string{"net", "net/http", "syscall"}},
	{path: "sim", imports: []string{"", "dialect", "event", "internal/lazy", "internal/rawjson", "internal/text",
		"internal/wire", "internal/wire/openai", "internal/wire/responses", "internal/wire/messages", "internal/wire/gemini", "provider"},
		std: []string{"net", "net/http", "os"}},
	{path: "lab/doctor", imports: []string{"", "dialect", "internal/lazy", "internal/plain", "internal/rawjson", "internal/reconnect", "secret", "internal/sse", "internal/wire", "internal/wire/openai", "internal/wire/upstreams", "internal/text"},
		std: []string{"net", "net/http"}},
	{path: "guest", imports: []string{"", "engine", "event", "internal/rawjson", "internal/runinput", "internal/setting", "internal/wasmrt", "internal/wire", "internal/wire/openai", "loop", "policy", "tool"}, std: []string{"os"}},
	{path: "internal/recording", imports: []string{""}},
	{path: "lathetest", imports: []string{"", "event", "internal/recording", "internal/testkit/storetest", "loop", "policy", "secret", "store", "tool"}, std: []string{"os"}},
	{path: "loop", imports: []string{"", "event", "internal/digest", "internal/lazy", "internal/runinput", "internal/setting", "internal/schema", "internal/visible", "secret", "tool", "internal/text", "internal/stack"}},
	{path: "engine", imports: []string{"", "event", "internal/lazy", "internal/runinput", "loop", "store"}},
	{path: "agent", imports: []string{"", "approval", "engine", "event", "internal/rawjson", "internal/schema", "internal/text", "loop", "observe", "policy", "store", "tool"}},
	{path: "internal/testkit/enginetest", imports: []string{"", "approval", "engine", "event", "loop", "observe", "secret", "store", "tool"}},
	{path: "lab/replay", imports: []string{"", "engine", "event", "internal/rawjson", "loop", "store", "tool"}},
	{path: "internal/gateway/console", std: []string{"net/http"}},
	{path: "internal/gateway/problem", imports: []string{"", "event", "internal/price", "internal/wire", "internal/wire/gemini", "internal/wire/messages", "internal/wire/openai", "store"}, std: []string{"net/http"}},
	{path: "internal/gateway/workers", imports: []string{"", "internal/gateway/middleware", "internal/gateway/problem", "internal/setting", "internal/text", "internal/wire/workers", "observe", "remote", "secret"}, std: []string{"net/http"}, outside: []string{"github.com/coder/websocket"}},
	{path: "internal/gateway/places", imports: []string{"", "internal/rawjson", "internal/text", "internal/wire"}},
	{path: "internal/gateway/pairs", imports: []string{"", "internal/gateway/problem"}, std: []string{"net/http"}},
	{path: "internal/gateway/memory", imports: []string{"", "internal/gateway/problem", "observe"}, std: []string{"net/http"}},
	{path: "internal/gateway/admission", imports: []string{"internal/gateway/problem"}, std: []string{"net/http"}},
	{path: "internal/gateway/runlog", imports: []string{"", "approval", "event", "internal/gateway/pairs", "internal/gateway/problem", "loop", "store"}, std: []string{"net/http"}},
	{path: "internal/gateway/splice", imports: []string{"", "approval", "event", "internal/gateway/memory", "internal/gateway/pairs", "internal/gateway/problem", "internal/gateway/runlog", "internal/rawjson", "internal/seal", "internal/wire/messages", "loop", "store"}},
	{path: "internal/gateway/stream", imports: []string{"", "event", "internal/gateway/problem", "internal/sse"}, std: []string{"net/http"}},
	{path: "server", imports: []string{"", "approval", "engine", "event", "internal/lazy", "internal/text", "internal/rawjson", "internal/runinput", "internal/seal", "internal/setting", "internal/sse", "internal/stack", "internal/stdlog", "internal/vendor", "internal/visible", "internal/wire", "internal/wire/gemini", "internal/wire/messages", "internal/wire/openai", "internal/wire/responses", "internal/wire/uistream", "internal/wire/workers", "loop", "observe", "internal/price", "remote", "secret", "internal/gateway/console", "internal/gateway/middleware", "store", "internal/httpname", "internal/gateway/problem", "internal/gateway/workers", "internal/gateway/places", "internal/gateway/pairs", "internal/gateway/memory", "internal/gateway/admission", "internal/gateway/runlog", "internal/gateway/splice", "internal/gateway/stream"}, std: []string{"net", "net/http"}, outside: []string{"github.com/coder/websocket"}},
	{path: "remote/worker", imports: []string{"", "event", "internal/rawjson", "internal/reconnect", "internal/wire/workers", "remote", "secret", "tool", "internal/httpname"}, std: []string{"net", "net/http"},
		outside: []string{"github.com/coder/websocket"}},
	{path: "lab/eval", imports: []string{"", "internal/config", "event", "internal/lazy", "internal/rawjson", "internal/recording", "internal/report", "internal/schema", "lab/mock", "loop", "policy", "tool", "tool/builtin", "internal/text"}, std: []string{"os"},
		outside: []string{"go.yaml.in/yaml"}},
	{path: "lab/bfcl", imports: []string{"", "lab/eval", "internal/lazy", "internal/rawjson", "internal/schema"}},
	{path: "lab/verify", imports: []string{"", "internal/rawjson", "internal/report", "internal/schema", "internal/text", "lab/doctor", "lab/eval"}},
	{path: "lab/mock", imports: []string{""}},
	{path: "internal/config", imports: []string{"", "approval", "internal/lazy", "internal/rawjson", "internal/regular", "internal/text", "internal/vendor", "policy", "internal/price", "secret", "internal/yamljson"}, std: []string{"os"},
		outside: []string{"go.yaml.in/yaml"}},
	// Only internal/app, cmd/lathe and the examples import everything; lab is imported by internal/app and cmd/lathe alone.
	{path: "internal/app", imports: []string{"*"}, std: []string{"net", "net/http", "os"}},
	{path: "internal/daemon/daemontest", std: []string{"net", "os"}},
	{path: "internal/daemon", imports: []string{"", "internal/app", "internal/config", "server", "internal/httpname", "internal/stdlog"}, std: guarded, outside: []string{"github.com/spf13/pflag"}},
	{path: "cmd/lathe", imports: []string{"*"}, std: guarded,
		outside: []string{"github.com/spf13/", "golang.org/x/term", "go.yaml.in/yaml"}},
	{path: "app", imports: []string{"", "event", "internal/app", "internal/config", "store"}, std: []string{"net", "net/http"}},
	{path: "examples/*", imports: []string{"*"}, std: guarded},
}

func TestLayout(t *testing.T) {
	inRoot(t)
	seen := map[string]bool{}
	for dir, files := range packages(t) {
		r := findRule(dir)
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
	for _, r := range rules {
		if !seen[r.path] && !strings.HasSuffix(r.path, "/*") {
			t.Errorf("layout_test.go has a row for %q, which holds no Go file", r.path)
		}
	}
}

// tape is the one tool that stands around another: the runner calls it, and it keeps what the other says.
const tape = "lab/eval/tape_tools.go"

// Only the runner may call a tool: Call with a context and arguments, on anything, stands once there.
func TestOnlyRunnerCallsTools(t *testing.T) {
	inRoot(t)
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

func (r *rule) forbids(name string) string {
	if name == module || strings.HasPrefix(name, module+"/") {
		to := strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
		if slices.Contains(r.imports, "*") || slices.Contains(r.imports, to) {
			return ""
		}
		return "the row of " + strconv.Quote(r.path) + " does not list that package"
	}
	if !strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
		if slices.Contains(guarded, name) && !slices.Contains(r.std, name) {
			return "the package's rule does not list it: it does no I/O of that kind"
		}
		return ""
	}
	for _, p := range r.outside {
		if strings.HasPrefix(name, p) {
			return ""
		}
	}
	return "only packages whose rule lists an outside module may import it"
}

func findRule(dir string) *rule {
	for i := range rules {
		if rules[i].path == dir {
			return &rules[i]
		}
		if base, ok := strings.CutSuffix(rules[i].path, "/*"); ok && path.Dir(dir) == base {
			return &rules[i]
		}
	}
	return nil
}

// No file may grow past 800 lines: by then it holds a second noun.
func TestFilesStaySmall(t *testing.T) {
	inRoot(t)
	for _, files := range packages(t) {
		for _, f := range files {
			if n := bytes.Count(f.src, []byte("\n")); n > 800 {
				t.Errorf("%s has %d lines, want at most 800", f.name, n)
			}
		}
	}
}

// The root package is what a reader learns first: it stays small.
func TestRootStaysSmall(t *testing.T) {
	inRoot(t)
	types, interfaces := 0, 0
	for _, f := range packages(t)[""] {
		for _, d := range f.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				s := s.(*ast.TypeSpec)
				if !s.Name.IsExported() {
					continue
				}
				types++
				if _, ok := s.Type.(*ast.InterfaceType); ok {
					interfaces++
				}
			}
		}
	}
	if types > 60 || types < 40 {
		t.Errorf("the root package exports %d types, want at most 60", types)
	}
	if interfaces > 6 || interfaces < 4 {
		t.Errorf("the root package exports %d interfaces, want at most 6", interfaces)
	}
}
