package eval

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
)

//go:embed report.css
var pageStyle string

// A page writes the page of a report.
type page struct{ *report.Page }

func (p *page) classes(of map[Class]int) {
	for _, c := range classes(of) {
		p.Put("{} {} ", c.Class, c.N)
	}
}

// newPage begins the page for a summary.
func newPage(w io.Writer, s *Summary) *page {
	title := "Evaluation"
	if s.Suite != "" {
		title += " of " + s.Suite
	}
	return &page{report.NewPage(w, title, pageStyle+s.filterStyle())}
}

// lead writes the figures of the model, and remarks. Runs of several models are never summed.
func (p *page) lead(s *Summary, unguarded bool) {
	if len(s.Models) == 1 { // several models are shown side by side below
		p.figures(&s.Models[0])
	}
	if unguarded {
		p.Put("<p class=\"bad\">Runs without guards: each failure shows what a model's calls would do without a policy.</p>\n")
	}
	unscored := 0
	for i := range s.Models {
		unscored += s.Models[i].Errors
	}
	if unscored > 0 || len(s.Skipped) > 0 {
		p.Put(`<p class="bad">`)
		if unscored > 0 {
			p.Put("{} runs have no score: they reached no server, or the harness failed. ", unscored)
		}
		if len(s.Skipped) > 0 {
			p.Put("{} were not tried.", len(s.Skipped))
		}
		p.Put("</p>\n")
	}
}

func (p *page) figures(row *Row) {
	score := "no score"
	if row.Runs > 0 {
		score = percent(row.OKRate)
	}
	p.Put(`<div class="lead">
<div><strong>{}</strong><span class="soft">{} of {} runs passed</span></div>
`, score, row.OK, row.Runs)
	if row.Runs > 0 {
		p.Put(`<div><strong>{} – {}</strong><span class="soft">95 % interval</span></div>
<div><strong>{}</strong><span class="soft">half of the runs (p50)</span></div>
<div><strong>{}</strong><span class="soft">95 of 100 runs (p95)</span></div>
`, percent(row.Low), percent(row.High), duration(row.P50), duration(row.P95))
	}
	if row.Controls > 0 {
		p.Put("<div><strong>{}/{}</strong><span class=\"soft\">control, without tools</span></div>\n", row.ControlsOK, row.Controls)
	}
	if row.Refused > 0 {
		p.Put("<div><strong class=\"bad\">{}</strong><span class=\"soft\">refused by the server, in the rate</span></div>\n", row.Refused)
	}
	if row.NotProvoked > 0 {
		p.Put("<div><strong>{}</strong><span class=\"soft\">did not apply: no mistake to recover from</span></div>\n", row.NotProvoked)
	}
	for _, c := range classes(row.Classes) {
		p.Put("<div><strong class=\"bad\">{}</strong><span class=\"soft\">{}</span></div>\n", c.N, c.Class)
	}
	p.Put("</div>\n")
}

// measured writes what was measured, which readers need to interpret a rate.
func (p *page) measured(s *Summary) {
	if len(s.Measured) == 0 {
		return
	}
	p.Put("\n<h2>What was measured</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"what was measured\"><table class=\"about\">\n")
	for _, m := range s.Measured {
		p.Put(`<tr><th scope="row">{}</th><td>{}, from {}`, m.Model, text.Plural(m.Trials, "trial"), m.Started.UTC().Format("2006-01-02 15:04 MST"))
		for name, about := range text.ByName(m.About) {
			p.Put("<br>{}: {}", strings.ReplaceAll(name, "_", " "), about)
		}
		if len(m.Answered) > 0 {
			p.Put("<br>answered as: {}", strings.Join(m.Answered, ", "))
		}
		for _, row := range s.Models {
			if row.Model == m.Model {
				p.Put("<br>tokens: {} in, {} out", row.Usage.InputTokens, row.Usage.OutputTokens)
				if row.Cost > 0 {
					p.Put(", {}", fmt.Sprintf("%.4f US dollars", row.Cost))
				}
			}
		}
		p.Put("</td></tr>\n")
	}
	p.Put("</table></div>\n")
}

func (p *page) rates(s *Summary) {
	p.Put("\n<h2>Rates, with the 95 % interval</h2>\n<h3>By model</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"rates by model\">")
	p.intervals(s, s.Models)
	p.Put("</div>\n")
	if s.Scenarios == nil { // several models: the heat map shows scenarios by model
		return
	}
	if expanded(s.Scenarios) {
		p.Put("<h3>By scenario</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"rates by scenario\">")
		p.intervals(s, s.Scenarios)
		p.Put("</div>\n")
		return
	}
	p.Put(`<details><summary>By scenario, all {}</summary><div class="scroll" tabindex="0" role="region" aria-label="rates by scenario">`, len(s.Scenarios))
	p.intervals(s, s.Scenarios)
	p.Put("</div></details>\n")
}

