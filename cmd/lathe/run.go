package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/provider"
)

// maxPrompt is the largest size of a prompt on standard input in bytes.
const maxPrompt = 16 << 20

// endpointFlags select a model server.
type endpointFlags struct {
	BaseURL string `flag:"base-url" usage:"*URL* of a model server, such as http://127.0.0.1:11434/v1" complete:"nothing"`
	Wire    string `flag:"wire" usage:"*name* of the protocol of --base-url: openai, responses, anthropic, gemini; default: by the URL, else openai"`
	KeyFile string `flag:"key-file" usage:"*file* that holds the key of --base-url"`
	KeyEnv  string `flag:"key-env" usage:"*variable* of the environment that holds the key of --base-url" complete:"nothing"`
}

// upstreamFlags select a model server and a model on it.
type upstreamFlags struct {
	Model string `flag:"model" usage:"*name* of a model at --base-url" complete:"models"`
	endpointFlags
}

// modelFlags select the model and how it is called.
type modelFlags struct {
	upstreamFlags
	Dialect       string        `flag:"dialect" usage:"how the model writes calls: native (the default), auto, or a dialect's *name*" complete:"dialects"`
	ClientTimeout time.Duration `flag:"client-timeout" usage:"*time* until the first piece of an answer, retries included; it does not end a stream that has begun (default 2m)" complete:"nothing"`
}

// logFlags select what is logged, and in which format.
type logFlags struct {
	Log    string `flag:"log" usage:"log to stderr from this *level* up: debug, info, warn, error"`
	Format string `flag:"log-format" default:"text" usage:"*format* of log lines: text or json"`
}

// runFlags select the model, the output, and where runs are stored.
type runFlags struct {
	modelFlags
	storeFlags
	JSON      bool `flag:"json" usage:"print every event as a JSON line"`
	NoContent bool `flag:"no-content" usage:"with --json: leave out message, argument and output text"`
	Quiet     bool `flag:"quiet,q" usage:"no tool activity on stderr; warnings stay"`
	logFlags
	Metrics string `flag:"metrics-file" usage:"write the run's metrics to this *file*, in Prometheus' text form"`
	simFlags

	prompt promptFlags
	// keyLater: the variable of KeyEnv need not be set yet.
	keyLater bool
}

// promptFlags set the beginning of a conversation.
type promptFlags struct {
	System string   `flag:"system" usage:"system *text*" complete:"nothing"`
	Tools  []string `flag:"tools" usage:"*names* of the tools that the run may use, \"\" for none; default: all that are configured" complete:"tools"`
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := f.with(&cobra.Command{
		Use:   "run [flags] PROMPT",
		Short: "Run one prompt to its answer, with tools",
		Long: `Runs one prompt to its answer. The text streams to stdout, tool activity goes to stderr. With --json
every event is one JSON line on stdout. With - as PROMPT it is read from standard input.

Without a configured model the simulated one answers. Tools that only read are allowed; other calls require
an approval on the terminal. Without a terminal they are denied, or wait if --store keeps the run.
policy.tools in lathe.yaml decides by name.`,
		Example: `  lathe run "What is 7 + 35, and what time is it in Tokyo?"
  lathe run --json "What is 7 + 35?" | jq -c 'select(.type == "ToolCallResult")'
  lathe run --base-url http://127.0.0.1:11434/v1 --model qwen3 --tools calculator "What is 7 + 35?"
  echo "What is 7 + 35?" | lathe run -`,
		Args:              wants(1, 1, "want one PROMPT, got %d: quote it, or use - to read standard input"),
		RunE:              f.run,
		ValidArgsFunction: cobra.NoFileCompletions,
	})
	withFlags(cmd, &f.prompt)
	group(cmd, "Settings and limits, with their defaults (tool_calling in lathe.yaml; see docs/config.md):", addSettings)
	return cmd
}

// with adds the flags to a command.
func (f *runFlags) with(cmd *cobra.Command) *cobra.Command {
	withFlags(cmd, f).Flags().Lookup("model").Usage = "`name` of a configured model, of a model at --base-url, or sim/…"
	return cmd
}

// commandLineModel is the name of the model entry for --base-url.
const commandLineModel = config.CommandLineModel

// load reads the configuration with the flags applied, and returns the name of the model to use.
func (f *runFlags) load(cmd *cobra.Command) (cfg *config.Config, model string, err error) {
	over, model, err := f.overrides(cmd)
	if err == nil {
		cfg, err = loadConfig(configPath(cmd), over)
	}
	return cfg, model, err
}

