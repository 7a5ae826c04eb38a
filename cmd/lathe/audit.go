package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/audit"
)

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check and export the audit log",
		Long: `Reads the log that audit.path in lathe.yaml names, or the file that is given. Each of its lines holds
the hash of the line before it, so that a change shows. It may be read while it is written.`,
	}
	cmd.AddCommand(auditVerifyCommand(), auditExportCommand(), auditHeadCommand())
	return cmd
}

// auditFile returns the file on the command line, else that of the configuration.
func auditFile(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	cfg, err := configOf(cmd)
	if err != nil {
		return "", err
	}
	if cfg.Audit.Path == "" {
		return "", usageError("which file? name it, or set audit.path in lathe.yaml")
	}
	return app.AuditPath(cfg), nil
}

// auditError returns the error for a broken log. The lines after the break have not been checked.
func auditError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure("there is no audit log %s: audit.path in lathe.yaml says where it is", path)
	case errors.Is(err, context.Canceled):
		return err
	}
	return &exitError{exitFailed, err}
}

func auditVerifyCommand() *cobra.Command {
	var f struct {
		Heads []string `flag:"head" usage:"*head* that was noted before, as audit head prints it; may be given several times"`
	}
	return withFlags(&cobra.Command{
		Use: "verify [FILE]", Short: "Say whether an audit log is what was written", Args: cobra.MaximumNArgs(1),
		Long: `Holds each line against the one before it, in all files of the log, and names the first line that was
changed, removed, added or moved. With --head, that line must be there as it was noted: that shows an end
that was cut off, and a log that was written anew. Exit code 1 says that something is wrong.`,
		Example: `  lathe audit verify
  lathe audit verify --head "$(cat /mnt/elsewhere/head)" audit.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var heads []audit.Head
			for _, s := range f.Heads {
				h, err := audit.ParseHead(strings.TrimSpace(s))
				if err != nil {
					return usageError("--head: %w", err)
				}
				heads = append(heads, h)
			}
			path, err := auditFile(cmd, args)
			if err != nil {
				return err
			}
			r, err := audit.Verify(path, heads...)
			if err != nil {
				return auditError(path, err)
			}
			if r.Torn > 0 {
				cmd.PrintErrf("note: %d bytes at the end are no whole line: a process is writing them, or ended there\n", r.Torn)
			}
			from := ""
			if r.First.N > 1 {
				from = fmt.Sprintf(", from line %d on: the files before it are not here", r.First.N)
			}
			cmd.Printf("ok: %s in %s%s\nhead %s\n", count(int(r.Lines), "line"), count(r.Files, "file"), from, r.Last)
			return nil
		},
	}, &f)
}

func auditHeadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "head [FILE]", Short: "Print the last line's number and hash, to be kept elsewhere", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := auditFile(cmd, args)
			if err != nil {
				return err
			}
			r, err := audit.Verify(path)
			if err == nil && r.Lines == 0 {
				err = fmt.Errorf("%s has no lines", path)
			}
			if err != nil {
				return auditError(path, err)
			}
			cmd.Println(r.Last)
			return nil
		},
	}
}

// auditFilter selects the lines to export. Empty fields are ignored.
type auditFilter struct {
	Since     string `flag:"since" usage:"only lines from this *time* on: a day, or a time as 2026-11-22T08:00:00Z"`
	Until     string `flag:"until" usage:"only lines before this *time*"`
	Run       string `flag:"run" usage:"only those of a run's *id*"`
	Principal string `flag:"principal" usage:"only those of runs that were made for a principal's *name*"`
	Format    string `flag:"format" default:"jsonl" usage:"*form*: jsonl for the lines as they are, csv for a table"`

	from, to time.Time
}

// parse sets from and to.
func (f *auditFilter) parse() (err error) {
	if f.from, err = auditTime("--since", f.Since); err == nil {
		f.to, err = auditTime("--until", f.Until)
	}
	return err
}

// auditTime returns the time in the value of a flag; zero for "".
func auditTime(flag, value string) (t time.Time, err error) {
	if value == "" {
		return t, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err = time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return t, usageError("%s %q: want a day or a time, such as 2026-11-22 or 2026-11-22T08:00:00Z", flag, value)
}

func (f *auditFilter) wants(e *audit.Entry, fields *audit.Fields) bool {
	if e.Time.Before(f.from) || !f.to.IsZero() && !e.Time.Before(f.to) {
		return false
	}
	return (f.Run == "" || f.Run == fields.RunID) && (f.Principal == "" || f.Principal == e.Principal)
}

func auditExportCommand() *cobra.Command {
	var f auditFilter
	return withFlags(&cobra.Command{
		Use: "export [FILE]", Short: "Print the lines of an audit log that fit", Args: cobra.MaximumNArgs(1),
		Long: `Prints the lines that fit, from all files of the log, as they are or as a table. A line that is not what
was written ends it, with exit code 1.`,
		Example: `  lathe audit export --principal ann --since 2026-11-01 --format csv > ann.csv
  lathe audit export --run run_01 | jq -c .event`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Format != "jsonl" && f.Format != "csv" {
				return usageError("--format %q: want jsonl or csv", f.Format)
			}
			if err := f.parse(); err != nil {
				return err
			}
			path, err := auditFile(cmd, args)
			if err != nil {
				return err
			}
			if err := f.export(cmd.Context(), cmd.OutOrStdout(), path); err != nil {
				return auditError(path, err)
			}
			return nil
		},
	}, &f)
}

// export writes the lines that the filter selects.
func (f *auditFilter) export(ctx context.Context, out io.Writer, path string) error {
	w := csv.NewWriter(out)
	defer w.Flush() // after an error, too: it writes the lines before the break
	asTable := f.Format == "csv"
	if asTable {
		if err := w.Write([]string{"n", "time", "kind", "principal", "run_id", "request_id", "session_id", "event_id", "type", "tool_call_id",
			"tool", "decision", "rule", "by", "status", "code", "content_hash"}); err != nil {
			return err
		}
	}
	for e, err := range audit.Lines(path) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		fields, err := e.Fields()
		if err != nil {
			return err
		}
		if !f.wants(&e, &fields) {
			continue
		}
		if asTable {
			err = w.Write(auditRow(&e, &fields))
		} else {
			_, err = out.Write(append(e.Raw, '\n'))
		}
		if err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func auditRow(e *audit.Entry, f *audit.Fields) []string {
	id := ""
	if f.EventID > 0 {
		id = strconv.FormatInt(f.EventID, 10)
	}
	row := []string{strconv.FormatInt(e.N, 10), e.Time.Format(time.RFC3339Nano), string(e.Kind), e.Principal, f.RunID, f.RequestID, f.SessionID, id,
		f.Type, f.ToolCallID, f.Tool, f.Decision, f.Rule, f.By, f.Status, f.Code, e.ContentHash}
	for i, s := range row { // ids may come from outside, and a spreadsheet would evaluate such a cell as a formula
		if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
			row[i] = "'" + s
		}
	}
	return row
}
