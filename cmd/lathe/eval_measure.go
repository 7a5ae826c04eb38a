package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/lab/eval"
)

// exitHarness is the exit code of `lathe eval` if it could not measure. It equals exitUsage, because in both cases there is no result about
// a model.
const exitHarness = 2

// evalVariables is the prefix of the environment variables that set flags of `lathe eval`.
const evalVariables = "LATHE_EVAL_"

type evalFlags struct {
	Models []string `flag:"model" usage:"*names* of configured models, of models at --base-url, or sim/…" complete:"models"`
	endpointFlags
	Dialect string `flag:"dialect" usage:"how the models write calls: native, auto, or a dialect's *name*"`
	suiteFlags
	timeFlags
	resultFlags
	bfclFlags
}

// suiteFlags select the scenarios, the number of runs, and the corrections that Lathe applies.
type suiteFlags struct {
	UserModel  string   `flag:"user-model" usage:"*name* of a configured model, or of sim/…, that plays the users of scenarios; default: their scripts" complete:"models"`
	Preset     string   `flag:"preset" usage:"*name* of a preset of the suite; default: default where there is one, else all" complete:"presets"`
	Scenarios  []string `flag:"scenario" usage:"*ids* of the scenarios to run; they come before presets"`
	Strategies []string `flag:"strategy" usage:"*names* of what models are helped with: raw, baseline, production (production)" complete:"raw baseline production"`
	Fallback   string   `flag:"fallback" default:"off" usage:"ask servers that cannot do tools again without: *off*, on or both" complete:"off on both"`
	Trials     int      `flag:"trials" default:"1" usage:"*number* of runs of each model and scenario (1)"`
	Jobs       int      `flag:"jobs" default:"4" usage:"*number* of runs side by side (4)"`
}

type timeFlags struct {
	Timeout waitValue `flag:"timeout" default:"5m" usage:"*time* of one run, streaming included (5m)"`
	Client  waitValue `flag:"client-timeout" usage:"*time* until the first piece of an answer, retries included; it does not end a stream that has begun (2m); 0: no bound"`
	Open    waitValue `flag:"open-timeout" usage:"*time* to connect (10s); 0: no bound"`
	Read    waitValue `flag:"read-timeout" usage:"*time* to wait for each next byte (as --client-timeout); 0: no bound"`
}

// resultFlags select the destination of results, and further properties of runs.
type resultFlags struct {
	Out         string  `flag:"out" usage:"*folder* of results; default: eval-results and the time"`
	Resume      bool    `flag:"resume" usage:"continue in --out: make only the runs that are missing or have no score"`
	Seed        int64   `flag:"seed" usage:"*number* that the server is asked to sample with, where the scenario names none"`
	Temperature float64 `flag:"temperature" usage:"*number*, the temperature, where the scenario names none"`
	TopP        float64 `flag:"top-p" usage:"*number*, top_p, where the scenario names none"`
	NoOut       bool    `flag:"no-out" usage:"write no results"`
	Record      string  `flag:"record" usage:"*folder* to write each run's exchanges with its model and tools to"`
	Replay      string  `flag:"replay" usage:"*folder* of recorded exchanges to answer from, without any network"`
	Tools       string  `flag:"tools" default:"live" usage:"with --replay, what tools answer from: *live*, they are run again; or recorded" complete:"live recorded"`
	Unguarded   bool    `flag:"unguarded" usage:"without the policies of the suite's tools, to see what would happen then"`
	JSON        bool    `flag:"json" usage:"print the summary as JSON"`
	Quiet       bool    `flag:"quiet,q" usage:"no progress on stderr"`
}

// A waitValue is a duration: 90s, 2m, or a number of seconds. Values of 0 and below become -1, which means no limit.
type waitValue struct{ d time.Duration }

func (v *waitValue) Set(s string) error {
	seconds, err := strconv.ParseFloat(s, 64)
	v.d = time.Duration(seconds * float64(time.Second))
	if err != nil {
		v.d, err = time.ParseDuration(s)
	}
	if err != nil {
		return errors.New("want a time such as 90s or 2m, or 0 for no bound")
	}
	if v.d <= 0 {
		v.d = -1
	}
	return nil
}

func (v *waitValue) String() string { return v.d.String() }
func (v *waitValue) Type() string   { return "time" }