// overrides converts flags into settings, and returns the name of the model to use.
func (f *runFlags) overrides(cmd *cobra.Command) (over []config.Override, model string, err error) {
	if err := f.check(cmd); err != nil {
		return nil, "", err
	}
	over = settingOverrides(cmd)
	if f.BaseURL == "" {
		return over, f.Model, nil
	}
	set := func(from, key, value string) {
		over = append(over, config.Override{From: from, Key: "models." + commandLineModel + "." + key, Value: value})
	}
	set("--base-url", "base_url", f.BaseURL)
	set("--model", "model", f.Model)
	if f.Wire != "" {
		set("--wire", "wire", f.Wire)
	}
	if f.KeyFile != "" {
		path, err := filepath.Abs(f.KeyFile) // package config interprets relative paths relative to its file
		if err != nil {
			return nil, "", err
		}
		set("--key-file", "key", "${file:"+path+"}")
	}
	if f.KeyEnv != "" {
		set("--key-env", "key", "${"+f.KeyEnv+"}")
	}
	return over, commandLineModel, nil
}

// check returns a usage error for flags that contradict each other or that are incomplete.
func (f *runFlags) check(cmd *cobra.Command) error {
	switch {
	case f.NoContent && !f.JSON:
		return usageError("--no-content goes with --json")
	case f.KeyFile != "" && f.KeyEnv != "":
		return usageError("give one of --key-file and --key-env")
	case f.ClientTimeout < 0 || f.ClientTimeout == 0 && cmd.Flags().Changed("client-timeout"):
		return usageError("--client-timeout wants a time above 0, such as 30s")
	case f.BaseURL != "":
		return f.checkServer()
	case f.Wire != "":
		return usageError("--wire goes with --base-url; a configured model has its wire in lathe.yaml")
	case f.KeyFile+f.KeyEnv != "":
		return usageError("--key-file and --key-env go with --base-url; a configured model has its key in lathe.yaml")
	}
	return nil
}

// checkServer checks the flags that describe the server at --base-url.
func (f *runFlags) checkServer() error {
	switch {
	case !strings.Contains(f.BaseURL, "://"):
		return usageError("--base-url %s: an address begins with http:// or https://; did you mean http://%s?", printable(f.BaseURL), printable(strings.TrimSuffix(f.BaseURL, "/v1")+"/v1"))
	case f.Model == "":
		return usageError("--base-url needs --model: the name of a model on that server; GET %s/models lists them", printable(strings.TrimSuffix(f.BaseURL, "/")))
	}
	return f.checkKey()
}

// checkKey returns an error about the flags that name a key, in terms of the flags instead of references.
func (f *runFlags) checkKey() error {
	if f.KeyFile != "" {
		if _, err := os.Stat(f.KeyFile); errors.Is(err, fs.ErrNotExist) {
			return usageError("--key-file %s: there is no such file: name one that holds the key and nothing else", printable(f.KeyFile))
		}
	}
	if _, set := os.LookupEnv(f.KeyEnv); f.KeyEnv != "" && !set && !f.keyLater {
		return usageError("--key-env: the variable %s is not set: export it with the key as its value", printable(f.KeyEnv))
	}
	return nil
}

// readPrompt returns the prompt on the command line, or standard input for "-".
func readPrompt(cmd *cobra.Command, arg string) (string, error) {
	prompt := arg
	if arg == "-" {
		b, err := readAtMost(stdin(cmd, "the prompt"), maxPrompt)
		if err != nil {
			return "", usageError("the prompt on standard input: %w", err)
		}
		prompt = strings.TrimSuffix(string(b), "\n")
	}
	if strings.TrimSpace(prompt) == "" {
		return "", usageError("the prompt is empty: give it in quotation marks, or - to read standard input")
	}
	return prompt, nil
}

func (f *runFlags) run(cmd *cobra.Command, args []string) (err error) {
	prompt, err := readPrompt(cmd, args[0])
	if err != nil {
		return err
	}
	runStore, err := openStore(f.Store, readWrite)
	if err != nil {
		return err
	}
	if runStore != nil {
		defer joinClose(&err, runStore)
	}
	in := runinput.With(&loop.Input{Messages: []lathe.Message{lathe.User(prompt)}, Allow: f.prompt.Tools, Park: runStore != nil}, runinput.Extra{AllowAbsent: true})
	if f.prompt.System != "" {
		in.Messages = []lathe.Message{lathe.System(f.prompt.System), lathe.User(prompt)}
	}
	answers := cmd.InOrStdin()
	if args[0] == "-" {
		answers = nil // standard input is the prompt
	}
	return f.runSession(cmd, runStore, f.approver(answers, runStore), func(s *app.Session, target string) (*event.Result, error) {
		if in.Park {
			in.Target = target
		}
		return s.Run(cmd.Context(), in)
	})
}

