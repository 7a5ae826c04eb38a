//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A badConfig is a configuration that cannot be put in force.
type badConfig struct {
	name, yaml string
	want       string // what the error must contain
	unseen     bool   // `config check` cannot find it: it shows when a server is started or a file is opened
	startOnly  bool   // a reload does not read these settings again
}

var badConfigs = []badConfig{
	{name: "not YAML", yaml: "models: [", want: "lathe.yaml"},
	{name: "unknown key", yaml: "tool_calling: {max_iteration: 3}", want: "did you mean"},
	{name: "script is missing", yaml: "models: {m: {provider: sim, model: sim/script-x}}\nsim: {scripts: {x: nofile.script}}", want: "sim.scripts.x: open "},
	{name: "script is malformed", yaml: "sim: {scripts: {x: lathe.yaml}}", want: "sim.scripts.x: "},
	{name: "simulated model is unknown", yaml: "models: {m: {provider: sim, model: sim/nonesuch}}", want: "no simulated model"},
	{name: "model address", yaml: "models: {m: {base_url: 'ftp://h/v1'}}", want: "models.m"},
	{name: "key file cannot be read", yaml: "models: {m: {base_url: 'http://127.0.0.1:9/v1', key: '${file:nokey}'}}", want: "nokey"},
	{name: "variable is empty", yaml: "models: {m: {base_url: 'http://127.0.0.1:9/v1', key: '${NO_SUCH_VARIABLE}'}}", want: "NO_SUCH_VARIABLE"},
	{name: "dialect is unknown", yaml: "models: {m: {provider: sim, model: sim/demo, dialect: nonesuch}}", want: "nonesuch"},
	{name: "preset is unknown", yaml: "models: {m: {provider: sim, model: sim/demo, presets: [nonesuch]}}", want: "nonesuch"},
	{name: "profile is unknown", yaml: "models: {m: {provider: sim, model: sim/demo, profile: nonesuch}}", want: "nonesuch"},
	{name: "transform is unknown", yaml: "models: {m: {provider: sim, model: sim/demo, transforms: {message: [nonesuch]}}}", want: "nonesuch"},
	{name: "default model is unknown", yaml: "default_model: nonesuch\nmodels: {m: {provider: sim, model: sim/demo}}", want: "nonesuch"},
	{name: "builtin tool is unknown", yaml: "tools: {builtin: [nonesuch]}", want: "nonesuch"},
	{name: "more built-in tools than max_tools", yaml: "tool_calling: {max_tools: 1}", want: "max_tools is 1"},
	{name: "required MCP server is missing", yaml: "tools: {mcp: {x: {allowlist: ['*'], command: /nonexistent/server, required: true, start_timeout: 2s}}}", want: "required", unseen: true},
	{name: "more MCP tools than max_tools", yaml: "tools: {builtin: [], mcp: {x: {allowlist: ['*'], command: mcpserver, args: [three.json]}}}\ntool_calling: {max_tools: 2}", want: "max_tools is 2", unseen: true},
	{name: "definitions above max_tools_bytes", yaml: "tools: {builtin: [], mcp: {x: {allowlist: ['*'], command: mcpserver, args: [three.json]}}}\ntool_calling: {max_tools_bytes: 100}", want: "max_tools_bytes is 100", unseen: true},
	{name: "MCP server after a good one", yaml: "tools: {mcp: {a: {allowlist: ['*'], command: mcpserver, args: [three.json]}, x: {allowlist: ['*'], command: /nonexistent/server, required: true, start_timeout: 2s}}}", want: "required", unseen: true},
	{name: "MCP address is private", yaml: "tools: {mcp: {x: {allowlist: ['*'], url: 'http://10.1.2.3/mcp'}}}", want: "tools.egress.private"},
	{name: "MCP login", yaml: "tools: {mcp: {x: {allowlist: ['*'], url: 'https://example.com/mcp', oauth: {grant: client_credentials}}}}", want: "tools.mcp.x.oauth"},
	{name: "HTTP tool has the name of a built-in one", yaml: "tools: {http: {calculator: {description: d, url: 'https://example.com/', allowlist: ['*']}}}", want: "calculator"},
	{name: "HTTP tool without address", yaml: "tools: {http: {x: {description: d, allowlist: ['*']}}}", want: "tools.http.x.url"},
	{name: "HTTP tool without allowlist", yaml: "tools: {http: {x: {description: d, url: 'https://example.com/'}}}", want: "allowlist"},
	{name: "egress rule", yaml: "tools: {egress: {private: ['10.0.0.0/99']}}", want: "tools.egress.private"},
	{name: "OpenAPI document is missing", yaml: "tools: {openapi: {x: {file: nodoc.json, allowlist: ['*']}}}", want: "nodoc.json"},
	{name: "OpenAPI document is malformed", yaml: "tools: {openapi: {x: {file: three.json, allowlist: ['*'], server: 'https://example.com'}}}", want: "tools.openapi.x"},
	{name: "WebAssembly folder is missing", yaml: "tools: {wasm: {dir: nofolder}}", want: "nofolder"},
	{name: "policy rule", yaml: "policy: {rules: [{name: r, when: 'nonsense(', decide: deny}]}", want: "policy.rules"},
	{name: "MCP resource folder is missing", yaml: "mcp: {resources: {x: {folder: nofolder}}}", want: "mcp.resources.x.folder"},
	{name: "key is short", yaml: "keys: {a: {key: '${file:short}'}}", want: "the key a is shorter"},
	{name: "keys are equal", yaml: "keys: {a: {key: '${file:secret}'}, b: {key: '${file:secret}'}}", want: "same"},
	{name: "worker tokens are equal", yaml: "workers: {a: {token: '${file:secret}', tools: [x]}, b: {token: '${file:secret}', tools: [y]}}", want: "token"},
	{name: "origin", yaml: "serve: {origins: ['not an origin']}", want: "origin"},
	{name: "address that others reach without keys", yaml: "serve: {addr: '0.0.0.0:0'}", want: "keys", startOnly: true},
	{name: "audit folder is missing", yaml: "audit: {path: /nonexistent/audit.jsonl}", want: "audit log", unseen: true, startOnly: true},
	{name: "store folder is missing", yaml: "serve: {store: 'sqlite:/nonexistent/runs.db'}", want: "the store", unseen: true, startOnly: true},
	{name: "store is of an unknown kind", yaml: "serve: {store: 'mysql:x'}", want: "serve.store", startOnly: true},
	{name: "collector address", yaml: "telemetry: {otlp_endpoint: 'ftp://h'}", want: "telemetry.otlp_endpoint", startOnly: true},
}

