package verify

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/text"
)

// A Badge is what shields.io shows of an endpoint: https://shields.io/badges/endpoint-badge.
type Badge struct {
	Version int    `json:"schemaVersion"` // 1
	Label   string `json:"label"`
	Message string `json:"message"`
	Color   string `json:"color"`
	IsError bool   `json:"isError"`
}

// Badge returns the schema accuracy of the target: forced and not, whole and streamed. Its colour goes by the lower end of the
// interval; a verification that did not pass is never green.
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

// WriteBadge writes the badge as JSON.
func (rep *Report) WriteBadge(w io.Writer) error { return json.NewEncoder(w).Encode(rep.Badge()) }

// The badge is drawn by hand. letterWidth is about what a character of 11 px has; textLength makes the text as wide as that.
const (
	letterWidth = 6.6
	badgePad    = 6
)

var badgeColors = map[string]string{"green": "#2f7d1b", "yellow": "#8a6d00", "orange": "#b04a00", "red": "#b3261e", "lightgrey": "#5f6670"}

// WriteBadgeSVG writes the badge as a picture, which loads nothing. Its text has a contrast of 4.5 to 1 at least.
func (rep *Report) WriteBadgeSVG(w io.Writer) error {
	b := rep.Badge()
	wide := func(s string) float64 { return letterWidth * float64(utf8.RuneCountInString(s)) }
	left, right := wide(b.Label)+2*badgePad, wide(b.Message)+2*badgePad
	label, message := escaper.Replace(b.Label), escaper.Replace(b.Message)
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

// WriteJSON writes the report as JSON, without < and & as such, so that it is harmless within a page, too.
func (rep *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(rep)
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

// WriteJUnit writes a test case for each metric. One that is not supported or not measured is skipped.
func (rep *Report) WriteJUnit(w io.Writer) error {
	s := junitSuite{Name: text.OneLine("lathe verify " + rep.Target.Model), Tests: len(rep.Metrics)}
	for i := range rep.Metrics {
		m := &rep.Metrics[i]
		c := junitCase{Name: m.ID, Class: s.Name}
		switch m.Verdict {
		case MetricFailed:
			s.Failures++
			text := m.Target.text()
			if m.Reference != nil {
				text += fmt.Sprintf(", the reference %s, p %.3f", m.Reference.text(), *m.P)
			}
			c.Failure = &junitMessage{text}
		case MetricNotSupported, MetricNotMeasured:
			s.Skipped++
			c.Skipped = &junitMessage{strings.ReplaceAll(string(m.Verdict), "_", " ")}
		case MetricPassed:
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

const pageStyle = `:root{color-scheme:light dark;--bg:#fff;--fg:#1b1e23;--soft:#5b6370;--line:#d7dbe0;--good:#0b5a9c;--bad:#a8430a}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e8eb;--soft:#a0a8b3;--line:#353b44;--good:#6db3f2;--bad:#f0975c}}
body{margin:2rem auto;max-width:66rem;padding:0 1rem;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}.soft{color:var(--soft)}.passed{color:var(--good)}.failed,.differs{color:var(--bad)}
table{border-collapse:collapse;width:100%}th,td{padding:.35rem .8rem .35rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums}
td small,th small{display:block;font-weight:400;color:var(--soft)}
td[data-of=Verdict],td>span{white-space:nowrap}th[scope=row],td[data-of=Model]{overflow-wrap:anywhere}
@media(max-width:40rem){thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}tr{display:block;padding:.5rem 0;border-bottom:1px solid var(--line)}td,tbody th{display:block;border:0;padding:.05rem 0}td[data-of]::before{content:attr(data-of) ": ";color:var(--soft)}}
@media print{:root{--bg:#fff;--fg:#000;--soft:#444;--line:#999;--good:#000;--bad:#000}body{max-width:none;margin:0}tr{break-inside:avoid}}
`

// stops say why requests were not sent.
var stops = map[string]string{stoppedSilent: ", the server gave no answer in time or refused the key", stoppedRequests: ", the budget of requests was used up", stoppedTokens: ", the budget of tokens was used up"}

var escaper = strings.NewReplacer(" %", "\u00a0%", "&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD")

// WriteHTML writes the report as one page that loads nothing.
func (rep *Report) WriteHTML(w io.Writer) error {
	b := bufio.NewWriter(w)
	put := func(markup string, values ...any) { // a value as text in the place of each {}
		for _, v := range values {
			before, after, _ := strings.Cut(markup, "{}")
			_, _ = b.WriteString(before) // the writer keeps its first error
			_, _ = escaper.WriteString(b, fmt.Sprint(v))
			markup = after
		}
		_, _ = b.WriteString(markup)
	}
	tally := func(t Tally) {
		count, interval := t.texts()
		put("<span>{}</span>", count)
		if interval != "" {
			put(" <span class=\"soft\">{}</span>", interval)
		}
	}
	put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Verification of {}</title>\n<style>\n", rep.Target.Model)
	_, _ = b.WriteString(pageStyle)
	put("</style>\n</head>\n<body>\n<main>\n<h1>Verification of {}</h1>\n<p class=\"{}\"><strong>{}</strong>{}</p>\n", rep.Target.Model, rep.Status, rep.Status, suffix(rep.Why))
	put("<h2>What was measured</h2>\n<table>\n<thead><tr><th scope=\"col\">Endpoint</th><th scope=\"col\">Model</th><th scope=\"col\">Requests</th><th scope=\"col\">Tokens</th><th scope=\"col\">First byte, end</th></tr></thead>\n<tbody>\n")
	for i, s := range []*Side{&rep.Target, rep.Reference} {
		if s == nil {
			continue
		}
		put("<tr><th scope=\"row\">{}<small class=\"soft\">{} {}</small></th><td data-of=\"Model\">{}", either(i == 0, "Target", "Reference"), s.Server, s.Wire, s.Model)
		if s.Answered != "" && s.Answered != s.Model {
			put("<small>answered as {}</small>", s.Answered)
		}
		put("</td><td data-of=\"Requests\">{}<small>{} not measured{}</small></td><td data-of=\"Tokens\">{} in, {} out</td><td data-of=\"First byte, end\">{} ms, {} ms<small>p95 {} ms, {} ms</small></td></tr>\n",
			s.Requests, s.NotMeasured, stops[s.Stopped], s.InputTokens, s.OutputTokens, s.First50, s.Whole50, s.First95, s.Whole95)
	}
	put("</tbody></table>\n<p class=\"soft\">{}, Lathe {}, {} trials, at most {} requests and {} tokens, suite {}</p>\n", rep.Started.Format("2006-01-02 15:04 MST"), rep.Lathe, rep.Trials, rep.Budget.Requests, rep.Budget.Tokens, rep.Suite[:min(12, len(rep.Suite))])
	put("<h2>Metrics</h2>\n<table>\n<thead><tr><th scope=\"col\">Metric</th><th scope=\"col\">Target</th>")
	if rep.Reference != nil {
		put("<th scope=\"col\">Reference</th><th scope=\"col\">P</th>")
	}
	put("<th scope=\"col\">Verdict</th></tr></thead>\n<tbody>\n")
	for i := range rep.Metrics {
		m := &rep.Metrics[i]
		put("<tr><th scope=\"row\">{}<small class=\"soft\"> {}: {}</small></th><td data-of=\"Target\">", m.Name, m.ID, m.Counts)
		tally(m.Target)
		for _, d := range m.Deviations {
			put("<small>{}: {} {}</small>", d.ID, d.count(rep.Reference != nil), d.Seen)
		}
		put("</td>")
		if m.Reference != nil {
			put("<td data-of=\"Reference\">")
			tally(*m.Reference)
			put("</td><td data-of=\"P\">{}</td>", m.chance())
		}
		put("<td data-of=\"Verdict\" class=\"{}\">{}{}</td></tr>\n", m.Verdict, strings.ReplaceAll(string(m.Verdict), "_", " "), either(m.Differs, ", differs", ""))
	}
	put("</tbody></table>\n")
	if len(rep.PassK) > 0 {
		put("<h2>All of k trials of one request (pass^k)</h2>\n<p>{}", passText(rep.PassK))
		if len(rep.ReferencePassK) > 0 {
			put("<br>Reference: {}", passText(rep.ReferencePassK))
		}
		put("</p>\n")
	}
	if t := rep.Trigger; t != nil {
		put("<h2>Trigger similarity</h2>\n<p>F1 {}: both call on {} prompts, only the target on {}, only the reference on {}, neither on {}. The reference with itself has {}.</p>\n", maybe(t.F1), t.TP, t.FP, t.FN, t.TN, maybe(t.Noise))
	}
	if len(rep.Limits) > 0 {
		put("<h2>Limits</h2>\n<table>\n<thead><tr><th scope=\"col\">Limit</th><th scope=\"col\">Target</th>")
		if rep.Reference != nil {
			put("<th scope=\"col\">Reference</th>")
		}
		put("</tr></thead>\n<tbody>\n")
		for _, l := range rep.Limits {
			id := ""
			for _, one := range []*Limit{l.Target, l.Reference} {
				if one != nil {
					id = one.ID
				}
			}
			put("<tr><th scope=\"row\">{}</th><td data-of=\"Target\">{}</td>", id, l.Target.text())
			if rep.Reference != nil {
				put("<td data-of=\"Reference\">{}</td>", l.Reference.text())
			}
			put("</tr>\n")
		}
		put("</tbody></table>\n")
	}
	put("</main>\n</body>\n</html>\n")
	return b.Flush()
}