// approver returns a function that makes the approver: the user, if in is a terminal; else, for a stored run, one that leaves the decision to
// a later command; else nil.
func (f *runFlags) approver(in io.Reader, runStore app.Store) func(*screen) lathe.Approver {
	return func(view *screen) lathe.Approver {
		if isTerminal(in) && view.errTerm {
			return newTerminalApprover(in, view)
		}
		if runStore != nil {
			return pendingApprover{}
		}
		return nil
	}
}

// An openSession is a session of package app together with its outputs.
type openSession struct {
	*app.Session
	cfg   *config.Config
	entry *config.Model
	out   *outputs
}

// openSession opens a session with the model that the flags select. The caller must close it.
func (f *runFlags) openSession(cmd *cobra.Command, runStore app.Store, approver func(*screen) lathe.Approver) (*openSession, error) {
	cfg, name, err := f.load(cmd)
	if err != nil {
		return nil, err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, f.Format)
	if err != nil {
		return nil, err
	}
	entry, err := f.modelEntry(cfg, name)
	if err != nil {
		return nil, err
	}
	simOpts, err := app.SimOptions(cfg, f.Sim.Script, f.Sim.Replay)
	if err != nil {
		return nil, err
	}
	view := commandScreen(cmd)
	view.showAnswer = !f.JSON
	person := approver(view)
	out := f.localSinks(cmd, cfg, view, log)
	opts := &app.SessionOptions{Allow: f.prompt.Tools, Approver: person, AgentApprover: person, Store: runStore, Sinks: out.all, Sim: simOpts, Version: currentVersion().Version, Log: log}
	if _, suspends := person.(pendingApprover); suspends {
		opts.AgentApprover = nil
	}
	starting := startingServers(cmd.ErrOrStderr(), cfg, app.ServersOf(cfg, f.prompt.Tools), f.Quiet || f.JSON)
	s, err := app.OpenSession(cmd.Context(), cfg, entry, opts)
	starting.Stop()
	if err != nil {
		return nil, err
	}
	for _, text := range s.Warnings() {
		view.warn(printable(text))
	}
	for _, t := range f.prompt.Tools {
		if _, ok := s.Tools.Lookup(t); !ok {
			return nil, errors.Join(noTool("--tools: ", t, s.Tools), s.Close(cmd.Context()))
		}
	}
	withAsker(cmd, person)
	if isSimulated(entry.Name) && name == "" && cfg.DefaultModel == "" && !f.Quiet {
		view.note("no model is configured: the simulated " + entry.Name + " answers; --base-url and --model reach a real one")
	}
	return &openSession{Session: s, cfg: cfg, entry: entry, out: out}, nil
}

// runSession opens a session with the model that the flags select, calls do to run or resume a run, and returns an error for the end of the
// run.
func (f *runFlags) runSession(cmd *cobra.Command, runStore app.Store, approver func(*screen) lathe.Approver,
	do func(s *app.Session, target string) (*event.Result, error)) error {
	ctx := cmd.Context()
	s, err := f.openSession(cmd, runStore, approver)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(ctx) }() // each line of the audit log was written with its event
	res, err := do(s.Session, s.entry.Name)
	if cerr := s.Compact(ctx); cerr != nil {
		return cerr
	}
	if werr := s.out.close(f.Metrics); werr != nil && ctx.Err() == nil {
		return &exitError{exitFailed, werr}
	}
	if res == nil { // the run was neither started nor resumed
		return exitCause(exitFailed, err)
	}
	if res.Blank != "" && !f.Quiet {
		s.out.view.note("the answer is blank: " + blankCause(res.Blank))
	}
	return f.ended(ctx, res, err, s.out.view)
}

// modelAdvice returns the error for a model that is not configured with the next step, unless the error suggests a name.
func modelAdvice(err error, simulated string) error {
	err = app.Cause(err)
	if strings.HasSuffix(err.Error(), "?") {
		return err
	}
	return fmt.Errorf("%w; --model %s is a simulated model, and --base-url URL reaches any server", err, simulated)
}

