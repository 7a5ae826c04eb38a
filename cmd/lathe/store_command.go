package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/progress"
	"github.com/lathe-run/lathe/store/sqlite"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Back up, restore and check the file of a store",
		Long: `Works on the file of a store, sqlite:PATH. A store in PostgreSQL is backed up with pg_dump and restored with
pg_restore: see docs/operating.md.`,
	}
	cmd.AddCommand(storeBackupCommand(), storeRestoreCommand(), storeCheckCommand())
	return cmd
}

// A storeWork is one command of `lathe store`.
type storeWork struct {
	Store string `flag:"store"`
	JSON  bool   `flag:"json" usage:"print JSON"`

	cmd *cobra.Command
	// progress has the flag of commands that can take long.
	progress struct {
		Quiet bool `flag:"quiet,q" usage:"no progress on stderr"`
	}
}

func (w *storeWork) flags(cmd *cobra.Command, what string) *cobra.Command {
	w.cmd = withFlags(cmd, w)
	cmd.Flags().Lookup("store").Usage = what + " (default $" + storeVariable + ")"
	return cmd
}

// sqliteFile returns the path of the SQLite store that --store or the environment names, or an error for other stores.
func sqliteFile(flag string) (string, error) {
	name, from := daemon.NamedStore(flag, "")
	if name == "" {
		return "", usageError("which store? give --store sqlite:PATH, or set %s", storeVariable)
	}
	kind, path, err := app.ParseStoreName(name, from)
	if err != nil {
		return "", err
	}
	if kind != "sqlite" {
		return "", usageError("a store in PostgreSQL is backed up with pg_dump and restored with pg_restore: see docs/operating.md")
	}
	return path, nil
}

// copyWithProgress calls do and shows the progress.
func (w *storeWork) copyWithProgress(text string, do func(*sqlite.BackupOptions) error) error {
	var line *progress.Line
	if !w.JSON {
		line = startProgress(w.cmd.ErrOrStderr(), w.progress.Quiet)
	}
	line.Say(text)
	err := do(&sqlite.BackupOptions{Progress: line.Count})
	line.Stop()
	if err != nil {
		return exitCause(exitFailed, err)
	}
	return nil
}

// contentsJSON is the output of --json.
type contentsJSON struct {
	Schema int      `json:"schema"`
	Runs   int      `json:"runs"`
	Events int      `json:"events"`
	Bytes  int64    `json:"bytes"`
	Kept   string   `json:"kept,omitempty"`
	Faults []string `json:"faults,omitempty"`
}

// report prints the contents of the file. did is the beginning of the line for people.
func (w *storeWork) report(did string, c *sqlite.Contents, kept string) error {
	if w.JSON {
		return writeLines(w.cmd, contentsJSON{c.Schema, c.Runs, c.Events, c.Bytes, kept, c.Faults})
	}
	_, err := fmt.Fprintf(w.cmd.OutOrStdout(), "%s: %s, %s, %s, schema %d\n", did, count(c.Runs, "run"), count(c.Events, "event"), bytesText(int(c.Bytes)), c.Schema)
	return err
}

func storeBackupCommand() *cobra.Command {
	var w storeWork
	return withFlags(w.flags(&cobra.Command{
		Use: "backup FILE", Short: "Copy a store to a new file, while it is in use", Args: cobra.ExactArgs(1),
		Long: `Copies the store as it is at one moment, verifies the copy, and gives it the name FILE when it is on the disk. A gateway may
read and write the store meanwhile. FILE must not exist; only its owner may read it.`,
		Example: `  lathe store backup --store sqlite:/var/lib/lathe/runs.db /backup/runs-1.db`,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := sqliteFile(w.Store)
			if err != nil {
				return err
			}
			var found *sqlite.Contents
			err = w.copyWithProgress("copying pages", func(opts *sqlite.BackupOptions) error {
				found, err = sqlite.Backup(w.cmd.Context(), path, args[0], opts)
				return err
			})
			if err != nil {
				return err
			}
			return w.report("wrote "+args[0], found, "")
		},
	}, "the `store` to copy, sqlite:PATH"), &w.progress)
}

func storeRestoreCommand() *cobra.Command {
	var w storeWork
	return withFlags(w.flags(&cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the place of a store that no process has open", Args: cobra.ExactArgs(1),
		Long: `Verifies the backup, copies it, and puts the copy in the place of the store. The file of the store is kept, with the suffix
.before-restore. A store that a gateway has open is refused, as is a backup of a newer schema than this version knows. An
older schema is migrated when a gateway opens the store.`,
		Example: `  lathe store restore --store sqlite:/var/lib/lathe/runs.db /backup/runs-1.db`,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := sqliteFile(w.Store)
			if err != nil {
				return err
			}
			var found *sqlite.Contents
			var kept string
			err = w.copyWithProgress("copying pages", func(opts *sqlite.BackupOptions) error {
				kept, found, err = sqlite.Restore(w.cmd.Context(), path, args[0], opts)
				return err
			})
			if err != nil {
				return err
			}
			if kept != "" && !w.JSON {
				fmt.Fprintf(w.cmd.ErrOrStderr(), "note: the store that was there is kept as %s\n", printable(kept))
			}
			return w.report("restored "+path, found, kept)
		},
	}, "the `store` that gets the backup, sqlite:PATH"), &w.progress)
}

func storeCheckCommand() *cobra.Command {
	var w storeWork
	return w.flags(&cobra.Command{
		Use: "check [FILE]", Short: "Look for damage in a store or a backup", Args: cobra.MaximumNArgs(1),
		Long: `Reads a store, or the file of a backup, and lists each damage: what SQLite finds in the file, runs whose log has gaps, and
events that are not JSON. It changes nothing, and a gateway may use the store meanwhile. The exit code is 1 if there is damage.`,
		Example: `  lathe store check --store sqlite:/var/lib/lathe/runs.db
  lathe store check /backup/runs-1.db`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := w.checkedFile(args)
			if err != nil {
				return err
			}
			line := startProgress(cmd.ErrOrStderr(), w.JSON)
			line.Say("reading " + printable(path))
			found, err := sqlite.Verify(cmd.Context(), path)
			line.Stop()
			if err != nil {
				return exitCause(exitFailed, err)
			}
			if len(found.Faults) == 0 {
				return w.report("ok", found, "")
			}
			damaged := fmt.Errorf("%s is damaged: restore a backup with `lathe store restore`", printable(path))
			return &exitError{exitFailed, errors.Join(damaged, w.reportFaults(found))}
		},
	}, "the `store` to read, sqlite:PATH")
}

// checkedFile returns the path of the file to check: that of FILE, which may also be the name of a store, or that of --store. args are
// empty or have FILE.
func (w *storeWork) checkedFile(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return sqliteFile(w.Store)
	case w.Store != "":
		return "", usageError("give one of --store and FILE")
	}
	file := args[0]
	kind, _, named := strings.Cut(file, ":")
	switch {
	case named && (kind == "sqlite" || kind == "postgres"):
		return sqliteFile(file)
	}
	return file, nil
}

// reportFaults prints each damage of the file.
func (w *storeWork) reportFaults(c *sqlite.Contents) error {
	if w.JSON {
		return w.report("", c, "")
	}
	for _, fault := range c.Faults {
		if _, err := fmt.Fprintln(w.cmd.OutOrStdout(), printable(fault)); err != nil {
			return err
		}
	}
	return nil
}
