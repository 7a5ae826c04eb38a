package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// maxStderrLines is the largest number of lines of a server's standard error that `tools doctor` shows.
const maxStderrLines = 20

// sourceRow is one line of `tools doctor --json`.
type sourceRow struct {
	Source    string    `json:"source"`
	State     string    `json:"state"`
	OK        bool      `json:"ok"`
	Transport string    `json:"transport,omitempty"`
	Target    string    `json:"target,omitempty"`
	Protocol  string    `json:"protocol,omitempty"`
	Software  string    `json:"software,omitempty"`
	Tools     int       `json:"tools"` // number of offered tools
	Problems  []problem `json:"problems,omitempty"`
	Stderr    []string  `json:"stderr,omitempty"`
	// Reduced maps tools to the parts of their schemas that are not sent to the model server. Only for a model.
	Reduced map[string][]string `json:"reduced,omitempty"`
	// LeftOut are operations of a document that cannot be tools, and Warnings its tools whose schemas match hardly any call. Neither is a
	// problem.
	LeftOut  []string `json:"left_out,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Unchecked maps tools to the parts of their schemas that only the server checks, with reasons. Only for a source of tools.
	Unchecked map[string][]string `json:"unchecked,omitempty"`
}

// A problem is a description of a problem and the next step.
type problem struct {
	What string `json:"what"`
	Next string `json:"next"`
}

// wrong adds a problem.
func (r *sourceRow) wrong(what, next string) { r.Problems = append(r.Problems, problem{what, next}) }

func toolsDoctorCommand() *cobra.Command {
	var f struct {
		JSON bool `flag:"json" usage:"one JSON line for each source"`
	}
	return withFlags(&cobra.Command{
		Use:   "doctor",
		Short: "Report the state of MCP servers, HTTP tools and modules, and the next step",
		Long: `Examines each source of tools and reports its state, the tools that it offers, what is wrong and the next step.
MCP servers are started, modules are compiled, and servers of HTTP tools get a request HEAD / without credentials;
no tool is called. The exit code is 1 if something is wrong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, set, err := configuredTools(cmd)
			if err != nil {
				return err
			}
			rows := builtinSource(set)
			overHTTP := app.OpenHTTPTools(cfg)
			defer overHTTP.Close()
			rows = append(rows, httpSources(cmd.Context(), overHTTP)...)
			rows = append(rows, documentSources(cfg, set, overHTTP.Notes())...)
			rows = append(rows, moduleSources(cmd.Context(), cfg)...)
			running, err := startServers(cmd, cfg, set, &app.ServerOptions{Inspect: true}, f.JSON)
			if err != nil {
				return err
			}
			defer running.Close()
			for _, st := range running.Status() {
				row := serverRow(&st)
				if running.WantsRights(&st) {
					row.OK = false
					row.wrong("the server has asked for further rights", app.LoginCommand(st.Server))
				}
				rows = append(rows, row)
			}
			reduced, err := app.ReducedTools(cfg, set)
			if err != nil {
				return err
			}
			noteUnchecked(rows, set)
			rows = append(rows, reducedModels(reduced)...)
			return printSources(cmd, rows, f.JSON)
		},
	}, &f)
}

// noteUnchecked adds to the row of each source the parts of schemas that only its server checks. They are not problems.
func noteUnchecked(rows []sourceRow, set *tool.Set) {
	for _, sp := range set.Specs() {
		source, _, _ := strings.Cut(sp.Origin, "#") // # precedes the operation of a document
		i := slices.IndexFunc(rows, func(r sourceRow) bool { return r.Source == source })
		if len(sp.UncheckedParts) == 0 || i < 0 {
			continue
		}
		if rows[i].Unchecked == nil {
			rows[i].Unchecked = map[string][]string{}
		}
		rows[i].Unchecked[sp.Name] = sp.UncheckedParts
	}
}

// reducedModels returns a row for each model whose server receives reduced schemas. They are not problems.
func reducedModels(reduced map[string][]app.ReducedTool) (rows []sourceRow) {
	for model, tools := range text.ByName(reduced) {
		row := sourceRow{Source: "model:" + model, State: "reduced schemas", OK: true, Tools: len(tools), Reduced: map[string][]string{}}
		for _, t := range tools {
			row.Reduced[t.Tool] = t.Parts
		}
		rows = append(rows, row)
	}
	return rows
}

// builtinSource returns the row of the built-in tools, which cannot fail.
func builtinSource(set *tool.Set) []sourceRow {
	row := sourceRow{Source: "builtin", State: "ready", OK: true}
	for _, sp := range set.Specs() {
		if source, _, _ := strings.Cut(sp.Origin, ":"); source == row.Source {
			row.Tools++
		}
	}
	if row.Tools == 0 {
		return nil
	}
	return []sourceRow{row}
}

