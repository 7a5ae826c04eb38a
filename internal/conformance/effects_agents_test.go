package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/conformance/agents"
	"github.com/lathe-run/lathe/internal/connect"
)

// agentsVariable names the environment variable without which the agents are not run: they take minutes.
const agentsVariable = "LATHE_TEST_AGENTS"

// agentTime bounds one prompt of an agent.
const agentTime = 45 * time.Second

// Agents with their default settings: see TestEffectsOfLibraries. Their time limits cannot be set in the same way, so
// that the place client-timeout is not tried with them.
func TestEffectsOfAgents(t *testing.T) {
	if os.Getenv(agentsVariable) == "" {
		t.Skip("set " + agentsVariable + "=1 after `go run ./agents/install -all` in internal/conformance: the agents take 2.5 GB and minutes")
	}
	root, err := agents.Dir()
	if err != nil {
		t.Fatal(err)
	}
	var tested []*agents.Agent
	var names []string
	for _, a := range append(agents.All, agents.Copilot) {
		if a.Wire != connect.Chat {
			continue // the model of this test speaks chat completions
		}
		if _, err := a.Installed(root); err != nil {
			t.Fatal(err)
		}
		tested, names = append(tested, a), append(names, a.Name)
	}
	lathe, err := lathe()
	if err != nil {
		t.Fatal(err)
	}
	cells := effectCells(names)
	base := effectGateway(t, cells)
	t.Cleanup(func() { effectTable(t, names, cells) })
	slots := make(chan struct{}, 2)
	for _, a := range tested {
		for j := range failurePlaces {
			c := cells[a.Name+"."+failurePlaces[j].name]
			if c.place.name == "client-timeout" {
				c.outcome = "not tried"
				continue
			}
			t.Run(c.model(), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				runAgent(t, a, root, lathe, base, c)
				c.check(t)
			})
		}
	}
}

// runAgent asks an agent the prompt of a cell.
func runAgent(t *testing.T, a *agents.Agent, root, lathe, base string, c *effectCell) {
	s := &agents.Setting{Home: t.TempDir(), URL: strings.TrimSuffix(base, "/v1"), Model: c.model()}
	work := filepath.Join(s.Home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.Write(lathe, s); err != nil {
		t.Fatal(err)
	}
	command := func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), agentTime)
		defer cancel()
		name, args, env := a.Command(root, s, effectPrompt)
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = work, env
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = 2 * time.Second
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			err = errors.New("stopped by the test")
		}
		return string(out), err
	}
	began := time.Now()
	out, err := command()
	took := time.Since(began).Round(time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.Contains(out, effectAnswer):
		c.outcome = fmt.Sprint("answer ", took)
	case err != nil:
		c.outcome = fmt.Sprintf("%v %s", err, took)
	default:
		c.outcome = fmt.Sprint("none ", took)
	}
	if tail, _ := json.Marshal(out[max(0, len(out)-400):]); !strings.HasPrefix(c.outcome, "answer") {
		t.Logf("%s: %s", c.outcome, tail)
	}
}
