package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
)

// A Badge is the JSON of a shields.io badge: https://shields.io/badges/endpoint-badge.
type Badge struct {
	Version int    `json:"schemaVersion"` // always 1
	Label   string `json:"label"`
	Message string `json:"message"`
	Color   string `json:"color"`
	IsError bool   `json:"isError"`
}

// Badge returns a badge with the rate of those calls of the target that satisfy their schema. Its colour depends on the lower end of the
// confidence interval; it is never green if the verification did not pass.
func (rep *Report) Badge() Badge {
	var t Tally
	for i := range rep.Metrics {
		switch m := &rep.Metrics[i]; m.ID {
		case metricAuto, metricWhole, metricStreamed:
			t.OK, t.N = t.OK+m.Target.OK, t.N+m.Target.N
		}
	}
	b := Badge{Version: 1, Label: "tool calls", Message: "inconclusive", Color: "lightgrey"}
	if t.N == 0 || rep.Status == Inconclusive {
		return b
	}
	rate, low, _ := t.Rate()
	b.Message = fmt.Sprintf("%s (n=%d)", percent(rate), t.N)
	switch {
	case rep.Status == Failed:
		b.Color, b.Message = "red", b.Message+", failed"
	case low >= 0.9:
		b.Color = "green"
	case low >= 0.75:
		b.Color = "yellow"
	default:
		b.Color = "orange"
	}
	return b
}

// WriteBadge writes [Report.Badge] as JSON.
func (rep *Report) WriteBadge(w io.Writer) error { return json.NewEncoder(w).Encode(rep.Badge()) }

// letterWidth is the approximate width of a character at 11 px; textLength stretches the text to the computed width.
const (
	letterWidth = 6.6
	badgePad    = 6
)

var badgeColors = map[string]string{"green": "#2f7d1b", "yellow": "#8a6d00", "orange": "#b04a00", "red": "#b3261e", "lightgrey": "#5f6670"}

// WriteBadgeSVG writes [Report.Badge] as an SVG image that loads nothing. The contrast of its text is at least 4.5 to 1.
func (rep *Report) WriteBadgeSVG(w io.Writer) error {
	b := rep.Badge()
	wide := func(s string) float64 { return letterWidth * float64(utf8.RuneCountInString(s)) }
	left, right := wide(b.Label)+2*badgePad, wide(b.Message)+2*badgePad
	label, message := report.Escape(b.Label), report.Escape(joined(b.Message))
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.1f" height="20" role="img" aria-label="%s: %s">
<title>%s: %s</title>
<rect width="%.1f" height="20" rx="3" fill="#444"/>
<path d="M%.1f 0h%.1fa3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-%.1fz" fill="%s"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="%d" y="14" textLength="%.1f">%s</text>
<text x="%.1f" y="14" textLength="%.1f">%s</text>
</g>
</svg>
`, left+right, label, message, label, message, left+right, left, right-3, right-3, badgeColors[b.Color], badgePad, wide(b.Label), label, left+badgePad, wide(b.Message), message)
	return err
}

// WriteJSON writes the report as indented JSON, in which < and & are escaped so that it can be embedded in HTML. [Schema] describes it.
func (rep *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(rep)
}

// WriteJUnit writes JUnit XML with a test case for each metric. Metrics that are not supported or not measured are skipped cases.
func (rep *Report) WriteJUnit(w io.Writer) error {
	s := report.Suite{Name: text.OneLine("lathe verify " + rep.Target.Model)}
	for _, m := range rep.Metrics {
		c := report.Case{Name: m.ID}
		switch m.Verdict {
		case MetricFailed:
			c.Outcome, c.Message = report.Failed, m.Target.text()
			if m.Reference != nil {
				c.Message += fmt.Sprintf(", the reference %s, p %.3f", m.Reference.text(), *m.P)
			}
		case MetricNotSupported, MetricNotMeasured:
			c.Outcome, c.Message = report.Skipped, m.Verdict.words()
		case MetricPassed:
		}
		s.Cases = append(s.Cases, c)
	}
	return s.WriteJUnit(w)
}

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
	tally := func(t Tally) {
		count, interval := t.texts()
		p.Put("<span>{}</span>", joined(count))
		if interval != "" {
			p.Put(" <span class=\"soft\">{}</span>", interval)
		}
	}
	p.Put("<p class=\"{}\"><strong>{}</strong>{}</p>\n", rep.Status, rep.Status, suffix(rep.Why))
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
	p.Put("<h2>Metrics</h2>\n<table>\n<thead><tr><th scope=\"col\">Metric</th><th scope=\"col\">Target</th>")
	if rep.Reference != nil {
		p.Put("<th scope=\"col\">Reference</th><th scope=\"col\">P</th>")
	}
	p.Put("<th scope=\"col\">Verdict</th></tr></thead>\n<tbody>\n")
	for _, m := range rep.Metrics {
		p.Put("<tr><th scope=\"row\">{}<small class=\"soft\"> {}: {}</small></th><td data-of=\"Target\">", m.Name, m.ID, m.Counts)
		tally(m.Target)
		for _, d := range m.Deviations {
			p.Put("<small>{}: {} {}</small>", d.ID, d.count(rep.Reference != nil), d.Seen)
		}
		p.Put("</td>")
		if m.Reference != nil {
			p.Put("<td data-of=\"Reference\">")
			tally(*m.Reference)
			p.Put("</td><td data-of=\"P\">{}</td>", m.chance())
		}
		p.Put("<td data-of=\"Verdict\" class=\"{}\">{}{}</td></tr>\n", m.Verdict, m.Verdict.words(), report.Either(m.Differs, ", differs", ""))
	}
	p.Put("</tbody></table>\n")
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
	return p.Close()
}