// serverRow returns the row of an MCP server, with the problems of the server and its tools.
func serverRow(st *mcptool.Status) sourceRow {
	row := sourceRow{Source: "mcp:" + st.Server, State: string(st.State), Transport: st.Transport, Target: printable(st.Target),
		Protocol: printable(st.Protocol), Software: printable(st.Software)}
	if st.State != mcptool.StateReady || st.Problem != "" {
		row.wrong(printable(text.FirstLine(st.LastError)), nextStep(st))
		row.Stderr = lastLines(st.Stderr)
	}
	for _, t := range st.Tools {
		row.addTool(st.Server, &t)
	}
	if st.BadMessages > 0 {
		row.wrong(fmt.Sprintf("%d lines or messages were not strict JSON-RPC and were passed over", st.BadMessages),
			"a stdio server must log to standard error, not to standard output")
	}
	row.OK = len(row.Problems) == 0
	return row
}

// addTool counts a tool of an MCP server that is ready, and adds what is wrong with the tool.
func (r *sourceRow) addTool(server string, t *mcptool.ToolStatus) {
	key := "tools.mcp." + server
	switch t.State {
	case mcptool.ToolReady:
		r.Tools++
		if t.Hidden > 0 {
			r.wrong(fmt.Sprintf("%s: %d invisible characters were left out of its description", t.Name, t.Hidden),
				"read its description in `lathe tools list --json`; leave the tool out with "+key+".tools if you do not trust it")
		}
	case mcptool.ToolBlocked:
		r.wrong(t.Name+" is blocked: "+reasonText(t), "look at it with `lathe tools list --json`, then `lathe tools accept "+t.Name+"`")
	case mcptool.ToolRefused:
		r.wrong(t.Name+" is refused: "+printable(t.Reason), "the author of the server can mend its definition; "+key+".exclude leaves it out")
	case mcptool.ToolMissing:
		r.wrong(t.Name+": "+printable(t.Reason), "correct the name or take it out of "+key+", or update the server")
	case mcptool.ToolExcluded:
	}
}

// nextStep returns the advice for a server that is not ready.
func nextStep(st *mcptool.Status) string {
	key := "tools.mcp." + st.Server
	switch st.Problem {
	case mcptool.ProblemProgram:
		return "install the program, or write its whole path in " + key + ".command; its PATH is that of this shell"
	case mcptool.ProblemTimeout:
		if st.Transport == "http" {
			return "look at the log of the server, or raise " + key + ".start_timeout"
		}
		return "run `" + printable(st.Target) + "` by hand and see what it waits for, or raise " + key + ".start_timeout"
	case mcptool.ProblemLogin:
		return app.LoginCommand(st.Server) + "; or put a key that the server takes into " + key + ".headers"
	case mcptool.ProblemCredentials:
		return "look at " + key + ".headers or " + key + ".oauth: the server does not take the credentials"
	case mcptool.ProblemRedirect:
		return "redirects are not followed: write the address that is named here into " + key + ".url, if you trust it"
	case mcptool.ProblemHTTP:
		return "look at " + key + ".url: there is no MCP server that speaks there"
	case mcptool.ProblemUnreachable:
		return "look at " + key + ".url; an address that is not public has to stand in tools.egress.private"
	case mcptool.ProblemTools:
		return "name the tools to offer in " + key + ".tools, or raise tool_calling.max_tools and tool_calling.max_tools_bytes; if a name is taken, rename the server"
	case mcptool.ProblemEnded:
		if st.Transport == "http" {
			return "the connection must stay open: look at the log of the server, and at the timeouts of proxies between it and Lathe"
		}
		return "run `" + printable(st.Target) + "` by hand; it gets PATH, HOME, LANG and " + key + ".env, and nothing else of the environment"
	}
	return "try again"
}

func lastLines(s string) []string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-maxStderrLines):]
}

// printSources prints the rows. It returns errReported if a row has a problem.
func printSources(cmd *cobra.Command, rows []sourceRow, asJSON bool) error {
	err := printRows(cmd, rows, asJSON, func(w io.Writer, rows []sourceRow) error {
		for _, r := range rows {
			r.print(w)
		}
		return nil
	})
	if err == nil && slices.ContainsFunc(rows, func(r sourceRow) bool { return !r.OK }) {
		err = errReported
	}
	return err
}

func (r *sourceRow) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, %s", r.Source, r.State, count(r.Tools, "tool"))
	for _, s := range []string{r.Software, r.Transport} {
		if s != "" {
			fmt.Fprintf(w, ", %s", s)
		}
	}
	if r.Protocol != "" {
		fmt.Fprintf(w, " %s", r.Protocol)
	}
	fmt.Fprintln(w)
	for name, parts := range text.ByName(r.Reduced) {
		fmt.Fprintf(w, "  %s is sent without %s\n", name, printable(strings.Join(parts, ", ")))
	}
	for _, s := range r.LeftOut {
		fmt.Fprintf(w, "  left out: %s\n", printable(s))
	}
	for _, s := range r.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", printable(s))
	}
	for name, parts := range text.ByName(r.Unchecked) {
		more := ""
		if n := len(parts) - maxNamed; n > 0 {
			parts, more = parts[:maxNamed], fmt.Sprintf("; and %d more", n)
		}
		fmt.Fprintf(w, "  %s: its server alone checks %s\n", name, printable(strings.Join(parts, "; "))+more)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "  wrong: %s\n  next:  %s\n", p.What, p.Next)
	}
	if len(r.Stderr) > 0 {
		fmt.Fprintln(w, "  the end of its standard error:")
		for _, line := range r.Stderr {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
}
