package main

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/store"
)

// A removal is one `runs delete`.
type removal struct {
	runsFlags
	Session   string `flag:"session" usage:"remove all runs of a session's *id*"`
	Principal string `flag:"principal" usage:"remove all runs that were made for a principal's *name*"`
	Yes       bool   `flag:"yes,y" usage:"do not ask"`
	DryRun    bool   `flag:"dry-run" usage:"say how many runs would be removed, and remove none"`

	run string // exactly one of run, Session and Principal is set
	n   int    // number of runs to remove, or unknownRuns; set before confirm is called
}

// unknownRuns is the number of runs to remove if a gateway does not report it: a gateway lists only the runs of the key.
const unknownRuns = -1

func runsDeleteCommand() *cobra.Command {
	var r removal
	return withFlags(&cobra.Command{
		Use: "delete RUN", Short: "Remove runs from the store, for good",
		Long: `Removes a run, or with --session or --principal all runs of a session or of a principal, whether they have
ended or not, and says how many. Nothing of them is left in the files of the store. It asks before on a terminal; elsewhere it
wants --yes. --dry-run says how many runs would be removed, and removes none.`,
		Example: `  lathe runs delete run_01
  lathe runs delete --dry-run --session s1
  lathe runs delete --yes --principal ann`,
		Args: func(cmd *cobra.Command, args []string) error {
			given := len(args)
			for _, s := range []string{r.Session, r.Principal} {
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
			if len(args) == 1 {
				r.run = args[0]
			}
			asks, canAsk := !r.Yes && !r.DryRun, isTerminal(cmd.InOrStdin()) && isTerminal(cmd.ErrOrStderr())
			if asks && !canAsk {
				return usageError("remove %s for good? give --yes: standard input is not a terminal", r.what())
			}
			return r.storeOrDaemon(cmd, r.Store, func() error { return r.fromStore(cmd) }, func(c *daemonClient) error { return r.fromDaemon(cmd, c) })
		},
	}, &r)
}

// what describes the runs to remove.
func (r *removal) what() string {
	switch {
	case r.run != "":
		return "the run " + printable(r.run)
	case r.Session != "":
		return "all runs of the session " + printable(r.Session)
	default:
		return "all runs of the principal " + printable(r.Principal)
	}
}

// confirm asks the user whether the counted runs are to be removed, unless --yes is given. With --dry-run it prints their number and returns
// false.
func (r *removal) confirm(cmd *cobra.Command) (bool, error) {
	if r.DryRun {
		if r.n == unknownRuns {
			return false, usageError("--dry-run --principal goes with --store: a gateway lists the runs of the key")
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s would be removed\n", count(r.n, "run"))
		return false, err
	}
	if r.Yes {
		return true, nil
	}
	what := r.what()
	if r.run == "" && r.n != unknownRuns {
		what += ", " + count(r.n, "run") + ","
	}
	if !askYesNo(cmd, "remove "+what+" for good?") {
		return false, failure("nothing was removed")
	}
	return true, nil
}

func (r *removal) report(cmd *cobra.Command) {
	switch r.n {
	case unknownRuns:
		cmd.PrintErrf("note: %s were removed\n", r.what())
	case 1:
		cmd.PrintErrln("note: 1 run was removed")
	default:
		cmd.PrintErrf("note: %d runs were removed\n", r.n)
	}
}

// fromDaemon removes the runs through the API.
func (r *removal) fromDaemon(cmd *cobra.Command, c *daemonClient) error {
	ctx := cmd.Context()
	path := "/api/principals/" + url.PathEscape(r.Principal)
	r.n = unknownRuns
	var err error
	switch {
	case r.run != "":
		path, r.n = "/api/runs/"+url.PathEscape(r.run), 1
		_, err = c.show(ctx, r.run)
	case r.Session != "":
		path = "/api/sessions/" + url.PathEscape(r.Session)
		r.n, err = c.countSession(ctx, r.Session)
	}
	if err != nil {
		return err
	}
	if ok, err := r.confirm(cmd); !ok {
		return err
	}
	if err = c.call(ctx, "DELETE", path, nil, nil); err == nil {
		r.report(cmd)
	}
	return err
}

// countSession returns the number of runs of a session.
func (c *daemonClient) countSession(ctx context.Context, id string) (n int, err error) {
	f := store.RunFilter{SessionID: id, Limit: maxListed}
	for {
		rows, next, err := c.list(ctx, &f, &store.RunQuery{})
		n += len(rows)
		if err != nil || next == "" {
			return n, err
		}
		f.After = next
	}
}

// maxListed is the number of runs in one request.
const maxListed = 100

// askYesNo asks a question and reports whether the user at the terminal answers yes.
func askYesNo(cmd *cobra.Command, question string) bool {
	cmd.PrintErrf("%s [y/N] ", question)
	line, _ := bufio.NewReader(interruptible(cmd.Context(), cmd.InOrStdin())).ReadString('\n') // the end of input counts as no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// fromStore removes the runs from a store.
func (r *removal) fromStore(cmd *cobra.Command) (err error) {
	s, err := needStore(r.Store, storeAccess(r.DryRun))
	if err != nil {
		return err
	}
	defer joinClose(&err, s)
	ctx := cmd.Context()
	if r.run != "" {
		if _, err := engine.ReadState(ctx, s, r.run); lathe.CodeOf(err) == lathe.CodeNotFound {
			return storeError(err)
		}
		r.n = 1
	} else if r.n, err = countRuns(ctx, s, &store.RunFilter{SessionID: r.Session, Principal: r.Principal}); err != nil {
		return storeError(err)
	}
	if ok, err := r.confirm(cmd); !ok {
		return err
	}
	switch {
	case r.run != "":
		err = s.Delete(ctx, r.run)
	case r.Session != "":
		err = s.DeleteSession(ctx, r.Session)
	default:
		err = s.DeletePrincipal(ctx, r.Principal)
	}
	if err == nil {
		r.report(cmd)
	}
	return err
}

func countRuns(ctx context.Context, s store.RunIndex, f *store.RunFilter) (n int, err error) {
	for _, err := range f.All(ctx, s) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
