package verify

import (
	"encoding/json"
	"fmt"
	"io"
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
