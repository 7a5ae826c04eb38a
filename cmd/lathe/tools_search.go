package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/search"
)

// foundRow is one line of `tools search --json`.
type foundRow struct {
	Name        string  `json:"name"`
	Score       float64 `json:"score"`
	Description string  `json:"description"`
	Origin      string  `json:"origin"`
	Bytes       int     `json:"bytes"` // size of name, description and schema
}

func toolsSearchCommand() *cobra.Command {
	var f struct {
		JSON  bool `flag:"json" usage:"one JSON line for each tool"`
		Limit int  `flag:"limit" default:"5" usage:"tools at most"`
	}
	return withFlags(&cobra.Command{
		Use:   "search QUERY...",
		Short: "Show which tools tool_search finds for a query, with scores",
		Long: `Searches the tools that policy may allow, as the tool tool_search of a run does: by words of names, descriptions
and parameters, the best first. Scores of one query can be compared with each other only. The command works whether
tools.search is on or off.`,
		Example: `  lathe tools search current time in a city
  lathe tools search --json --limit 10 'convert money'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Limit < 1 || f.Limit > search.MaxHits {
				return usageError("--limit is %d, want 1 to %d", f.Limit, search.MaxHits)
			}
			cfg, pol, tools, err := startTools(cmd, f.JSON)
			if err != nil {
				return err
			}
			defer tools.Close()
			warnOfServers(cmd, tools.Servers)
			noteSearch(cmd, cfg, tools.Set)
			var specs []*lathe.ToolSpec
			for _, spec := range tools.Set.Specs() {
				if !spec.Hidden && pol.Tool(&lathe.RunInfo{}, spec).Decision != lathe.Deny {
					specs = append(specs, spec)
				}
			}
			hits := search.NewIndex(specs).Search(strings.Join(args, " "), f.Limit)
			if f.JSON {
				rows := make([]foundRow, len(hits))
				for i, h := range hits {
					s := specs[h.Position]
					rows[i] = foundRow{Name: s.Name, Score: h.Score, Description: s.Description, Origin: s.Origin, Bytes: len(s.Name) + len(s.Description) + len(s.Schema)}
				}
				return writeLines(cmd, rows...)
			}
			if len(hits) == 0 {
				cmd.PrintErrf("none of %d tools has a word of the query\n", len(specs))
				return nil
			}
			var t report.Table
			t.Row("SCORE", "NAME", "ORIGIN", "DESCRIPTION")
			for _, h := range hits {
				s := specs[h.Position]
				t.Row(fmt.Sprintf("%.2f", h.Score), s.Name, s.Origin, printable(text.FirstSentence(s.Description)))
			}
			return t.Write(cmd.OutOrStdout())
		},
	}, &f)
}

// noteSearch writes a note for each name in tools.search.always that no tool has, a warning for each key whose requests are refused, and a
// note if policy withholds tool_search.
func noteSearch(cmd *cobra.Command, cfg *config.Config, set *tool.Set) {
	for _, name := range app.UnknownSearchTools(cfg, set) {
		cmd.PrintErrf("note: tools.search.always names %s, and there is no such tool now: a server, module or guest may bring it later\n", name)
	}
	for _, text := range app.RefusedKeys(cfg, set) {
		cmd.PrintErrf("warning: %s\n", text)
	}
	if decision, withheld := app.SearchWithheld(cfg); withheld {
		cmd.PrintErrf("note: policy decides %s about tool_search, so that runs send the definitions of all tools; policy.tools.tool_search: allow lets them search\n", decision)
	}
}
