package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/sim"
)

type doctorFlags struct {
	upstreamFlags
	Timeout time.Duration `flag:"timeout" default:"1m" usage:"*time* of one request"`
	Write   string        `flag:"write" usage:"write a configuration with what was found to this *file*, which must not exist"`
	JSON    bool          `flag:"json" usage:"print the report as JSON"`
	Quiet   bool          `flag:"quiet,q" usage:"no progress on stderr"`
}

func doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := withFlags(&cobra.Command{
		Use:   "doctor [flags] [MODEL]",
		Short: "Examine a model server: what works, what does not, and what to set",
		Long: `Makes some twenty small requests to a model server (answers, streams, tool calls, errors) and says what its
wire does, what Lathe does about it, and what to set. MODEL is a configured model, sim/…, or with --base-url
the name of a model on that server. Without any, the default model is examined, and without a configuration
the simulated one. --write makes a configuration of what was found.

Exit codes: 0 nothing is broken, 1 something is, 2 usage, 3 config, 4 nothing answers.`,
		Example: `  lathe doctor --base-url http://127.0.0.1:11434/v1 qwen3
  lathe doctor --base-url https://api.openai.com/v1 --key-env OPENAI_API_KEY gpt-5-mini --write lathe.yaml
  lathe doctor sim/fault-id-late`,
		Args:              wants(0, 1, "want one MODEL, got %d"),
		RunE:              f.run,
		ValidArgsFunction: first(completeModels),
	}, &f)
	cmd.Flags().Lookup("model").Usage = "`name` of the model; the same as MODEL"
	cmd.AddCommand(doctorClientCommand())
	return cmd
}

func (f *doctorFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if f.Model != "" && f.Model != args[0] {
			return usageError("MODEL and --model name two models: give one")
		}
		f.Model = args[0]
	}
	if err := f.check(); err != nil {
		return err
	}
	view := commandScreen(cmd)
	view.quiet = f.Quiet
	target, err := f.target(cmd, view)
	if err != nil {
		return err
	}
	started := time.Now()
	rep, err := examineModel(cmd.Context(), view, target, &doctor.Options{Timeout: f.Timeout})
	if err != nil {
		return f.ended(cmd, err)
	}
	err = show(cmd, f.JSON, rep, func(io.Writer) error { return writeReport(view, rep, time.Since(started)) })
	if err == nil && f.Write != "" {
		if err = writeNew(f.Write, rep.Profile.YAML()); err == nil {
			view.note("wrote " + f.Write + "; `lathe run --config " + f.Write + " PROMPT` uses it")
		}
	}
	if err != nil {
		return err
	}
	if rep.Broken() {
		return errReported
	}
	return nil
}

// check returns a usage error for flags that are out of range, or for a file that cannot be written: before the examination rather than after
// it.
func (f *doctorFlags) check() error {
	if f.Timeout <= 0 {
		return usageError("--timeout wants a time above 0, such as 30s")
	}
	if f.Write == "" {
		return nil
	}
	if _, err := os.Lstat(f.Write); !errors.Is(err, fs.ErrNotExist) {
		return usageError("--write %s: the file is there already; name another, or move it away", f.Write)
	}
	if _, err := os.Stat(filepath.Dir(f.Write)); err != nil {
		return usageError("--write %s: the folder is not there", f.Write)
	}
	return nil
}

// examineModel calls [doctor.Run] and shows the progress.
func examineModel(ctx context.Context, view *screen, target *doctor.Target, opts *doctor.Options) (*doctor.Report, error) {
	work := startProgress(view.err, view.quiet)
	defer work.Stop()
	opts.Progress = func(probe string, n, of int) { work.Say(fmt.Sprintf("probe %d of %d: %s", n, of, probe)) }
	return doctor.Run(ctx, *target, opts)
}

// ended returns an error with the reason why there is no report.
func (f *doctorFlags) ended(cmd *cobra.Command, err error) error {
	var none *doctor.UnreachableError
	switch {
	case cmd.Context().Err() != nil:
		return errInterrupted
	case errors.As(err, &none) && none.Mistake:
		return &exitError{exitUpstream, errors.New(printable(none.Error()))}
	case errors.As(err, &none):
		return exit(exitUpstream, "%s; start the server, or check scheme, host and port of the base URL", printable(none.Error()))
	}
	return exitCause(exitConfig, err)
}

