package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/sim"
)

// A wireCase is a script of the model behind `lathe serve`, and what a client of any wire must make of it. The client has one
// tool of its own, weather. The calculator is executed on the server, and shown where the wire has items for that.
type wireCase struct {
	name   string
	turns  []string
	calls  string // of the client's tool: the cities
	server int    // calls of the server that the client is shown
	finish string // of each answer, as calls or stop
	text   string // of the last answer, without white space
	fails  string // a word of the error
}

var wireCases = []wireCase{
	{name: "text", turns: []string{"text: hello\n"}, finish: "stop", text: "hello"},
	{name: "client", turns: []string{asksWeather, "expect: rain\ntext: done\n"}, calls: "Oslo", finish: "calls stop", text: "done"},
	{name: "parallel", turns: []string{asksWeather + `call: weather {"city":"Rome"}` + "\n", "expect: rain\ntext: done\n"}, calls: "Oslo Rome", finish: "calls stop", text: "done"},
	{name: "thinks", turns: []string{"reasoning: Where is it?\n" + asksWeather, "expect: rain\nreasoning: I see.\ntext: done\n"}, calls: "Oslo", finish: "calls stop", text: "done"},
	{name: "server", turns: []string{"text: one\n" + calculates, "expect: 42\ntext: done\n"}, server: 1, finish: "stop", text: "onedone"},
	{name: "mixed", turns: []string{calculates, "text: both\n" + calculates + asksWeather + calculates, "expect: 42\ntext: done\n"},
		calls: "Oslo", server: 3, finish: "calls stop", text: "done"},
	// The second prompt follows an answer with a round on the server: the third turn is reached only if the model is sent that round, too.
	{name: "again", turns: []string{calculates, "expect: 42\ntext: done\n", "expect: more\ntext: again\n"}, server: 1, finish: "stop stop", text: "again"},
	{name: "structured", turns: []string{`text: {"answer":42}` + "\n"}, finish: "stop", text: `{"answer":42}`},
	{name: "refused", turns: []string{"error: 400 too long\n"}, fails: "too long"},
	{name: "broken", turns: []string{"text: hello there\ncut:\n"}, fails: "broke off"},
	{name: "rounds", turns: []string{calculates, "text: a\n" + calculates, calculates, "text: b\n" + calculates, "text: done\n"},
		server: 4, finish: "stop", text: "abdone"},
	{name: "mixed2", turns: []string{asksWeather + calculates, calculates, calculates + asksWeather, "expect: rain\ntext: done\n"},
		calls: "Oslo Oslo", server: 3, finish: "calls calls stop", text: "done"},
	{name: "failslater", turns: []string{"text: well\n" + calculates, "error: 500 sorry\n"}, fails: "the model server failed"},
}

// wireWords are the words in which the clients of a wire say why an answer ended, and what else differs from wire to wire.
type wireWords struct {
	calls, stop string
	hides       bool // the wire has no items for calls of the server
}

var (
	responsesWords = wireWords{calls: "completed", stop: "completed"}
	messagesWords  = wireWords{calls: "tool_use", stop: "end_turn"}
	geminiWords    = wireWords{calls: "STOP", stop: "STOP", hides: true}
	aiWords        = wireWords{calls: "tool-calls", stop: "stop"}
	aiGoogleWords  = wireWords{calls: "tool-calls", stop: "stop", hides: true}
	chatWords      = wireWords{calls: "tool_calls", stop: "stop", hides: true}
	agentsWords    = wireWords{calls: "calls", stop: "stop"}
	agentsChat     = wireWords{calls: "calls", stop: "stop", hides: true}
)

// A wireOutcome is what a client made of a case.
type wireOutcome struct {
	outcome
	Server []string // calls of the server, each with its result
	Parsed *struct{ Answer int }
}

