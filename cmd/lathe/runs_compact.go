package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
)

func runsCompactCommand() *cobra.Command {
	var name string
	var dryRun bool
	var before time.Duration
	cmd := &cobra.Command{
		Use: "compact [RUN…]", Short: "Remove content of ended runs, as tool_calling.retention says",
		Long: `Cuts the results of tools and removes reasoning and commentary of runs that have ended, of the named ones or of
all, as tool_calling.retention in lathe.yaml says (or its defaults). Prompts, answers and the arguments of calls
stay, and each event says how many bytes were removed from it. It also compacts runs that were stored before
those settings were made. What was removed cannot be restored.`,
		Example: `  lathe runs compact --dry-run
  lathe runs compact --older 720h`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if before < 0 {
				return usageError("--older wants a time of 0 or more, such as 720h")
			}
			cfg, err := loadConfig(configPath(cmd), nil)
			if err != nil {
				return err
			}
			s, err := needStore(name, dryRun)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			ctx, keep, total := cmd.Context(), retentionSettings(cfg), compacted{}
			for _, id := range args {
				if err := compactRun(ctx, s, id, keep, dryRun, &total); errors.Is(err, lathe.ErrConflict) {
					return &exitError{exitFailed, fmt.Errorf("the run %s has not ended", id)}
				} else if err != nil {
					return storeError(err)
				}
			}
			end := time.Now().Add(-before)
			for after := (*lathe.RunSummary)(nil); len(args) == 0; {
				rows, err := s.Ended(ctx, after, end, compactPage)
				if err != nil {
					return storeError(err)
				}
				for i := range rows {
					if err := compactRun(ctx, s, rows[i].RunID, keep, dryRun, &total); err != nil && !errors.Is(err, lathe.ErrNotFound) {
						return storeError(err)
					}
				}
				if len(rows) < compactPage {
					break
				}
				after = &rows[len(rows)-1]
			}
			did := "removed"
			if dryRun {
				did = "would be removed"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes of %s %s\n", count(total.runs, "run"), total.bytes, count(total.events, "event"), did)
			return err
		},
	}
	storeFlag(cmd, &name)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count what would be removed")
	cmd.Flags().DurationVar(&before, "older", 0, "only runs that ended longer ago than this `time`")
	return cmd
}
