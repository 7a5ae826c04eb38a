package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/stdlog"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

func mcpCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mcp", Short: "Serve tools to MCP clients"}
	cmd.AddCommand(mcpServeCommand(), forServers(toolsLoginCommand()), forServers(toolsLogoutCommand()))
	return cmd
}

type mcpServeFlags struct {
	Addr      string   `flag:"addr" usage:"serve HTTP on this *address*, such as 127.0.0.1:8124; port 0 picks a free one"`
	KeyFile   string   `flag:"key-file" usage:"*file* that holds the key that HTTP clients send as Authorization: Bearer"`
	KeyEnv    string   `flag:"key-env" usage:"*variable* of the environment that holds that key"`
	Principal string   `flag:"principal" usage:"*name* that policy and events have for the client; default with a key: mcp"`
	Hosts     []string `flag:"host" usage:"host *names* under which HTTP clients ask for the server; default: this machine's own, and any with a key on another address"`
	Origins   []string `flag:"origin" usage:"*origins* whose web pages may call, such as https://example.com"`
	Tools     []string `flag:"tools" usage:"*names* of the tools to serve, and of resources and prompts as resource__NAME and prompt__NAME; default: all that are configured" complete:"tools"`
	Events    string   `flag:"events" usage:"append the events of every call to this *file*, as JSON lines; texts only with telemetry.content"`
	Metrics   string   `flag:"metrics-file" usage:"write metrics to this *file* at the end, in Prometheus' text form"`
	logFlags
}

func mcpServeCommand() *cobra.Command {
	var f mcpServeFlags
	return withFlags(&cobra.Command{
		Use:   "serve",
		Short: "Serve the configured tools over MCP, on standard streams or HTTP",
		Long: `Serves the configured tools to an MCP client: on standard input and output, one message a line; with
--addr over streamable HTTP at /mcp. Both protocol eras are spoken in both ways.

A call passes the same runner, limits and policy that a model's call passes. Tools that policy denies are
not listed. What policy asks about is denied, except that with --addr a person at the terminal is asked.

An address beyond this machine needs a key.`,
		Example: `  lathe mcp serve
  lathe mcp serve --addr 127.0.0.1:8124 --events calls.jsonl
  lathe mcp serve --addr 0.0.0.0:8124 --key-file mcp.key --host tools.example.com`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              f.serve,
	}, &f)
}

// check returns a usage error for flags that contradict each other.
func (f *mcpServeFlags) check(cmd *cobra.Command) error {
	if f.Addr == "" {
		return refuseFlags(cmd, "--%s goes with --addr: a client on the standard streams needs no key", "key-file", "key-env", "host", "origin")
	}
	if f.KeyFile != "" && f.KeyEnv != "" {
		return usageError("give one of --key-file and --key-env")
	}
	host, _, err := net.SplitHostPort(f.Addr)
	if err != nil {
		return usageError("--addr %q: want HOST:PORT, such as 127.0.0.1:8124", f.Addr)
	}
	if f.KeyFile+f.KeyEnv == "" && !httpname.IsLoopback(host) {
		return usageError("--addr %s can be reached from other machines: give a key with --key-file or --key-env, or listen on 127.0.0.1", f.Addr)
	}
	return nil
}

func (f *mcpServeFlags) serve(cmd *cobra.Command, _ []string) (err error) {
	if err := f.check(cmd); err != nil {
		return err
	}
	cfg, err := configOf(cmd)
	if err != nil {
		return err
	}
	if !cfg.ToolCalling.Enabled {
		return exit(exitConfig, "tool_calling.enabled is false: there is nothing to serve")
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, f.Format)
	if err != nil {
		return err
	}
	defer daemon.TakeStandardLog(log)()
	out, err := f.outputs(cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close(f.Metrics)) }()
	if err := app.CheckTemporalTools(cfg); err != nil {
		return err
	}
	tools, err := startAllTools(cmd, cfg, &app.ServerOptions{Log: log, Observers: event.MCPObservers(out.sinks)}, showProgress)
	if err != nil {
		return err
	}
	defer tools.Close()
	offered, err := app.OpenCatalog(cfg)
	if err != nil {
		return err
	}
	defer offered.Close()
	for _, name := range f.Tools {
		if _, ok := tools.Set.Lookup(name); !ok && !slices.Contains(offered.Names(), name) {
			return noTool("--tools: ", name, tools.Set)
		}
	}
	warnOfServers(cmd, tools.Servers)
	s, err := f.newServer(cmd, cfg, tools.Set, out, log)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Offer(&offered.Catalog); err != nil {
		return exit(exitConfig, "mcp: %w", app.Cause(err))
	}
	defer refreshTools(s)()
	if f.Addr == "" {
		return f.serveStreams(cmd, s)
	}
	return f.serveHTTP(cmd, s, log)
}

// mcpOutputs are the destinations of the events of served calls.
type mcpOutputs struct {
	sinks   []event.Sink
	file    *os.File
	lines   *observe.JSONLines
	metrics *observe.Metrics
	trail   *audit.Log // nil: there is no audit log
}

func (f *mcpServeFlags) outputs(cfg *config.Config, log *slog.Logger) (*mcpOutputs, error) {
	o := &mcpOutputs{}
	var err error
	if o.trail, err = app.OpenAudit(cfg, log); err != nil {
		return nil, err
	}
	if o.trail != nil {
		o.sinks = append(o.sinks, o.trail)
	}
	if f.Events != "" {
		file, err := os.OpenFile(f.Events, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, errors.Join(usageError("--events: %w", err), o.close(""))
		}
		o.file = file
		o.lines = observe.NewJSONLines(file, &observe.JSONLinesOptions{Content: cfg.Telemetry.Content})
		o.sinks = append(o.sinks, o.lines)
	}
	if f.Metrics != "" {
		o.metrics = observe.NewMetrics(metricsOptions(cfg))
		o.sinks = append(o.sinks, o.metrics)
	}
	if f.Log != "" {
		o.sinks = append(o.sinks, observe.NewSlog(log))
	}
	return o, nil
}

