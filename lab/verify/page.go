package verify

import (
	"cmp"
	"io"
	"strings"

	"github.com/lathe-run/lathe/internal/report"
)

const pageStyle = `body{max-width:66rem;overflow-wrap:break-word}h2{margin-top:2rem}.passed{color:var(--good)}.failed,.differs{color:var(--bad)}
table{width:100%}th,td{padding:.35rem .8rem .35rem 0;vertical-align:top;font-variant-numeric:tabular-nums}
td small,th small{display:block;font-weight:400;color:var(--soft)}
td[data-of=Verdict],td>span{white-space:nowrap}th[scope=row],td[data-of=Model]{overflow-wrap:anywhere}
@media(max-width:40rem){thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}tr{display:block;padding:.5rem 0;border-bottom:1px solid var(--line)}td,tbody th{display:block;border:0;padding:.05rem 0}td[data-of]::before{content:attr(data-of) ": ";color:var(--soft)}}
@media print{:root{--bg:#fff;--fg:#000;--soft:#444;--line:#999;--good:#000;--bad:#000}body{max-width:none;margin:0}tr{break-inside:avoid}}
`

// stops describe why requests were not sent.
var stops = map[string]string{stoppedSilent: ", the server gave no answer in time or refused the key", stoppedRequests: ", the budget of requests was used up", stoppedTokens: ", the budget of tokens was used up"}

// joined replaces the space between a number and % by a no-break space.
func joined(s string) string { return strings.ReplaceAll(s, " %", "\u00a0%") }

// WriteHTML writes the report as an HTML page that loads nothing.
func (rep *Report) WriteHTML(w io.Writer) error {
	p := report.NewPage(w, "Verification of "+rep.Target.Model, pageStyle)
	p.Put("<p class=\"{}\"><strong>{}</strong>{}</p>\n", rep.Status, rep.Status, suffix(rep.Why))
	rep.putSides(p)
	rep.putMetrics(p)
	if len(rep.PassK) > 0 {
		p.Put("<h2>All of k trials of one request (pass^k)</h2>\n<p>{}", joined(passText(rep.PassK)))
		if len(rep.ReferencePassK) > 0 {
			p.Put("<br>Reference: {}", joined(passText(rep.ReferencePassK)))
		}
		p.Put("</p>\n")
	}
	if t := rep.Trigger; t != nil {
		p.Put("<h2>Trigger similarity</h2>\n<p>F1 {}: both call on {} prompts, only the target on {}, only the reference on {}, neither on {}. The reference with itself has {}.</p>\n", joined(maybe(t.F1)), t.TP, t.FP, t.FN, t.TN, joined(maybe(t.Noise)))
	}
	if len(rep.Limits) > 0 {
		rep.putLimits(p)
	}
	return p.Close()
}

// putSides writes the table of the endpoints, and how they were measured.
func (rep *Report) putSides(p *report.Page) {
	p.Put("<h2>What was measured</h2>\n<table>\n<thead><tr><th scope=\"col\">Endpoint</th><th scope=\"col\">Model</th><th scope=\"col\">Requests</th><th scope=\"col\">Tokens</th><th scope=\"col\">First byte, end</th></tr></thead>\n<tbody>\n")
	for i, s := range []*Side{&rep.Target, rep.Reference} {
		if s == nil {
			continue
		}
		p.Put("<tr><th scope=\"row\">{}<small class=\"soft\">{} {}</small></th><td data-of=\"Model\">{}", report.Either(i == 0, "Target", "Reference"), s.Server, s.Wire, s.Model)
		if s.Answered != "" && s.Answered != s.Model {
			p.Put("<small>answered as {}</small>", s.Answered)
		}
		p.Put("</td><td data-of=\"Requests\">{}<small>{} not measured{}</small></td><td data-of=\"Tokens\">{} in, {} out</td><td data-of=\"First byte, end\">{} ms, {} ms<small>p95 {} ms, {} ms</small></td></tr>\n",
			s.Requests, s.NotMeasured, stops[s.Stopped], s.InputTokens, s.OutputTokens, s.First50, s.Whole50, s.First95, s.Whole95)
	}
	p.Put("</tbody></table>\n<p class=\"soft\">{}, Lathe {}, {} trials, at most {} requests and {} tokens, suite {}</p>\n", rep.Started.Format("2006-01-02 15:04 MST"), rep.Lathe, rep.Trials, rep.Budget.Requests, rep.Budget.Tokens, rep.Suite[:min(12, len(rep.Suite))])
}

func (rep *Report) putMetrics(p *report.Page) {
	p.Put("<h2>Metrics</h2>\n<table>\n<thead><tr><th scope=\"col\">Metric</th><th scope=\"col\">Target</th>")
	if rep.Reference != nil {
		p.Put("<th scope=\"col\">Reference</th><th scope=\"col\">P</th>")
	}
	p.Put("<th scope=\"col\">Verdict</th></tr></thead>\n<tbody>\n")
	for _, m := range rep.Metrics {
		p.Put("<tr><th scope=\"row\">{}<small class=\"soft\"> {}: {}</small></th><td data-of=\"Target\">", m.Name, m.ID, m.Counts)
		putTally(p, m.Target)
		for _, d := range m.Deviations {
			p.Put("<small>{}: {} {}</small>", d.ID, d.count(rep.Reference != nil), d.Seen)
		}
		p.Put("</td>")
		if m.Reference != nil {
			p.Put("<td data-of=\"Reference\">")
			putTally(p, *m.Reference)
			p.Put("</td><td data-of=\"P\">{}</td>", m.chance())
		}
		p.Put("<td data-of=\"Verdict\" class=\"{}\">{}{}</td></tr>\n", m.Verdict, m.Verdict.words(), report.Either(m.Differs, ", differs", ""))
	}
	p.Put("</tbody></table>\n")
}

func putTally(p *report.Page, t Tally) {
	count, interval := t.texts()
	p.Put("<span>{}</span>", joined(count))
	if interval != "" {
		p.Put(" <span class=\"soft\">{}</span>", interval)
	}
}

func (rep *Report) putLimits(p *report.Page) {
	p.Put("<h2>Limits</h2>\n<table>\n<thead><tr><th scope=\"col\">Limit</th><th scope=\"col\">Target</th>")
	if rep.Reference != nil {
		p.Put("<th scope=\"col\">Reference</th>")
	}
	p.Put("</tr></thead>\n<tbody>\n")
	for _, l := range rep.Limits {
		p.Put("<tr><th scope=\"row\">{}</th><td data-of=\"Target\">{}</td>", cmp.Or(l.Target, l.Reference).ID, l.Target.text())
		if rep.Reference != nil {
			p.Put("<td data-of=\"Reference\">{}</td>", l.Reference.text())
		}
		p.Put("</tr>\n")
	}
	p.Put("</tbody></table>\n")
}
