package server_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/server"
)

// The table of entry points and rules. Each cell is executed, names the test that covers it, or says why the rule has no meaning there. A
// route that no entry point has fails the test, and so does a cell without content. `go test ./server -run TestEveryEntryPointObeysEveryRule -v` prints the table.

// An entryPoint is a way by which something from outside reaches the server.
type entryPoint struct {
	name   string
	routes []string // the patterns of its routes
	// send sends a request with a key. nil: no cell is executed.
	send func(e *entryFixture, key string, c entryContent) entryAnswer
	// cells are the cells that are not executed, by rule: the name of a test, or a reason. rest is that of all further ones.
	cells map[string]string
	rest  string
}

// An entryContent is what a request has besides a question. The form that it has on a wire is the entry point's.
type entryContent struct {
	object, tool, label bool
	pad                 int // further bytes
}

type entryAnswer struct {
	status int
	text   string // the body, and the code of the error
}

// An entryFixture is a server with a key for each rule.
type entryFixture struct {
	*fixture
	t       *testing.T
	meter   *poorMeter
	records map[string]string // a run to repeat, by key
}

// A poorMeter refuses the model calls of the key `poor`.
type poorMeter struct{ refused atomic.Int64 }

func (m *poorMeter) Admit(_ context.Context, run *lathe.RunInfo, _ *lathe.Request, _ lathe.Wire) (*loop.Admission, error) {
	if run.Principal == "poor" {
		m.refused.Add(1)
		return nil, &lathe.Error{Code: lathe.CodeBudgetExhausted, Op: "meter", Err: errors.New("the budget is exhausted")}
	}
	return &loop.Admission{Settle: func(context.Context, *lathe.Finish, error) {}}, nil
}

const entryQuestion = "What is 7 + 35?"

// maxEntryBody is the limit of bodies.
const maxEntryBody = 64 << 10

// newEntryFixture returns a server whose keys were narrowed by a reload, after each of them had a run.
func newEntryFixture(t *testing.T, change func(*server.Limits)) *entryFixture {
	t.Helper()
	e := &entryFixture{t: t, meter: &poorMeter{}, records: map[string]string{}}
	names := []string{"full", "nomodel", "onetool", "limited", "poor2", "noobject", "notool"}
	var setup server.Setup
	e.fixture = serve(t, &setting{meter: e.meter, opts: func(o *server.Options) {
		change(&o.Limits)
		o.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
		for _, name := range append(names, "poor") {
			k := key(name)
			k.VendorObjects = []string{"*"}
			o.Setup.Keys = append(o.Setup.Keys, k)
		}
		setup = o.Setup
	}})
	e.client.Transport = &http.Transport{} // the document describes no padded bodies
	for _, k := range setup.Keys {
		body := `{"model":"sim/demo","messages":[{"role":"user","content":"` + entryQuestion + `"}]}`
		if k.Name == "noobject" {
			body = `{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"file","file":{"file_id":"file-1"}}]}]}`
		}
		a := e.post("/api/runs", body, k.Name)
		id := regexp.MustCompile(`"run_id":"(run_[^"]+)"|"id":"(run_[^"]+)"`).FindStringSubmatch(a.text)
		if a.status != 201 || id == nil {
			t.Fatalf("%d %s", a.status, a.text)
		}
		e.records[k.Name] = id[1] + id[2]
		e.wait("the first run of "+k.Name, func() bool {
			resp, text := e.do("GET", "/api/runs/"+id[1]+id[2], "", "Authorization", "Bearer "+k.Secret.Reveal())
			return resp.StatusCode == 200 && !strings.Contains(text, `"status":"running"`)
		})
	}
	narrowed := slices.Clone(setup.Keys)
	for i := range narrowed {
		switch k := &narrowed[i]; k.Name {
		case "nomodel":
			k.Models = []string{}
		case "onetool":
			k.Tools = []string{"calculator"}
		case "limited":
			k.Limits.MaxIterations = 1
		case "noobject":
			k.VendorObjects = nil
		case "notool":
			k.VendorTools = []string{}
		}
	}
	setup.Keys = narrowed
	if _, err := e.gateway.Reload(&setup); err != nil {
		t.Fatal(err)
	}
	return e
}

