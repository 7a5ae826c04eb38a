package eval

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ok, n     int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {81, 263, 0.2553, 0.3662}, {1, 1, 0.2065, 1}} {
		low, high := Interval(c.ok, c.n)
		if math.Abs(low-c.low) > 0.0001 || math.Abs(high-c.high) > 0.0001 {
			t.Errorf("Interval(%d, %d) = %.4f, %.4f, want %.4f, %.4f", c.ok, c.n, low, high, c.low, c.high)
		}
	}
}

func TestQuantileTakesIndexFloorOfNTimesP(t *testing.T) {
	t.Parallel()
	ms := []int64{50, 10, 40, 20, 30}
	for p, want := range map[float64]int64{0: 10, 0.5: 30, 0.95: 50, 1: 50} {
		if got := Quantile(ms, p); got != want {
			t.Errorf("p %v: %d, want %d", p, got, want)
		}
	}
	if Quantile([]int64(nil), 0.5) != 0 || ms[0] != 50 {
		t.Error("no values, or the values were moved")
	}
}

// The values are of exact fractions, computed elsewhere. Few runs tell little: two of two against
// none of two is still noise.
func TestExactTest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		okA, nA, okB, nB int
		p                float64
	}{
		{15, 25, 5, 25, 0.00857851},
		{50, 100, 50, 100, 1},
		{10, 10, 10, 10, 1},
		{0, 0, 3, 5, 1},
		{496, 580, 503, 580, 0.610472},
		{2, 2, 0, 2, 0.333333},
		{3, 3, 0, 3, 0.1},
		{4, 4, 0, 4, 0.0285714},
		{8, 10, 9, 10, 1},
		{5, 5, 2, 5, 0.166667},
	} {
		if got := Chance(c.okA, c.nA, c.okB, c.nB); math.Abs(got-c.p) > 1e-5*c.p {
			t.Errorf("%+v: p %.8f", c, got)
		}
		if there, back := Chance(c.okA, c.nA, c.okB, c.nB), Chance(c.okB, c.nB, c.okA, c.nA); math.Abs(there-back) > 1e-9 {
			t.Errorf("%+v: p %g one way and %g the other", c, there, back)
		}
	}
}

// nasty is text that must not get out of where it is put.
const nasty = "</pre></title><script>alert(1)</script>\" onload=x <!-- ]]> &amp; \x00\x1b[31m\u202e{{.}}"

func nastyReport(n int) *Report {
	rep := &Report{Suite: nasty}
	for i := range n {
		r := &Run{Model: "m/" + nasty, Scenario: "s" + fmt.Sprint(i%5), Trial: i + 1, Strategy: Production, Scored: true, OK: i%3 == 0, ElapsedMS: int64(i * i)}
		if !r.OK {
			r.Class, r.Error, r.ServerMessage = ClassAssertionFailed, nasty, nasty
			r.Checks = []Check{{Group: "text", Assert: nasty, Got: nasty}}
			r.History = []lathe.Message{lathe.User(nasty), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "c", Name: nasty, Arguments: nasty}}},
				{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c", Name: nasty, Content: strings.Repeat(nasty, 1000), IsError: true}}}}
		}
		rep.Runs = append(rep.Runs, r)
	}
	rep.Runs[n-1].Scored = false
	return rep
}

func TestHTMLHasNothingThatRunsOrLoads(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := nastyReport(500).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "onload=x ", "\x00", "ZgotmplZ", "url(", "@import", " src=", " href=", "<link", "NaN", "+Inf"} {
		at := strings.Index(page, bad)
		if at >= 0 && !strings.HasPrefix(page[at:], "onload=x &lt;") {
			t.Errorf("the page holds %q: …%s…", bad, page[max(0, at-60):min(len(page), at+60)])
		}
	}
	if n, failed := strings.Count(page, `<details class="run `), strings.Count(page, `<details class="run c`); n != 500 || failed != 333 {
		t.Errorf("%d conversations, %d of failures, want 500 and 333", n, failed)
	}
	if !strings.Contains(page, "&lt;script&gt;") || len(page) > 500*12*maxShown {
		t.Errorf("the page of %d bytes does not show the texts, or all of them", len(page))
	}
}

func TestHTMLIsBounded(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := nastyReport(1500).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), `<details class="run c`); n != maxConversations || !strings.Contains(b.String(), "more, in the files of their runs") {
		t.Errorf("%d conversations of 1000 failures, want %d and a word about the others", n, maxConversations)
	}
}

// An empty report, and one with nothing but errors, are pages too.
func TestHTMLWithoutScores(t *testing.T) {
	t.Parallel()
	for name, rep := range map[string]*Report{"empty": {}, "errors": {Runs: []*Run{{Model: "m", Scenario: "s", Class: ClassAuth}}, Skipped: []string{"m"}}} {
		var b bytes.Buffer
		if err := rep.WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
		if page := b.String(); name == "errors" && !strings.Contains(page, "no score") || strings.Contains(page, "NaN") || !strings.Contains(page, "</html>") {
			t.Errorf("%s: %s", name, page)
		}
	}
}

