package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/lab/verify"
)

type verifyFlags struct {
	target, against doctorFlags
	reference       string
	trials          int
	limits          bool
	maxContext      int
	maxRequests     int
	maxTokens       int64
	minRate         float64
	timeout         time.Duration
	out             string
	yes, asJSON     bool
	quiet           bool
}

func verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [flags] URL|MODEL",
		Short: "Measure how well an endpoint calls tools, alone or against another one",
		Long: `Makes a fixed number of requests to an endpoint and counts: arguments that fit their schemas (whole and
streamed), tool_choice, parallel calls off, strict, structured output, exactness of arguments, histories that
are accepted, usage, finish reasons, and the form of the stream. With --against it measures another server of
the same model, too, and says in what the two differ by more than noise.

URL is the address of a server, whose model --model names. MODEL is a configured model, or sim/…. The same
holds for --against. The command states the most requests and tokens before it begins, and asks on a terminal. It makes no
more of either: what is left when they are used up is not measured.

Exit codes: 0 passed, 1 a metric failed or the result is inconclusive (status says which), 2 usage, 3 config,
4 nothing answers, 130 interrupted.`,
		Example: `  lathe verify http://127.0.0.1:8000/v1 --model kimi-k2 --against https://api.moonshot.ai/v1 --against-key-env MOONSHOT_API_KEY
  lathe verify fast --out verified --yes
  lathe verify sim/fault-args-null --against sim/demo`,
		Args:              wants(1, 1, "want one URL or MODEL, got %d"),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
		ValidArgsFunction: completeOneModel,
	}
	fl := cmd.Flags()
	fl.StringVar(&f.target.model, "model", "", "`name` of the model at URL")
	fl.StringVar(&f.target.wire, "wire", "", "`name` of the protocol of URL: "+wireNames+"; default: by the URL, else openai")
	fl.StringVar(&f.target.keyFile, "key-file", "", "`file` that holds the key of URL")
	fl.StringVar(&f.target.keyEnv, "key-env", "", "`variable` of the environment that holds the key of URL")
	fl.StringVar(&f.reference, "against", "", "`URL` or model of the reference")
	fl.StringVar(&f.against.model, "against-model", "", "`name` of the model at the URL of --against; default: that of --model")
	fl.StringVar(&f.against.wire, "against-wire", "", "`name` of the protocol of --against")
	fl.StringVar(&f.against.keyFile, "against-key-file", "", "`file` that holds the key of --against")
	fl.StringVar(&f.against.keyEnv, "against-key-env", "", "`variable` of the environment that holds the key of --against")
	fl.IntVar(&f.trials, "trials", 4, "`number` of times that each check of a contract is made")
	fl.BoolVar(&f.limits, "limits", false, "find how many tools, how large arguments and how long a context the server takes")
	fl.IntVar(&f.maxContext, "max-context", 128<<10, "`bytes` of the longest context that --limits tries")
	fl.IntVar(&f.maxRequests, "max-requests", 500, "`number` of requests above which the command does not begin")
	fl.Int64Var(&f.maxTokens, "max-tokens", 0, "`number` of tokens, in and out, after which no more requests are made; default: the most that is stated")
	fl.Float64Var(&f.minRate, "min-rate", 0.95, "`rate` below which a metric fails, from 0 to 1")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "`time` of one request")
	fl.StringVar(&f.out, "out", "", "`folder`, which must not exist, for report.json, report.html, junit.xml, badge.json and badge.svg")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fl.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no budget and no progress on stderr")
	cmd.AddCommand(verifySchemaCommand())
	completeFlags(cmd, map[string]cobra.CompletionFunc{"model": completeModels, "against": completeModels, "against-wire": words(enumFlags["wire"]...), "key-env": cobra.NoFileCompletions, "against-key-env": cobra.NoFileCompletions})
	return cmd
}

