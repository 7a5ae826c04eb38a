package main

import (
	"fmt"
	"time"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/spf13/cobra"
)

func runsCompactCommand() *cobra.Command {
	var f struct {
		storeFlags
		DryRun bool          `flag:"dry-run" usage:"only count what would be removed"`
		Older  time.Duration `flag:"older" usage:"only runs that ended longer ago than this *time*"`
	}
	return withFlags(&cobra.Command{
		Use: "compact [RUN…]", Short: "Remove content of ended runs, as tool_calling.retention says",
		Long: `Cuts the results of tools and removes reasoning and commentary of runs that have ended, of the named ones or of
all, as tool_calling.retention in lathe.yaml says (or its defaults). Prompts, answers and the arguments of calls
stay, and each event says how many bytes were removed from it. It also compacts runs that were stored before
those settings were made. What was removed cannot be restored. Messages that several runs of a conversation have
are stored once, also those of earlier versions. Without RUN, an SQLite file becomes smaller if a quarter of it is free.`,
		Example: `  lathe runs compact --dry-run
  lathe runs compact --older 720h`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.Older < 0 {
				return usageError("--older wants a time of 0 or more, such as 720h")
			}
			cfg, err := configOf(cmd)
			if err != nil {
				return err
			}
			s, err := needStore(f.Store, storeAccess(f.DryRun))
			if err != nil {
				return err
			}
			defer joinClose(&err, s)
			opts := &app.CompactOptions{Before: time.Now().Add(-f.Older), DryRun: f.DryRun}
			if len(args) > 0 {
				opts.Runs = args
			}
			total, err := app.Compact(cmd.Context(), cfg, s, opts)
			if err != nil {
				return storeError(err)
			}
			did := "removed"
			if f.DryRun {
				did = "would be removed"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes of %s %s\n", count(total.Runs, "run"), total.Bytes, count(total.Events, "event"), did)
			if total.Freed > 0 && err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the file is %d bytes smaller\n", total.Freed)
			}
			return err
		},
	}, &f)
}