func evalMeasureCommand() *cobra.Command {
	f := evalFlags{suiteFlags: suiteFlags{Strategies: []string{string(eval.Production)}}}
	cmd := withFlags(&cobra.Command{
		Use:   "eval [flags] [SUITE]",
		Short: "Measure how well models use tools",
		Long: `Tries each scenario of a suite with each model, and counts how often the final state, the trace of
calls and the final text are right. SUITE is a preset of the suite that comes with Lathe (default, simple,
typical, extreme, all), retail, airline, skills, injection, faults, bfcl, or a file of scenarios. Without --model the one of
default_model in lathe.yaml is measured, else a simulated one.

retail and airline are conversations with customers in which the model changes a database, skills are single skills: long lists
of tools, parallel calls, requests that no tool fits, errors, instructions in results, exact arguments. sim/gold plays the
gold actions of their scenarios.

injection and faults measure Lathe, with simulated models that do the worst: forty texts that tell a model
to do what its user did not allow, and tools that hang, flood or lie.

bfcl is the Berkeley Function Calling Leaderboard: the questions in the folder --data, each judged by the
calls of the model's first message (see docs/internals/eval-bfcl.md).

Each run is kept as a file in the folder of results, beside summary.json, junit.xml and report.html. The
folder must not hold results, except with --resume: then only the runs that are missing or have no score
are made.

A run that reaches no server has no score. Once a server was reached, what breaks off, times out or is
refused counts in the rate. A result with a score is never overwritten. Every flag may be given
as a variable, LATHE_EVAL_ and its name: LATHE_EVAL_CLIENT_TIMEOUT=60.

Exit codes: 0 every run passed, 1 some did not or the result is inconclusive, 2 nothing could be measured,
3 config, 130 interrupted.`,
		Example: `  lathe eval
  lathe eval all --model fast --model careful --trials 5 --out results
  lathe eval --base-url http://127.0.0.1:11434/v1 --model qwen3 --strategy raw,baseline,production
  lathe eval injection
  lathe eval bfcl --data bfcl --category simple,live_* --limit 50 --model fast
  lathe eval compare results-before results-after`,
		Args: wants(0, 1, "want one SUITE, got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flagsFromEnvironment(cmd); err != nil {
				return err
			}
			return f.measure(cmd, args)
		},
		ValidArgsFunction: first(func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return suiteNames(), cobra.ShellCompDirectiveDefault
		}),
	}, &f)
	cmd.Flags().Lookup("base-url").Usage = "`URL` of a model server"
	group(cmd, "Settings and limits, with their defaults here; lathe.yaml has no influence, scenarios do (see docs/eval.md):", addEvalSettings)
	return cmd
}

func completePresets(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return presetNames(eval.Builtin()), cobra.ShellCompDirectiveNoFileComp
}

func presetNames(s *eval.Suite) []string {
	var names []string
	for _, p := range s.Presets {
		names = append(names, p.Name)
	}
	return append(names, eval.All)
}

// suites are the built-in suites, except the one whose presets can be named as SUITE.
var suites = map[string]func() *eval.Suite{"retail": eval.Retail, "airline": eval.Airline, "skills": eval.Skills, "injection": eval.Injection, "faults": eval.Faults}

// suiteNames returns the valid values of SUITE except files.
func suiteNames() []string {
	return slices.Concat(presetNames(eval.Builtin()), slices.Sorted(maps.Keys(suites)), []string{bfclSuite})
}

// flagsFromEnvironment sets flags from environment variables, unless they are on the command line. A variable with the prefix that names no
// flag is an error, because it would be ignored silently.
func flagsFromEnvironment(cmd *cobra.Command) (err error) {
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := evalVariables + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		known = append(known, name)
		if v, ok := os.LookupEnv(name); ok && !f.Changed && err == nil {
			if serr := cmd.Flags().Set(f.Name, v); serr != nil {
				err = usageError("%s: %w", name, serr)
			}
		}
	})
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if err == nil && strings.HasPrefix(name, evalVariables) && !slices.Contains(known, name) {
			err = usageError("%s: no flag has this name: %s", name, text.Suggest(name, known, "`lathe eval --help` lists the flags"))
		}
	}
	return err
}

