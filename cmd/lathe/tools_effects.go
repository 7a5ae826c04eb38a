package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/tool/mcptool"
)

func toolsEffectsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "effects SERVER",
		Short: "Print the effects of an MCP server's tools, to review and paste into lathe.yaml",
		Long: `Starts the MCP server and prints the effects of its tools in the form of lathe.yaml. What the configuration does not declare
is taken from the server's own hints, which are claims: review each line before you paste the block.`,
		Example: `  lathe tools effects files`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, set, err := configuredTools(cmd)
			if err != nil {
				return err
			}
			name := args[0]
			if cfg.Tools.MCP[name] == nil {
				return usageError("no MCP server %q: use one of the names under tools.mcp in lathe.yaml", name)
			}
			running, err := startServers(cmd, cfg, set, &app.ServerOptions{Only: []string{name}, Inspect: true}, showProgress)
			if err != nil {
				return err
			}
			defer running.Close()
			st := running.Status()[0]
			if st.State != mcptool.StateReady {
				return exit(exitUpstream, "the MCP server %s is not ready: %s; `lathe tools doctor` examines it", name, printable(st.LastError))
			}
			var table report.Table
			cmd.Printf("# The hints are claims of the server: review each line.\ntools:\n  mcp:\n    %s:\n      effects:\n", name)
			for _, t := range st.Tools {
				if t.State == mcptool.ToolMissing || t.State == mcptool.ToolExcluded || len(t.Definition) == 0 {
					continue
				}
				effect, why := hintedEffect(t.Definition)
				if declared := cfg.Tools.MCP[name].Effects[t.Remote]; declared != lathe.EffectUndeclared {
					effect, why = declared, "as configured"
				}
				table.Row(fmt.Sprintf("        %s: %s", yamlKey(t.Remote), effect), "# "+why)
			}
			return table.Write(cmd.OutOrStdout())
		},
	}
}

// hintedEffect returns the effect according to the hints of a definition, and the name of the hint.
func hintedEffect(definition []byte) (effect lathe.Effect, why string) {
	hints := rawjson.At(definition, "annotations")
	readOnly, idempotent := string(rawjson.At(hints, "readOnlyHint")), string(rawjson.At(hints, "idempotentHint"))
	switch {
	case readOnly == "true":
		return lathe.ReadOnly, "readOnlyHint"
	case idempotent == "true":
		return lathe.Idempotent, "idempotentHint"
	case readOnly == "false" || idempotent == "false":
		return lathe.Writes, "by its hints"
	}
	return lathe.Writes, "no hint"
}

// plainKey matches keys that YAML parses as text without quotation marks.
var plainKey = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// yamlKey returns a key in YAML, quoted if necessary.
func yamlKey(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return strconv.Quote(s)
	}
	if plainKey().MatchString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}
