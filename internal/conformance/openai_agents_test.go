package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agentsCase is a dialogue of the OpenAI Agents SDK in which a person decides about a call, or one agent hands over to another.
type agentsCase struct {
	name   string
	turns  []string
	calls  string // executions of the client's tool
	asked  string // the calls that its user is asked about
	server int    // calls of the server that it is shown with their results
	agent  string // that answers
	answer string // a part of the answer
	items  bool   // the approval is an item, which chat completions does not have
}

var agentsCases = []agentsCase{
	{name: "handoff", turns: []string{calculatesFreely + "call: ask_helper {}\n", calculatesFreely + asksWeather, "expect: rain\ntext: done\n"},
		calls: "weather Oslo", server: 2, agent: "Helper", answer: "done"},
	{name: "own-approved", turns: []string{calculatesFreely + asksWeather, "expect: rain\ntext: done\n"}, calls: "weather Oslo", asked: "weather", server: 1, agent: "Asker", answer: "done"},
	{name: "own-denied", turns: []string{asksWeather, "expect: not approved\ntext: done\n"}, asked: "weather", agent: "Asker", answer: "done"},
	{name: "server-approved", turns: []string{"text: let me see\n" + calculates, goesOn}, asked: "calculator", server: 1, agent: "Asker", answer: "done", items: true},
	{name: "server-denied", turns: []string{calculates, "expect: approval_denied\ntext: without it\n"}, asked: "calculator", server: 1, agent: "Asker", answer: "without it", items: true},
	{name: "server-both", turns: []string{calculates + asksWeather, "expect: rain\ntext: done\n"}, calls: "weather Oslo", asked: "weather calculator", server: 1, agent: "Asker", answer: "done", items: true},
	{name: "server-callback", turns: []string{calculates, goesOn}, asked: "calculator", server: 1, agent: "Asker", answer: "done", items: true},
	{name: "waits", turns: []string{calculates, goesOn}, agent: "Asker", answer: "calculator has not been called"},
}

// calculatesFreely is a call that no person is asked about.
const calculatesFreely = `call: get_current_time {"zone":"UTC"}` + "\n"

// An agentsOutcome is what the SDK made of a case.
type agentsOutcome struct {
	Client, Case, Error, Answer, Agent string
	Calls, Asked, Server               []string
}

func (o *agentsOutcome) check(t *testing.T, c *agentsCase, hides bool) {
	t.Helper()
	server := c.server
	if hides {
		server = 0
	}
	if o.Error != "" || strings.Join(o.Calls, " ") != c.calls || strings.Join(o.Asked, " ") != c.asked || len(o.Server) != server || o.Agent != c.agent || !strings.Contains(o.Answer, c.answer) {
		t.Errorf("%s, %s: %+v; want calls %q, asked %q, %d calls of the server, agent %q, answer %q", o.Client, c.name, o, c.calls, c.asked, server, c.agent, c.answer)
	}
}

// TestOpenAIAgents runs dialogues of the OpenAI Agents SDK with approvals, of its own tools and of the server's, and with a
// handoff, over both APIs of OpenAI.
func TestOpenAIAgents(t *testing.T) {
	needsPackages(t, "lathe-conformance-openai-agents")
	dir := t.TempDir()
	cfg := "default_model: handoff\npolicy: {tools: {calculator: ask}}\nsim:\n  scripts:\n"
	models := "models:\n"
	for i := range agentsCases {
		c := &agentsCases[i]
		if err := os.WriteFile(filepath.Join(dir, c.name+".txt"), []byte("-- turn --\n"+strings.Join(c.turns, "-- turn --\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg += fmt.Sprintf("    %s: %s.txt\n", c.name, c.name)
		models += fmt.Sprintf("  %s: {provider: sim, model: sim/script-%s, max_attempts: 1}\n", c.name, c.name)
	}
	path := filepath.Join(dir, "lathe.yaml")
	if err := os.WriteFile(path, []byte(cfg+models), 0o600); err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(server(t, "serve", "--config", path, "--addr", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(dir, "runs.db")), "/v1")
	for _, api := range []string{"responses", "chat"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			args := []string{filepath.Join("node", "openai-agents", "approval.mjs"), base, api}
			var played []*agentsCase
			for i := range agentsCases {
				if c := &agentsCases[i]; api == "responses" || !c.items {
					played = append(played, c)
					args = append(args, c.name)
				}
			}
			out := node(t, args...)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != 2*len(played) { // by run, and with stream
				t.Fatalf("%d outcomes, want %d", len(lines), 2*len(played))
			}
			for i, line := range lines {
				var o agentsOutcome
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				o.check(t, played[i/2], api == "chat")
			}
		})
	}
}