// wait polls until done.
func (e *entryFixture) wait(what string, done func() bool) bool {
	e.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(end) {
			e.t.Errorf("%s: not reached", what)
			return false
		}
	}
	return true
}

// post sends a body.
func (e *entryFixture) post(path, body, key string) entryAnswer {
	e.t.Helper()
	resp, text := e.do("POST", path, body, "Authorization", "Bearer "+text(key))
	return entryAnswer{resp.StatusCode, text + resp.Header.Get("X-Lathe-Error-Code")}
}

// plainEntry sends a body that no content changes.
func plainEntry(path, body string) func(*entryFixture, string, entryContent) entryAnswer {
	return func(e *entryFixture, key string, c entryContent) entryAnswer {
		return e.post(path, body+strings.Repeat(" ", c.pad), key)
	}
}

// wireEntry sends a body in which PART, MORE and LABEL stand for a part that names an object, for a tool of the vendor that is forced, and
// for a label that only the server sets.
func wireEntry(path, body, part, tool, label string) func(*entryFixture, string, entryContent) entryAnswer {
	return func(e *entryFixture, key string, c entryContent) entryAnswer {
		return e.post(path, entryBody(body, part, tool, label, c), key)
	}
}

func entryBody(body, part, tool, label string, c entryContent) string {
	pick := func(use bool, text string) string {
		if use {
			return text
		}
		return ""
	}
	return strings.NewReplacer("Q", entryQuestion, "PART", pick(c.object, part), "MORE", pick(c.tool, tool), "LABEL", pick(c.label, label)).Replace(body) + strings.Repeat(" ", c.pad)
}

const (
	entryLabel       = `,"lathe":{"labels":{"lathe_response":"x"}}`
	responsesPart    = `,{"type":"input_file","file_id":"file-1"}`
	responsesTool    = `,"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`
	responsesMessage = `"model":"sim/demo","input":[{"role":"user","content":[{"type":"input_text","text":"Q"}PART]}]MORE LABEL}`
	ownAnswer        = "an answer shows the run of its own request"
	noModelContent   = "it takes no content for a model"
	noRun            = "it starts no run"
	noVendorTools    = "its requests have no form for tools of a vendor"
	ownBounds        = "its callers are machines of the operator with a token; frames and calls have bounds of their own: TestWorkersAreBounded"
	readsOnly        = "it reads, and starts nothing"
	sameForAll       = "the answer is the same for every caller"
	labelsOfKeyOnly  = "its requests have no labels: the run has those of the key"
)