func (f *evalFlags) measure(cmd *cobra.Command, args []string) error {
	view := commandScreen(cmd)
	view.quiet = f.Quiet
	suite, scenarios, err := f.scenarios(cmd, args, view)
	if err != nil {
		return err
	}
	opts, err := f.options(cmd)
	if err != nil {
		return err
	}
	targets, err := f.targets(cmd, suite, view)
	if err != nil {
		return err
	}
	if opts.UserModel, err = f.user(cmd, scenarios); err != nil {
		return err
	}
	for _, s := range opts.Settings {
		if s.Key == "tool_use_mode" && s.Value == string(lathe.ModeDisabled) {
			view.warn("tool_use_mode is disabled: scenarios in which a call is expected cannot pass")
		}
	}
	if f.Unguarded {
		view.note("without guards: what fails is what would happen if nothing stood in the way")
	}
	failed := 0
	work := startProgress(cmd.ErrOrStderr(), f.Quiet)
	work.Say("runs")
	opts.Progress = func(p eval.Progress) {
		if !p.Run.OK {
			failed++
		}
		work.Say(fmt.Sprintf("runs, %d did not pass", failed))
		work.Count(p.Done, p.Total)
		work.Show()
	}
	rep, err := eval.Measure(cmd.Context(), suite, scenarios, targets, opts)
	work.Stop()
	if cmd.Context().Err() != nil {
		return exit(exitInterrupted, "interrupted; give the same --out with --resume to go on")
	}
	if errors.Is(err, eval.ErrNotEmpty) {
		return usageError("%s: give --resume to make only the runs that are missing or have no score, or name another folder", strings.TrimSuffix(err.Error(), ": "+eval.ErrNotEmpty.Error()))
	}
	if err != nil {
		return harnessError(cmd, err)
	}
	return f.printReport(cmd, rep, opts.Dir, view)
}

// scenarios returns the suite and those of its scenarios that the flags select.
func (f *evalFlags) scenarios(cmd *cobra.Command, args []string, view *screen) (suite *eval.Suite, selected []*eval.Scenario, err error) {
	if !slices.Equal(args, []string{bfclSuite}) {
		if err := refuseFlags(cmd, "--%s is of the suite bfcl: lathe eval bfcl --data DIR", "data", "category", "limit", "answers"); err != nil {
			return nil, nil, err
		}
	}
	suite, preset, err := f.suite(args, view)
	if err != nil {
		return nil, nil, err
	}
	if len(f.Scenarios) > 0 {
		selected, err = suite.Find(f.Scenarios...)
	} else {
		selected, err = suite.Select(preset)
	}
	if err != nil {
		err = usageError("%w", err)
	}
	return suite, selected, err
}

// suite returns the suite that SUITE names, and the preset to run of it, "" for the default: a preset of the built-in suite, another built-in
// suite, a leaderboard, or a file.
func (f *evalFlags) suite(args []string, view *screen) (suite *eval.Suite, preset string, err error) {
	builtin := eval.Builtin()
	if len(args) == 0 {
		return builtin, f.Preset, nil
	}
	switch name := args[0]; {
	case name == bfclSuite:
		suite, err = f.bfclFlags.read(view)
	case suites[name] != nil:
		suite = suites[name]()
	case !slices.Contains(presetNames(builtin), name):
		suite, err = readSuite(name)
	case f.Preset != "":
		return nil, "", usageError("%s is a preset: give it or --preset", name)
	default:
		return builtin, name, nil
	}
	return suite, f.Preset, err
}

// maxSuite is the largest size of the file of a suite in bytes.
const maxSuite = 1 << 20

func readSuite(path string) (*eval.Suite, error) {
	b, err := readNamedFile(path, maxSuite)
	if err != nil {
		return nil, usageError("%w: %s", err, text.Suggest(path, append(suiteNames(), "compare", "score"), "SUITE is one of "+strings.Join(suiteNames(), ", ")+", or a file"))
	}
	suite, err := eval.Parse(filepath.Base(path), b)
	if err != nil {
		return nil, usageError("%w", err)
	}
	return suite, nil
}

// check returns a usage error for flags that contradict each other or are out of range.
func (f *evalFlags) check() error {
	switch {
	case f.Trials < 1 || f.Trials > maxTrials || f.Jobs < 1 || f.Jobs > maxJobs:
		return usageError("--trials wants 1 to %d, --jobs 1 to %d", maxTrials, maxJobs)
	case f.Record != "" && f.Replay != "":
		return usageError("give one of --record and --replay")
	case f.Tools != "live" && f.Tools != "recorded":
		return usageError("--tools %s: want live or recorded", f.Tools)
	case f.Tools == "recorded" && f.Replay == "":
		return usageError("--tools recorded goes with --replay DIR")
	case f.Resume && f.Out == "":
		return usageError("--resume goes with --out, the folder to continue in")
	case f.NoOut && f.Out != "":
		return usageError("give one of --out and --no-out")
	}
	return nil
}

// fallbacks maps the values of --fallback to those of eval.Options.
var fallbacks = map[string][]bool{"off": nil, "on": {true}, "both": {false, true}}

