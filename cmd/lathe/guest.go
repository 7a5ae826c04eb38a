package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
)

func guestCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "guest", Short: "Run WebAssembly programs that prompt models"}
	cmd.AddCommand(guestRunCommand())
	return cmd
}

type guestFlags struct {
	runFlags
	guestOwnFlags
}

// guestOwnFlags are the flags that only guest runs have.
type guestOwnFlags struct {
	Tools   []string `flag:"tools" usage:"*names* of configured tools that its sends may use besides its own functions; default: none" complete:"tools"`
	Program struct {
		Timeout time.Duration     `flag:"timeout" usage:"*time* that it may take (default 15m)"`
		Limits  map[string]string `flag:"limit"`
		Grants  []string          `flag:"grant" usage:"*what* it may have: clock, random" complete:"clock random"`
		Read    []string          `flag:"read" usage:"*mount* /guest=folder: a folder that it may read"`
		Write   []string          `flag:"write" usage:"*mount* /guest=folder: a folder that it may read and change"`
	} `group:"The program:"`
	MCP struct {
		Servers []string `flag:"mcp-servers" usage:"*names* of configured servers that sessions may use; default: none"`
		Default []string `flag:"mcp-default" usage:"*names* of those that a session begins with"`
		Allow   []string `flag:"mcp-allow" usage:"*patterns* of tools that they may use; default: all"`
		Deny    []string `flag:"mcp-deny" usage:"*patterns* of tools that they may not use"`
	} `group:"MCP servers, for sessions that enable them:"`
}

func guestRunCommand() *cobra.Command {
	var f guestFlags
	cmd := f.with(&cobra.Command{
		Use:   "run [flags] FILE.wasm",
		Short: "Run a WebAssembly program that drives a session",
		Long: `Runs a WebAssembly program that imports the module spear: it opens sessions, registers its functions as
tools, sends, and reads the answers. Each send is a run of its own. docs/internals/guest-abi.md describes the calls.

What the program prints goes to stdout, tool activity and its log to stderr. With --json every event is one
JSON line on stdout, and what the program prints goes to stderr. It has no files, no time of day and no
randomness unless granted, and never a network. The exit code is 0 where the program ends with 0, else 1.`,
		Example: `  lathe guest run sum.wasm
  lathe guest run --json sum.wasm | jq -c 'select(.type == "ToolCallResult")'
  lathe guest run --grant clock --read /data=./notes --limit memory_pages=256 program.wasm
  lathe guest run --base-url http://127.0.0.1:11434/v1 --model qwen3 --tools calculator program.wasm`,
		Args: wants(1, 1, "want one FILE.wasm, got %d: a program takes no arguments"),
		RunE: f.run,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
		},
	})
	withFlags(cmd, &f.guestOwnFlags).Flags().Lookup("limit").Usage = "`name=number`, as often as needed, of " + strings.Join(limitNames(), ", ")
	group(cmd, "Settings and limits, with their defaults (tool_calling in lathe.yaml; see docs/config.md):", addSettings)
	return cmd
}

// guestLimits returns pointers to the fields of l that --limit can set, by name.
func guestLimits(l *guest.Limits) map[string]any {
	return map[string]any{
		"module_bytes": &l.ModuleBytes, "functions": &l.Functions, "function_bytes": &l.FunctionBytes,
		"memory_pages": &l.MemoryPages, "table_elements": &l.TableElements, "host_calls": &l.HostCalls,
		"stdout_bytes": &l.StdoutBytes, "file_bytes": &l.FileBytes, "open_files": &l.OpenFiles, "new_files": &l.NewFiles,
		"log_bytes": &l.LogBytes, "descriptors": &l.Descriptors, "session_bytes": &l.SessionBytes, "session_tools": &l.SessionTools,
		"sends": &l.Sends,
	}
}

func limitNames() []string { return slices.Sorted(maps.Keys(guestLimits(&guest.Limits{}))) }

// programLimits parses --limit.
func (f *guestFlags) programLimits() (*guest.Limits, error) {
	l := &guest.Limits{}
	limits := guestLimits(l)
	for name, value := range text.ByName(f.Program.Limits) {
		limit, most := limits[name], int64(1<<40)
		if limit == nil {
			return nil, usageError("--limit: no limit %q: %s", name, text.Suggest(name, limitNames(), "there are "+strings.Join(limitNames(), ", ")))
		}
		if _, small := limit.(*uint32); small { // pages and elements
			most = 1<<16 - 1
		}
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil || v < 1 || v > most {
			return nil, usageError("--limit %s=%s: want a number from 1 to %d", name, value, most)
		}
		switch limit := limit.(type) {
		case *int:
			*limit = int(v)
		case *int64:
			*limit = v
		case *uint32:
			*limit = uint32(v)
		}
	}
	return l, nil
}