var entryPoints = []entryPoint{
	{name: "chat", routes: []string{"POST /v1/chat/completions"}, cells: map[string]string{"vendor tools": "TestVendorToolsNeedARight", "views": ownAnswer},
		send: wireEntry("/v1/chat/completions", `{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"text","text":"Q"}PART]}]MORE LABEL}`,
			`,{"type":"file","file":{"file_id":"file-1"}}`, "", entryLabel)},
	{name: "Responses", routes: []string{"POST /v1/responses"}, cells: map[string]string{"views": ownAnswer},
		send: wireEntry("/v1/responses", `{`+responsesMessage, responsesPart, responsesTool, entryLabel)},
	{name: "Messages", routes: []string{"POST /v1/messages"}, cells: map[string]string{"views": ownAnswer},
		send: wireEntry("/v1/messages", `{"model":"sim/demo","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"Q"}PART]}]MORE LABEL}`,
			`,{"type":"document","source":{"type":"file","file_id":"file-1"}}`, `,"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"any"}`, entryLabel)},
	{name: "Gemini", routes: []string{"POST /v1beta/models/{model...}", "POST /v1/models/{model...}"}, cells: map[string]string{"views": ownAnswer},
		send: wireEntry("/v1beta/models/sim/demo:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Q"}PART]}]MORE LABEL}`,
			`,{"fileData":{"mimeType":"image/png","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/1"}}`, `,"tools":[{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`, entryLabel)},
	{name: "chat page", routes: []string{"POST /api/chat", "GET /api/chat/{id}/stream", "POST /api/chat/resume"}, cells: map[string]string{"vendor tools": noVendorTools, "views": ownAnswer},
		send: wireEntry("/api/chat", `{"id":"c1","model":"sim/demo","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Q"}PART]}]LABEL}`,
			`,{"type":"file","mediaType":"image/png","url":"https://generativelanguage.googleapis.com/v1beta/files/1"}`, "", entryLabel)},
	{name: "WebSocket", routes: []string{"GET /v1/responses"}, cells: map[string]string{"body bytes": "TestSocketLimitsFrames", "views": ownAnswer},
		send: func(e *entryFixture, key string, c entryContent) entryAnswer {
			s := e.dial(e.t, "Authorization", "Bearer "+text(key))
			defer func() { _ = s.ws.CloseNow() }()
			s.send(entryBody(`{"type":"response.create","store":false,`+responsesMessage, responsesPart, responsesTool, entryLabel, c))
			events := s.events()
			last := events[len(events)-1]
			if last.Type != "error" {
				last.Status = 200
			}
			return entryAnswer{last.Status, last.raw}
		}},
	{name: "runs", routes: []string{"POST /api/runs"}, cells: map[string]string{"vendor tools": noVendorTools, "views": ownAnswer},
		send: wireEntry("/api/runs", `{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"text","text":"Q"}PART]}]LABEL}`,
			`,{"type":"file","file":{"file_id":"file-1"}}`, "", `,"labels":{"lathe_response":"x"}`)},
	{name: "replay", routes: []string{"POST /api/runs/{id}/replay"},
		cells: map[string]string{"vendor tools": noVendorTools, "labels and profile": labelsOfKeyOnly, "views": "TestT25_TenantsCannotTellRunsOfOthers"},
		send: func(e *entryFixture, key string, c entryContent) entryAnswer { // an object is in the record of the key noobject
			return e.post("/api/runs/"+e.records[key]+"/replay", `{"tools":"live"}`+strings.Repeat(" ", c.pad), key)
		}},
	{name: "compact", routes: []string{"POST /v1/responses/compact"},
		cells: map[string]string{"tools": "the run has no tools", "limits": "it is one model call: the limits come from the same plan as those of Responses", "views": ownAnswer},
		send:  wireEntry("/v1/responses/compact", `{`+responsesMessage, responsesPart, responsesTool, entryLabel)},
	{name: "counts", routes: []string{"POST /v1/messages/count_tokens", "POST /v1/responses/input_tokens"},
		cells: map[string]string{"tools": noRun, "limits": noRun, "budget": noRun, "labels and profile": noRun, "views": ownAnswer},
		send: wireEntry("/v1/messages/count_tokens", `{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"text","text":"Q"}PART]}]MORE}`,
			`,{"type":"document","source":{"type":"file","file_id":"file-1"}}`, `,"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"any"}`, "")},
	{name: "direct call", routes: []string{"POST /api/tools/{name}/call"}, send: plainEntry("/api/tools/calculator/call", `{"arguments":{"expression":"1+1"}}`),
		cells: map[string]string{"models": "it names no model; an agent has that of its configuration", "tools": "TestKeysSayWhoMayDoWhat", "limits": "TestLimitsOfAKeyHoldForDirectCalls",
			"budget": "TestAgentsUseTheBudgetOfTheirCaller", "vendor objects": noModelContent, "vendor tools": noModelContent, "labels and profile": labelsOfKeyOnly, "views": "TestT25_TenantsCannotTellToolsOfOthers"}},
	{name: "import", routes: []string{"POST /api/runs/import"}, send: plainEntry("/api/runs/import", `x`),
		cells: map[string]string{"labels and profile": "TestAnImportForgesNothingOfTheServer", "views": "TestAnImportIsOfARunThatCanBe"}, rest: "nothing of an import is executed; a replay of it is a row of its own"},
	{name: "/mcp", routes: []string{"POST /mcp", "GET /mcp", "DELETE /mcp"}, send: plainEntry("/mcp", `{}`),
		cells: map[string]string{"models": "it offers tools, no models", "tools": "TestHTTPKeys", "limits": "TestEachLimitIsObeyed", "budget": "TestAgentsUseTheBudgetOfTheirCaller", "vendor objects": noModelContent, "vendor tools": noModelContent,
			"body bytes": "TestHTTPRefusesBeforeItDecodes", "labels and profile": labelsOfKeyOnly, "views": "TestT25_SessionsBelongToTheirCaller"}},
	{name: "input of runs", send: plainEntry("/api/runs/run_x/tool_results", `{"results":[]}`),
		routes: []string{"POST /api/runs/{id}/cancel", "POST /api/runs/{id}/resume", "POST /api/runs/{id}/approvals/{call}", "POST /api/runs/{id}/tool_results", "POST /v1/responses/{id}/cancel"},
		cells:  map[string]string{"views": "TestT25_TenantsCannotTellRunsOfOthers"}, rest: "the run goes on under the settings that it began with"},
	{name: "workers", routes: []string{"GET /v1/worker"}, cells: map[string]string{"tools": "TestWorkersOfATenant", "views": "TestT25_TenantsCannotTellToolsOfOthers"}, rest: ownBounds},
	{name: "peers", routes: []string{"GET /cluster/v1/runs/{id}/deltas"}, rest: "its callers are servers of the same cluster, and it has no body"},
	{name: "reload", routes: []string{"POST /api/reload"}, cells: map[string]string{"views": "TestReloadIsForAdmins"}, rest: "the executed cells of the other rows are those of keys that a reload has narrowed"},
	{name: "views", routes: []string{"GET /metrics", "GET /api/stats", "GET /api/usage", "GET /api/keys", "GET /api/summaries", "GET /api/runs", "GET /api/runs/{id}", "GET /api/runs/{id}/events",
		"GET /api/runs/{id}/export", "GET /api/approvals", "GET /api/sessions", "GET /api/tools", "GET /api/tools/{name}", "GET /api/models", "GET /api/limits", "GET /api/servers",
		"GET /v1/models", "GET /v1/models/{id...}", "GET /v1beta/models", "GET /v1beta/models/{id...}", "GET /v1/responses/{id}", "GET /v1/responses/{id}/input_items"},
		cells: map[string]string{"models": "TestKeysSayWhoMayDoWhat", "tools": "TestKeysSayWhoMayDoWhat", "views": "TestMetricsNeedARight"}, rest: readsOnly},
	{name: "removal", routes: []string{"DELETE /api/runs/{id}", "DELETE /v1/responses/{id}", "DELETE /api/sessions/{id}", "PATCH /api/sessions/{id}", "DELETE /api/principals/{name}"},
		cells: map[string]string{"views": "TestT25_TenantsCannotTellRunsOfOthers"}, rest: noRun},
	{name: "operators", routes: []string{"POST /api/tools/{name}/disable", "POST /api/tools/{name}/enable", "POST /api/servers/{name}/reconnect", "GET /api/pins", "POST /api/pins/{name}/accept", "POST /api/policy/explain",
		"GET /api/audit", "GET /api/config", "GET /api/health", "GET /api/evals", "GET /api/evals/{id}", "GET /api/evals/{id}/runs/{name}"},
		cells: map[string]string{"views": "TestKeysSayWhoMayDoWhat"}, rest: "it is for operators, and starts no run"},
	{name: "sessions", routes: []string{"POST /api/session/links", "GET /api/session", "POST /api/session", "DELETE /api/session", "GET /api/session/oidc", "GET /api/session/oidc/callback"},
		cells: map[string]string{"views": "TestSessionsOfIdentifiedCallers"}, rest: noRun},
	{name: "open", routes: []string{"", "GET /api/openapi.json", "GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-protected-resource/mcp", "GET /livez", "GET /readyz", "GET /healthz", "HEAD /{$}",
		"GET /{$}", "GET /assets/{name}", "GET /NOTICE.txt"}, rest: sameForAll},
}

