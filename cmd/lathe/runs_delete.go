package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/store"
)

func runsDeleteCommand() *cobra.Command {
	var name, session, principal string
	var yes bool
	var server serverFlags
	cmd := &cobra.Command{
		Use: "delete RUN", Short: "Remove runs from the store, for good",
		Long: `Removes a run, or with --session or --principal all runs of a session or of a principal, whether they have
ended or not. Nothing of them is left in the files of the store. It asks before on a terminal; elsewhere it wants --yes.`,
		Example: `  lathe runs delete run_01
  lathe runs delete --yes --principal ann`,
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
		RunE: func(cmd *cobra.Command, args []string) error {
			what, path := "", ""
			switch {
			case len(args) == 1:
				what, path = "the run "+args[0], "/api/runs/"+url.PathEscape(args[0])
			case session != "":
				what, path = "all runs of the session "+session, "/api/sessions/"+url.PathEscape(session)
			default:
				what, path = "all runs of the principal "+principal, "/api/principals/"+url.PathEscape(principal)
			}
			if !yes {
				if err := confirmed(cmd, "remove "+printable(what)+" for good?"); err != nil {
					return err
				}
			}
			return server.storeOrDaemon(cmd, name, func() error {
				run := ""
				if len(args) == 1 {
					run = args[0]
				}
				return deleteStored(cmd, name, run, session, principal)
			}, func(c *daemonClient) error { return c.call(cmd.Context(), "DELETE", path, nil, nil) })
		},
	}
	storeFlag(cmd, &name)
	server.add(cmd, false)
	fl := cmd.Flags()
	fl.StringVar(&session, "session", "", "remove all runs of a session's `id`")
	fl.StringVar(&principal, "principal", "", "remove all runs that were made for a principal's `name`")
	fl.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirmed asks the user at the terminal. Without a terminal it returns a usage error.
func confirmed(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if !isTerminal(in) || !isTerminal(cmd.ErrOrStderr()) {
		return usageError("%s give --yes: standard input is not a terminal", question)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	line, _ := bufio.NewReader(interruptible(cmd.Context(), in)).ReadString('\n') // the end of input is a no
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &exitError{exitFailed, errors.New("nothing was removed")}
}

// deleteStored removes a run, a session or the runs of a principal from a store.
func deleteStored(cmd *cobra.Command, name, run, session, principal string) (err error) {
	s, err := needStore(name, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := cmd.Context()
	if run != "" {
		if _, err := engine.ReadState(ctx, s, run); lathe.CodeOf(err) == lathe.CodeNotFound {
			return storeError(err)
		}
		return s.Delete(ctx, run)
	}
	n, err := countRuns(ctx, s, &store.RunFilter{SessionID: session, Principal: principal})
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
}

func countRuns(ctx context.Context, s store.RunIndex, f *store.RunFilter) (n int, err error) {
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
