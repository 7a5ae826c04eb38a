package eval

import (
	"fmt"
	"io"
	"time"

	"github.com/lathe-run/lathe/internal/report"
)

// WriteJUnit writes the runs as JUnit XML: a suite for each model, a case for each run. A run without a score is an error instead of a
// failure. Runs that were not tried form a suite of their own.
func (rep *Report) WriteJUnit(w io.Writer) error {
	var suites []report.Suite
	index := map[string]int{}
	for _, r := range rep.Runs {
		name := r.key().model().label()
		i, ok := index[name]
		if !ok {
			i = len(suites)
			index[name] = i
			suites = append(suites, report.Suite{Name: name, Timed: true})
		}
		c := report.Case{Name: fmt.Sprintf("%s trial %d", r.Scenario, r.Trial), Type: string(r.Class), Message: r.Error, Elapsed: time.Duration(r.ElapsedMS) * time.Millisecond}
		switch {
		case r.OK:
		case r.Scored:
			c.Outcome = report.Failed
		default:
			c.Outcome = report.Errored
		}
		suites[i].Cases = append(suites[i].Cases, c)
	}
	if len(rep.Skipped) > 0 {
		s := report.Suite{Name: "not tried", Timed: true}
		for _, name := range rep.Skipped {
			s.Cases = append(s.Cases, report.Case{Name: name, Outcome: report.Skipped, Message: "the model's server gave no answer to the runs before"})
		}
		suites = append(suites, s)
	}
	return report.WriteJUnit(w, suites)
}