func (o *mcpOutputs) close(metricsFile string) error {
	var errs []error
	if o.trail != nil {
		errs = append(errs, o.trail.Close())
	}
	if o.lines != nil {
		errs = append(errs, o.lines.Err(), o.file.Close())
	}
	if o.metrics != nil {
		errs = append(errs, os.WriteFile(metricsFile, scrape(o.metrics), 0o600))
	}
	return errors.Join(errs...)
}

// newServer returns the server. Over HTTP it shows the calls, and a user at the terminal is asked for approvals. On the standard streams
// calls that need an approval are denied.
func (f *mcpServeFlags) newServer(cmd *cobra.Command, cfg *config.Config, set *tool.Set, out *mcpOutputs, log *slog.Logger) (*mcp.Server, error) {
	opts := &mcp.Options{Title: "Lathe", Version: currentVersion().Version, Sinks: out.sinks, Log: log}
	calls := &app.CallOptions{Audit: out.trail, Log: log}
	if f.Addr != "" {
		var err error
		if opts.HTTP, err = f.httpOptions(); err != nil {
			return nil, err
		}
		view := commandScreen(cmd)
		opts.Sinks = append(opts.Sinks, activity{view})
		if in := cmd.InOrStdin(); isTerminal(in) && view.errTerm {
			calls.Approver = newTerminalApprover(in, view)
		}
	}
	runner, err := app.NewRunner(cfg, set, calls)
	if err != nil {
		return nil, err
	}
	return mcp.New(runner, opts), nil
}

// httpOptions admits clients that send the key. Without a key it admits all clients; check allows that on a loopback address only.
func (f *mcpServeFlags) httpOptions() (mcp.HTTPOptions, error) {
	opts := mcp.HTTPOptions{Hosts: f.Hosts, Origins: f.Origins}
	caller := mcp.Caller{Principal: f.Principal, Allow: f.Tools}
	key, err := f.key()
	if err != nil {
		return opts, err
	}
	if key.IsZero() {
		opts.Identify = func(*http.Request) (mcp.Caller, bool) { return caller, true }
		return opts, nil
	}
	caller.Principal = cmp.Or(caller.Principal, "mcp")
	opts.Identify = mcp.Keys(mcp.Key{Secret: key, Caller: caller})
	host, _, _ := net.SplitHostPort(f.Addr) // check has returned the error
	if f.Hosts == nil && !httpname.IsLoopback(host) {
		opts.Hosts = []string{"*"} // a page of another host that resolves to this address does not have the key
	}
	return opts, nil
}

// serveStreams serves one client on the standard streams.
func (f *mcpServeFlags) serveStreams(cmd *cobra.Command, s *mcp.Server) error {
	in := cmd.InOrStdin()
	if isTerminal(in) {
		cmd.PrintErrln("reading MCP messages from standard input, one a line; an MCP client is meant to start this command. Ctrl-D ends it, --addr serves HTTP")
	}
	err := s.ServeStdio(cmd.Context(), interruptible(cmd.Context(), in), cmd.OutOrStdout(), &mcp.Caller{Principal: f.Principal, Allow: f.Tools})
	if err != nil && cmd.Context().Err() == nil {
		return failure("writing to the client: %w", err)
	}
	return nil // a client may also end the server by a signal
}

// serveHTTP serves until the command is interrupted, and then closes the sessions, because their streams do not end by themselves.
func (f *mcpServeFlags) serveHTTP(cmd *cobra.Command, s *mcp.Server, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: stdlog.Logger(log)}
	return serveUntilDone(cmd, f.Addr, "MCP is served on http://%s/mcp (stop with Ctrl-C)\n", server, s.Close)
}

// key returns the key of HTTP clients, or zero if none exists.
func (f *mcpServeFlags) key() (key secret.Secret, err error) {
	var text string
	switch {
	case f.KeyFile != "":
		b, err := readFile(f.KeyFile, maxKeyFile)
		if err != nil {
			return key, usageError("--key-file: %w", err)
		}
		text = string(b)
	case f.KeyEnv != "":
		text = os.Getenv(f.KeyEnv)
	default:
		return key, nil
	}
	text = strings.TrimRight(text, "\r\n")
	if len(text) < minKey {
		return key, usageError("the key has %d characters, and at least %d are wanted: `openssl rand -hex 32` makes one", len(text), minKey)
	}
	return secret.New(text), nil
}

const (
	minKey     = 16      // shortest key of HTTP clients in bytes
	maxKeyFile = 4 << 10 // bytes of a file with a key or a token
)

// refreshTools notifies clients of added and removed tools, until stop is called.
func refreshTools(s *mcp.Server) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { app.RefreshTools(ctx, s) })
	return func() {
		cancel()
		over.Wait()
	}
}

// activity is a sink that shows tool calls and their results.
type activity struct{ view *screen }

// Emit implements event.Sink.
func (a activity) Emit(ctx context.Context, e event.Event) {
	switch e.Data.(type) {
	case *event.ToolCallPlanned, *event.ToolCallResult:
		a.view.Emit(ctx, e)
	default: // other events are not shown
	}
}