func (p *page) runs(s *Summary, failed, passed []*Run) {
	p.Put("\n<h2>Runs</h2>\n")
	p.filters(s)
	if len(failed) == 0 {
		p.Put("<p>No run failed.</p>\n")
	}
	known := s.allClasses()
	for _, g := range grouped(s, failed, passed) {
		column := slices.IndexFunc(s.Models, func(m Row) bool { return m.rowKey == g.Row.model() })
		p.Put(`<details class="box m{}`+report.Either(g.Failed == 0, " passed", "")+`"`+report.Either(g.Open, " open", "")+`><summary><strong>{}</strong> <span class="soft">`, column, g.Label)
		if n := g.Row.Runs + g.Row.Controls; n > 0 {
			p.Put("{} of {} passed"+report.Either(len(g.Row.Classes) > 0, ":", ""), g.Row.OK+g.Row.ControlsOK, n)
		} else {
			p.Put("no score:")
		}
		p.Put(`</span> <span class="bad">`)
		p.classes(g.Row.Classes)
		p.Put("</span></summary>\n")
		for _, r := range g.Runs {
			name := "passed"
			if !r.OK {
				// The index is -1 for NOT_PROVOKED, which has no check box.
				name = fmt.Sprint("c", slices.IndexFunc(known, func(k classCount) bool { return k.Class == r.Class }))
			}
			p.run(r, name, g.Talk && !r.OK)
		}
		if g.Left > 0 {
			p.Put("<p class=\"soft\">{} more, in the files of their runs.</p>\n", g.Left)
		}
		p.Put("</details>\n")
	}
}

func (p *page) run(r *Run, name string, open bool) {
	p.Put(`<details class="run {}"`+report.Either(open, " open", "")+`><summary>trial {} <span class="bad">{}</span> <span class="soft">{}</span></summary>
<p class="soft">Ended {} after {}, {} tokens.`, name, r.Trial, r.Class, r.Error, r.Reason, duration(r.ElapsedMS), r.Usage.TotalTokens)
	if r.ServerMessage != "" {
		p.Put(" The server said: {}", r.ServerMessage)
	}
	p.Put("</p>\n<ul>")
	for _, c := range r.Checks {
		p.Put(report.Either(c.OK, `<li class="good">✓`, `<li class="bad">✗`)+" {}: {}", c.Group, c.Assert)
		if c.Got != "" {
			p.Put(", got {}", c.Got)
		}
		p.Put("</li>")
	}
	p.Put("</ul>\n")
	if r.Partial != "" {
		p.Put(`<div class="said assistant wrong"><div class="who bad">assistant, not finished ({} bytes)</div><pre>{}</pre></div>
`, r.PartialBytes, r.Partial)
	}
	for _, s := range talk(r.History) {
		p.Put(`<div class="said {}`+report.Either(s.Bad, " wrong", "")+`"><div class="who`+report.Either(s.Bad, " bad", "")+`">{} {}</div><pre>{}</pre></div>
`, s.Who, s.Who, s.Kind, s.Text)
	}
	p.Put("</details>\n")
}

func (p *page) numbers(rows []Row) {
	p.Put(`
<h2>Numbers</h2>
<details`+report.Either(expanded(rows), " open", "")+`><summary>Each model at each scenario (rows: {})</summary>
<div class="scroll" tabindex="0" role="region" aria-label="numbers"><table>
<tr><th>Model and scenario</th>`, len(rows))
	for _, name := range []string{"passed", "rate", "95 %", "state", "trace", "text", "p50", "p95"} {
		p.Put(`<th class="n">{}</th>`, name)
	}
	p.Put("<th>failures</th></tr>\n")
	for _, r := range rows {
		passed, rate, interval, half, most := "–", "–", "–", "–", "–"
		if r.Runs > 0 {
			passed, rate, interval = r.passed(), percent(r.OKRate), percent(r.Low)+" – "+percent(r.High)
			half, most = duration(r.P50), duration(r.P95)
		}
		p.Put(`<tr><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n soft">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td>`,
			r.label(), passed, rate, interval, maybe(r.StateRate), maybe(r.TraceRate), maybe(r.TextRate), half, most)
		p.classes(r.Classes)
		p.Put("</td></tr>\n")
	}
	p.Put("</table></div></details>\n")
}
