package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/progress"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/store"
)

func runsCopyCommand() *cobra.Command {
	var f struct {
		From       string `flag:"from" usage:"the *store* that has the runs"`
		To         string `flag:"to" usage:"the *store* that gets them"`
		Unfinished bool   `flag:"unfinished" usage:"copy runs that are under way, too"`
		Quiet      bool   `flag:"quiet,q" usage:"no progress on stderr"`
		DryRun     bool   `flag:"dry-run" usage:"say how many runs would be copied, and copy none"`
	}
	return withFlags(&cobra.Command{
		Use: "copy --from STORE --to STORE", Short: "Copy all runs of a store into another one", Args: cobra.NoArgs,
		Long: `Copies every run with its events and its answers that wait, as they are: so a store moves from a file to a
database, or back. A run that is there already with the same events is left alone, so a copy that was broken
off is simply begun again. A run that waits for an answer is copied too: after that only one of the two stores
may be served from. While runs are under way nothing is copied, unless --unfinished says so: stop the gateway
first, or let it end them.`,
		Example: `  lathe runs copy --from sqlite:runs.db --to postgres://lathe@db/runs`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.From == "" || f.To == "" {
				return usageError("want --from STORE and --to STORE, each sqlite:PATH or postgres://USER@HOST/DATABASE")
			}
			if f.From == f.To {
				return usageError("--from and --to name the same store")
			}
			src, err := openSource(f.From)
			if err != nil {
				return err
			}
			defer joinClose(&err, src)
			if !f.Unfinished {
				n, err := countRuns(cmd.Context(), src, &store.RunFilter{Status: "running"})
				if err != nil {
					return storeError(err)
				}
				if n > 0 {
					return failure("%d runs are under way: let `lathe serve` or `lathe runs resume` end them, or give --unfinished", n)
				}
			}
			if f.DryRun {
				return dryCopy(cmd, src, f.To)
			}
			dst, err := openStore(f.To, readWrite)
			if err != nil {
				return err
			}
			defer joinClose(&err, dst)
			c := copying{from: src, to: dst, progress: startProgress(cmd.ErrOrStderr(), f.Quiet)}
			err = c.all(cmd.Context())
			c.progress.Stop()
			if err != nil {
				return err
			}
			cmd.Printf("copied %s, %d were there\n", count(c.copied, "run"), c.had)
			if c.waiting > 0 {
				cmd.PrintErrf("note: %d of them wait, and can now be resumed in both stores: serve from one only\n", c.waiting)
			}
			return nil
		},
	}, &f)
}

// openSource opens an existing store for writing, so that no gateway can execute its runs during the copy.
func openSource(name string) (app.Store, error) {
	s, err := openStore(name, readOnly)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return nil, err
	}
	return openStore(name, readWrite)
}

// A copying is the state of one `runs copy`.
type copying struct {
	from, to             app.Store
	progress             *progress.Line // nil: no progress is shown
	total                int            // number of runs in from
	copied, had, waiting int
}

// all copies the runs page by page, with at most one run in memory.
func (c *copying) all(ctx context.Context) error {
	c.progress.Say("counting runs")
	var err error
	if c.total, err = countRuns(ctx, c.from, &store.RunFilter{}); err != nil {
		return storeError(err)
	}
	c.progress.Say("copying runs")
	for row, err := range (&store.RunFilter{}).All(ctx, c.from) {
		if err != nil {
			return storeError(err)
		}
		if err := c.run(ctx, row); err != nil {
			return fmt.Errorf("after %d runs: %w", c.copied+c.had, err)
		}
		c.progress.Count(c.copied+c.had, c.total)
	}
	return nil
}

// dryCopy prints how many runs a copy would read and write. A destination that does not exist counts as empty.
func dryCopy(cmd *cobra.Command, src app.Store, to string) (err error) {
	dst, err := openStore(to, readOnly)
	if err != nil {
		kind, path, nameErr := app.ParseStoreName(to, "--to")
		_, statErr := os.Stat(path)
		isNew := nameErr == nil && kind == "sqlite" && statErr != nil
		if !isNew {
			return err
		}
	}
	if dst != nil { // it exists
		defer joinClose(&err, dst)
	}
	all, had := 0, 0
	for row, err := range (&store.RunFilter{}).All(cmd.Context(), src) {
		var there int
		if err == nil && dst != nil {
			there, err = countRuns(cmd.Context(), dst, &store.RunFilter{RunID: row.RunID})
		}
		if err != nil {
			return storeError(err)
		}
		all, had = all+1, had+there
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s would be copied, %d are there\n", count(all-had, "run"), had)
	return err
}

func (c *copying) run(ctx context.Context, row *store.RunSummary) error {
	r := &replay.Record{Events: make([]event.Event, 0, row.LastID)}
	for e, err := range c.from.Read(ctx, row.RunID, 0) {
		if err != nil {
			return storeError(err)
		}
		r.Events = append(r.Events, e)
	}
	had, err := importRun(ctx, c.to, r)
	if err != nil {
		return err
	}
	if had {
		c.had++
	} else {
		c.copied++
	}
	if r.Ended() {
		return nil
	}
	c.waiting++
	signals, err := c.from.Signals(ctx, row.RunID)
	if err != nil {
		return storeError(err)
	}
	for i := range signals {
		// The first signal has precedence: an existing one is not replaced.
		if err := c.to.PutSignal(ctx, signals[i]); err != nil && !errors.Is(err, lathe.ErrConflict) {
			return storeError(err)
		}
	}
	return nil
}