// configFolder returns a folder with the files that the bad configurations name.
func configFolder(t *testing.T, yaml string) string {
	t.Helper()
	dir := t.TempDir()
	schema := `"inputSchema":{"type":"object"}`
	for name, text := range map[string]string{
		"lathe.yaml": yaml,
		"three.json": fmt.Sprintf(`[{"name":"a",%[1]s},{"name":"b",%[1]s},{"name":"c",%[1]s}]`+"\n", schema),
		"secret":     "0123456789abcdef",
		"short":      "short",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestStartRefusesBadConfiguration: `lathe serve` exits with a message and not with a panic, and `lathe config check`
// finds what can be found without starting anything.
func TestStartRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range badConfigs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := configFolder(t, c.yaml)
			for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"config", "check"}} {
				if args[0] == "serve" && strings.Contains(c.yaml, "serve: {addr") {
					args = args[:1]
				}
				if args[0] == "config" && c.unseen {
					continue
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // of one that starts in spite of it
				defer cancel()
				cmd := exec.CommandContext(ctx, lathePath(t), args...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				code := cmd.ProcessState.ExitCode()
				if err == nil || code <= 0 || strings.Contains(string(out), "panic") || !strings.Contains(string(out), c.want) {
					t.Errorf("lathe %s: exit code %d, want an error with %q:\n%s", strings.Join(args, " "), code, c.want, out)
				}
			}
		})
	}
}

// A reloadable is a gateway whose configuration file the test replaces.
type reloadable struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	url    string
	output *outputBuffer
}

func startReloadable(t *testing.T, yaml string, args ...string) *reloadable {
	t.Helper()
	d := &reloadable{t: t, dir: configFolder(t, yaml), output: &outputBuffer{more: make(chan struct{})}}
	ctx, cancel := context.WithCancel(context.Background())
	d.cmd = exec.CommandContext(ctx, lathePath(t), append([]string{"serve"}, args...)...)
	d.cmd.Dir = d.dir
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		r := bufio.NewReader(stderr)
		for {
			line, err := r.ReadString('\n')
			d.output.add(line, err != nil)
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
		_ = d.cmd.Wait() // it was killed
	})
	if d.url = strings.TrimSuffix(d.output.wait(serveURL), "/v1"); d.url == "" {
		t.Fatalf("serve said %q", d.output.text.String())
	}
	return d
}