func (c *wireCase) check(t *testing.T, o *wireOutcome, words wireWords) {
	t.Helper()
	name := o.Client + ", " + o.Model
	if c.fails != "" {
		if !strings.Contains(strings.ToLower(o.Error), c.fails) {
			t.Errorf("%s: error %q, want one with %q; the answer is %q", name, o.Error, c.fails, o.Content)
		}
		return
	}
	var cities []string
	ids := map[string]bool{}
	for _, call := range o.Calls {
		var args struct{ City string }
		if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil || call.Name != "weather" || call.ID == "" || ids[call.ID] {
			t.Errorf("%s: call %+v is not one of weather with an id of its own", name, call)
		}
		ids[call.ID] = true
		cities = append(cities, args.City)
	}
	finish := strings.NewReplacer("calls", words.calls, "stop", words.stop).Replace(c.finish)
	text := strings.Join(strings.Fields(o.Content), "")
	if got := strings.Join(cities, " "); o.Error != "" || got != c.calls || text != c.text || strings.Join(o.Finish, " ") != finish || o.Usage == 0 {
		t.Errorf("%s: error %q, calls %q, text %q, finish %q, usage %d; want calls %q, text %q, finish %q",
			name, o.Error, got, text, o.Finish, o.Usage, c.calls, c.text, finish)
	}
	server := c.server
	if words.hides {
		server = 0
	}
	if len(o.Server) != server {
		t.Errorf("%s: the client is shown the calls %q of the server, want %d", name, o.Server, server)
	}
	for _, call := range o.Server {
		if !strings.HasPrefix(call, "calculator ") || !strings.Contains(call, `"result":42`) {
			t.Errorf("%s: the call %q of the server is not that of the calculator with its result", name, call)
		}
	}
	if c.name == "structured" && (o.Parsed == nil || o.Parsed.Answer != 42) {
		t.Errorf("%s: the client's library reads %+v, want the answer 42", name, o.Parsed)
	}
}

// upstreamWires are the paths of the base URLs of model servers, by the name of their wire.
var upstreamWires = map[string]string{"openai": "/v1", "responses": "/v1", "anthropic": "", "gemini": "/v1beta"}

// wireServers are two `lathe serve` with the scripts of the cases, which are played by a simulated model server. Each has a model for
// each case behind each wire, named as in text.gemini.
type wireServers struct {
	base  string // with the tools of the server
	alone string // without them, so that a client whose wire is that of the model gets the model server's bytes
}

func startWires(t *testing.T) *wireServers {
	t.Helper()
	scripts := map[string]*sim.Script{}
	for i := range wireCases {
		script, err := sim.ParseScript(strings.NewReader("-- turn --\n" + strings.Join(wireCases[i].turns, "-- turn --\n")))
		if err != nil {
			t.Fatal(err)
		}
		scripts[wireCases[i].name] = script
	}
	upstream := httptest.NewServer(sim.New(&sim.Options{Scripts: scripts}).Handler())
	t.Cleanup(upstream.Close)
	models := "models:\n"
	for wire, path := range upstreamWires {
		for i := range wireCases {
			name := wireCases[i].name
			models += fmt.Sprintf("  %s.%s: {base_url: %q, wire: %s, model: sim/script-%s, max_attempts: 1}\n", name, wire, upstream.URL+path, wire, name)
		}
	}
	start := func(more string) string {
		path := filepath.Join(t.TempDir(), "lathe.yaml")
		if err := os.WriteFile(path, []byte("default_model: text.openai\ntool_calling: {max_repeated_calls: 100}\n"+more+models), 0o600); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(server(t, "serve", "--config", path, "--addr", "127.0.0.1:0"), "/v1")
	}
	return &wireServers{start(""), start("tools: {builtin: []}\n")}
}

// A wireCell is the cases that a client plays with models of one wire.
type wireCell struct {
	name, base, upstream string
	cases                []*wireCase
}

// cells returns those of the clients of a wire: one for each wire of models, and one in which requests are relayed, without the cases
// in which a tool of the server is called or the answer is cut.
func (s *wireServers) cells(own string) (cells []wireCell) {
	for _, upstream := range slices.Sorted(maps.Keys(upstreamWires)) {
		cell := wireCell{name: upstream, base: s.base, upstream: upstream}
		for i := range wireCases {
			cell.cases = append(cell.cases, &wireCases[i])
		}
		cells = append(cells, cell)
	}
	relayed := wireCell{name: "relayed", base: s.alone, upstream: own}
	for i := range wireCases {
		turns := strings.Join(wireCases[i].turns, "")
		if !strings.Contains(turns, "call: calculator") && !strings.Contains(turns, "cut:") { // the simulator cuts streams alone
			relayed.cases = append(relayed.cases, &wireCases[i])
		}
	}
	return append(cells, relayed)
}