// modelEntry returns the configuration entry of the model with the flags applied.
func (f *runFlags) modelEntry(cfg *config.Config, name string) (*config.Model, error) {
	found, err := cfg.Model(name)
	if err != nil {
		code := exitConfig
		if name != "" {
			code = exitUsage
		}
		return nil, &exitError{code, modelAdvice(err, "sim/demo")}
	}
	entry := *found
	if f.ClientTimeout > 0 {
		entry.ClientTimeout = f.ClientTimeout
	}
	return &entry, setDialect(&entry, f.Dialect)
}

// setDialect sets the dialect of the entry to the value of --dialect, unless that is "".
func setDialect(entry *config.Model, name string) error {
	if name != "" && name != provider.NativeDialect {
		if _, err := app.LookupDialect(name); err != nil {
			return usageError("--dialect: %w", err)
		}
	}
	entry.Dialect = cmp.Or(name, entry.Dialect)
	return nil
}

// outputs are the sinks of one run.
type outputs struct {
	all     observe.Sinks
	view    *screen
	lines   *observe.JSONLines
	metrics *observe.Metrics
}

func (f *runFlags) sinks(cmd *cobra.Command, view *screen, log *slog.Logger) *outputs {
	o := &outputs{view: view}
	if f.JSON {
		o.lines = observe.NewJSONLines(jsonOut(cmd.OutOrStdout()), &observe.JSONLinesOptions{Content: !f.NoContent, Deltas: true})
		o.all = append(o.all, o.lines)
	}
	view.quiet = f.Quiet
	if !f.Quiet || !f.JSON {
		o.all = append(o.all, view)
	}
	if f.Log != "" {
		o.all = append(o.all, observe.NewSlog(log))
	}
	if f.NoContent {
		for i := range o.all {
			o.all[i] = wordless{o.all[i]}
		}
	}
	return o
}

// localSinks returns the sinks of a run in this process, and adds metrics if --metrics-file is given.
func (f *runFlags) localSinks(cmd *cobra.Command, cfg *config.Config, view *screen, log *slog.Logger) *outputs {
	o := f.sinks(cmd, view, log)
	if f.Metrics != "" {
		o.metrics = observe.NewMetrics(metricsOptions(cfg))
		o.all = append(o.all, o.metrics)
	}
	return o
}

// metricsOptions returns the version of the program and the names that the configuration selects.
func metricsOptions(cfg *config.Config) *observe.MetricsOptions {
	v := currentVersion()
	return &observe.MetricsOptions{Version: v.Version, Revision: v.Revision, Names: observe.MetricNames(cfg.Telemetry.MetricNames)}
}

// A wordless is a sink that removes the error texts of model servers and tools from events.
type wordless struct{ event.Sink }

// Emit passes on e without error texts.
func (w wordless) Emit(ctx context.Context, e event.Event) {
	switch d := e.Data.(type) {
	case *event.ModelCallFinished:
		c := *d
		c.ErrorMessage, e.Data = "", &c
	case *event.ToolCallResult:
		if d.Status != "ok" {
			c := *d
			c.Result, e.Data = "", &c
		}
	default:
	}
	w.Sink.Emit(ctx, e)
}

// close writes the metrics, and returns the first error of writing metrics, events or the answer.
func (o *outputs) close(metricsFile string) error {
	if o.metrics != nil {
		if err := os.WriteFile(metricsFile, scrape(o.metrics), 0o600); err != nil {
			return fmt.Errorf("writing the metrics: %w", err)
		}
	}
	if o.lines != nil && o.lines.Err() != nil {
		return fmt.Errorf("writing events: %w", o.lines.Err())
	}
	if o.view.outErr != nil {
		return fmt.Errorf("writing the answer: %w", o.view.outErr)
	}
	return nil
}

// blankCause returns the likely cause of a blank answer, with the next step if there is one.
func blankCause(b lathe.Blank) string {
	switch b {
	case lathe.BlankCallsIgnored:
		return "the model called tools where calls have no effect"
	case lathe.BlankLength:
		return "the limit on output tokens was reached before the answer began; raise max_tokens"
	case lathe.BlankReasoning:
		return "the model wrote its reasoning and ended"
	case lathe.BlankOutputDropped:
		return "the model server counted output tokens and sent none; see `lathe doctor`"
	default:
		return "the model ended at once"
	}
}