// reload replaces the file, sends SIGHUP and returns the log line of the outcome; n is the number of this reload.
func (d *reloadable) reload(n int, yaml string) string {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "lathe.yaml"), []byte(yaml), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return d.hup(n)
}

func (d *reloadable) hup(n int) string {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		d.t.Fatal(err)
	}
	outcome := regexp.MustCompile(fmt.Sprintf(`(?s)(?:.*?(msg="the configuration was (?:not )?reloaded[^\n]*)\n){%d}`, n))
	found := outcome.FindStringSubmatch(d.output.wait(outcome))
	if found == nil {
		d.t.Fatalf("after %d reloads it has said:\n%s", n, d.output.text.String())
	}
	return found[1]
}

func (d *reloadable) get(path string) string {
	d.t.Helper()
	resp, err := http.Get(d.url + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %d %v: %s", path, resp.StatusCode, err, b)
	}
	return string(b)
}

func (d *reloadable) goroutines() int {
	d.t.Helper()
	found := regexp.MustCompile(`(?m)^go_goroutines (\d+)`).FindStringSubmatch(d.get("/metrics"))
	if found == nil {
		d.t.Fatal("the metrics have no go_goroutines")
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// children counts the processes that the gateway has started and that still run.
func (d *reloadable) children() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", d.cmd.Process.Pid))
	if err != nil {
		return 0 // this system does not tell
	}
	return len(strings.Fields(string(b)))
}

// TestBadReloadChangesNothing reloads every bad configuration in one gateway: each is logged with its cause, the
// models stay, and no goroutine and no process of a generation that was not put in force is left.
func TestBadReloadChangesNothing(t *testing.T) {
	t.Parallel()
	const good = "models: {mine: {provider: sim, model: sim/demo}}\ntools: {builtin: [calculator]}\n"
	d := startReloadable(t, good, "--addr", "127.0.0.1:0")
	models, tools := d.get("/v1/models"), d.get("/api/tools")
	n, before := 0, 0
	for round := range 2 {
		for _, c := range badConfigs {
			if c.startOnly {
				continue
			}
			n++
			if line := d.reload(n, c.yaml); !strings.Contains(line, "not reloaded") || !strings.Contains(line, c.want) {
				t.Errorf("%s: want an error with %q:\n%s", c.name, c.want, line)
			}
			if got := d.get("/v1/models"); got != models {
				t.Errorf("%s: the models are %s", c.name, got)
			}
			if got := d.get("/api/tools"); got != tools {
				t.Errorf("%s: the tools are %s", c.name, got)
			}
		}
		if round == 0 {
			before = d.goroutines() // later rounds start nothing that a process starts once
		}
	}
	if after := d.goroutines(); after > before+3 {
		t.Errorf("%d goroutines after the second round, %d after the first", after, before)
	}
	if left := d.children(); left != 0 {
		t.Errorf("%d processes are left", left)
	}
	if err := os.Remove(filepath.Join(d.dir, "lathe.yaml")); err != nil {
		t.Fatal(err)
	}
	if line := d.hup(n + 1); !strings.Contains(line, "not reloaded") || !strings.Contains(line, "lathe.yaml") {
		t.Errorf("the file was removed: %s", line)
	}
	if line := d.reload(n+2, strings.Replace(good, "mine", "other", 1)); strings.Contains(line, "not reloaded") {
		t.Error(line)
	}
	if got := d.get("/v1/models"); !strings.Contains(got, `"other"`) || strings.Contains(got, `"mine"`) {
		t.Errorf("after a good reload the models are %s", got)
	}
}

// TestReloadKeepsKeysOnPublicListener: the listener outlives a reload, so a file without keys must not open it to
// everyone, even if its own serve.addr is a loopback address.
func TestReloadKeepsKeysOnPublicListener(t *testing.T) {
	t.Parallel()
	d := startReloadable(t, "serve: {addr: '0.0.0.0:0'}\nkeys: {a: {key: '${file:secret}'}}\n")
	if line := d.reload(1, "serve: {addr: '127.0.0.1:8700'}\n"); !strings.Contains(line, "not reloaded") || !strings.Contains(line, "keys") {
		t.Error(line)
	}
}

// post sends a request with a key and returns its status and answer.
func (d *reloadable) post(path, key string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url+path, http.NoBody)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestReloadRevokesListedKey: a key that approve and workers name can be removed from the file of keys. The answer and the log
// name the lists, and a start with the same files does not fail either.
func TestReloadRevokesListedKey(t *testing.T) {
	t.Parallel()
	const admin, ann = "0123456789abcdef", "ann-0123456789abcdef" // admin is the text of the file secret
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf("ann %x user\n", sha256.Sum256([]byte(ann))))
	yaml := "serve: {keys_file: " + keys + "}\nkeys:\n  root: {key: '${file:secret}', admin: true, approve: [own, ann]}\n  user: {}\nworkers: {pool: {token: '${file:secret}', tools: ['*'], keys: [ann]}}\n"
	d := startReloadable(t, yaml, "--addr", "127.0.0.1:0")
	if status, body := d.post("/api/reload", ann); status != http.StatusForbidden {
		t.Errorf("before: %d %s", status, body)
	}
	write("")
	status, body := d.post("/api/reload", admin)
	for _, want := range []string{`{"reloaded":true,"warnings":["`, `keys.root.approve: ignored, since no key has the name: \"ann\"`, `workers.pool.keys: ignored, since no key has the name: \"ann\"`} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("the answer to the reload: %d %s, want %s", status, body, want)
		}
	}
	if d.output.wait(regexp.MustCompile(`key=keys.root.approve problem="ignored`)) == "" || d.output.wait(regexp.MustCompile(`key=workers.pool.keys problem="ignored`)) == "" {
		t.Error("the log does not name the lists")
	}
	if status, body := d.post("/api/reload", ann); status != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d %s", status, body)
	}
	again := startReloadable(t, yaml, "--addr", "127.0.0.1:0")
	if status, body := again.post("/api/reload", admin); status != http.StatusOK {
		t.Errorf("after a start: %d %s", status, body)
	}
	if status, body := again.post("/api/reload", ann); status != http.StatusUnauthorized {
		t.Errorf("after a start, the revoked key: %d %s", status, body)
	}
}