// options returns the permissions of the program, without its folders.
func (f *guestFlags) options(cmd *cobra.Command, cfg *config.Config, view *screen) (*guest.RunOptions, error) {
	opts := &guest.RunOptions{
		Timeout: f.Program.Timeout,
		MCP:     guest.MCPPolicy{Enabled: len(f.MCP.Servers) > 0, Servers: f.MCP.Servers, Default: f.MCP.Default, Allow: f.MCP.Allow, Deny: f.MCP.Deny},
		Stdout:  plainWriter{cmd.OutOrStdout()}, Stderr: plainWriter{cmd.ErrOrStderr()},
	}
	if f.JSON {
		opts.Stdout = opts.Stderr
	}
	if !f.Quiet {
		opts.Log = func(level, text string) { view.note("guest " + level + ": " + printable(text)) }
	}
	opts.Defaults = cfg.Limits()
	for _, r := range setting.Rows[lathe.Limits]() {
		if r.Guest > 0 && cfg.Origin("tool_calling."+r.Key) != "default" { // a guest cannot exceed a limit that the operator has set
			r.In(&opts.Caps).Set(r.In(&opts.Defaults))
		}
	}
	for _, g := range f.Program.Grants {
		switch g {
		case "clock":
			opts.Now = time.Now
		case "random":
			opts.Random = rand.Reader
		default:
			return nil, usageError("--grant %q: want clock or random; folders are granted by --read and --write", g)
		}
	}
	return opts, nil
}

// openFolders opens the folders of the program. The caller must close those that are returned, also after an error.
func (f *guestFlags) openFolders() (grants []guest.FileGrant, err error) {
	for _, list := range []struct {
		flag  string
		specs []string
		write bool
	}{{"--read", f.Program.Read, false}, {"--write", f.Program.Write, true}} {
		for _, spec := range list.specs {
			at, dir, ok := strings.Cut(spec, "=")
			if !ok || !strings.HasPrefix(at, "/") || dir == "" {
				return grants, usageError("%s %q: want /guest=folder", list.flag, spec)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				return grants, usageError("%s: %w", list.flag, err)
			}
			grants = append(grants, guest.FileGrant{Guest: at, Root: root, Write: list.write})
		}
	}
	return grants, nil
}

func closeFolders(grants []guest.FileGrant) {
	for _, g := range grants {
		_ = g.Root.Close() // each write has been completed
	}
}

// plainWriter escapes the output of a program that could control a terminal.
type plainWriter struct{ w io.Writer }

func (p plainWriter) Write(b []byte) (int, error) {
	if !isTerminal(p.w) {
		return p.w.Write(b)
	}
	if _, err := io.WriteString(p.w, printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *guestFlags) run(cmd *cobra.Command, args []string) (err error) {
	if f.Program.Timeout < 0 || f.Program.Timeout == 0 && cmd.Flags().Changed("timeout") {
		return usageError("--timeout wants a time above 0, such as 30s")
	}
	limits, err := f.programLimits()
	if err != nil {
		return err
	}
	cfg, model, err := f.load(cmd)
	if err != nil {
		return err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, f.Format)
	if err != nil {
		return err
	}
	h := &guestHost{guestFlags: f, cmd: cmd, cfg: cfg, log: log, view: commandScreen(cmd)}
	opts, err := f.options(cmd, cfg, h.view)
	if err != nil {
		return err
	}
	opts.Files, err = f.openFolders()
	defer closeFolders(opts.Files)
	if err != nil {
		return err
	}
	if h.store, err = openStore(f.Store, readWrite); err != nil {
		return err
	}
	if h.store != nil {
		defer joinClose(&err, h.store)
	}
	program, closeProgram, err := loadProgram(cmd, cfg, args[0], limits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeProgram()) }()
	defer joinClose(&err, h)
	host, err := h.open(model)
	if err != nil {
		return err
	}
	outcome := program.Run(cmd.Context(), host, opts)
	if werr := h.out.close(f.Metrics); werr != nil && cmd.Context().Err() == nil {
		return &exitError{exitFailed, werr}
	}
	return guestEnded(cmd.Context(), outcome)
}

// A guestHost has what the sends of a program use: models, tools, and the engine that runs the sends. open sets the fields
// from set on.
type guestHost struct {
	*guestFlags
	cmd   *cobra.Command
	cfg   *config.Config
	log   *slog.Logger
	view  *screen
	store app.Store // nil: runs are not stored; closed by the caller

	set     *tool.Set // tools in addition to the program's own functions
	modules *app.Modules
	servers *app.Servers
	trail   *audit.Log // nil: there is no audit log
	out     *outputs
}