// entryRules are the rules, with what executes a cell. It returns what is wrong.
var entryRules = []struct {
	name    string
	execute func(e *entryFixture, send func(key string, c entryContent) entryAnswer) string
}{
	{"models", func(_ *entryFixture, send func(string, entryContent) entryAnswer) string {
		return refusedWith(send("nomodel", entryContent{}), 403, "model_forbidden")
	}},
	{"tools", func(e *entryFixture, send func(string, entryContent) entryAnswer) string {
		before := len(e.seen.all())
		a := send("onetool", entryContent{})
		if !e.wait("a model call", func() bool { return len(e.seen.all()) > before }) {
			return fmt.Sprint(a)
		}
		if sent := e.seen.all()[before]; !strings.Contains(sent, `"calculator"`) || strings.Contains(sent, `"get_current_time"`) {
			return "the model was offered " + sent
		}
		return ""
	}},
	{"limits", func(e *entryFixture, send func(string, entryContent) entryAnswer) string {
		before := hits(e.t, e.fixture, "max_iterations")
		a := send("limited", entryContent{})
		if !e.wait("the limit", func() bool { return hits(e.t, e.fixture, "max_iterations") > before }) {
			return fmt.Sprint(a)
		}
		return ""
	}},
	{"budget", func(e *entryFixture, send func(string, entryContent) entryAnswer) string {
		before := e.meter.refused.Load()
		a := send("poor", entryContent{})
		if !e.wait("the meter", func() bool { return e.meter.refused.Load() > before }) {
			return fmt.Sprint(a)
		}
		return ""
	}},
	{"vendor objects", func(_ *entryFixture, send func(string, entryContent) entryAnswer) string {
		if a := send("full", entryContent{object: true}); a.status == 403 {
			return fmt.Sprint("with the right: ", a)
		}
		return refusedWith(send("noobject", entryContent{object: true}), 403, "vendor_object_forbidden")
	}},
	{"vendor tools", func(_ *entryFixture, send func(string, entryContent) entryAnswer) string {
		if a := send("full", entryContent{tool: true}); a.status == 403 {
			return fmt.Sprint("with the right: ", a)
		}
		return refusedWith(send("notool", entryContent{tool: true}), 403, "tool_forbidden")
	}},
	{"body bytes", func(_ *entryFixture, send func(string, entryContent) entryAnswer) string {
		return refusedWith(send("full", entryContent{pad: maxEntryBody}), 413, "larger than")
	}},
	{"bytes in flight", nil}, // executed with a server of other limits
	{"labels and profile", func(_ *entryFixture, send func(string, entryContent) entryAnswer) string {
		return refusedWith(send("full", entryContent{label: true}), 400, "lathe_response")
	}},
	{"views", nil},
}

