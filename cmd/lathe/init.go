package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/private"
	"github.com/lathe-run/lathe/lab/doctor"
)

const (
	usualUpstream  = "http://127.0.0.1:11434/v1" // default address of Ollama
	maxModelList   = 1 << 20                     // bytes of the list of models of a server
	maxShownModels = 30
	listTimeout    = 10 * time.Second
)

// initFlags are the flags of init, and the state of its run.
type initFlags struct {
	upstreamFlags      // init completes them with the answers of the user and the models that the server lists
	NoCheck       bool `flag:"no-check" usage:"ask the server nothing"`
	Force         bool `flag:"force" usage:"write over a file that is there"`
	Print         bool `flag:"print" usage:"print the file, and write nothing"`
	DryRun        bool `flag:"dry-run" usage:"say what would be written, and write nothing"`

	// run sets these fields.
	answers *bufio.Reader // standard input, if a user can answer questions; else nil
	view    *screen
}

func initCommand() *cobra.Command {
	var f initFlags
	return withFlags(&cobra.Command{
		Use:   "init [flags]",
		Short: "Write a commented lathe.yaml for a model server",
		Long: `Writes lathe.yaml, or the file that --config names, for one model server, with the documentation of its settings as comments.
It asks on a terminal for what no flag says. Elsewhere --model is needed if the server has several models. The first probes of
` + "`lathe doctor`" + ` are made, and what they find is set, unless --no-check is given. A file that is there is left as it is, unless --force is given.`,
		Example: `  lathe init
  lathe init --base-url http://127.0.0.1:11434/v1 --model qwen3
  lathe init --base-url https://api.openai.com/v1 --key-env OPENAI_API_KEY --model gpt-5-mini --print`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              f.run,
	}, &f)
}

func (f *initFlags) run(cmd *cobra.Command, _ []string) error {
	path := cmp.Or(configPath(cmd), defaultConfigFile)
	if !f.Print && !f.DryRun {
		if err := f.checkFile(path); err != nil {
			return err
		}
	}
	f.view = commandScreen(cmd)
	if in := cmd.InOrStdin(); isTerminal(in) && f.view.errTerm {
		f.answers = bufio.NewReader(interruptible(cmd.Context(), in))
	}
	if err := f.askForFlags(cmd.Context()); err != nil {
		return err
	}
	profile, err := f.examine(cmd)
	if err != nil {
		return err
	}
	starter := config.Starter{Name: profile.Name, Head: "Written by lathe init. `lathe config check` checks it, `lathe chat`, `lathe run` and `lathe serve` use it, " +
		"and docs/config.md has every setting. A setting with a mark before it is not in force: remove the mark, and it is."}
	for _, s := range profile.Settings {
		starter.Model = append(starter.Model, config.StarterSetting{Key: s.Key, Value: s.YAML(), Why: s.For})
	}
	text := starter.YAML()
	switch {
	case f.Print:
		_, err = cmd.OutOrStdout().Write(text)
	case f.DryRun:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes would be written\n", path, len(text))
	default:
		if err = (&private.File{Path: path}).Replace(text); err == nil {
			f.view.note("wrote " + path + "; next: `lathe chat`, or `lathe serve` and `lathe open`")
		}
	}
	return err
}

