package main

import (
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/progress"
	"github.com/lathe-run/lathe/tool"
)

// showProgress is the value of the parameter quiet of the functions below for commands without a flag for it.
const showProgress = false

// startProgress begins to show the progress of long work on w, unless quiet is true. The caller must stop it.
func startProgress(w io.Writer, quiet bool) *progress.Line {
	opts := &progress.Options{Quiet: quiet}
	if f, ok := w.(*os.File); ok && isTerminal(f) && os.Getenv("TERM") != "dumb" {
		opts.Live = true
		opts.Width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 {
				return 80
			}
			return width
		}
	}
	return progress.Start(w, opts)
}

// startingServers shows which MCP servers are starting, until the caller stops it. names are their names; nil: all.
func startingServers(w io.Writer, cfg *config.Config, names []string, quiet bool) *progress.Line {
	if names == nil {
		names = slices.Sorted(maps.Keys(cfg.Tools.MCP))
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return cfg.Tools.MCP[name] == nil })
	if len(names) == 0 {
		return nil
	}
	line := startProgress(w, quiet)
	line.Say("starting the MCP server " + strings.Join(names, ", "))
	return line
}

// startAllTools starts the configured tools, and shows which MCP servers are starting. The caller must close the tools.
func startAllTools(cmd *cobra.Command, cfg *config.Config, opts *app.ServerOptions, quiet bool) (*app.Tools, error) {
	defer startingServers(cmd.ErrOrStderr(), cfg, nil, quiet).Stop()
	return app.StartTools(cmd.Context(), cfg, opts)
}

// startServers starts MCP servers, and shows which ones.
func startServers(cmd *cobra.Command, cfg *config.Config, set *tool.Set, opts *app.ServerOptions, quiet bool) (*app.Servers, error) {
	defer startingServers(cmd.ErrOrStderr(), cfg, opts.Only, quiet).Stop()
	return app.StartServers(cmd.Context(), cfg, set, opts)
}
