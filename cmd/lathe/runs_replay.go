package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/tool"
)

type replayFlags struct {
	Tools string `flag:"tools" default:"recorded" usage:"*who* answers calls: recorded, or live for the tools themselves, whose effects then happen again"`
	JSON  bool   `flag:"json" usage:"print the new events as JSON lines"`
	Log   string `flag:"log" usage:"log to stderr from this *level* up: debug, info, warn, error"`
}

func runsReplayCommand() *cobra.Command {
	var f replayFlags
	cmd := withFlags(&cobra.Command{
		Use: "replay FILE", Short: "Run an exported run again, and say what differs", Args: oneFile,
		Long: `Runs an exported run again: the model says what it said then, people answer what they answered, and tools
answer from the record, or with --tools live run anew. Settings, policy and the definitions of tools are those
of lathe.yaml. Nothing is stored. Exit code 1 says that something came out otherwise; times do not count.`,
		Example: `  lathe runs export run_01 > run.jsonl
  lathe runs replay run.jsonl
  lathe runs replay --tools live --config next.yaml run.jsonl`,
		RunE: f.replay,
	}, &f)
	group(cmd, "Settings and limits, with their defaults (tool_calling in lathe.yaml; see docs/config.md):", addSettings)
	return cmd
}

func (f *replayFlags) replay(cmd *cobra.Command, args []string) error {
	if f.Tools != "recorded" && f.Tools != "live" {
		return usageError("--tools %q: want recorded or live", f.Tools)
	}
	r, err := readRecord(args[0])
	if err != nil {
		return err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, "")
	if err != nil {
		return err
	}
	cfg, err := loadConfig(configPath(cmd), settingOverrides(cmd))
	if err != nil {
		return err
	}
	tools, err := startAllTools(cmd, cfg, &app.ServerOptions{Log: log}, showProgress)
	if err != nil {
		return err
	}
	defer tools.Close()
	warnOfServers(cmd, tools.Servers)
	var sinks []event.Sink
	var lines *observe.JSONLines
	if f.JSON {
		lines = observe.NewJSONLines(jsonOut(cmd.OutOrStdout()), &observe.JSONLinesOptions{Content: true})
		sinks = append(sinks, lines)
	}
	res, err := r.Run(cmd.Context(), func(p *replay.Parts) (*loop.Loop, error) { return f.loop(cfg, tools.Set, r, p, log) }, sinks...)
	if err != nil {
		return err
	}
	if lines != nil && lines.Err() != nil {
		return failure("writing events: %w", lines.Err())
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	return f.printResult(cmd, r, res)
}

// loop makes the loop for the recorded model with the current configuration.
func (f *replayFlags) loop(cfg *config.Config, set *tool.Set, r *replay.Record, p *replay.Parts, log *slog.Logger) (*loop.Loop, error) {
	entry := cmp.Or(r.Started().Target, r.Started().Model)
	settings, given := cfg.Settings(), []lathe.Member(nil)
	if m, err := cfg.Model(entry); err == nil && entry != "" {
		settings, given = cfg.SettingsFor(m), app.Overrides(m)
	}
	if f.Tools == "recorded" {
		var err error
		if set, err = r.StandIns(set, cfg.Limits()); err != nil {
			return nil, exitCause(exitConfig, err)
		}
	}
	opts, err := app.RunnerOptions(cfg, &app.CallOptions{Approver: p.Approver, Log: log})
	if err != nil {
		return nil, err
	}
	opts.Now = p.Now
	var keep *loop.Retention // as in the record, with which the new run is compared
	if recorded := r.Started().Retention; recorded != nil {
		keep = loop.RetentionOf(recorded)
	}
	runner, err := tool.NewRunner(set, opts)
	if err != nil {
		return nil, exitCause(exitConfig, err)
	}
	l, err := loop.New(p.Model, runner, &loop.Options{Settings: settings, Limits: cfg.Limits(), Policy: opts.Policy, Overrides: given, Retention: keep, Now: p.Now})
	if err != nil {
		return nil, exitCause(exitConfig, err)
	}
	return l, nil
}

// maxShown is the largest number of differences that are printed.
const maxShown = 20

// printResult prints the differences.
func (f *replayFlags) printResult(cmd *cobra.Command, r *replay.Record, res *replay.Result) error {
	differences, err := r.Compare(res, f.Tools == "recorded")
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.JSON {
		out = cmd.ErrOrStderr()
	}
	if last := int64(len(r.Events)); res.Until < last {
		cmd.PrintErrf("note: a process ended after event %d of %d: what follows is not compared\n", res.Until, last)
	}
	if len(differences) == 0 {
		fmt.Fprintf(out, "ok: %d events came out as they were\n", res.Until)
		return nil
	}
	for i := range differences {
		if i == maxShown {
			fmt.Fprintf(out, "and %d more\n", len(differences)-i)
			break
		}
		printDifference(out, &differences[i])
	}
	return failure("the run came out otherwise")
}

func printDifference(out io.Writer, d *replay.Difference) {
	show := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return clipArgs(visible(s))
	}
	where := d.Type
	if d.Path != "" {
		where += " " + d.Path
	}
	fmt.Fprintf(out, "event %d %s\n  was %s\n  is  %s\n", d.EventID, where, show(d.Recorded), show(d.Now))
}