// writeNew writes a file, which must not exist.
func writeNew(path string, b []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	_, err = file.Write(b)
	return errors.Join(err, file.Close())
}

// target returns the model to examine, selected as in a run.
func (f *doctorFlags) target(cmd *cobra.Command, view *screen) (*doctor.Target, error) {
	cfg, name, err := (&runFlags{modelFlags: modelFlags{upstreamFlags: f.upstreamFlags}}).load(cmd)
	if err != nil {
		return nil, err
	}
	return f.targetOf(cfg, name, view)
}

// targetOf does the same as target for a model in the configuration; "" means the default model.
func (f *doctorFlags) targetOf(cfg *config.Config, name string, view *screen) (*doctor.Target, error) {
	entry, err := cfg.Model(name)
	if err != nil {
		return nil, usageError("%w", modelAdvice(err, "sim/demo"))
	}
	simOpts, err := app.SimOptions(cfg, "", "")
	if err != nil {
		return nil, err
	}
	if _, err := app.NewProvider(entry, &app.ModelOptions{Sim: simOpts}); err != nil {
		return nil, err // a run would return the same error
	}
	t := &doctor.Target{Name: entry.Name, Model: entry.Model, Wire: entry.Wire, BaseURL: cmp.Or(entry.BaseURL.Reveal(), doctor.VendorURL(entry.Wire)),
		Key: entry.Key.Secret(), Headers: map[string]secret.Secret{}, Overrides: app.Overrides(entry), NoUsage: !entry.IncludeUsage,
		MaxCompletionTokens: entry.MaxCompletionTokens}
	if t.Name == commandLineModel {
		t.Name = entry.Model
	}
	for header, value := range entry.Headers {
		t.Headers[header] = value.Secret()
	}
	if t.Entry, err = profileEntry(cfg, entry.Name, view); err != nil {
		return nil, err
	}
	if entry.Provider != sim.Provider {
		return t, nil
	}
	t.BaseURL, t.Transport = "http://sim.invalid/v1", sim.New(simOpts).Transport()
	if len(t.Entry) == 0 { // a simulated model needs no entry
		t.Entry = []doctor.Setting{{Key: "provider", Value: "sim"}, {Key: "model", Value: entry.Model}}
	}
	if name == "" && cfg.DefaultModel == "" && len(cfg.Models) == 0 {
		view.note("no model is configured: the simulated " + entry.Name + " is examined; --base-url and --model reach a real one")
	}
	return t, nil
}

// profileEntry returns the settings that the configuration itself has for a model, except those that must not be written again.
func profileEntry(cfg *config.Config, name string, view *screen) ([]doctor.Setting, error) {
	var doc struct {
		Models map[string]yaml.Node `yaml:"models"`
	}
	if err := yaml.Unmarshal(cfg.YAML(), &doc); err != nil {
		return nil, fmt.Errorf("reading the configuration in force: %w", err)
	}
	var out []doctor.Setting
	// walk appends the settings of a mapping, whose Content has keys and values in turn. The settings of transforms are those of the mapping
	// below it.
	var walk func(prefix string, n *yaml.Node) error
	walk = func(prefix string, n *yaml.Node) error {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := prefix+n.Content[i].Value, n.Content[i+1]
			if key == "transforms" {
				if err := walk("transforms.", value); err != nil {
					return err
				}
				continue
			}
			from := cfg.Origin("models." + name + "." + key)
			isInherited := from == "default" || strings.HasPrefix(from, "profile ") || strings.HasPrefix(from, "preset ")
			if isInherited {
				continue
			}
			value.Style |= yaml.FlowStyle
			text, err := yaml.Marshal(value)
			if err != nil {
				return err
			}
			if strings.Contains(string(text), secret.Redacted) {
				view.note(key + " holds a secret itself and is left out of the profile: write a reference such as ${NAME} there")
				continue
			}
			out = append(out, doctor.Setting{Key: key, Value: strings.TrimSpace(string(text)), Raw: true})
		}
		return nil
	}
	node := doc.Models[name]
	return out, walk("", &node)
}