func (f *evalFlags) options(cmd *cobra.Command) (*eval.Options, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	o := &eval.Options{Trials: f.Trials, Jobs: f.Jobs, Timeout: f.Timeout.d, Dir: f.Out, Record: f.Record, Resume: f.Resume, Replay: f.Replay, ReplayTools: f.Tools == "recorded", Unguarded: f.Unguarded}
	if f.Out == "" && !f.NoOut {
		o.Dir = filepath.Join("eval-results", time.Now().UTC().Format("20060102T150405Z"))
	}
	changed := cmd.Flags().Changed
	if changed("seed") {
		o.Sampling.Seed = &f.Seed
	}
	if changed("temperature") {
		o.Sampling.Temperature = &f.Temperature
	}
	if changed("top-p") {
		o.Sampling.TopP = &f.TopP
	}
	for _, s := range f.Strategies {
		strategy := eval.Strategy(s)
		if !slices.Contains(eval.Strategies, strategy) {
			return nil, usageError("--strategy %s: %s", s, text.Suggest(s, []string{"raw", "baseline", "production"}, "there are raw, baseline and production"))
		}
		if !slices.Contains(o.Strategies, strategy) {
			o.Strategies = append(o.Strategies, strategy)
		}
	}
	var err error
	var known bool
	if o.Fallbacks, known = fallbacks[f.Fallback]; !known {
		return nil, usageError("--fallback %s: want off, on or both", f.Fallback)
	}
	o.Settings, err = evalSettings(cmd)
	return o, err
}

// evalSettings returns the settings that flags set.
func evalSettings(cmd *cobra.Command) (out []eval.Setting, err error) {
	for _, over := range settingOverrides(cmd) {
		if over.From == "--run-timeout" {
			return nil, usageError("--run-timeout: lathe eval bounds a run with --timeout")
		}
		out = append(out, eval.Setting{From: over.From, Key: strings.TrimPrefix(over.Key, "tool_calling."), Value: over.Value})
	}
	return out, nil
}

// Limits of the flags.
const (
	maxTrials = 1000
	maxJobs   = 256
)

// printReport prints the results and returns an error with their exit code.
func (f *evalFlags) printReport(cmd *cobra.Command, rep *eval.Report, dir string, view *screen) error {
	if dir != "" {
		if err := rep.Save(dir); err != nil {
			return harnessError(cmd, fmt.Errorf("writing the results: %w", err))
		}
	}
	if err := show(cmd, f.JSON, rep.Summary(), rep.WriteTable); err != nil {
		return harnessError(cmd, err)
	}
	if dir != "" {
		view.note("results are in " + dir + ", for people in report.html")
	}
	switch rep.Status() {
	case eval.Passed:
		return nil
	case eval.Failed:
		return errReported
	}
	err := harnessError(cmd, fmt.Errorf("inconclusive: %s", inconclusive(rep)))
	if rep.Scored() {
		return errReported // harnessError has printed the text
	}
	return err
}

// inconclusive describes why an evaluation without failures did not pass.
func inconclusive(rep *eval.Report) string {
	refused := 0
	for _, r := range rep.Runs {
		if r.Class.Refused() {
			refused++
		}
	}
	var parts []string
	if n := rep.Unscored(); n > 0 {
		parts = append(parts, fmt.Sprintf("%s without a score", count(n, "run")))
	}
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("%s refused by the server", count(refused, "run")))
	}
	return strings.Join(parts, ", ") + ": " + unscoredAdvice(rep)
}

// harnessError prints why the evaluation could not measure, and returns an error without a text: unlike for a usage error, the hint at
// --help would not be useful.
func harnessError(cmd *cobra.Command, err error) error {
	cmd.PrintErrf("lathe: %s\n", err)
	return &exitError{exitHarness, nil}
}

// unscoredAdvice describes the first run that was not measured or was refused, with advice.
func unscoredAdvice(rep *eval.Report) string {
	for _, r := range rep.Runs {
		unmeasured := !r.Scored && r.Class != eval.ClassNotProvoked
		if !r.OK && (unmeasured || r.Class.Refused()) {
			return string(r.Class) + classAdvice[r.Class]
		}
	}
	return "not tried"
}

const accountAdvice = ", look at the key and the account"

// classAdvice has the next step for each class of a run that has one.
var classAdvice = map[eval.Class]string{
	eval.ClassConnection:      ", is the server running, and is --base-url right?",
	eval.ClassAuth:            accountAdvice,
	eval.ClassForbidden:       accountAdvice,
	eval.ClassPaymentRequired: accountAdvice,
	eval.ClassNotFound:        ", look at --model and the path of --base-url",
	eval.ClassRateLimit:       ", use fewer --jobs, or wait; the runs stay as they are: measure into another folder",
	eval.ClassUserModel:       ", look at --user-model",
	eval.ClassReplay:          ", --record makes the recording again, and a file of --answers wants a line for each case",
}