// checkFile returns an error if the file must not be written.
func (f *initFlags) checkFile(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() { // --force cannot replace a folder
		return usageError("%s is a folder: name the configuration file in it, such as %s", path, filepath.Join(path, defaultConfigFile))
	}
	_, err := os.Lstat(path)
	switch {
	case f.Force || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return usageError("%s is there already: --force writes over it, --print shows the new one, and --config names another file", path)
}

// examine returns the configuration entry of the model, including findings of quick probes.
func (f *initFlags) examine(cmd *cobra.Command) (*doctor.Profile, error) {
	// The configuration and the name of its model are those of lathe run with the same flags. With --no-check, the key need not exist yet.
	flags := runFlags{modelFlags: modelFlags{upstreamFlags: f.upstreamFlags}, keyLater: f.NoCheck}
	overrides, name, err := flags.overrides(cmd)
	if err != nil {
		return nil, err
	}
	load := &app.LoadOptions{Overrides: overrides, Environ: os.Environ()}
	if f.NoCheck && f.KeyEnv != "" { // the configuration refuses a variable that is not set; without checks, any value will do
		load.Environ = append(load.Environ, f.KeyEnv+"=unset")
	}
	cfg, err := app.LoadConfig("", load) // without a file, because init creates one
	if err != nil {
		return nil, configError(err)
	}
	asDoctor := doctorFlags{upstreamFlags: f.upstreamFlags}
	target, err := asDoctor.targetOf(cfg, name, f.view)
	if err != nil {
		return nil, err
	}
	if f.NoCheck {
		return doctor.NewProfile(*target), nil
	}
	report, err := examineModel(cmd.Context(), f.view, target, &doctor.Options{Quick: true})
	if err != nil {
		err = asDoctor.ended(cmd, err)
		var e *exitError
		if cmd.Context().Err() == nil && errors.As(err, &e) {
			err = &exitError{e.code, fmt.Errorf("%w; --no-check writes the file all the same", e.err)}
		}
		return nil, err
	}
	for _, finding := range report.Findings {
		if finding.Severity != doctor.Note {
			f.view.warn(printable(finding.Seen + " " + finding.Then))
		}
	}
	return &report.Profile, nil
}

// deriveFlags is askForFlags without a user: it sets the model if the server lists only one. If the server lists several, it returns an
// error with the names.
func (f *initFlags) deriveFlags(ctx context.Context) error {
	if f.BaseURL == "" {
		return usageError("which model server? give --base-url URL and --model NAME, such as --base-url %s --model qwen3", usualUpstream)
	}
	if f.Model != "" || f.NoCheck {
		return nil
	}
	switch names := f.listed(ctx); len(names) {
	case 0: // a missing model has its own error
	case 1:
		f.Model = names[0]
		f.view.note("the server has one model: " + printable(names[0]))
	default:
		return usageError("--base-url needs --model: %s", printable(strings.Join(names, ", ")))
	}
	return nil
}

// askForFlags asks the user, if there is one, for values that no flag sets.
func (f *initFlags) askForFlags(ctx context.Context) (err error) {
	if f.answers == nil {
		return f.deriveFlags(ctx)
	}
	if f.BaseURL == "" {
		if f.BaseURL, err = f.ask("address of the model server ["+usualUpstream+"]: ", usualUpstream); err != nil {
			return err
		}
		if f.KeyEnv == "" && f.KeyFile == "" {
			if f.KeyEnv, err = f.ask("variable of the environment that holds its key [none]: ", ""); err != nil {
				return err
			}
		}
	}
	if f.Model != "" {
		return nil
	}
	return f.askForModel(ctx)
}

// askForModel asks the user for the model, with the models that the server lists.
func (f *initFlags) askForModel(ctx context.Context) error {
	names := f.listed(ctx)
	for i, name := range names {
		f.view.ask(fmt.Sprintf("  %d  %s\n", i+1, printable(name)))
	}
	question, first := "model: ", ""
	if len(names) > 0 {
		first = names[0]
		question = "model, by number or name [" + printable(first) + "]: "
	}
	answer, err := f.ask(question, first)
	number, _ := strconv.Atoi(answer) // 0 if it is not a number
	if number >= 1 && number <= len(names) {
		answer = names[number-1]
	}
	f.Model = answer
	return err
}

// ask asks a question and returns the answer, or usual for an empty line. At the end of input it returns an error.
func (f *initFlags) ask(question, usual string) (string, error) {
	f.view.ask(question)
	line, err := f.answers.ReadString('\n')
	line = strings.TrimSpace(line)
	if line == "" && err != nil {
		return "", failure("nothing was written")
	}
	return cmp.Or(line, usual), nil
}

// listed returns at most maxShownModels models that a server lists. It returns nil on error, because the list is only a help for the user.
func (f *initFlags) listed(ctx context.Context) []string {
	u, err := url.Parse(f.BaseURL)
	if err != nil || u.Host == "" {
		return nil // the error is reported where the URL is used
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	key := os.Getenv(f.KeyEnv)
	if f.KeyFile != "" {
		b, _ := os.ReadFile(f.KeyFile) // the error is reported where the key is used
		key = strings.TrimSpace(string(b))
	}
	req, err := jsonRequest(ctx, http.MethodGet, u.JoinPath("models").String(), key, nil)
	if err != nil {
		return nil
	}
	client := directClient()
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList))
	var list modelList
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(b, &list) != nil {
		return nil
	}
	names := list.names()
	return names[:min(len(names), maxShownModels)]
}
