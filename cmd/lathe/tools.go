package main

import (
	"cmp"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

func toolsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "List, call and check tools",
		Example: "  lathe tools list\n  lathe tools call calculator '{\"expression\":\"7 + 35\"}'"}
	cmd.AddCommand(toolsListCommand(), toolsSearchCommand(), toolsCallCommand(), toolsCheckCommand(), toolsDoctorCommand(), toolsEffectsCommand(), toolsAcceptCommand(), toolsLoginCommand(), toolsLogoutCommand())
	return cmd
}

// toolRow is one line of `tools list --json`.
type toolRow struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Effect      string          `json:"effect"`
	Origin      string          `json:"origin"`
	State       string          `json:"state"`
	Reason      string          `json:"reason,omitempty"` // reason for a State other than ready
	Policy      string          `json:"policy"`
	Rule        string          `json:"rule"`
	Hidden      bool            `json:"hidden"`
	Allowlist   []string        `json:"allowlist"`
	Schema      json.RawMessage `json:"schema"`
}

func toolsListCommand() *cobra.Command {
	var f struct {
		JSON bool `flag:"json" usage:"one JSON line for each tool, with its schema"`
	}
	return withFlags(&cobra.Command{
		Use:   "list",
		Short: "List the tools, with what policy decides about their calls",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, pol, tools, err := startTools(cmd, f.JSON)
			if err != nil {
				return err
			}
			defer tools.Close()
			set := tools.Set
			apis := app.OpenHTTPTools(cfg)
			defer apis.Close()
			states := len(tools.Servers.Status()) > 0 || cfg.Tools.WASM.Dir != "" || apis.HasLogins()
			var rows []toolRow
			for _, sp := range set.Specs() {
				v := pol.Tool(&lathe.RunInfo{}, sp)
				state, reason := serverState(tools.Servers, sp), ""
				if t, ok := set.Lookup(sp.Name); ok && sp.Origin == wasmtool.Origin {
					state, reason = moduleState(cmd.Context(), t)
				}
				if why, next := loginState(apis.NeedsLogin(sp.Name)); why != "" {
					state, reason = why, next
				}
				rows = append(rows, toolRow{Name: sp.Name, Description: sp.Description, Effect: sp.Effect.Declared(), Origin: sp.Origin, State: state, Reason: reason,
					Policy: v.Decision.String(), Rule: v.Rule, Hidden: sp.Hidden, Allowlist: sp.Allowlist, Schema: sp.Schema})
			}
			rows = append(rows, others(tools.Servers)...)
			for _, name := range app.UnknownPolicyTools(cfg, set) {
				cmd.PrintErrf("note: policy.tools names %s, and there is no such tool now: a server, module or guest may bring it later\n", name)
			}
			noteSearch(cmd, cfg, set)
			return printRows(cmd, rows, f.JSON, func(w io.Writer, rows []toolRow) error { return printTools(w, rows, states) })
		},
	}, &f)
}

// printTools prints a table of the tools. states reports whether it has their states.
func printTools(w io.Writer, rows []toolRow, states bool) error {
	var table report.Table
	line := func(name, effect, policy, origin, state, description string) {
		if states {
			table.Row(name, effect, policy, origin, state, description)
		} else {
			table.Row(name, effect, policy, origin, description)
		}
	}
	line("NAME", "EFFECT", "POLICY", "ORIGIN", "STATE", "DESCRIPTION")
	for _, row := range rows {
		name := row.Name
		if row.Hidden {
			name += " (hidden)"
		}
		line(name, cmp.Or(row.Effect, "-"), cmp.Or(row.Policy, "-"), row.Origin, row.State, printable(cmp.Or(row.Reason, text.FirstSentence(row.Description))))
	}
	return table.Write(w)
}

// startTools reads the configuration of a command, makes its policy and starts its tools, which the caller must close. It writes notes to
// stderr about servers that take long to start.
func startTools(cmd *cobra.Command, asJSON bool) (*config.Config, lathe.Policy, *app.Tools, error) {
	cfg, err := configOf(cmd)
	if err != nil {
		return nil, nil, nil, err
	}
	pol, err := app.NewPolicy(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	tools, err := startAllTools(cmd, cfg, nil, asJSON)
	return cfg, pol, tools, err
}

// warnOfServers writes a warning for each MCP server that is not ready, for definitions that are not accepted, and for names in the
// configuration of a server that none of its tools has.
func warnOfServers(cmd *cobra.Command, servers *app.Servers) {
	for _, text := range servers.Warnings() {
		cmd.PrintErrln("warning:", printable(text))
	}
}