// open starts the tools and returns the host of the program. model is that of the command line, "": none. The caller must call Close, also
// after an error.
func (h *guestHost) open(model string) (guest.Host, error) {
	if err := h.startTools(); err != nil {
		return nil, err
	}
	var err error
	if h.trail, err = app.OpenAudit(h.cfg, h.log); err != nil {
		return nil, err
	}
	models, err := h.models(model)
	if err != nil {
		return nil, err
	}
	first, err := models.choose("")
	if err != nil {
		return nil, err
	}
	if isSimulated(first.ModelName) && model == "" && h.cfg.DefaultModel == "" {
		models.note("no model is configured: the simulated " + first.ModelName + " answers; --base-url and --model reach a real one")
	}
	h.out = h.localSinks(h.cmd, h.cfg, h.view, h.log)
	eng, err := h.engine()
	if err != nil {
		return nil, err
	}
	approver := h.approver(h.cmd.InOrStdin(), nil)(h.view)
	runner, err := app.RunnerOptions(h.cfg, &app.CallOptions{Approver: approver, Audit: h.trail, Log: h.log})
	if err != nil {
		return nil, err
	}
	return guest.NewHost(first.Model, &guest.HostOptions{
		Tools: h.set, Allow: append([]string{}, h.Tools...), Choose: models.choose, Retention: app.Retention(h.cfg), Engine: eng,
		Runner: *runner,
	})
}

// Close closes what open has opened.
func (h *guestHost) Close() (err error) {
	if h.trail != nil {
		err = h.trail.Close()
	}
	if h.servers != nil {
		h.servers.Close()
	}
	if h.modules != nil {
		h.modules.Close()
	}
	return err
}

// models returns the models of the sends. name is the model of the command line, "": none.
func (h *guestHost) models(name string) (*guestModels, error) {
	simOpts, err := app.SimOptions(h.cfg, h.Sim.Script, h.Sim.Replay)
	if err != nil {
		return nil, err
	}
	build := func(wanted string) (*config.Model, lathe.Model, error) {
		entry, err := h.modelEntry(h.cfg, cmp.Or(wanted, name))
		if err != nil {
			return nil, nil, err
		}
		model, err := app.NewModel(h.cfg, entry, &app.ModelOptions{Sim: simOpts, Log: h.log})
		return entry, model, err
	}
	note := func(text string) {
		if !h.Quiet {
			h.view.note(printable(text))
		}
	}
	return &guestModels{cfg: h.cfg, fixed: name != "", build: build, note: note}, nil
}

// engine returns the engine of the sends.
func (h *guestHost) engine() (*engine.Engine, error) {
	opts := &engine.Options{Sinks: h.out.all, Log: h.log, Store: h.store}
	if h.trail != nil {
		opts.Audit = h.trail.Event
	}
	return engine.New(opts)
}

// loadProgram reads and compiles a module.
func loadProgram(cmd *cobra.Command, cfg *config.Config, file string, limits *guest.Limits) (*guest.Program, func() error, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, nil, usageError("%w", err)
	}
	defer in.Close() //nolint:errcheck // nothing was written
	if info, err := in.Stat(); err == nil && info.IsDir() {
		return nil, nil, usageError("%s is a folder: want one FILE.wasm", file)
	}
	wasm, err := readAtMost(in, limits.WithDefaults().ModuleBytes)
	if err != nil {
		return nil, nil, exit(exitConfig, "%s: %w; see --limit module_bytes", file, err)
	}
	from := app.ModuleOptions(cfg)
	rt, err := guest.New(&guest.Options{CacheDir: from.CacheDir, Interpreter: from.Interpreter})
	if err != nil {
		return nil, nil, &exitError{exitConfig, err}
	}
	program, err := rt.Compile(cmd.Context(), wasm, limits)
	if err != nil {
		return nil, nil, exit(exitConfig, "%s: %w", file, errors.Join(err, rt.Close()))
	}
	return program, func() error { return errors.Join(program.Close(), rt.Close()) }, nil
}

// startTools starts the configured tools that the flags name, and their servers and modules.
func (h *guestHost) startTools() (err error) {
	configured := h.cfg.Tools.MCP
	for _, name := range slices.Concat(h.MCP.Servers, h.MCP.Default) {
		if configured[name] == nil {
			return usageError("no MCP server %q: %s", name, text.Suggest(name, slices.Sorted(maps.Keys(configured)), "tools.mcp in lathe.yaml names them"))
		}
	}
	all, err := app.NewToolSet(h.cfg)
	if err != nil {
		return err
	}
	if h.modules, err = app.StartModules(h.cmd.Context(), h.cfg, all, h.log); err != nil {
		return err
	}
	var tools []lathe.Tool
	remote := []string{} // names of tools that only a server can have
	for _, name := range h.Tools {
		if t, ok := all.Lookup(name); ok {
			tools = append(tools, t)
		} else {
			remote = append(remote, name)
		}
	}
	if h.set, err = tool.NewSetWithin(h.cfg.Limits(), tools...); err != nil {
		return exitCause(exitConfig, err)
	}
	servers := append(app.ServersOf(h.cfg, remote), h.MCP.Servers...)
	if h.servers, err = startServers(h.cmd, h.cfg, h.set, &app.ServerOptions{Only: servers, Log: h.log}, h.view.quiet); err != nil {
		return err
	}
	for _, name := range remote {
		if _, ok := h.set.Lookup(name); !ok {
			return noTool("--tools: ", name, all)
		}
	}
	for _, text := range h.servers.Warnings() {
		h.view.warn(printable(text))
	}
	return nil
}
