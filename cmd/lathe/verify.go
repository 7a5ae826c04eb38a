package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/lab/verify"
)

type verifyFlags struct {
	Model          string        `flag:"model" usage:"*name* of the model at URL" complete:"models"`
	Wire           string        `flag:"wire" usage:"*name* of the protocol of URL: openai, responses, anthropic, gemini; default: by the URL, else openai"`
	KeyFile        string        `flag:"key-file" usage:"*file* that holds the key of URL"`
	KeyEnv         string        `flag:"key-env" usage:"*variable* of the environment that holds the key of URL" complete:"nothing"`
	Against        string        `flag:"against" usage:"*URL* or model of the reference" complete:"models"`
	AgainstModel   string        `flag:"against-model" usage:"*name* of the model at the URL of --against; default: that of --model"`
	AgainstWire    string        `flag:"against-wire" usage:"*name* of the protocol of --against" complete:"openai responses anthropic gemini"`
	AgainstKeyFile string        `flag:"against-key-file" usage:"*file* that holds the key of --against"`
	AgainstKeyEnv  string        `flag:"against-key-env" usage:"*variable* of the environment that holds the key of --against" complete:"nothing"`
	Trials         int           `flag:"trials" default:"4" usage:"*number* of times that each check of a contract is made"`
	Limits         bool          `flag:"limits" usage:"find how many tools, how large arguments and how long a context the server takes"`
	MaxContext     int           `flag:"max-context" default:"131072" usage:"*bytes* of the longest context that --limits tries"`
	MaxRequests    int           `flag:"max-requests" default:"500" usage:"*number* of requests above which the command does not begin"`
	MaxTokens      int64         `flag:"max-tokens" usage:"*number* of tokens, in and out, after which no more requests are made; default: the most that is stated"`
	MinRate        float64       `flag:"min-rate" default:"0.95" usage:"*rate* below which a metric fails, from 0 to 1"`
	Timeout        time.Duration `flag:"timeout" default:"1m" usage:"*time* of one request"`
	Out            string        `flag:"out" usage:"*folder*, which must not exist, for report.json, report.html, junit.xml, badge.json and badge.svg"`
	Yes            bool          `flag:"yes,y" usage:"do not ask"`
	JSON           bool          `flag:"json" usage:"print the report as JSON"`
	Quiet          bool          `flag:"quiet,q" usage:"no budget and no progress on stderr"`
}

func verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := withFlags(&cobra.Command{
		Use:   "verify [flags] URL|MODEL",
		Short: "Measure how well a server passes calls on, alone or against another",
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
		RunE:              f.run,
		ValidArgsFunction: first(completeModels),
	}, &f)
	cmd.AddCommand(verifySchemaCommand())
	return cmd
}

func (f *verifyFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	view := commandScreen(cmd)
	view.quiet = f.Quiet
	target, reference, err := f.targets(cmd, args[0])
	if err != nil {
		return err
	}
	opts := &verify.Options{Trials: f.Trials, Limits: f.Limits, MaxContext: f.MaxContext, MaxTokens: f.MaxTokens, MinRate: f.MinRate, Version: currentVersion().Version, Doctor: doctor.Options{Timeout: f.Timeout}}
	budget := verify.Plan(opts, reference != nil)
	if budget.Requests > f.MaxRequests {
		return usageError("this takes up to %d requests, and --max-requests is %d: raise it, lower --trials, or leave out --limits", budget.Requests, f.MaxRequests)
	}
	if f.MaxTokens > 0 && budget.InputTokens > f.MaxTokens {
		return usageError("the requests alone take about %d tokens, and --max-tokens is %d: raise it, lower --trials, or leave out --limits", budget.InputTokens, f.MaxTokens)
	}
	view.note(fmt.Sprintf("at most %d requests, about %d tokens in and at most %d out; no request is made beyond %d tokens", budget.Requests, budget.InputTokens, budget.OutputTokens, budget.Tokens))
	canAsk := isTerminal(cmd.InOrStdin()) && view.errTerm
	costs := !simulated(target) || reference != nil && !simulated(reference)
	if !f.Yes && canAsk && costs && !askYesNo(cmd, "Begin?") {
		return failure("nothing was sent")
	}
	work := startProgress(cmd.ErrOrStderr(), f.Quiet)
	opts.Progress = func(p verify.Progress) {
		work.Say(fmt.Sprintf("%s, %d of %d tokens", p.Step, p.Tokens, p.OfTokens))
		work.Count(p.Requests, p.Of)
		work.Show()
	}
	rep, err := verify.Run(cmd.Context(), *target, reference, opts)
	work.Stop()
	if err != nil {
		return (&doctorFlags{}).ended(cmd, err)
	}
	return f.print(cmd, rep, view)
}