// refusedWith returns what is wrong with the answer to a request that is to be refused.
func refusedWith(a entryAnswer, status int, text string) string {
	if a.status != status || !strings.Contains(a.text, text) {
		return fmt.Sprintf("%d %.300s, want %d with %s", a.status, a.text, status, text)
	}
	return ""
}

// testNames returns the names of all tests below the root of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(src, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestEveryEntryPointObeysEveryRule(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	names, table := testNames(t), newRuleTable()
	e := newEntryFixture(t, func(l *server.Limits) { l.MaxBody = maxEntryBody })
	tight := newEntryFixture(t, func(l *server.Limits) { l.MaxInflightBytes = 128 << 10 })
	for i := range entryPoints {
		p := &entryPoints[i]
		table.begin(p.name)
		t.Run(p.name, func(t *testing.T) {
			for _, r := range entryRules {
				cell, fixture, execute := p.cells[r.name], e, r.execute
				if r.name == "bytes in flight" && p.send != nil {
					fixture, execute = tight, func(_ *entryFixture, send func(string, entryContent) entryAnswer) string {
						return refusedWith(send("full", entryContent{pad: 100_000}), 413, "serve.max_inflight_bytes")
					}
				}
				if cell == "" && (p.send == nil || execute == nil || p.rest != "" && !strings.Contains(r.name, "bytes")) {
					cell = p.rest
				}
				switch {
				case strings.HasPrefix(cell, "Test"):
					if !names[cell] {
						t.Errorf("%s: there is no test %s", r.name, cell)
					}
				case cell != "": // a reason
				case execute == nil || p.send == nil:
					t.Errorf("%s: the cell has no content: execute it, name its test, or say why the rule has no meaning there", r.name)
				default:
					cell = executedCell
					if bad := execute(fixture, func(key string, c entryContent) entryAnswer { return p.send(fixture, key, c) }); bad != "" {
						t.Errorf("%s: %s", r.name, bad)
					}
				}
				table.add(cell)
			}
		})
	}
	e.empties()
	tight.empties()
	t.Log("\n" + table.text())
}

