package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote/worker"
	"github.com/lathe-run/lathe/secret"
)

type workerFlags struct {
	Connect     string        `flag:"connect" usage:"*address* of the gateway, such as https://gateway.example.com"`
	TokenEnv    string        `flag:"token-env" default:"LATHE_WORKER_TOKEN" usage:"*variable* of the environment that holds the token"`
	TokenFile   string        `flag:"token-file" usage:"*file* that holds the token, in place of the variable"`
	Name        string        `flag:"name" usage:"*name* that tells this worker from others with the same token; default: made up"`
	Tools       []string      `flag:"tools" usage:"*names* of the tools to serve; default: all that are configured" complete:"tools"`
	Concurrency int           `flag:"concurrency" default:"8" usage:"calls at once"`
	Drain       time.Duration `flag:"drain" default:"30s" usage:"time that calls may go on after SIGTERM"`
	AllowHTTP   bool          `flag:"allow-http" usage:"send the token to another machine without TLS"`
	MetricsAddr string        `flag:"metrics-addr" usage:"*address* that serves /metrics, /livez and /readyz; port 0 picks a free one"`
	Log         string        `flag:"log" usage:"log to stderr from this *level* up: debug, info, warn, error"`
}

func workerCommand() *cobra.Command {
	var f workerFlags
	return withFlags(&cobra.Command{
		Use:   "worker --connect URL",
		Short: "Execute this machine's tools for a gateway elsewhere",
		Long: `Connects to a gateway, ` + "`lathe serve`" + ` on another machine, and executes the tools of the configuration here for it. The
connection goes outwards and stays open; it is made again whenever it is lost.

The gateway decides which calls are made, by its policy and approvals. Here they pass a runner, policy and limits
of their own: tools that this configuration's policy denies, or would ask about, are not offered. The gateway's
configuration says under workers which token may serve which tools.

SIGTERM takes no more calls, and ends when those that are here are finished.`,
		Example: `  LATHE_WORKER_TOKEN=… lathe worker --connect https://gateway.example.com
  lathe worker --connect http://127.0.0.1:8700 --token-file worker.token --tools read_file --concurrency 2`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              f.serve,
	}, &f)
}

func (f *workerFlags) serve(cmd *cobra.Command, _ []string) error {
	if f.Connect == "" {
		return usageError("which gateway? give --connect URL, such as --connect https://gateway.example.com")
	}
	if f.Concurrency < 1 || f.Concurrency > 1024 {
		return usageError("--concurrency %d: want 1 to 1024", f.Concurrency)
	}
	token, err := f.token()
	if err != nil {
		return err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, "")
	if err != nil {
		return err
	}
	defer daemon.TakeStandardLog(log)()
	cfg, err := configOf(cmd)
	if err != nil {
		return err
	}
	v := currentVersion()
	metricsOpts := metricsOptions(cfg)
	metricsOpts.Process = true
	metrics := observe.NewMetrics(metricsOpts)
	traces, err := app.OpenTraces(cfg, &app.TracesOptions{Version: v.Version, Log: log, Lost: metrics.AddLostSpans})
	if err != nil {
		return err
	}
	sinks := []event.Sink{metrics}
	if traces != nil {
		defer app.CloseTraces(cmd.Context(), traces, log)
		sinks = append(sinks, traces)
	}
	if err := app.CheckTemporalTools(cfg); err != nil {
		return err
	}
	tools, err := startAllTools(cmd, cfg, &app.ServerOptions{Log: log, Observers: event.MCPObservers(sinks)}, showProgress)
	if err != nil {
		return err
	}
	defer tools.Close()
	set := tools.Set
	for _, name := range f.Tools {
		if _, ok := set.Lookup(name); !ok {
			return noTool("--tools: ", name, set)
		}
	}
	warnOfServers(cmd, tools.Servers)
	out := cmd.ErrOrStderr()
	trail, err := app.OpenAudit(cfg, log)
	if err != nil {
		return err
	}
	if trail != nil {
		defer func() { _ = trail.Close() }() // each line of the log has been written
	}
	runner, err := app.NewRunner(cfg, set, &app.CallOptions{Audit: trail, Log: log})
	if err != nil {
		return err
	}
	w, err := worker.New(runner, &worker.Options{URL: f.Connect, Token: token, AllowHTTP: f.AllowHTTP, Name: f.Name, Tools: f.Tools,
		Concurrency: f.Concurrency, Drain: f.Drain, SDK: "lathe/" + v.Version, Sinks: sinks, Log: log,
		OnState: func(s worker.State) { showState(out, f.Connect, s) },
		OnCall:  func(tool string, code lathe.Code, took time.Duration) { showCall(out, tool, code, took) }})
	if err != nil {
		return usageError("%w", app.Cause(err))
	}
	return f.run(cmd, w, metrics)
}

// run executes calls until the command is interrupted.
func (f *workerFlags) run(cmd *cobra.Command, w *worker.Worker, metrics *observe.Metrics) error {
	out := cmd.ErrOrStderr()
	var names []string
	for _, o := range w.Offers() {
		names = append(names, o.Name)
	}
	if len(names) == 0 {
		return exit(exitConfig, "there is no tool to serve: policy.tools in lathe.yaml allows tools by name, and `lathe tools list` shows what it says of each")
	}
	if f.MetricsAddr != "" {
		stop, err := serveWorkerMetrics(cmd.Context(), out, f.MetricsAddr, metrics, w)
		if err != nil {
			return err
		}
		defer stop()
	}
	fmt.Fprintf(out, "worker %s serves %d tools: %s\n", w.Name(), len(names), strings.Join(names, ", "))
	w.Run(cmd.Context())
	fmt.Fprintln(out, "stopped")
	return nil // a signal is the normal end
}

// token reads the token from the file or the environment variable.
func (f *workerFlags) token() (token secret.Secret, err error) {
	from, text := "$"+f.TokenEnv, os.Getenv(f.TokenEnv)
	if f.TokenFile != "" {
		b, err := readFile(f.TokenFile, maxKeyFile)
		if err != nil {
			return token, usageError("--token-file: %w", err)
		}
		from, text = f.TokenFile, string(b)
	}
	if text = strings.TrimRight(text, "\r\n"); text == "" {
		return token, usageError("no token: %s is empty; it holds what the gateway's lathe.yaml has under workers", from)
	}
	return secret.New(text), nil
}

// showState prints whether the worker is connected.
func showState(out io.Writer, address string, s worker.State) {
	host := address
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		host = u.Host
	}
	if !s.Connected {
		fmt.Fprintf(out, "not connected to %s: %s; again in %s\n", host, printable(s.Err.Error()), s.Retry.Round(100*time.Millisecond))
		return
	}
	fmt.Fprintf(out, "connected to %s\n", host)
	for name, why := range text.ByName(s.Refused) {
		fmt.Fprintf(out, "note: the gateway does not take %s: %s\n", printable(name), printable(why))
	}
}

func showCall(out io.Writer, tool string, code lathe.Code, took time.Duration) {
	result := "ok"
	if code != "" {
		result = printable(string(code))
	}
	fmt.Fprintf(out, "%s %s %dms\n", printable(tool), result, took.Milliseconds())
}