func (f *verifyFlags) run(cmd *cobra.Command, name string) error {
	switch {
	case f.trials < 1 || f.trials > maxTrials:
		return usageError("--trials wants 1 to %d", maxTrials)
	case f.minRate <= 0 || f.minRate > 1:
		return usageError("--min-rate wants a rate above 0, at most 1, such as 0.95")
	case f.timeout <= 0:
		return usageError("--timeout wants a time above 0, such as 30s")
	case f.maxTokens < 0:
		return usageError("--max-tokens wants a number above 0, or 0 for the most that is stated")
	case f.maxContext < 1 || f.maxContext > 16<<20:
		return usageError("--max-context wants 1 to %d", 16<<20)
	case f.reference == "" && (f.against.model != "" || f.against.wire != "" || f.against.keyFile != "" || f.against.keyEnv != ""):
		return usageError("--against-model, --against-wire, --against-key-file and --against-key-env go with --against")
	}
	if f.out != "" {
		if _, err := os.Lstat(f.out); err == nil {
			return usageError("--out %s: it is there already; name another folder", f.out)
		}
	}
	view := newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr(), false)
	view.quiet = f.quiet
	target, err := f.target.endpoint(cmd, name)
	if err != nil {
		return err
	}
	var reference *doctor.Target
	if f.reference != "" {
		if isURL(f.reference) && f.against.model == "" {
			f.against.model = target.Model
		}
		t, err := f.against.endpoint(cmd, f.reference)
		if err != nil {
			return err
		}
		reference = &t
	}
	opts := &verify.Options{Trials: f.trials, Limits: f.limits, MaxContext: f.maxContext, MaxTokens: f.maxTokens, MinRate: f.minRate, Version: currentVersion().Version, Doctor: doctor.Options{Timeout: f.timeout}}
	budget := verify.Plan(opts, reference != nil)
	if budget.Requests > f.maxRequests {
		return usageError("this takes up to %d requests, and --max-requests is %d: raise it, lower --trials, or leave out --limits", budget.Requests, f.maxRequests)
	}
	if f.maxTokens > 0 && budget.InputTokens > f.maxTokens {
		return usageError("the requests alone take about %d tokens, and --max-tokens is %d: raise it, lower --trials, or leave out --limits", budget.InputTokens, f.maxTokens)
	}
	view.note(fmt.Sprintf("at most %d requests, about %d tokens in and at most %d out; no request is made beyond %d tokens", budget.Requests, budget.InputTokens, budget.OutputTokens, budget.Tokens))
	if in := cmd.InOrStdin(); !f.yes && isTerminal(in) && view.errTerm && !(simulated(target) && (reference == nil || simulated(*reference))) {
		if !agreed(cmd, "Begin?") {
			return failure("nothing was sent")
		}
	}
	work := startProgress(cmd.ErrOrStderr(), f.quiet)
	opts.Progress = func(p verify.Progress) {
		work.Say(fmt.Sprintf("%s, %d of %d tokens", p.Step, p.Tokens, p.OfTokens))
		work.Count(p.Requests, p.Of)
		work.Show()
	}
	rep, err := verify.Run(cmd.Context(), target, reference, opts)
	work.Stop()
	if err != nil {
		return f.target.ended(cmd, err)
	}
	return f.print(cmd, rep, view)
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// simulated reports whether no request leaves the process.
func simulated(t doctor.Target) bool { return t.Transport != nil }

// endpoint finds the model that name says: at a URL, or by its name.
func (f *doctorFlags) endpoint(cmd *cobra.Command, name string) (doctor.Target, error) {
	switch {
	case isURL(name):
		f.baseURL = name
		if f.model == "" {
			return doctor.Target{}, usageError("%s wants the name of a model there: --model, for the reference --against-model", printable(name))
		}
	case f.model != "" && f.model != name:
		return doctor.Target{}, usageError("%s is a model, and --model names another one: give a URL with --model, or the model alone", printable(name))
	default:
		f.model = name
	}
	return f.target(cmd, newScreen(io.Discard, io.Discard, false)) // its notes are of a profile, which is not written
}

func (f *verifyFlags) print(cmd *cobra.Command, rep *verify.Report, view *screen) error {
	err := error(nil)
	if f.asJSON {
		err = rep.WriteJSON(jsonOut(cmd.OutOrStdout()))
	} else {
		err = rep.WriteTable(cmd.OutOrStdout())
	}
	if err == nil && f.out != "" {
		if err = saveVerification(f.out, rep); err == nil {
			view.note("the report is in " + f.out + ", for people in report.html")
		}
	}
	if err != nil {
		return &exitError{exitFailed, app.Cause(err)}
	}
	if rep.Status != verify.Passed {
		return errReported
	}
	return nil
}

// saveVerification writes the files of a report into a new folder.
func saveVerification(dir string, rep *verify.Report) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"report.json": rep.WriteJSON, "report.html": rep.WriteHTML, "junit.xml": rep.WriteJUnit, "badge.json": rep.WriteBadge, "badge.svg": rep.WriteBadgeSVG} {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if err := errors.Join(write(file), file.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