// TestReloadOverHTTP: POST /api/reload does what SIGHUP does, and its answer has the outcome.
func TestReloadOverHTTP(t *testing.T) {
	t.Parallel()
	const admin, user = "0123456789abcdef", "0123456789abcdef-user" // admin is the text of the file secret
	const good = "models: {mine: {provider: sim, model: sim/demo}}\nkeys: {root: {key: '${file:secret}', admin: true}, ann: {key: '${file:user}'}}\naudit: {path: audit.jsonl}\n"
	d := startReloadable(t, "keys: {root: {key: '${file:secret}', admin: true}}\naudit: {path: audit.jsonl}\n", "--addr", "127.0.0.1:0")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user", user)
	write("lathe.yaml", good)
	if status, body := d.post("/api/reload", user); status != http.StatusUnauthorized {
		t.Errorf("a key that is not in force yet: %d %s", status, body)
	}
	if status, body := d.post("/api/reload", admin); status != http.StatusOK || body != `{"reloaded":true}`+"\n" {
		t.Errorf("a good file: %d %s", status, body)
	}
	if status, body := d.post("/api/reload", user); status != http.StatusForbidden || !strings.Contains(body, "admin_required") {
		t.Errorf("a key that is no admin key: %d %s", status, body)
	}
	n := 1
	for _, c := range badConfigs {
		if c.unseen || c.startOnly {
			continue
		}
		n++
		write("lathe.yaml", c.yaml)
		if status, body := d.post("/api/reload", admin); status != http.StatusUnprocessableEntity || !strings.Contains(body, `"code":"invalid_config"`) || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want an error with %q", c.name, status, body, c.want)
		}
	}
	if status, body := d.post("/v1/chat/completions", user); status != http.StatusBadRequest {
		t.Errorf("after bad files the configuration in force is another one: %d %s", status, body)
	}
	write("lathe.yaml", strings.Replace(good, ", ann: {key: '${file:user}'}", "", 1))
	if line := d.hup(n + 1); !strings.Contains(line, `msg="the configuration was reloaded" by=SIGHUP`) {
		t.Errorf("SIGHUP after reloads over HTTP: %s", line)
	}
	if status, body := d.post("/v1/chat/completions", user); status != http.StatusUnauthorized {
		t.Errorf("a key that was removed: %d %s", status, body)
	}
	if over := regexp.MustCompile(`msg="the configuration was reloaded" by="POST /api/reload"`); d.output.wait(over) == "" {
		t.Error("the log does not say that a client reloaded the configuration")
	}
	trail, err := os.ReadFile(filepath.Join(d.dir, "audit.jsonl"))
	if err != nil || !strings.Contains(string(trail), `"changed":{"change":"config_reload","by":"root"}`) {
		t.Errorf("the audit log: %v\n%s", err, trail)
	}
}
