package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/tool"
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
				cmd.PrintErrf("warning: %s\n", w)
			}
			if search := &cfg.Tools.Search; len(search.Always) > 0 || search.Mode != string(tool.SearchOff) {
				set, err := app.NewToolSet(cfg)
				if err != nil {
					return err
				}
				noteSearch(cmd, cfg, set)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return err
		},
	}
}

func configShowCommand() *cobra.Command {
	var f struct {
		Origins bool `flag:"origins" usage:"list each key with its value and where it comes from"`
		JSON    bool `flag:"json" usage:"the same list, one JSON line for each key"`
	}
	return withFlags(&cobra.Command{
		Use:   "show",
		Short: "Show the configuration in force as YAML, secrets left out",
		Example: `  lathe config show
  LATHE_TOOL_CALLING_MAX_ITERATIONS=4 lathe config show --origins`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configOf(cmd)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if !f.Origins && !f.JSON {
				_, err = out.Write(cfg.YAML())
				return err
			}
			rows, err := cfg.Shown()
			if err != nil {
				return err
			}
			if f.JSON {
				return writeLines(cmd, rows...)
			}
			var t report.Table
			for _, r := range rows {
				t.Row(r.Key, r.Value, r.Origin)
			}
			return t.Write(out)
		},
	}, &f)
}
