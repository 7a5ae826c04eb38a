package eval

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
)

// WriteTable writes the rates by model and by category or scenario, and the first failures, as text.
func (rep *Report) WriteTable(w io.Writer) error {
	s := rep.Summary()
	var b strings.Builder
	writeRows(&b, "MODEL", s.Models)
	writePassK(&b, s.Models)
	fmt.Fprintln(&b)
	s.writeGroups(&b)
	for i := range s.Models {
		writeFailures(&b, &s.Models[i])
	}
	if n := len(rep.Skipped); n > 0 {
		fmt.Fprintf(&b, "\n%d not tried: the model's server could not be reached, or refused the key, %d times in a row\n", n, maxDead)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFailures writes the first failures of a model, and the number of further ones.
func writeFailures(w *strings.Builder, row *Row) {
	model := text.OneLine(row.Model)
	for _, f := range row.Failures {
		fmt.Fprintf(w, "\n%s  %s  trial %d  %s\n  %s\n", text.OneLine(f.Model), f.Scenario, f.Trial, f.Class, text.OneLine(f.Error))
		if f.ServerMessage != "" {
			fmt.Fprintf(w, "  the server said: %s\n", text.OneLine(f.ServerMessage))
		}
	}
	failed := row.Runs - row.OK + row.Controls - row.ControlsOK + row.Recoveries - row.RecoveriesOK
	if n := failed + row.Errors - len(row.Failures); n > 0 {
		fmt.Fprintf(w, "\n%s: %d more", model, n)
		if row.Errors > 0 {
			fmt.Fprintf(w, " (%d in all did not pass, %d have no score)\n", failed, row.Errors)
		} else {
			fmt.Fprintln(w, " did not pass")
		}
	}
	if words := row.form(); words != "" {
		fmt.Fprintf(w, "\n%s: %s\n", model, words)
	}
	if row.Refused > 0 {
		fmt.Fprintf(w, "\n%s: the server refused %d of %d runs; they count in the rate\n", model, row.Refused, row.Runs)
	}
	if row.NotProvoked > 0 {
		fmt.Fprintf(w, "\n%s: %d more did not apply: the scenario tests how a model recovers from a mistake, and the model made none\n", model, row.NotProvoked)
	}
}

// unfinished returns the number of runs that ended without an answer.
func (r *Row) unfinished() (n int) {
	for _, c := range r.Unfinished {
		n += c
	}
	return n
}

// form describes the deviations of calls and answers in words, or returns "".
func (r *Row) form() string {
	var parts []string
	if r.Malformed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tool calls malformed", r.Malformed, r.ToolCalls))
	}
	if r.Deviating > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d answers deviate from the wire (%s)", r.Deviating, r.ModelCalls, r.deviations()))
	}
	if r.Retries > 0 {
		parts = append(parts, fmt.Sprintf("%d attempts repeated", r.Retries))
	}
	if r.Blank > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d answers blank", r.Blank, r.ModelCalls))
	}
	return strings.Join(parts, ", ")
}

// deviations lists the kinds of deviation with their counts.
func (r *Row) deviations() string {
	var parts []string
	for kind, n := range text.ByName(r.Deviations) {
		parts = append(parts, fmt.Sprintf("%s %d", text.OneLine(kind), n))
	}
	return strings.Join(parts, ", ")
}

// writePassK writes pass^k of each model that has enough runs of each scenario.
func writePassK(w *strings.Builder, models []Row) {
	if !slices.ContainsFunc(models, func(r Row) bool { return len(r.PassK) > 0 }) {
		return
	}
	var t report.Table
	t.Row("MODEL", "ALL OF", "PASS", "95 %")
	for i := range models {
		for _, p := range models[i].PassK {
			t.Row(models[i].label(), fmt.Sprintf("%d runs", p.K), percent(p.Rate), interval(p.Low, p.High))
		}
	}
	fmt.Fprintln(w)
	_ = t.Write(w) // into memory
}

// writeGroups writes the rates by scenario or category: of one model with all figures, of several models side by side.
func (s *Summary) writeGroups(w *strings.Builder) {
	head, single := "SCENARIO", s.Scenarios
	if s.ModelsCategories != nil {
		head, single = "CATEGORY", s.Categories
	}
	if single != nil {
		writeRows(w, head, single)
		return
	}
	rows := s.ModelsGroups()
	var t report.Table
	cells := []any{head}
	for i := range s.Models {
		cells = append(cells, s.Models[i].label())
	}
	t.Row(cells...)
	for _, name := range groupNames(rows) {
		cells := []any{name}
		for i := range s.Models {
			cells = append(cells, of(rows, &s.Models[i], name).short())
		}
		t.Row(cells...)
	}
	_ = t.Write(w) // into memory
}

// short returns a row as a cell of a table. r may be nil.
func (r *Row) short() string {
	switch {
	case r == nil:
		return "–"
	case r.Runs == 0 && r.NotProvoked > 0 && r.Errors == 0:
		return "not provoked"
	case r.Runs == 0:
		return "no score"
	}
	return r.passed() + " " + percent(r.OKRate)
}

// passed returns the number of runs that passed and of runs that count, as text.
func (r *Row) passed() string { return fmt.Sprintf("%d/%d", r.OK, r.Runs) }

func writeRows(w *strings.Builder, head string, rows []Row) {
	controls := slices.ContainsFunc(rows, func(r Row) bool { return r.Controls > 0 })
	recoveries := slices.ContainsFunc(rows, func(r Row) bool { return r.Recoveries > 0 })
	var t report.Table
	row := func(cells []any, recovery, control string) {
		if recoveries {
			cells = append(cells, recovery)
		}
		if controls {
			cells = append(cells, control)
		}
		t.Row(cells...)
	}
	row([]any{head, "OK", "RATE", "95 %", "STATE", "TRACE", "TEXT", "P50", "P95", "TTFT", "TOKENS", "COST"}, "RECOVERY", "CONTROL")
	for i := range rows {
		r := &rows[i]
		cells := []any{r.label(), "–", r.short(), "", "", "", "", "", "", "", "", ""}
		if r.Runs > 0 {
			cells = []any{r.label(), r.passed(), percent(r.OKRate), interval(r.Low, r.High), maybe(r.StateRate), maybe(r.TraceRate), maybe(r.TextRate),
				fmt.Sprintf("%d ms", r.P50), fmt.Sprintf("%d ms", r.P95), r.ttft(), r.tokens(), r.cost()}
		}
		row(cells, share(r.RecoveriesOK, r.Recoveries), share(r.ControlsOK, r.Controls))
	}
	_ = t.Write(w) // into memory
}

func interval(low, high float64) string {
	return strings.TrimSuffix(percent(low), " %") + "–" + percent(high)
}

// share returns "ok/n", or "" if n is 0.
func share(ok, n int) string { return some(n, fmt.Sprintf("%d/%d", ok, n)) }

// ttft returns the median time to the first delta of the model calls.
func (r *Row) ttft() string {
	if r.answered == 0 {
		return "–"
	}
	return fmt.Sprintf("%d ms", r.TTFT50)
}

// tokens returns the numbers of input and output tokens of all runs.
func (r *Row) tokens() string {
	if r.Usage == (lathe.Usage{}) {
		return "–"
	}
	return fmt.Sprintf("%d+%d", r.Usage.InputTokens, r.Usage.OutputTokens)
}

func (r *Row) cost() string {
	if r.Cost == 0 {
		return "–"
	}
	return fmt.Sprintf("$%.4f", r.Cost)
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func maybe(v *float64) string {
	if v == nil {
		return "–"
	}
	return percent(*v)
}
