// Command lathe-temporal is `lathe serve` with Temporal: it executes detached runs as workflows of a namespace. lathe.yaml configures its
// models, tools and limits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // zones by name on machines that have none

	"github.com/spf13/pflag"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
)

// Exit codes, the same as those of lathe.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitConfig   = 3
	exitUpstream = 4
)

const (
	program       = "lathe-temporal"
	defaultConfig = "lathe.yaml"
	usageText     = `Serves the models and tools of lathe.yaml as lathe serve does. Detached runs, those of POST /api/runs and
completions with "detach", are workflows of a Temporal namespace; the others are executed by this process.

Usage:
  lathe-temporal serve --engine temporal://HOST:PORT/NAMESPACE --store STORE [flags]
  lathe-temporal version

Examples:
  lathe-temporal serve --engine temporal://127.0.0.1:7233/default --store postgres://lathe@127.0.0.1/lathe
  lathe-temporal serve --engine 'temporal://temporal.example.com:7233/agents?queue=gateway&tls=true' --store sqlite:runs.db

Flags:
`
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes the command and returns its exit code.
func run(ctx context.Context, args []string, out, errw io.Writer) int {
	opts := &daemon.Options{Stderr: errw}
	var configFile, engineURL string
	fl := pflag.NewFlagSet(program, pflag.ContinueOnError)
	fl.SortFlags = false
	fl.Usage = func() { fmt.Fprint(out, usageText+fl.FlagUsagesWrapped(110)) }
	fl.StringVar(&engineURL, "engine", "", "`URL` of the Temporal namespace: temporal://HOST:PORT/NAMESPACE, with ?queue=NAME (default "+defaultQueue+") and tls=true; required")
	opts.AddressFlags(fl)
	opts.StoreFlag(fl)
	fl.Lookup("store").Usage = "keep runs in a `store` that outlives the process: sqlite:PATH or postgres://USER@HOST/DATABASE (default $" + daemon.StoreVariable + ", else serve.store)"
	opts.LogFlags(fl)
	fl.StringVar(&configFile, "config", "", "configuration `file`; default lathe.yaml where it exists")
	switch err := fl.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		return report(errw, lathe.CodeInvalidRequest.Wrap(app.Op, err))
	}
	switch command := fl.Args(); {
	case len(command) == 1 && command[0] == "version":
		version, _ := built()
		fmt.Fprintf(out, "%s %s %s %s/%s\n", program, version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return 0
	case len(command) != 1 || command[0] != "serve":
		return report(errw, usage("the commands are serve and version: `%s serve --help` lists the flags; all other commands are those of lathe", program))
	}
	target, err := parseEngine(engineURL)
	if err != nil {
		return report(errw, err)
	}
	opts.Find = func() (string, error) { return findConfig(configFile) }
	opts.Load = func(file string) (*config.Config, error) {
		cfg, err := app.LoadConfig(file, nil)
		if err == nil {
			configFile = file // a reload fails if the file was removed
		}
		return cfg, err
	}
	opts.App.Version, opts.App.Revision = built()
	opts.Prepare = target.prepare
	if err := daemon.Run(ctx, opts); err != nil {
		return report(errw, err)
	}
	return 0
}

func usage(format string, args ...any) error {
	return lathe.CodeInvalidRequest.Errorf(app.Op, format, args...)
}

// report prints an error and returns its exit code.
func report(w io.Writer, err error) int {
	fmt.Fprintf(w, "%s: %v\n", program, app.Cause(err))
	switch lathe.CodeOf(err) {
	case lathe.CodeInvalidConfig:
		return exitConfig
	case lathe.CodeInvalidRequest:
		return exitUsage
	case lathe.CodeUnavailable:
		return exitUpstream
	default:
		return exitFailed
	}
}

// findConfig returns the configuration file: path, else lathe.yaml if it exists, else "".
func findConfig(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	_, err := os.Stat(defaultConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", lathe.CodeInvalidConfig.Wrap(app.Op, err)
	}
	return defaultConfig, nil
}

// built returns the version and the revision that the Go toolchain recorded in the program.
func built() (version, revision string) {
	version = "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, revision
}