const executedCell = "executed"

// A ruleTable is the table as text: a row for each entry point, a column for each rule, and the tests and reasons of its cells as notes.
type ruleTable struct {
	rows  []string
	notes []string
}

func newRuleTable() *ruleTable {
	head := "entry point"
	for _, r := range entryRules {
		head += "\t" + r.name
	}
	return &ruleTable{rows: []string{head}}
}

func (rt *ruleTable) begin(name string) { rt.rows = append(rt.rows, name) }

// add adds a cell to the last row.
func (rt *ruleTable) add(cell string) {
	if cell != executedCell {
		at := slices.Index(rt.notes, cell)
		if at < 0 {
			at = len(rt.notes)
			rt.notes = append(rt.notes, cell)
		}
		if cell = fmt.Sprintf("– [%d]", at+1); strings.HasPrefix(rt.notes[at], "Test") {
			cell = fmt.Sprintf("test [%d]", at+1)
		}
	}
	rt.rows[len(rt.rows)-1] += "\t" + cell
}

func (rt *ruleTable) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rt.rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // into memory
	b.WriteString("\nexecuted: this test makes the request; test: the test of the note does; –: the rule has no meaning there, for the reason of the note\n")
	for i, note := range rt.notes {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, note)
	}
	return b.String()
}

// Each route belongs to one entry point, and no entry point has a route that does not exist.
func TestEveryRouteIsAnEntryPoint(t *testing.T) {
	t.Parallel()
	of := map[string]string{}
	for i := range entryPoints {
		for _, route := range entryPoints[i].routes {
			if other, twice := of[route]; twice {
				t.Errorf("%s is of %s and of %s", route, other, entryPoints[i].name)
			}
			of[route] = entryPoints[i].name
		}
	}
	for _, rt := range newFront(t, nil).routes {
		if _, ok := of[rt.Name]; !ok && !(rt.Method == "GET" && rt.Anyone && !rt.Body && !strings.HasPrefix(rt.Path, "/api")) { // a screen of the console
			t.Errorf("the route %q is of no entry point: add it to a row of entryPoints, or a row of its own", rt.Name)
		}
		delete(of, rt.Name)
	}
	for route, name := range of {
		t.Errorf("%s: there is no route %q", name, route)
	}
}
