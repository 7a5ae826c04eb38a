package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/config"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check and show the configuration"}
	cmd.AddCommand(configCheckCommand(), configShowCommand())
	return cmd
}

func configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration file: every problem with its line and the nearest right word",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := configPath(cmd)
			if len(args) == 1 {
				path = args[0]
			}
			cfg, err := loadConfig(path, nil)
			if err != nil {
				return err
			}
			if err := app.Check(cmd.Context(), cfg); err != nil {
				return err
			}
			for _, w := range cfg.Warnings() {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return err
		},
	}
}

func configShowCommand() *cobra.Command {
	var origins, asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the configuration in force as YAML, secrets left out",
		Example: `  lathe config show
  LATHE_TOOL_CALLING_MAX_ITERATIONS=4 lathe config show --origins`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(configPath(cmd), nil)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if !origins && !asJSON {
				_, err = out.Write(cfg.YAML())
				return err
			}
			rows, err := settingRows(cfg)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(jsonOut(out))
				enc.SetEscapeHTML(false)
				for _, r := range rows {
					if err := enc.Encode(r); err != nil {
						return err
					}
				}
				return nil
			}
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			for _, r := range rows {
				fmt.Fprintf(w, "%s\t%s\t%s\n", r.Key, r.Value, r.Origin)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&origins, "origins", false, "list each key with its value and where it comes from")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same list, one JSON line for each key")
	return cmd
}

// A settingRow is one line of `config show --json`.
type settingRow struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// settingRows lists the configuration as it would be shown, a row for each value.
func settingRows(cfg *config.Config) ([]settingRow, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(cfg.YAML(), &doc); err != nil {
		return nil, fmt.Errorf("reading the configuration in force: %w", err)
	}
	var rows []settingRow
	var walk func(key string, n *yaml.Node)
	walk = func(key string, n *yaml.Node) {
		if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(strings.TrimPrefix(key+"."+n.Content[i].Value, "."), n.Content[i+1])
			}
			return
		}
		origin := cfg.Origin(key)
		for above := key; origin == "default"; { // an entry of a table comes from where the table does
			dot := strings.LastIndexByte(above, '.')
			if dot < 0 {
				break
			}
			above = above[:dot]
			origin = cfg.Origin(above)
		}
		rows = append(rows, settingRow{key, valueText(n), origin})
	}
	for _, n := range doc.Content {
		walk("", n)
	}
	return rows, nil
}

// valueText is a value in one line.
func valueText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value
	case yaml.SequenceNode:
		items := make([]string, len(n.Content))
		for i, c := range n.Content {
			items[i] = c.Value
		}
		return strings.Join(items, ",")
	default:
		return ""
	}
}
