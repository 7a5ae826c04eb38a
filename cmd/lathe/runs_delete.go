package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
)

func runsDeleteCommand() *cobra.Command {
	var name, session, principal string
	cmd := &cobra.Command{
		Use: "delete RUN", Short: "Remove runs from the store, for good",
		Long: `Removes a run, or with --session or --principal all runs of a session or of somebody, whether they have
ended or not. Nothing of them is left in the files of the store.`,
		Example: `  lathe runs delete run_01
  lathe runs delete --principal ann`,
		Args: func(cmd *cobra.Command, args []string) error {
			given := len(args)
			for _, s := range []string{session, principal} {
				if s != "" {
					given++
				}
			}
			if given != 1 {
				return usageError("want the id of one run, or one of --session and --principal")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := needStore(name, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			ctx := cmd.Context()
			if len(args) == 1 {
				if _, err := engine.New(&engine.Options{Store: s}).State(ctx, args[0]); lathe.CodeOf(err) == lathe.CodeNotFound {
					return storeError(err)
				}
				return s.Delete(ctx, args[0])
			}
			n, err := countRuns(ctx, s, &lathe.RunFilter{SessionID: session, Principal: principal})
			if err != nil {
				return storeError(err)
			}
			if session != "" {
				err = s.DeleteSession(ctx, session)
			} else {
				err = s.DeletePrincipal(ctx, principal)
			}
			if err == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %d runs were removed\n", n)
			}
			return err
		},
	}
	storeFlag(cmd, &name)
	cmd.Flags().StringVar(&session, "session", "", "remove all runs of a session's `id`")
	cmd.Flags().StringVar(&principal, "principal", "", "remove all runs that were made for a principal's `name`")
	return cmd
}

func countRuns(ctx context.Context, s lathe.RunIndex, f *lathe.RunFilter) (n int, err error) {
	f.Limit = 1_000
	for {
		rows, next, err := s.Runs(ctx, f)
		if err != nil {
			return 0, err
		}
		n += len(rows)
		if next == "" {
			return n, nil
		}
		f.After = next
	}
}
