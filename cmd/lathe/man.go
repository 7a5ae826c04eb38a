package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manCommand() *cobra.Command {
	var f struct {
		Dir string `flag:"dir" usage:"the *folder* of the pages"`
	}
	return withFlags(&cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write the manual pages of all commands",
		Long: `Writes a page lathe.1, and one lathe-COMMAND.1 for each command, into DIR, which is made if need be. Pages that are there are
written over.`,
		Example: `  lathe man --dir ~/.local/share/man/man1 && man lathe-run`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Dir == "" {
				return usageError("want --dir DIR, such as --dir ~/.local/share/man/man1")
			}
			if err := os.MkdirAll(f.Dir, 0o755); err != nil {
				return err
			}
			n, err := writeManual(rootCommand(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), nil), f.Dir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s into %s\n", count(n, "page"), f.Dir)
			return err
		},
	}, &f)
}

// writeManual writes the manual pages of a command and its subcommands, and returns their number.
func writeManual(cmd *cobra.Command, dir string) (n int, err error) {
	name := pageName(cmd)
	if err := os.WriteFile(filepath.Join(dir, name+".1"), manual(cmd), 0o644); err != nil { //nolint:gosec // pages are for every user
		return 0, err
	}
	n = 1
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		below, err := writeManual(c, dir)
		if n += below; err != nil {
			return n, err
		}
	}
	return n, nil
}

// pageName returns the name of the manual page of a command.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manual returns the manual page of a command, in the macros of man(7).
func manual(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"Lathe\"\n", roff(strings.ToUpper(name)), roff(currentVersion().Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(strings.ToLower(cmd.Short[:1])+cmd.Short[1:]))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for i, paragraph := range strings.Split(cmp.Or(cmd.Long, cmd.Short+"."), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roffLines(paragraph))
	}
	manualFlags(&b, cmd)
	if cmd.HasExample() {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s.fi\n", roffLines(cmd.Example))
	}
	var related []string
	if cmd.HasParent() {
		related = append(related, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			related = append(related, pageName(c))
		}
	}
	if len(related) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, page := range related {
			comma := ","
			if i == len(related)-1 {
				comma = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(page), comma)
		}
	}
	return b.Bytes()
}

// manualFlags writes the flags under the same headings as the help text.
func manualFlags(b *bytes.Buffer, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	headings, flags := flagsByHeading(cmd)
	for _, h := range headings {
		title := strings.TrimSuffix(h, ":")
		if h == flagsHeading {
			title = "OPTIONS"
		}
		fmt.Fprintf(b, ".SH %s\n", roff(strings.ToUpper(title)))
		for _, f := range flags[h] {
			fmt.Fprintf(b, ".TP\n.B %s\n", roff(strings.TrimSpace(flagForm(f))))
			_, usage := pflag.UnquoteUsage(f)
			b.WriteString(roffLines(usage))
		}
	}
}

// roff escapes a text for one line of a manual page.
func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(s)
}

// roffLines escapes lines. A line that begins with a dot is not read as a request.
func roffLines(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = roff(line)
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
