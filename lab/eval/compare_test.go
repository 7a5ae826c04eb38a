package eval

import (
	"strings"
	"testing"
)

// tries returns a report of n runs of one model at one scenario, ok of them good.
func tries(model, scenario string, ok, n int) *Report {
	rep := &Report{}
	for i := range n {
		r := &Run{Model: model, Scenario: scenario, Strategy: Production, Scored: true, OK: i < ok}
		if !r.OK {
			r.Class = ClassAssertionFailed
		}
		rep.Runs = append(rep.Runs, r)
	}
	return rep
}

func TestCompareDistinguishesNoiseFromChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		a, b    *Report
		real    bool
		verdict string
	}{
		{"little", tries("m", "s", 8, 10), tries("m", "s", 9, 10), false, "may be noise"},
		{"too few", tries("m", "s", 3, 3), tries("m", "s", 0, 3), false, "may be noise"},
		{"much worse", tries("m", "s", 48, 50), tries("m", "s", 30, 50), true, "worse, more than noise"},
		{"much better", tries("m", "s", 10, 50), tries("m", "s", 30, 50), true, "better, more than noise"},
		{"nothing", tries("m", "s", 5, 5), tries("m", "s", 5, 5), false, "no change"},
		{"no score", tries("m", "s", 5, 5), &Report{Runs: []*Run{{Model: "m", Scenario: "s", Strategy: Production, Class: ClassConnection}}}, false, "no score to compare"},
	} {
		got := Compare(c.a, c.b)
		var b strings.Builder
		if err := got.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if got.Lines[0].Real != c.real || !strings.Contains(b.String(), c.verdict) {
			t.Errorf("%s: p %.4f\n%s", c.name, got.Lines[0].P, b.String())
		}
	}
	got := Compare(tries("m", "s", 10, 10), tries("n", "s", 0, 10))
	if l := got.Lines[0]; got.ModelA != "m" || got.ModelB != "n" || !l.Real || l.A.OK != 10 || l.B.OK != 0 {
		t.Errorf("one model on each side: %+v", got)
	}

	// Runs of a model that one side does not have must not move the rates of the other.
	both := tries("m", "s", 10, 10)
	both.Runs = append(both.Runs, tries("bad", "s", 0, 10).Runs...)
	got = Compare(both, tries("m", "s", 10, 10))
	if l := got.Lines[0]; l.Real || l.A.Runs != 10 || l.A.OK != 10 || l.B.OK != 10 || len(got.OnlyA) != 1 || got.OnlyA[0] != "bad" {
		t.Errorf("a model that only A has: %+v, only A %v", l, got.OnlyA)
	}

	// A scenario that one side does not have must not move the rates of the other.
	wide := tries("m", "s", 10, 10)
	wide.Runs = append(wide.Runs, tries("m", "hard", 0, 10).Runs...)
	got = Compare(tries("m", "s", 10, 10), wide)
	if l := got.Lines[0]; l.B.Runs != 10 || l.B.OK != 10 || len(got.Lines) != 2 || len(got.OnlyB) != 1 || got.OnlyB[0] != "hard" {
		t.Errorf("%+v, only B %v", got.Lines, got.OnlyB)
	}
}
