package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	name := o.Client + ", " + c.name
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

// wireServer starts `lathe serve` with the scripts of the cases, and returns its address without a path.
func wireServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cfg := "default_model: text\ntool_calling: {max_repeated_calls: 100}\nsim:\n  scripts:\n"
	models := "models:\n"
	for i := range wireCases {
		c := &wireCases[i]
		script := "-- turn --\n" + strings.Join(c.turns, "-- turn --\n")
		if err := os.WriteFile(filepath.Join(dir, c.name+".txt"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg += fmt.Sprintf("    %s: %s.txt\n", c.name, c.name)
		models += fmt.Sprintf("  %s: {provider: sim, model: sim/script-%s, max_attempts: 1}\n", c.name, c.name)
	}
	path := filepath.Join(dir, "lathe.yaml")
	if err := os.WriteFile(path, []byte(cfg+models), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(server(t, "serve", "--config", path, "--addr", "127.0.0.1:0"), "/v1")
}

// TestNpmWires runs whole dialogues with the official npm libraries of each served wire, and with the providers of npm ai, in
// each of their ways to ask.
func TestNpmWires(t *testing.T) {
	needsPackages(t, "@anthropic-ai/sdk", "@google/genai", "ai-sdk-anthropic-3", "ai-sdk-google-3", "@langchain/openai", "lathe-conformance-openai-agents")
	base := wireServer(t)
	for _, client := range []struct {
		script, arg string
		words       wireWords
		modes       int
	}{
		{"openai.mjs", "openai-5", responsesWords, 3},
		{"openai.mjs", "openai-6", responsesWords, 3},
		{"openai.mjs", "openai-7", responsesWords, 3},
		{"anthropic.mjs", "", messagesWords, 3},
		{"google.mjs", "", geminiWords, 3},
		{"ai.mjs", "openai", aiWords, 2},
		{"ai.mjs", "openai-unstored", aiWords, 2},
		{"ai.mjs", "anthropic", aiWords, 2},
		{"ai.mjs", "google", aiGoogleWords, 2},
		{"langchain.mjs", "responses", responsesWords, 2},
		{"langchain.mjs", "chat", chatWords, 2},
		{"../openai-agents/openai-agents.mjs", "responses", agentsWords, 2},
		{"../openai-agents/openai-agents.mjs", "chat", agentsChat, 2},
	} {
		t.Run(strings.TrimSpace(strings.TrimSuffix(filepath.Base(client.script), ".mjs")+" "+client.arg), func(t *testing.T) {
			t.Parallel()
			args := []string{filepath.Join("node", "wires", client.script), base}
			if client.arg != "" {
				args = append(args, client.arg)
			}
			cases := map[string]*wireCase{}
			for i := range wireCases {
				args = append(args, wireCases[i].name)
				cases[wireCases[i].name] = &wireCases[i]
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("node: %v\n%s", err, stderr.String())
			}
			seen := map[string]bool{}
			for line := range strings.Lines(string(out)) {
				var o wireOutcome
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				if cases[o.Model] == nil {
					t.Fatalf("an outcome of no case: %s", line)
				}
				cases[o.Model].check(t, &o, client.words)
				seen[o.Client+o.Model] = true
			}
			if want := client.modes * len(cases); len(seen) != want {
				t.Errorf("%d outcomes, want %d", len(seen), want)
			}
		})
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
