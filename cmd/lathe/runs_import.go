package main

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

func runsImportCommand() *cobra.Command {
	var f struct {
		storeFlags
		Unfinished bool `flag:"unfinished" usage:"take a run that has not ended"`
	}
	return withFlags(&cobra.Command{
		Use: "import FILE", Short: "Put an exported run into a store", Args: oneFile,
		Long: `Puts a run that runs export printed into a store, all of it or nothing. A run that is there already stays
as it is: with the same events that is no error, with others it is one. A run that has not ended may be gone
on with here and where it came from: --unfinished takes it nevertheless.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r, err := readRecord(args[0])
			if err != nil {
				return err
			}
			if !r.Ended() && !f.Unfinished {
				return failure("the run %s has not ended, and could be gone on with twice: delete it where it is and give --unfinished", r.RunID())
			}
			s, err := needStore(f.Store, readWrite)
			if err != nil {
				return err
			}
			defer joinClose(&err, s)
			had, err := importRun(cmd.Context(), s, r)
			if err != nil {
				return err
			}
			if had {
				cmd.PrintErrf("note: the store has the run with the same %d events\n", len(r.Events))
			}
			cmd.Println(r.RunID())
			return nil
		},
	}, &f)
}

// oneFile requires the name of one file.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("want one FILE, as `lathe runs export` prints it")
	}
	return nil
}

func readRecord(path string) (*replay.Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usageError("%w", err)
	}
	defer f.Close()
	r, err := replay.Read(f)
	if err != nil {
		return nil, failure("%s is no exported run: %w", path, err)
	}
	return r, nil
}

// importRun adds a run to the store, and reports whether the store already had it with the same events. It refuses a run with a call that
// may have been made and has no result: a worker may still execute the call, which only the original store records, and in another store
// the call would count as not made.
func importRun(ctx context.Context, s store.Store, r *replay.Record) (had bool, err error) {
	state, err := loop.Fold(r.Events)
	if err != nil {
		return false, failure("the run %s cannot be read: %w", r.RunID(), err)
	}
	if state.Finished == nil {
		for _, call := range state.Open {
			if call.Begun {
				return false, failure("the run %s was ended within a call of %s, of which its own store has more events: let `lathe runs resume` or `lathe runs cancel` settle it there first",
					r.RunID(), call.Tool)
			}
		}
	}
	_, err = s.Append(ctx, r.RunID(), 0, r.Events...)
	if err == nil || !errors.Is(err, lathe.ErrConflict) {
		return false, err
	}
	n := 0
	for e, err := range s.Read(ctx, r.RunID(), 0) {
		if err != nil {
			return false, storeError(err)
		}
		if n == len(r.Events) || !sameEvent(&e, &r.Events[n]) {
			return false, failure("the store has the run %s with other events, from event %d on", r.RunID(), n+1)
		}
		n++
	}
	if n < len(r.Events) {
		return false, failure("the store has the run %s, and no more of it than %d of %d events", r.RunID(), n, len(r.Events))
	}
	return true, nil
}

func sameEvent(a, b *event.Event) bool {
	x, xerr := a.MarshalJSON()
	y, yerr := b.MarshalJSON()
	return xerr == nil && yerr == nil && bytes.Equal(x, y)
}
