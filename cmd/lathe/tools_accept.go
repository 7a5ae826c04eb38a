package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/tool/mcptool"
)

func toolsAcceptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "accept NAME...",
		Short: "Accept the current definitions of tools of MCP servers",
		Long: `Accepts the definitions that the named tools have now, or those of all tools of a named server. A definition
that has not been accepted, or has changed since, is not sent to models. The command first prints what it
accepts, as a model would receive it: read it.`,
		Example: `  lathe tools accept files__read_file
  lathe tools accept files`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, set, err := configuredTools(cmd)
			if err != nil {
				return err
			}
			var only []string
			for _, name := range args {
				server, _, ok := cfg.Tools.MCPTool(name)
				if !ok {
					server, _, _ = strings.Cut(name, "__")
				}
				if cfg.Tools.MCP[server] == nil {
					return usageError("no MCP server %q: the tools of MCP servers are called SERVER__TOOL, and `lathe tools list` names them", server)
				}
				only = append(only, server)
			}
			running, err := startServers(cmd, cfg, set, &app.ServerOptions{Only: only}, showProgress)
			if err != nil {
				return err
			}
			defer running.Close()
			for _, name := range args {
				was, err := running.Accept(name)
				if err != nil {
					code := exitFailed
					switch lathe.CodeOf(err) {
					case lathe.CodeNotFound:
						code = exitUsage
					case lathe.CodeInvalidConfig:
						code = exitConfig
					case lathe.CodeUnavailable:
						code = exitUpstream
					}
					return &exitError{code, fmt.Errorf("%s: %w", name, app.Cause(err))}
				}
				for _, t := range was {
					printAccepted(cmd, &t)
				}
			}
			return nil
		},
	}
}

func printAccepted(cmd *cobra.Command, t *mcptool.ToolStatus) {
	w := cmd.OutOrStdout()
	why := "as it was accepted before"
	if t.State != mcptool.ToolReady {
		why = reasonText(t)
	}
	fmt.Fprintf(w, "accepted %s: %s\n  sha256 %s\n", t.Name, why, t.Digest)
	quoteLines(w, strings.TrimSpace(t.Description))
	if t.Hidden > 0 {
		fmt.Fprintf(w, "  %d invisible characters are left out\n", t.Hidden)
	}
}
