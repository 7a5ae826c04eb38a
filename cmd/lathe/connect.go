package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/connect"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
)

type connectFlags struct {
	URL     string `flag:"url" usage:"*address* of the gateway (default $LATHE_SERVER, else http://127.0.0.1:8700)"`
	Model   string `flag:"model" usage:"*name* of a model of the gateway; may be left out if it has one"`
	KeyEnv  string `flag:"key-env" usage:"*variable* of the environment that holds a key of the gateway; without it none is sent"`
	Write   bool   `flag:"write" usage:"write the settings into the agent's files, and keep their former content beside them"`
	Undo    bool   `flag:"undo" usage:"take out of the files what --write put in"`
	DryRun  bool   `flag:"dry-run" usage:"with --write: say which files would be written, and write none"`
	NoCheck bool   `flag:"no-check" usage:"do not ask the gateway"`
	JSON    bool   `flag:"json" usage:"print JSON"`
}

func connectCommand() *cobra.Command {
	var f connectFlags
	return withFlags(&cobra.Command{
		Use:   "connect [flags] [AGENT]",
		Short: "Set up a coding agent to use a gateway",
		Long: `Prints the settings with which a coding agent uses a gateway, and checks that the gateway answers on the wire of
that agent. --write puts them into the agent's own files and keeps what was there; --undo takes them back. Without
AGENT the agents are listed.

No key is written: the settings name the variable of the environment that holds it.

Exit codes: 0 done, 1 failed, 2 usage, 4 the gateway does not answer as it must.`,
		Example: `  lathe connect
  lathe connect codex --model sim/demo
  lathe connect claude-code --url https://lathe.example.com --model fast --key-env LATHE_API_KEY --write
  lathe connect claude-code --undo`,
		Args:              wants(0, 1, "want one AGENT, got %d"),
		RunE:              f.run,
		ValidArgsFunction: first(words(connect.Names()...)),
	}, &f)
}

// A connection is the output of `lathe connect`.
type connection struct {
	Agent       string             `json:"agent"`
	Wire        string             `json:"wire"`
	URL         string             `json:"url,omitempty"`
	Model       string             `json:"model,omitempty"`
	Files       []settingsFile     `json:"files"`
	Environment []connect.Variable `json:"environment,omitempty"`
	Start       string             `json:"start,omitempty"`
	Checks      []string           `json:"checks,omitempty"`
}

type settingsFile struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"` // only the settings
	Written bool   `json:"written,omitempty"`
	Backup  string `json:"backup,omitempty"`
	// Left are settings that --undo did not remove, because their values have been changed since --write.
	Left []string `json:"left,omitempty"`
}

func (f *connectFlags) run(cmd *cobra.Command, args []string) error {
	dirs, err := agentDirs()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		if f.Write || f.Undo || f.Model+f.URL+f.KeyEnv != "" {
			return usageError("name an agent: %s", strings.Join(connect.Names(), ", "))
		}
		return listAgents(cmd, dirs, f.JSON)
	}
	agent, err := findAgent(args[0])
	switch {
	case err != nil:
		return err
	case f.Write && f.Undo:
		return usageError("give one of --write and --undo")
	case f.DryRun && !f.Write:
		return usageError("--dry-run goes with --write")
	}
	record, err := connectRecord(agent)
	if err != nil {
		return err
	}
	if f.Undo {
		return f.takeBack(cmd, agent, dirs, record)
	}
	return f.connect(cmd, agent, dirs, record)
}

// connect prints the settings of the agent or writes them, and asks the gateway for an answer.
func (f *connectFlags) connect(cmd *cobra.Command, agent *connect.Agent, dirs *connect.Dirs, record string) error {
	gateway, err := newConnectTarget(f.URL, f.KeyEnv)
	if err != nil {
		return err
	}
	settings, result, err := f.settings(cmd, agent, gateway)
	if err != nil {
		return err
	}
	files := agent.Files(dirs, settings)
	for _, file := range files {
		text, err := file.Format.Merge(nil, file.Entries)
		if err != nil {
			return err
		}
		result.Files = append(result.Files, settingsFile{Path: file.Path, Content: string(text)})
	}
	if agent.Environment != nil {
		result.Environment = agent.Environment(settings)
	}
	result.Start = agent.Start(settings)
	if f.Write {
		changes, err := f.write(record, files)
		if err != nil {
			return notWritten(err, agent)
		}
		for i, change := range changes {
			result.Files[i].Written, result.Files[i].Backup = change.Changed, change.Backup
		}
	}
	var problem error // the settings are shown even if the check fails
	if !f.NoCheck {
		var path string
		if path, problem = gateway.ask(cmd.Context(), agent.Wire, settings.Model); problem == nil {
			result.Checks = append(result.Checks, fmt.Sprintf("%s answers on POST %s", result.Model, path))
		}
	}
	return errors.Join(show(cmd, f.JSON, result, func(w io.Writer) error { return f.print(w, result, dirs) }), problem)
}

// write writes the settings or, with --dry-run, returns what would be written.
func (f *connectFlags) write(record string, files []connect.File) ([]connect.Change, error) {
	if f.DryRun {
		return connect.Plan(files)
	}
	return connect.Write(record, files)
}

