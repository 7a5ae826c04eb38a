package eval

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// A Comparison says what changed from one report to another.
type Comparison struct {
	Lines []Change `json:"changes"` // all runs first, then by model, by scenario, and by both
	// OnlyA and OnlyB name the models and scenarios that only one of the reports has.
	OnlyA []string `json:"only_a,omitempty"`
	OnlyB []string `json:"only_b,omitempty"`
}

// A Change compares one row of two reports.
type Change struct {
	Label string `json:"label"`
	A     Row    `json:"a"`
	B     Row    `json:"b"`
	// P is the two-sided p-value of Fisher's exact test: the chance of a difference at least this large
	// where there is none.
	P float64 `json:"p"`
	// Real says that the difference is more than noise: P is below 0.05.
	Real bool `json:"more_than_noise"`
}

// significance is the p-value below which a difference is more than noise.
const significance = 0.05

// Compare compares the rates of the scenarios that both reports have: of all their runs, by model
// where both have it, by category where there are some, by scenario, and by both.
func Compare(a, b *Report) *Comparison {
	c := &Comparison{}
	wholeA, wholeB := a.Summary(), b.Summary()
	c.only(wholeA.Models, wholeB.Models)
	c.only(wholeA.Scenarios, wholeB.Scenarios)
	sa, sb := a.within(wholeB.Scenarios).Summary(), b.within(wholeA.Scenarios).Summary()
	c.add("all", sa.All, sb.All)
	for _, pair := range [][2][]Row{{sa.Models, sb.Models}, {sa.Categories, sb.Categories}, {sa.ModelsCategories, sb.ModelsCategories},
		{sa.Scenarios, sb.Scenarios}, {sa.ModelsScenarios, sb.ModelsScenarios}} {
		others := byLabel(pair[1])
		for i := range pair[0] {
			if other := others[pair[0][i].label()]; other != nil {
				c.add(pair[0][i].label(), pair[0][i], *other)
			}
		}
	}
	return c
}

// within returns the runs of those scenarios.
func (rep *Report) within(scenarios []Row) *Report {
	out := &Report{Suite: rep.Suite}
	known := byLabel(scenarios)
	for _, r := range rep.Runs {
		if known[r.Scenario] != nil {
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

// only notes the rows that one side has.
func (c *Comparison) only(a, b []Row) {
	inA, inB := byLabel(a), byLabel(b)
	for i := range a {
		if inB[a[i].label()] == nil {
			c.OnlyA = append(c.OnlyA, a[i].label())
		}
	}
	for i := range b {
		if inA[b[i].label()] == nil {
			c.OnlyB = append(c.OnlyB, b[i].label())
		}
	}
}

func (c *Comparison) add(label string, a, b Row) {
	p := exactTest(a.OK, a.Runs, b.OK, b.Runs)
	c.Lines = append(c.Lines, Change{Label: label, A: a, B: b, P: p, Real: p < significance})
}

// WriteTable writes the rows that changed, and says of each whether it is more than noise.
func (c *Comparison) WriteTable(w io.Writer) error {
	var lines bytes.Buffer
	tw := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tA\tB\tCHANGE\tP\t")
	same := 0
	for _, l := range c.Lines {
		if l.A.Runs == 0 || l.B.Runs == 0 {
			fmt.Fprintf(tw, "%s\t%d/%d\t%d/%d\t–\t–\tno score to compare\n", oneLine(l.Label), l.A.OK, l.A.Runs, l.B.OK, l.B.Runs)
			continue
		}
		if l.A.OKRate == l.B.OKRate && l.Label != "all" {
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
		fmt.Fprintf(tw, "%s\t%d/%d\t%d/%d\t%+.0f points\t%.3f\t%s\n", oneLine(l.Label), l.A.OK, l.A.Runs, l.B.OK, l.B.Runs, 100*(l.B.OKRate-l.A.OKRate), l.P, verdict)
	}
	_ = tw.Flush() // into memory
	if err := writeTrimmed(w, lines.Bytes()); err != nil {
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
			if _, err := fmt.Fprintf(w, "only in %s: %s\n", only.name, oneLine(label)); err != nil {
				return err
			}
		}
	}
	return nil
}
