package eval

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The page is written by hand rather than by html/template: a template finds methods by names that it
// learns at run time, so that the linker would have to keep every exported method of the whole program.

//go:embed report.css
var pageStyle string

// markup is what a page is written in. A constant becomes markup by itself; text from outside does not.
type markup string

// A page writes markup with values in it. The first error stays.
type page struct{ w *bufio.Writer }

func newPage(w io.Writer) *page { return &page{bufio.NewWriter(w)} }

// escaper makes text harmless between tags and in quoted attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD")

// put writes markup, with a value as text in the place of each {}.
func (p *page) put(m markup, values ...any) {
	rest := string(m)
	for _, v := range values {
		before, after, ok := strings.Cut(rest, "{}")
		if !ok {
			panic("eval: more values than places in " + string(m))
		}
		p.raw(before)
		_, _ = escaper.WriteString(p.w, fmt.Sprint(v)) // the writer keeps its first error
		rest = after
	}
	p.raw(rest)
}

func (p *page) raw(s string) { _, _ = p.w.WriteString(s) }

// either is one of two pieces of markup.
func either(yes bool, a, b markup) markup {
	if yes {
		return a
	}
	return b
}

func (p *page) classes(of map[Class]int) {
	for _, c := range classes(of) {
		p.put("{} {} ", c.Class, c.N)
	}
}

