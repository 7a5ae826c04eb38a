package eval

import (
	"fmt"
	"io"

	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
)

// A Comparison contains the differences between two reports, A and B.
type Comparison struct {
	Lines []Change `json:"changes"` // all runs first, if each report has one model; then by model, then by model and scenario
	// ModelA and ModelB are set if each report has one model and the names differ.
	ModelA string `json:"model_a,omitempty"`
	ModelB string `json:"model_b,omitempty"`
	// OnlyA and OnlyB are the models and scenarios that only one report has.
	OnlyA []string `json:"only_a,omitempty"`
	OnlyB []string `json:"only_b,omitempty"`
}

// A Change compares the same row of two reports.
type Change struct {
	Label string `json:"label"`
	A     Row    `json:"a"`
	B     Row    `json:"b"`
	// P is the two-sided p-value of Fisher's exact test: the probability of a difference at least this large between equal models.
	P float64 `json:"p"`
	// Real reports that P is below 0.05.
	Real bool `json:"more_than_noise"`
}

// significance is the p-value below which a difference is more than noise.
const significance = 0.05

// Compare compares the rows that both reports have: each model in each scenario, and each model over its common scenarios. If each report
// has exactly one model, these two are compared although their names differ.
func Compare(a, b *Report) *Comparison {
	c := &Comparison{}
	wholeA, wholeB := a.Summary(), b.Summary()
	single := len(wholeA.Models) == 1 && len(wholeB.Models) == 1
	if single && wholeA.Models[0].Model != wholeB.Models[0].Model {
		c.ModelA, c.ModelB = wholeA.Models[0].Model, wholeB.Models[0].Model
		b = b.as(c.ModelA)
		wholeB = b.Summary()
	}
	scenariosA, scenariosB := scenariosOf(a), scenariosOf(b)
	c.OnlyA = append(missing(wholeA.Models, wholeB.Models), missing(scenariosA, scenariosB)...)
	c.OnlyB = append(missing(wholeB.Models, wholeA.Models), missing(scenariosB, scenariosA)...)
	a, b = a.within(wholeB.ModelsScenarios), b.within(wholeA.ModelsScenarios)
	sa, sb := a.Summary(), b.Summary()
	if single && sa.All != nil && sb.All != nil {
		c.add("all", *sa.All, *sb.All)
	}
	for _, pair := range [][2][]Row{{sa.Models, sb.Models}, {sa.ModelsCategories, sb.ModelsCategories}, {sa.ModelsScenarios, sb.ModelsScenarios}} {
		others := byLabel(pair[1])
		for _, row := range pair[0] {
			key := row.rowKey
			if single {
				key.Model = "" // both sides have one model
			}
			other, name := others[row.label()], key.label()
			if other != nil && name != "" {
				c.add(name, row, *other)
			}
		}
	}
	return c
}

// scenariosOf returns a row for each scenario, with only the name of the scenario in its key.
func scenariosOf(rep *Report) []Row {
	return rows(rep.Runs, func(r *Run) rowKey { return rowKey{Scenario: r.Scenario} })
}

// as returns the report with all runs under another model name.
func (rep *Report) as(model string) *Report {
	out := &Report{Suite: rep.Suite, Skipped: rep.Skipped}
	for _, r := range rep.Runs {
		renamed := *r
		renamed.Model = model
		out.Runs = append(out.Runs, &renamed)
	}
	return out
}

// Of returns a report of the runs of one model. If rep has no run of the model, it returns a report without runs, and false.
func (rep *Report) Of(model string) (*Report, bool) {
	out := rep.only(func(r *Run) bool { return r.Model == model })
	return out, len(out.Runs) > 0
}

// within returns the runs of the models and scenarios of the rows.
func (rep *Report) within(rows []Row) *Report {
	known := byLabel(rows)
	return rep.only(func(r *Run) bool { return known[r.key().label()] != nil })
}

// only returns a report of the runs for which keep is true.
func (rep *Report) only(keep func(*Run) bool) *Report {
	out := &Report{Suite: rep.Suite}
	for _, r := range rep.Runs {
		if keep(r) {
			out.Runs = append(out.Runs, r)
		}
	}
	return out
}

func byLabel(rows []Row) map[string]*Row {
	out := make(map[string]*Row, len(rows))
	for i := range rows {
		out[rows[i].label()] = &rows[i]
	}
	return out
}

// missing returns the labels of the rows that are not among the others.
func missing(rows, others []Row) (labels []string) {
	known := byLabel(others)
	for i := range rows {
		if label := rows[i].label(); known[label] == nil {
			labels = append(labels, label)
		}
	}
	return labels
}

func (c *Comparison) add(label string, a, b Row) {
	p := Chance(a.OK, a.Runs, b.OK, b.Runs)
	c.Lines = append(c.Lines, Change{Label: label, A: a, B: b, P: p, Real: p < significance})
}

// WriteTable writes the changed rows as text, and says for each change whether it is more than noise. The error is that of w.
func (c *Comparison) WriteTable(w io.Writer) error {
	if c.ModelA != "" {
		fmt.Fprintf(w, "A is %s, B is %s\n", text.OneLine(c.ModelA), text.OneLine(c.ModelB))
	}
	var t report.Table
	t.Row("", "A", "B", "CHANGE", "P")
	same := 0
	for i, l := range c.Lines {
		if l.A.Runs == 0 || l.B.Runs == 0 {
			t.Row(l.Label, l.A.passed(), l.B.passed(), "–", "–", "no score to compare")
			continue
		}
		if l.A.OKRate == l.B.OKRate && i > 0 && l.A.group() != "" {
			same++
			continue
		}
		verdict := "may be noise"
		switch {
		case l.A.OKRate == l.B.OKRate:
			verdict = "no change"
		case l.Real && l.B.OKRate > l.A.OKRate:
			verdict = "better, more than noise"
		case l.Real:
			verdict = "worse, more than noise"
		}
		t.Row(l.Label, l.A.passed(), l.B.passed(), fmt.Sprintf("%+.0f points", 100*(l.B.OKRate-l.A.OKRate)), fmt.Sprintf("%.3f", l.P), verdict)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if same > 0 {
		fmt.Fprintf(w, "%d more did not change\n", same)
	}
	for _, only := range []struct {
		name   string
		labels []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		for _, label := range only.labels {
			if _, err := fmt.Fprintf(w, "only in %s: %s\n", only.name, text.OneLine(label)); err != nil {
				return err
			}
		}
	}
	return nil
}