// The models stand in columns, each compared with the first; each has a box that hides what is of it.
func TestHTMLShowsModelsSideBySide(t *testing.T) {
	t.Parallel()
	rep := &Report{}
	for i := range 40 {
		for m, model := range []string{"first", "worse", "same"} {
			r := &Run{Model: model, Scenario: "s", Trial: i + 1, Strategy: Production, Scored: true, OK: m != 1 || i < 10, ElapsedMS: int64(100 * (m + 1)), Cost: 0.01,
				Usage: lathe.Usage{InputTokens: 10, OutputTokens: 5}, Calls: []ModelCall{{TTFTMS: new(int64), MS: 5, Model: "upstream-" + model}}}
			if !r.OK {
				r.Class = ClassNoToolCalls
			}
			rep.Runs = append(rep.Runs, r)
		}
	}
	var b bytes.Buffer
	if err := rep.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{`<th scope="col" class="n m1">worse</th>`, `10/40 25 % <small class="bad">▼ p 0.000</small>`, `<small class="soft">= p 1.00</small>`, "$0.4000", "all of 8 runs",
		"answered as: upstream-worse", `id="f-m2"`, "body:has(#f-c0:not(:checked)) .c0 { display: none; }", `class="box m1"`, `class="box m2 passed"`, "<main>", "@media print", "tokens out</th><td class=\"n m0\">200</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// The matrix has its longer side downwards, where names can be read.
func TestHeatMapTurns(t *testing.T) {
	t.Parallel()
	wide := &Report{}
	for i := range 40 {
		for _, m := range []string{"a", "b"} {
			wide.Runs = append(wide.Runs, &Run{Model: m, Scenario: fmt.Sprint("s", i), Strategy: Production, Scored: true, OK: m == "a"})
		}
	}
	d := newHeat(wide.Summary())
	if len(d.Rows) != 40 || len(d.Columns) != 2 || len(d.Cells) != 80 || d.Height < d.Width {
		t.Errorf("%d rows, %d columns, %d cells, %d x %d", len(d.Rows), len(d.Columns), len(d.Cells), d.Width, d.Height)
	}
	if d.Cells[0].Y != d.Cells[1].Y || d.Cells[0].X == d.Cells[1].X {
		t.Errorf("the models of one scenario do not stand side by side: %+v", d.Cells[:2])
	}
	d = newHeat(nastyReport(50).Summary())
	if len(d.Rows) != 1 || len(d.Columns) != 5 {
		t.Errorf("%d rows, %d columns", len(d.Rows), len(d.Columns))
	}
}

// A run without a strategy has the label of one with the strategy production, and a row of its own.
func TestHeatMapSeparatesEqualLabels(t *testing.T) {
	t.Parallel()
	rep := &Report{}
	for _, strategy := range []Strategy{"", Production} {
		rep.Runs = append(rep.Runs, &Run{Model: "m", Scenario: "s", Strategy: strategy, Scored: true})
	}
	d := newHeat(rep.Summary())
	if len(d.Rows) != 2 || len(d.Cells) != 2 || d.Cells[0].Y == d.Cells[1].Y {
		t.Errorf("rows %+v, cells %+v", d.Rows, d.Cells)
	}
}

func TestJUnitCountsAndStaysXML(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := nastyReport(10).WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	type document struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	var got document
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 10 || got.Failures != 6 || got.Errors != 0 || len(got.Suites) != 1 || len(got.Suites[0].Cases) != 10 {
		t.Errorf("got %d tests, %d failures, %d errors", got.Tests, got.Failures, got.Errors)
	}

	// The report lists runs that were not tried.
	b.Reset()
	rep := nastyReport(10)
	rep.Skipped = []string{"m__s__trial_11", "m__s__trial_12"}
	got = document{}
	if err := rep.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 12 || got.Skipped != 2 || len(got.Suites) != 2 || got.Suites[1].Cases[1].Skipped == nil {
		t.Errorf("%s", b.String())
	}
}

func TestTableHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := nastyReport(10).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x{202e}]`).MatchString(b.String()) {
		t.Errorf("%q", b.String())
	}
}

func TestSummaryCountsOnlyWhatIsScored(t *testing.T) {
	t.Parallel()
	rep := &Report{Runs: []*Run{
		{Model: "a", Scenario: "x", OK: true, Scored: true, ElapsedMS: 10, Checks: []Check{{Group: "state", OK: true}}},
		{Model: "a", Scenario: "x", Class: ClassAuth},
		{Model: "a", Scenario: "y", Scored: true, Class: ClassAssertionFailed, ElapsedMS: 30, Checks: []Check{{Group: "state", OK: true}, {Group: "trace"}}},
		{Model: "b", Scenario: "x", Class: ClassConnection},
	}}
	only, _ := rep.Of("a")
	if r := only.Summary().All; r.Runs != 2 || r.OK != 1 || r.Errors != 1 || r.OKRate != 0.5 || r.P50 != 30 || *r.StateRate != 1 || *r.TraceRate != 0 || r.TextRate != nil || len(r.Failures) != 2 {
		t.Errorf("all: %+v", r)
	}
	s := rep.Summary() // models are never in one row
	if s.All != nil || s.Scenarios != nil || len(s.Models) != 2 || s.Models[1].Runs != 0 || s.Models[1].Classes[ClassConnection] != 1 || len(s.ModelsScenarios) != 3 {
		t.Errorf("%+v", s)
	}
}

func TestSaveWritesWholeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := nastyReport(3).Save(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v", entries, err)
	}
}