func (p *page) head(s *Summary) {
	title := markup("Evaluation")
	var suite []any
	if s.Suite != "" {
		title, suite = "Evaluation of {}", []any{s.Suite}
	}
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>`+title+"</title>\n<style>\n", suite...)
	p.raw(pageStyle)
	p.filterStyle(s)
	p.put("</style>\n</head>\n<body>\n<main>\n<h1>"+title+"</h1>\n", suite...)
}

// lead shows the figures of each model. Runs of several models are never one figure.
func (p *page) lead(s *Summary, unguarded bool) {
	if len(s.Models) == 1 { // several stand side by side below
		p.figures(&s.Models[0])
	}
	if unguarded {
		p.put("<p class=\"bad\">Runs without guards: each failure shows what a model's calls would do without a policy.</p>\n")
	}
	unscored := 0
	for i := range s.Models {
		unscored += s.Models[i].Errors
	}
	if unscored > 0 || len(s.Skipped) > 0 {
		p.put(`<p class="bad">`)
		if unscored > 0 {
			p.put("{} runs have no score: they reached no server, or the harness failed. ", unscored)
		}
		if len(s.Skipped) > 0 {
			p.put("{} were not tried.", len(s.Skipped))
		}
		p.put("</p>\n")
	}
}

func (p *page) figures(row *Row) {
	score := "no score"
	if row.Runs > 0 {
		score = percent(row.OKRate)
	}
	p.put(`<div class="lead">
<div><strong>{}</strong><span class="soft">{} of {} runs passed</span></div>
`, score, row.OK, row.Runs)
	if row.Runs > 0 {
		p.put(`<div><strong>{} – {}</strong><span class="soft">95 % interval</span></div>
<div><strong>{}</strong><span class="soft">half of the runs (p50)</span></div>
<div><strong>{}</strong><span class="soft">95 of 100 runs (p95)</span></div>
`, percent(row.Low), percent(row.High), duration(row.P50), duration(row.P95))
	}
	if row.Controls > 0 {
		p.put("<div><strong>{}/{}</strong><span class=\"soft\">control, without tools</span></div>\n", row.ControlsOK, row.Controls)
	}
	if row.Refused > 0 {
		p.put("<div><strong class=\"bad\">{}</strong><span class=\"soft\">refused by the server, in the rate</span></div>\n", row.Refused)
	}
	if row.NotProvoked > 0 {
		p.put("<div><strong>{}</strong><span class=\"soft\">did not apply: no mistake to recover from</span></div>\n", row.NotProvoked)
	}
	for _, c := range classes(row.Classes) {
		p.put("<div><strong class=\"bad\">{}</strong><span class=\"soft\">{}</span></div>\n", c.N, c.Class)
	}
	p.put("</div>\n")
}

// measured says what was measured: without it a rate means nothing to a reader.
func (p *page) measured(s *Summary) {
	if len(s.Measured) == 0 {
		return
	}
	p.put("\n<h2>What was measured</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"what was measured\"><table class=\"about\">\n")
	for i := range s.Measured {
		m := &s.Measured[i]
		trials := "trials"
		if m.Trials == 1 {
			trials = "trial"
		}
		p.put(`<tr><th scope="row">{}</th><td>{} {}, from {}`, m.Model, m.Trials, trials, m.Started.UTC().Format("2006-01-02 15:04 MST"))
		for _, name := range slices.Sorted(maps.Keys(m.About)) {
			p.put("<br>{}: {}", strings.ReplaceAll(name, "_", " "), m.About[name])
		}
		if len(m.Answered) > 0 {
			p.put("<br>answered as: {}", strings.Join(m.Answered, ", "))
		}
		for j := range s.Models {
			if row := &s.Models[j]; row.Model == m.Model {
				p.put("<br>tokens: {} in, {} out", row.Usage.InputTokens, row.Usage.OutputTokens)
				if row.Cost > 0 {
					p.put(", {}", fmt.Sprintf("%.4f US dollars", row.Cost))
				}
			}
		}
		p.put("</td></tr>\n")
	}
	p.put("</table></div>\n")
}

func (p *page) rates(s *Summary) {
	p.put("\n<h2>Rates, with the 95 % interval</h2>\n<h3>By model</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"rates by model\">")
	p.intervals(newIntervals(s, s.Models))
	p.put("</div>\n")
	if s.Scenarios == nil { // the matrix shows them by model
		return
	}
	if whole(s.Scenarios) {
		p.put("<h3>By scenario</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"rates by scenario\">")
		p.intervals(newIntervals(s, s.Scenarios))
		p.put("</div>\n")
		return
	}
	p.put(`<details><summary>By scenario, all {}</summary><div class="scroll" tabindex="0" role="region" aria-label="rates by scenario">`, len(s.Scenarios))
	p.intervals(newIntervals(s, s.Scenarios))
	p.put("</div></details>\n")
}

func (p *page) runs(s *Summary, failed, passed []*Run) {
	p.put("\n<h2>Runs</h2>\n")
	p.filters(s)
	if len(failed) == 0 {
		p.put("<p>No run failed.</p>\n")
	}
	known := s.allClasses()
	groups := grouped(s, failed, passed)
	for i := range groups {
		g := &groups[i]
		column := slices.IndexFunc(s.Models, func(m Row) bool {
			return of(s.ModelsScenarios, &m, g.Row.Scenario) != nil && m.Model == g.Row.Model && m.Strategy == g.Row.Strategy && m.Fallback == g.Row.Fallback
		})
		p.put(`<details class="box m{}`+either(g.Failed == 0, " passed", "")+`"`+either(g.Open, " open", "")+`><summary><strong>{}</strong> <span class="soft">`, column, g.Label)
		if n := g.Row.Runs + g.Row.Controls; n > 0 {
			p.put("{} of {} passed"+either(len(g.Row.Classes) > 0, ":", ""), g.Row.OK+g.Row.ControlsOK, n)
		} else {
			p.put("no score:")
		}
		p.put(`</span> <span class="bad">`)
		p.classes(g.Row.Classes)
		p.put("</span></summary>\n")
		for _, r := range g.Runs {
			name := "passed"
			if !r.OK {
				name = fmt.Sprint("c", slices.Index(known, r.Class)) // NOT_PROVOKED has no box
			}
			p.run(r, name, g.Talk && !r.OK)
		}
		if g.Left > 0 {
			p.put("<p class=\"soft\">{} more, in the files of their runs.</p>\n", g.Left)
		}
		p.put("</details>\n")
	}
}

func (p *page) run(r *Run, name string, open bool) {
	p.put(`<details class="run {}"`+either(open, " open", "")+`><summary>trial {} <span class="bad">{}</span> <span class="soft">{}</span></summary>
<p class="soft">Ended {} after {}, {} tokens.`, name, r.Trial, r.Class, r.Error, r.Reason, duration(r.ElapsedMS), r.Usage.TotalTokens)
	if r.ServerMessage != "" {
		p.put(" The server said: {}", r.ServerMessage)
	}
	p.put("</p>\n<ul>")
	for _, c := range r.Checks {
		p.put(either(c.OK, `<li class="good">✓`, `<li class="bad">✗`)+" {}: {}", c.Group, c.Assert)
		if c.Got != "" {
			p.put(", got {}", c.Got)
		}
		p.put("</li>")
	}
	p.put("</ul>\n")
	if r.Partial != "" {
		p.put(`<div class="said assistant wrong"><div class="who bad">assistant, not finished ({} bytes)</div><pre>{}</pre></div>
`, r.PartialBytes, r.Partial)
	}
	for _, s := range talk(r.History) {
		p.put(`<div class="said {}`+either(s.Bad, " wrong", "")+`"><div class="who`+either(s.Bad, " bad", "")+`">{} {}</div><pre>{}</pre></div>
`, s.Who, s.Who, s.Kind, s.Text)
	}
	p.put("</details>\n")
}

func (p *page) numbers(rows []Row) {
	p.put(`
<h2>Numbers</h2>
<details`+either(whole(rows), " open", "")+`><summary>Each model at each scenario (rows: {})</summary>
<div class="scroll" tabindex="0" role="region" aria-label="numbers"><table>
<tr><th>Model and scenario</th>`, len(rows))
	for _, name := range []string{"passed", "rate", "95 %", "state", "trace", "text", "p50", "p95"} {
		p.put(`<th class="n">{}</th>`, name)
	}
	p.put("<th>failures</th></tr>\n")
	for i := range rows {
		r := &rows[i]
		passed, rate, interval, half, most := "–", "–", "–", "–", "–"
		if r.Runs > 0 {
			passed, rate, interval = fmt.Sprintf("%d/%d", r.OK, r.Runs), percent(r.OKRate), percent(r.Low)+" – "+percent(r.High)
			half, most = duration(r.P50), duration(r.P95)
		}
		p.put(`<tr><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n soft">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td>`,
			r.label(), passed, rate, interval, maybe(r.StateRate), maybe(r.TraceRate), maybe(r.TextRate), half, most)
		p.classes(r.Classes)
		p.put("</td></tr>\n")
	}
	p.put("</table></div></details>\n</main>\n</body>\n</html>\n")
}