// npmWires are the official npm libraries of each served wire, and the providers of npm ai, each in its ways to ask.
var npmWires = []struct {
	script string
	args   string // after the base URL
	wire   string // as a name of upstreamWires
	words  wireWords
	modes  int
}{
	{"openai.mjs", "openai-4 chat", "openai", chatWords, 4},
	{"openai.mjs", "openai-5 chat", "openai", chatWords, 4},
	{"openai.mjs", "openai-6 chat", "openai", chatWords, 4},
	{"openai.mjs", "openai-7 chat", "openai", chatWords, 4},
	{"openai.mjs", "openai-5 responses", "responses", responsesWords, 3},
	{"openai.mjs", "openai-6 responses", "responses", responsesWords, 3},
	{"openai.mjs", "openai-7 responses", "responses", responsesWords, 3},
	{"anthropic.mjs", "@anthropic-ai/sdk", "anthropic", messagesWords, 6},
	{"anthropic.mjs", "anthropic-sdk-newest", "anthropic", messagesWords, 6},
	{"google.mjs", "@google/genai", "gemini", geminiWords, 5},
	{"google.mjs", "genai-3", "gemini", geminiWords, 5},
	{"ai.mjs", "ai-6 3 openai", "responses", aiWords, 4},
	{"ai.mjs", "ai-6 3 openai-unstored", "responses", aiWords, 4},
	{"ai.mjs", "ai-6 3 anthropic", "anthropic", aiWords, 4},
	{"ai.mjs", "ai-6 3 google", "gemini", aiGoogleWords, 4},
	{"ai.mjs", "ai-7 4 openai", "responses", aiWords, 4},
	{"ai.mjs", "ai-7 4 openai-unstored", "responses", aiWords, 4},
	{"ai.mjs", "ai-7 4 anthropic", "anthropic", aiWords, 4},
	{"ai.mjs", "ai-7 4 google", "gemini", aiGoogleWords, 4},
	{"langchain.mjs", "responses", "responses", responsesWords, 2},
	{"langchain.mjs", "chat", "openai", chatWords, 2},
	{"../openai-agents/openai-agents.mjs", "responses", "responses", agentsWords, 2},
	{"../openai-agents/openai-agents.mjs", "chat", "openai", agentsChat, 2},
}

// TestNpmWires runs whole dialogues with the official npm libraries on models behind each wire, whole and streamed, and with the tool
// runners of the libraries that have one.
func TestNpmWires(t *testing.T) {
	needsPackages(t, "@anthropic-ai/sdk", "@google/genai", "ai-sdk-anthropic-4", "ai-sdk-google-4", "genai-3", "@langchain/openai", "lathe-conformance-openai-agents")
	s := startWires(t)
	slots := make(chan struct{}, 2)
	for _, client := range npmWires {
		name := strings.TrimSpace(strings.TrimSuffix(filepath.Base(client.script), ".mjs") + " " + client.args)
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			for _, at := range s.cells(client.wire) {
				t.Run(at.name, func(t *testing.T) {
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					args := append([]string{filepath.Join("node", "wires", client.script), at.base}, strings.Fields(client.args)...)
					at.play(t, args, client.words, client.modes)
				})
			}
		})
	}
}

// play has a script play the cases, and checks what it prints of each in each of its modes.
func (at *wireCell) play(t *testing.T, args []string, words wireWords, modes int) {
	cases := map[string]*wireCase{}
	for _, c := range at.cases {
		model := c.name + "." + at.upstream
		cases[model], args = c, append(args, model)
	}
	out := node(t, args...)
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		var o wireOutcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if cases[o.Model] == nil {
			t.Fatalf("an outcome of no case: %s", line)
		}
		cases[o.Model].check(t, &o, words)
		seen[o.Client+o.Model] = true
	}
	if want := modes * len(cases); len(seen) != want {
		t.Errorf("%d outcomes, want %d", len(seen), want)
	}
}

// needsPackages skips the test if node or one of the npm packages is missing.
func needsPackages(t *testing.T, packages ...string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	for _, name := range packages {
		if _, err := os.Stat(filepath.Join("node_modules", name)); err != nil {
			t.Skipf("the npm package %s is missing: run npm ci in internal/conformance", name)
		}
	}
}
