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

// guestLimits returns a function for each limit of --limit, which sets the limit in l.
func guestLimits(l *guest.Limits) map[string]func(int64) {
	asInt := func(to *int) func(int64) { return func(v int64) { *to = int(v) } }
	asUint32 := func(to *uint32) func(int64) { return func(v int64) { *to = uint32(v) } }
	asInt64 := func(to *int64) func(int64) { return func(v int64) { *to = v } }
	return map[string]func(int64){
		"module_bytes": asInt(&l.ModuleBytes), "functions": asInt(&l.Functions), "function_bytes": asInt(&l.FunctionBytes),
		"memory_pages": asUint32(&l.MemoryPages), "table_elements": asUint32(&l.TableElements), "host_calls": asInt64(&l.HostCalls),
		"stdout_bytes": asInt64(&l.StdoutBytes), "file_bytes": asInt64(&l.FileBytes), "open_files": asInt(&l.OpenFiles), "new_files": asInt(&l.NewFiles),
		"log_bytes": asInt(&l.LogBytes), "descriptors": asInt(&l.Descriptors), "session_bytes": asInt(&l.SessionBytes), "session_tools": asInt(&l.SessionTools),
		"sends": asInt(&l.Sends),
	}
}

func limitNames() []string { return slices.Sorted(maps.Keys(guestLimits(&guest.Limits{}))) }

// programLimits parses --limit.
func (f *guestFlags) programLimits() (*guest.Limits, error) {
	l := &guest.Limits{}
	set := guestLimits(l)
	for name, value := range text.ByName(f.Program.Limits) {
		if set[name] == nil {
			return nil, usageError("--limit: no limit %q: %s", name, text.Suggest(name, limitNames(), "there are "+strings.Join(limitNames(), ", ")))
		}
		most := int64(1 << 40)
		if name == "memory_pages" || name == "table_elements" {
			most = 1<<16 - 1
		}
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil || v < 1 || v > most {
			return nil, usageError("--limit %s=%s: want a number from 1 to %d", name, value, most)
		}
		set[name](v)
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
	over, name, err := f.overrides(cmd)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(configPath(cmd), over)
	if err != nil {
		return err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, f.Format)
	if err != nil {
		return err
	}
	view := commandScreen(cmd)
	opts, err := f.options(cmd, cfg, view)
	if err != nil {
		return err
	}
	opts.Files, err = f.openFolders()
	defer closeFolders(opts.Files)
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
	program, closeProgram, err := loadProgram(cmd, cfg, args[0], limits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeProgram()) }()
	given := &givenTools{}
	defer given.close()
	if err := given.open(cmd, f, cfg, log, view); err != nil {
		return err
	}
	trail, err := app.OpenAudit(cfg, log)
	if err != nil {
		return err
	}
	if trail != nil {
		defer joinClose(&err, trail)
	}
	note := func(text string) {
		if !f.Quiet {
			view.note(printable(text))
		}
	}
	simOpts, err := app.SimOptions(cfg, f.Sim.Script, f.Sim.Replay)
	if err != nil {
		return err
	}
	models := &guestModels{cfg: cfg, fixed: name != "", note: note, build: func(wanted string) (*config.Model, lathe.Model, error) {
		entry, err := f.modelEntry(cfg, cmp.Or(wanted, name))
		if err != nil {
			return nil, nil, err
		}
		model, err := app.NewModel(cfg, entry, &app.ModelOptions{Sim: simOpts, Log: log})
		return entry, model, err
	}}
	first, err := models.choose("")
	if err != nil {
		return err
	}
	if isSimulated(first.ModelName) && name == "" && cfg.DefaultModel == "" {
		note("no model is configured: the simulated " + first.ModelName + " answers; --base-url and --model reach a real one")
	}
	out := f.localSinks(cmd, cfg, view, log)
	eng, err := guestEngine(out, runStore, trail, log)
	if err != nil {
		return err
	}
	runner, err := app.RunnerOptions(cfg, &app.CallOptions{Approver: f.approver(cmd.InOrStdin(), nil)(view), Audit: trail, Log: log})
	if err != nil {
		return err
	}
	host, err := guest.NewHost(first.Model, &guest.HostOptions{
		Tools: given.set, Allow: append([]string{}, f.Tools...), Choose: models.choose, Retention: app.Retention(cfg), Engine: eng,
		Runner: *runner,
	})
	if err != nil {
		return err
	}
	outcome := program.Run(cmd.Context(), host, opts)
	if werr := out.close(f.Metrics); werr != nil && cmd.Context().Err() == nil {
		return &exitError{exitFailed, werr}
	}
	return guestEnded(cmd.Context(), outcome)
}

// guestEngine returns the engine of the runs of a program. runStore and trail may be nil.
func guestEngine(out *outputs, runStore app.Store, trail *audit.Log, log *slog.Logger) (*engine.Engine, error) {
	opts := &engine.Options{Sinks: out.all, Log: log}
	if runStore != nil {
		opts.Store = runStore
	}
	if trail != nil {
		opts.Audit = trail.Event
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

// givenTools are the tools that sends of a program may use in addition to its functions.
type givenTools struct {
	set     *tool.Set
	modules *app.Modules
	servers *app.Servers
}

// close stops the servers and modules that open has started.
func (g *givenTools) close() {
	if g.servers != nil {
		g.servers.Close()
	}
	if g.modules != nil {
		g.modules.Close()
	}
}

func (g *givenTools) open(cmd *cobra.Command, f *guestFlags, cfg *config.Config, log *slog.Logger, view *screen) error {
	for _, name := range slices.Concat(f.MCP.Servers, f.MCP.Default) {
		if _, ok := cfg.Tools.MCP[name]; !ok {
			return usageError("no MCP server %q: %s", name, text.Suggest(name, slices.Sorted(maps.Keys(cfg.Tools.MCP)), "tools.mcp in lathe.yaml names them"))
		}
	}
	all, err := app.NewToolSet(cfg)
	if err != nil {
		return err
	}
	if g.modules, err = app.StartModules(cmd.Context(), cfg, all, log); err != nil {
		return err
	}
	var tools []lathe.Tool
	remote := []string{} // names of tools that only a server can have
	for _, name := range f.Tools {
		if t, ok := all.Lookup(name); ok {
			tools = append(tools, t)
		} else {
			remote = append(remote, name)
		}
	}
	if g.set, err = tool.NewSetWithin(cfg.Limits(), tools...); err != nil {
		return &exitError{exitConfig, app.Cause(err)}
	}
	if g.servers, err = startServers(cmd, cfg, g.set, &app.ServerOptions{Only: append(app.ServersOf(cfg, remote), f.MCP.Servers...), Log: log}, view.quiet); err != nil {
		return err
	}
	for _, name := range remote {
		if _, ok := g.set.Lookup(name); !ok {
			return noTool("--tools: ", name, all)
		}
	}
	for _, text := range g.servers.Warnings() {
		view.warn(printable(text))
	}
	return nil
}
