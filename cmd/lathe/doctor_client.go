package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/connect"
	"github.com/lathe-run/lathe/internal/lazy"
)

// Limits of running an agent to get its version.
const (
	versionTimeout = 30 * time.Second
	maxVersionText = 4 << 10 // bytes of output
)

type doctorClientFlags struct {
	URL    string `flag:"url" usage:"*address* of the gateway that the settings must name; without it any"`
	KeyEnv string `flag:"key-env" usage:"*variable* of the environment that holds the key, for an agent whose files do not name it"`
	JSON   bool   `flag:"json" usage:"print JSON"`
}

func doctorClientCommand() *cobra.Command {
	var f doctorClientFlags
	return withFlags(&cobra.Command{
		Use:   "client [flags] AGENT",
		Short: "Examine a coding agent: its program, its settings, and the gateway that they name",
		Long: `Looks for the agent's program on the PATH and for its version, compares its settings with those that
` + "`lathe connect AGENT --write`" + ` writes, and asks the gateway that they name for its models and for a short answer on
the agent's wire.

Exit codes: 0 all is as it must be, 1 something is not, 2 usage.`,
		Example: "  lathe doctor client codex\n  lathe doctor client gemini-cli --url http://127.0.0.1:8700 --key-env LATHE_API_KEY",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("want one AGENT: %s", strings.Join(connect.Names(), ", "))
			}
			return nil
		},
		RunE:      f.run,
		ValidArgs: connect.Names(),
	}, &f)
}

// A clientCheck is one line of `lathe doctor client`.
type clientCheck struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// A clientReport is the result of `lathe doctor client`.
type clientReport struct {
	Agent  string        `json:"agent"`
	Wire   string        `json:"wire"`
	Checks []clientCheck `json:"checks"`
}

func (r *clientReport) add(check string, err error, format string, args ...any) {
	c := clientCheck{Check: check, OK: err == nil, Detail: fmt.Sprintf(format, args...)}
	if err != nil {
		c.Detail = err.Error()
	}
	r.Checks = append(r.Checks, c)
}

func (f *doctorClientFlags) run(cmd *cobra.Command, args []string) error {
	a, err := findAgent(args[0])
	if err != nil {
		return err
	}
	dirs, err := agentDirs()
	if err != nil {
		return err
	}
	r := &clientReport{Agent: a.Name, Wire: a.Wire}
	if path, err := exec.LookPath(a.Program); err != nil {
		r.add("program", fmt.Errorf("%s is not on the PATH", a.Program), "")
	} else {
		r.add("program", nil, "%s", dirs.Short(path))
		version, err := agentVersion(cmd.Context(), path)
		if version != a.Tested {
			version += "; " + a.Tested + " is the version that was tested"
		}
		r.add("version", err, "%s", version)
	}
	if s := f.settings(r, a, dirs); s != nil {
		f.server(cmd.Context(), r, a, s)
	}
	if cmd.Context().Err() != nil {
		return errInterrupted
	}
	if err := show(cmd, f.JSON, r, r.print); err != nil {
		return err
	}
	for _, c := range r.Checks {
		if !c.OK {
			return errReported
		}
	}
	return nil
}

var versionNumber = lazy.Regexp(`\d+\.\d+\.\d+[0-9A-Za-z.+-]*`)

// agentVersion runs the program with --version and returns the version in its output.
func agentVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout // some agents print the version to standard error
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", fmt.Errorf("asking for the version: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(out, maxVersionText))
	err = errors.Join(err, cmd.Wait())
	if version := versionNumber().FindString(string(text)); version != "" {
		return version, nil
	}
	return "", errors.Join(errors.New("the program does not print its version"), err)
}

// settings checks the files of the agent and the variable of the key. It returns nil if the files name no gateway.
func (f *doctorClientFlags) settings(r *clientReport, a *connect.Agent, dirs *connect.Dirs) *connect.Settings {
	s, differences, err := connect.Read(a, dirs, f.KeyEnv)
	next := fmt.Sprintf("`lathe connect %s --write` writes the settings", a.Name)
	if errors.Is(err, connect.ErrUnreadable) {
		next = "mend the file, or move it away; after that " + next
	}
	if err != nil {
		r.add("settings", fmt.Errorf("%w; %s", err, next), "")
		return nil
	}
	if f.URL != "" && s.URL != withoutVersion(f.URL) {
		r.add("settings", fmt.Errorf("they name %s, and not %s; %s", s.URL, f.URL, next), "")
		return nil
	}
	for _, d := range differences {
		r.add("settings", fmt.Errorf("%s; %s", d, next), "")
	}
	if len(differences) == 0 {
		r.add("settings", nil, "they name %s and the model %s", s.URL, s.Model)
	}
	if s.KeyEnv != "" {
		err := error(nil)
		if os.Getenv(s.KeyEnv) == "" {
			err = fmt.Errorf("the variable %s is not set: export it before the agent is started", s.KeyEnv)
		}
		r.add("key", err, "the variable %s is set", s.KeyEnv)
	}
	return s
}

// server checks the gateway that the settings name.
func (f *doctorClientFlags) server(ctx context.Context, r *clientReport, a *connect.Agent, s *connect.Settings) {
	t, err := newConnectTarget(s.URL, s.KeyEnv)
	var models []string
	if err == nil {
		models, err = t.models(ctx)
	}
	r.add("gateway", err, "%s answers", s.URL)
	if err != nil {
		return
	}
	if _, err = chooseModel(s.Model, models); err != nil {
		r.add("model", err, "")
		return
	}
	path, err := t.ask(ctx, a.Wire, s.Model)
	r.add("wire", err, "%s answers on POST %s", s.Model, path)
}

// print writes one line for each check.
func (r *clientReport) print(w io.Writer) error {
	for _, c := range r.Checks {
		word := "ok"
		if !c.OK {
			word = "broken"
		}
		if _, err := fmt.Fprintf(w, "%-6s  %-8s  %s\n", word, c.Check, printable(c.Detail)); err != nil {
			return err
		}
	}
	return nil
}