// notWritten returns an error with advice if settings could not be written.
func notWritten(err error, a *connect.Agent) error {
	hint := ""
	if errors.Is(err, connect.ErrUnreadable) || errors.Is(err, connect.ErrNotEdited) || errors.Is(err, connect.ErrNotReplaced) {
		hint = fmt.Sprintf("; nothing was written: add by hand what `lathe connect %s` prints, or move the file away", a.Name)
	}
	return failure("%w%s", err, hint)
}

// settings returns the settings for the agent. Unless --no-check is given, it requests the list of models from the gateway.
func (f *connectFlags) settings(cmd *cobra.Command, a *connect.Agent, t *connectTarget) (*connect.Settings, *connection, error) {
	c := &connection{Agent: a.Name, Wire: a.Wire, URL: t.url, Model: f.Model}
	switch {
	case !f.NoCheck:
		models, err := t.models(cmd.Context())
		if err != nil {
			return nil, nil, err
		}
		if c.Model, err = chooseModel(f.Model, models); err != nil {
			return nil, nil, err
		}
		c.Checks = append(c.Checks, fmt.Sprintf("%s answers and has %s", t.url, count(len(models), "model")))
	case f.Model == "":
		return nil, nil, usageError("--no-check wants --model NAME")
	}
	return &connect.Settings{URL: t.url, Model: c.Model, KeyEnv: f.KeyEnv}, c, nil
}

// takeBack removes the settings that --write has written.
func (f *connectFlags) takeBack(cmd *cobra.Command, a *connect.Agent, dirs *connect.Dirs, record string) error {
	changes, err := connect.Undo(record)
	switch {
	case errors.Is(err, connect.ErrNothingWritten):
		return usageError("nothing was written for %s: `lathe connect %s --write` does", a.Name, a.Name)
	case err != nil:
		return err
	}
	c := &connection{Agent: a.Name, Wire: a.Wire}
	for _, change := range changes {
		c.Files = append(c.Files, settingsFile{Path: change.Path, Backup: change.Backup, Left: change.Left})
	}
	if f.JSON {
		return writeJSON(cmd, c)
	}
	for _, change := range changes {
		cmd.Printf("restored %s\n", dirs.Short(change.Path))
		for _, setting := range change.Left {
			cmd.Printf("  %s was changed since it was written, and is left as it is\n", setting)
		}
		if change.Backup != "" {
			cmd.Printf("  its former content is in %s\n", dirs.Short(change.Backup))
		}
	}
	return nil
}

// print writes the settings, or with --write the changes of files, and the command that starts the agent.
func (f *connectFlags) print(w io.Writer, c *connection, dirs *connect.Dirs) error {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintln(&b, printable(fmt.Sprintf(format, args...))) }
	for _, file := range c.Files {
		path := dirs.Short(file.Path)
		switch {
		case !f.Write:
			add("# %s", path)
			for line := range strings.SplitSeq(file.Content, "\n") { // Content ends with a line end: the last line is empty
				add("%s", line)
			}
		case !file.Written:
			add("%s has these settings already", path)
		case f.DryRun:
			add("%s would be written", path)
		case file.Backup != "":
			add("wrote %s; its former content is in %s", path, dirs.Short(file.Backup))
		default:
			add("wrote %s", path)
		}
	}
	for _, check := range c.Checks {
		add("ok: %s", check)
	}
	for _, v := range c.Environment {
		value := v.Value
		if v.From != "" {
			value = "$" + v.From
		}
		add(`set: export %s="%s"`, v.Name, value)
	}
	if f.KeyEnv != "" && os.Getenv(f.KeyEnv) == "" {
		add("note: the variable %s is not set here; the agent needs it", f.KeyEnv)
	}
	add("start: %s", c.Start)
	if !f.Write {
		add("`lathe connect %s --write` writes these settings, and --undo restores the files", c.Agent)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func listAgents(cmd *cobra.Command, dirs *connect.Dirs, asJSON bool) error {
	type row struct {
		Agent string   `json:"agent"`
		Wire  string   `json:"wire"`
		Files []string `json:"files"`
	}
	var rows []row
	for _, a := range connect.Agents {
		r := row{Agent: a.Name, Wire: a.Wire}
		for _, file := range a.Files(dirs, &connect.Settings{}) {
			r.Files = append(r.Files, file.Path)
		}
		rows = append(rows, r)
	}
	if asJSON {
		return writeJSON(cmd, rows)
	}
	var t report.Table
	t.Row("AGENT", "WIRE", "SETTINGS")
	for _, r := range rows {
		for i := range r.Files {
			r.Files[i] = dirs.Short(r.Files[i])
		}
		t.Row(r.Agent, r.Wire, strings.Join(r.Files, ", "))
	}
	return t.Write(cmd.OutOrStdout())
}

func findAgent(name string) (*connect.Agent, error) {
	if a := connect.Find(name); a != nil {
		return a, nil
	}
	names := connect.Names()
	return nil, usageError("no agent %q: %s", name, text.Suggest(name, names, "there are "+strings.Join(names, ", ")))
}

// agentDirs returns the directories in which agents store their settings.
func agentDirs() (*connect.Dirs, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, usageError("finding the settings of agents: %w", err)
	}
	return &connect.Dirs{Home: home, Getenv: os.Getenv}, nil
}

// connectRecord returns the path of the record of written settings for an agent.
func connectRecord(a *connect.Agent) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", usageError("finding a folder for the record of what is written: %w", err)
	}
	return filepath.Join(dir, "lathe", "connect", a.Name+".json"), nil
}