// check returns a usage error for flags that are out of range or incomplete.
func (f *verifyFlags) check() error {
	switch {
	case f.Trials < 1 || f.Trials > maxTrials:
		return usageError("--trials wants 1 to %d", maxTrials)
	case f.MinRate <= 0 || f.MinRate > 1:
		return usageError("--min-rate wants a rate above 0, at most 1, such as 0.95")
	case f.Timeout <= 0:
		return usageError("--timeout wants a time above 0, such as 30s")
	case f.MaxTokens < 0:
		return usageError("--max-tokens wants a number above 0, or 0 for the most that is stated")
	case f.MaxContext < 1 || f.MaxContext > 16<<20:
		return usageError("--max-context wants 1 to %d", 16<<20)
	case f.Against == "" && f.AgainstModel+f.AgainstWire+f.AgainstKeyFile+f.AgainstKeyEnv != "":
		return usageError("--against-model, --against-wire, --against-key-file and --against-key-env go with --against")
	}
	if f.Out != "" {
		if _, err := os.Lstat(f.Out); err == nil {
			return usageError("--out %s: it is there already; name another folder", f.Out)
		}
	}
	return nil
}

// targets returns the server to measure and, with --against, the reference, else nil.
func (f *verifyFlags) targets(cmd *cobra.Command, name string) (target, reference *doctor.Target, err error) {
	target, err = endpoint(cmd, name, upstreamFlags{f.Model, endpointFlags{Wire: f.Wire, KeyFile: f.KeyFile, KeyEnv: f.KeyEnv}})
	if err != nil || f.Against == "" {
		return target, nil, err
	}
	model := f.AgainstModel
	if isURL(f.Against) {
		model = cmp.Or(model, target.Model)
	}
	reference, err = endpoint(cmd, f.Against, upstreamFlags{model, endpointFlags{Wire: f.AgainstWire, KeyFile: f.AgainstKeyFile, KeyEnv: f.AgainstKeyEnv}})
	return target, reference, err
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// simulated reports whether the target is simulated in this process, without network requests.
func simulated(t *doctor.Target) bool { return t.Transport != nil }

// endpoint returns the target for name: a URL, or the name of a model.
func endpoint(cmd *cobra.Command, name string, u upstreamFlags) (*doctor.Target, error) {
	switch {
	case isURL(name):
		u.BaseURL = name
		if u.Model == "" {
			return nil, usageError("%s wants the name of a model there: --model, for the reference --against-model", printable(name))
		}
	case u.Model != "" && u.Model != name:
		return nil, usageError("%s is a model, and --model names another one: give a URL with --model, or the model alone", printable(name))
	default:
		u.Model = name
	}
	return (&doctorFlags{upstreamFlags: u}).target(cmd, newScreen(io.Discard, io.Discard)) // its notes are about a profile, which is not written here
}

func (f *verifyFlags) print(cmd *cobra.Command, rep *verify.Report, view *screen) error {
	var err error
	if f.JSON {
		err = rep.WriteJSON(jsonOut(cmd.OutOrStdout()))
	} else {
		err = rep.WriteTable(cmd.OutOrStdout())
	}
	if err == nil && f.Out != "" {
		if err = saveVerification(f.Out, rep); err == nil {
			view.note("the report is in " + f.Out + ", for people in report.html")
		}
	}
	if err != nil {
		return exitCause(exitFailed, err)
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
