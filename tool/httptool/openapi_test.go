package httptool_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
)

var update = flag.Bool("update", false, "write golden files again")

func TestMain(m *testing.M) { leaktest.Main(m) }

// A recorder is a server that keeps the requests that it gets, as they came.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func record(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s\n", req.Method, req.RequestURI)
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for k := range req.Header {
				if !yield(k) {
					return
				}
			}
		}) {
			switch name {
			case "Accept", "Accept-Encoding", "User-Agent":
			default:
				fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(req.Header[name], " | "))
			}
		}
		if len(body) > 0 {
			fmt.Fprintf(&b, "%s\n", strconv.Quote(string(body)))
		}
		r.mu.Lock()
		r.seen = append(r.seen, b.String())
		r.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// loopback returns a client that may reach the servers of this machine at the addresses given.
func loopback(t *testing.T, urls ...string) *egress.Client {
	t.Helper()
	rules := &egress.Rules{Hosts: []string{"127.0.0.1"}, Schemes: []string{"http"}, Private: []string{"127.0.0.1"}}
	for _, s := range urls {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			t.Fatal(err)
		}
		rules.Ports = append(rules.Ports, port)
	}
	c, err := egress.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// call executes one call with the runner, as a model's call.
func call(t *testing.T, set *tool.Set, name, args string) lathe.ToolResult {
	t.Helper()
	return callIn(t.Context(), t, set, name, args)
}

func callIn(ctx context.Context, t *testing.T, set *tool.Set, name, args string) lathe.ToolResult {
	t.Helper()
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Else: policy.Effects{ReadOnly: lathe.Allow, Idempotent: lathe.Allow, Writes: lathe.Allow}}})
	if err != nil {
		t.Fatal(err)
	}
	work := r.Begin(&lathe.RunInfo{RunID: "run_1"}, nil)
	out := work.Execute(ctx, 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "call_1", Name: name, Arguments: args}}}, func(event.Data) {})
	if len(out.Messages) != 1 {
		t.Fatalf("%s: got %d messages", name, len(out.Messages))
	}
	return out.Messages[0].Parts[0].(lathe.ToolResult)
}

func warehouse(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/warehouse.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// key returns a credential that looks like none to scanners.
func key(name string) secret.Secret { return secret.New("canary-" + name) }

// warehouseTools imports all 40 operations.
func warehouseTools(t *testing.T, server string) *tool.Set {
	t.Helper()
	var all []string
	for line := range strings.Lines(string(warehouse(t))) {
		if _, rest, ok := strings.Cut(line, "operationId: "); ok {
			all = append(all, strings.Trim(strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == '}' })[0], " \n"))
		}
	}
	if len(all) < 40 {
		t.Fatalf("the document has %d operations", len(all))
	}
	defs, err := httptool.Import(warehouse(t), &httptool.ImportOptions{
		Source: "warehouse", Server: server + "/v1", Operations: all, Allowlist: []string{"*"},
		Effects: map[string]lathe.Effect{"replaceItem": lathe.Idempotent, "deleteItem": lathe.Idempotent},
		Security: map[string]secret.Secret{"key": key("header"), "queryKey": key("query&"), "cookieKey": key("cookie"), "basic": key("user:pass"),
			"bearer": key("bearer"), "oauth": key("oauth")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tools []lathe.Tool
	client := loopback(t, server)
	for _, d := range defs {
		one, err := httptool.New(d, client, nil)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, one)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Every operation of the document is called, and every request compared as the server got it.
func TestOpenAPIRequests(t *testing.T) {
	t.Parallel()
	srv := record(t)
	set := warehouseTools(t, srv.URL)
	calls, err := os.ReadFile("testdata/warehouse.calls")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	called := map[string]bool{}
	for line := range strings.Lines(string(calls)) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		called[name] = true
		r := call(t, set, name, args)
		fmt.Fprintf(&got, "# %s\n", strings.TrimSpace(line))
		for _, req := range srv.take() {
			got.WriteString(req)
		}
		if r.IsError {
			fmt.Fprintf(&got, "=> %s\n", r.Content)
		}
		got.WriteString("\n")
	}
	for _, sp := range set.Specs() {
		if !called[sp.Name] {
			t.Errorf("%s is never called", sp.Name)
		}
	}
	golden(t, "testdata/warehouse.golden", got.String())
}

// The tool definition that the model gets for each operation.
func TestOpenAPIDefinitions(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, sp := range warehouseTools(t, "http://127.0.0.1:1").Specs() {
		var v any
		if err := json.Unmarshal(sp.Schema, &v); err != nil {
			t.Fatalf("%s: %v", sp.Name, err)
		}
		fmt.Fprintf(&got, "%s (%s, %s) %q\n%s\n\n", sp.Name, sp.Effect, sp.Origin, sp.Description, sp.Schema)
	}
	golden(t, "testdata/warehouse.tools", got.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
