package agents

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var every = flag.Bool("agents", false, "run every agent and write docs/agents.md")

// A matrix is the result of a run of every agent.
type matrix struct {
	agents []*Agent

	mu       sync.Mutex
	versions map[*Agent]string
	cells    map[*Agent]map[*scenario]string
}

func newMatrix(agents []*Agent) *matrix {
	return &matrix{agents: agents, versions: map[*Agent]string{}, cells: map[*Agent]map[*scenario]string{}}
}

func (m *matrix) version(a *Agent, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.versions[a] = version
}

func (m *matrix) note(a *Agent, k *scenario, problem error, footnote string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[a] == nil {
		m.cells[a] = map[*scenario]string{}
	}
	text := "pass" + footnote
	if problem != nil {
		text = strings.ReplaceAll(problem.Error(), "\n", "; ")
	}
	m.cells[a][k] = text
}

// write writes docs/agents.md, unless a part of the cases was left out.
func (m *matrix) write(t *testing.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.agents {
		if len(m.cells[a]) < len(scenarios) {
			t.Logf("%s did not play every case: docs/agents.md is not written", a.Name)
			return
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, matrixHead, time.Now().UTC().Format(time.DateOnly))
	b.WriteString("| agent | wire |")
	for i := range scenarios {
		fmt.Fprintf(&b, " %s |", scenarios[i].title)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(scenarios)) + "\n")
	for _, a := range m.agents {
		fmt.Fprintf(&b, "| %s %s | %s |", a.Name, m.versions[a], a.Wire)
		for i := range scenarios {
			fmt.Fprintf(&b, " %s |", m.cells[a][&scenarios[i]])
		}
		b.WriteString("\n")
	}
	b.WriteString(matrixFoot)
	if err := os.WriteFile(filepath.Join("..", "..", "..", "docs", "agents.md"), []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
}

const matrixHead = `# Agents against this server

` + "`make agents`" + ` writes this page: it installs nine coding agents from npm, starts each with a home directory of its own against ` + "`lathe serve`" + `, and
plays fourteen cases with a scripted model. Measured on %s.

`

const matrixFoot = `
| case | passes if |
|---|---|
| answers | the agent ends with exit code 0 and prints the model's text |
| calls its own tool | the model calls the agent's shell tool; the agent executes it once, and the model gets the result |
| own tool and server tool in one turn | the model calls both in one message; each is executed once, the model gets both results, and no text says that a tool is unknown |
| next prompt after the server's tool | the model calls the server's tool and answers; with the next prompt of the same session the model gets that call and its result again, and the agent prints the answer |
| server killed in a stream | the server is killed (SIGKILL) in the middle of the answer after its tool was executed, and is started again; the agent prints the answer, and the tool was executed once |
| cancel | Ctrl-C in the middle of the answer: the server ends its model call and the run is cancelled |
| two own tools and a server tool at once | the model makes three calls in one message; each is executed once, and the model gets the three results |
| long arguments | as in the mixed case, with arguments of 50 kB, which arrive whole |
| 429, then success | the server answers the first request with 429 and ` + "`Retry-After: 1`" + `; the agent repeats it and prints the answer |
| 429 after the server's tool | the model server answers 429 once, after the tool was executed; the agent prints the answer, and the tool was executed once |
| error in the stream | the model server fails in the middle of the answer, after the tool was executed; the agent prints the answer, and the tool was executed once |
| conversation too long | the model server refuses the conversation after a call of each tool; the agent makes it shorter and prints the answer, or it prints that the conversation is too long |
| approval | policy asks a person about the server's tool: the agent prints that the call waits and the command that approves it; after ` + "`lathe runs approve`" + ` the tool is executed once, and the agent answers the next prompt of the session |
| unknown events | the model is on the agent's wire, and its stream has events, items and members of unknown types; the rest is as in the mixed case |

- ¹ The agent ends with an error when the connection or the answer breaks off, and does not repeat the request. Its user gives the same prompt again and gets the answer; the tool is not executed again.
- ² As ¹, but the agent puts the time or its session into each prompt. The prompt given again is another request, and the tool is executed for it.
- ³ The agent sends the text of the first answer alone with the next prompt: it does not carry what the server adds to an answer, so the model gets neither the call nor its result.
- ⁴ The agent prints the error of the model server, which says that the conversation is too long, and ends.
- ⁵ The agent makes the conversation shorter and sends it, but in its print mode it ends before the answer and prints nothing.

## What a person sees

- While a call waits for an approval, every agent prints the sentence of ` + "`approval.waiting_text`" + ` as the model's answer: ` + "`This waits for an approval: post_note has not been called (run run_…). Approve or deny it with …`" + `. The next
  prompt of the session is answered with the outcome of the call. The server's default attempts (` + "`models.NAME.max_attempts`" + `) wait for ` + "`Retry-After`" + ` without the agent's user seeing it; the cases here have one attempt.
- If the model server fails after the answer has begun, agents print ` + "`The model server failed.`" + ` or ` + "`The model server takes no more requests now.`" + `, and repeat the request or end (¹, ²).
- Codex prints ` + "`Reconnecting… 1/5`" + ` and repeats the request. The repeated request continues the run.
- If the key is wrong, Claude Code 2.1.332 repeats the request ten times, which takes four minutes, before it prints the 401: with ` + "`apiKeyHelper`" + `, which ` + "`lathe connect`" + ` writes, it takes a 401 or 403 for a key
  that has expired, whatever ` + "`X-Should-Retry`" + ` says. ` + "`CLAUDE_CODE_MAX_RETRIES=1`" + ` makes it five seconds. With the key in ` + "`ANTHROPIC_AUTH_TOKEN`" + ` it ends at once.

The model speaks chat completions. The server has one HTTP tool that writes, and its runs are in SQLite. The agents have the settings that ` + "`lathe connect NAME`" + ` writes: see [connect.md](connect.md).
`
