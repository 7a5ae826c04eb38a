package eval

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// The report is one page without external parts: it makes no network requests, and its Content-Security-Policy forbids them. All text from
// outside is escaped.

// maxShown is the number of bytes of one text that the page shows. The file of the run has the whole text.
const maxShown = 4_000

// WriteHTML writes the report as one HTML page that loads nothing from elsewhere: rates with intervals, a heat map of models and scenarios,
// times, and at most 500 conversations, those of failed runs first. A text is cut after 4,000 bytes. The error is that of w.
func (rep *Report) WriteHTML(w io.Writer) error {
	var failed, passed []*Run
	unguarded := false
	for _, r := range rep.Runs {
		unguarded = unguarded || r.Unguarded
		if r.OK {
			passed = append(passed, r)
		} else {
			failed = append(failed, r)
		}
	}
	s := rep.Summary()
	p := newPage(w, s)
	p.lead(s, unguarded)
	p.models(s)
	p.measured(s)
	p.rates(s)
	p.heat(newHeat(s))
	p.latency(s, rep.Runs)
	p.runs(s, failed, passed)
	p.numbers(s.ModelsScenarios)
	return p.Close()
}

// Limits of what is expanded initially.
const (
	maxOpen  = 24
	maxTalks = 3
)

// expanded reports whether all rows are expanded initially.
func expanded(rows []Row) bool { return len(rows) <= maxOpen }

// maxConversations is the largest number of runs on the page. The files of the runs have all conversations.
const maxConversations = 500

// A runGroup has the runs of one model in one scenario.
type runGroup struct {
	Label  string
	Row    Row
	Failed int
	Runs   []*Run // failed runs first
	Left   int    // number of runs that are not on the page because of maxConversations
	Open   bool   // expanded, because few runs failed
	Talk   bool   // conversations are expanded, because very few runs failed
}

// grouped groups runs by model and scenario. It adds failed runs before runs that passed, up to maxConversations.
func grouped(s *Summary, failed, passed []*Run) []runGroup {
	groups := make([]runGroup, len(s.ModelsScenarios))
	at := make(map[rowKey]int, len(groups))
	for i, row := range s.ModelsScenarios {
		groups[i] = runGroup{Label: row.label(), Row: row}
		at[row.rowKey] = i
	}
	shown := 0
	for _, list := range [][]*Run{failed, passed} {
		for _, r := range list {
			g := &groups[at[r.key()]]
			if !r.OK {
				g.Failed++
			}
			if shown == maxConversations {
				g.Left++
				continue
			}
			shown++
			g.Runs = append(g.Runs, r)
		}
	}
	for i := range groups {
		groups[i].Open, groups[i].Talk = len(failed) <= maxOpen && groups[i].Failed > 0, len(failed) <= maxTalks
	}
	return groups
}

// A classCount is the number of runs with a class.
type classCount struct {
	Class Class
	N     int
}

// classes returns the counts, with the most frequent class first.
func classes(of map[Class]int) []classCount {
	var out []classCount
	for c, n := range of {
		out = append(out, classCount{c, n})
	}
	slices.SortFunc(out, func(a, b classCount) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Class, b.Class)) })
	return out
}

// Sizes of the drawings in pixels.
const (
	rowHeight = 26
	plotWidth = 460
	maxLabel  = 36 // characters of a label
	letter    = 7  // width of a character, rounded up
)

// labelWidth returns the width of the labels of rows. It is the same in all drawings of a page.
func labelWidth(s *Summary) int {
	return max(8, longestLabel(s.Models), longestLabel(s.scenarioRows()))*letter + 16
}

// longestLabel returns the number of characters of the longest label of rows.
func longestLabel(rows []Row) (n int) {
	for i := range rows {
		n = max(n, utf8.RuneCountInString(short(rows[i].label())))
	}
	return n
}

// A heat is the layout of the heat map: the rate of each model in each scenario.
type heat struct {
	Width, Height int
	Columns       []heatText
	Rows          []heatText
	Cells         []heatCell
}

type heatText struct {
	X, Y int
	Name string
}

type heatCell struct {
	X, Y, W, H  int
	Fill        string
	Text, Title string
}

// scenarioRows returns a row for each scenario, with only the name of the scenario in its key.
func (s *Summary) scenarioRows() []Row {
	var out []Row
	for _, name := range groupNames(s.ModelsScenarios) {
		out = append(out, Row{rowKey: rowKey{Scenario: name}})
	}
	return out
}

// newHeat computes the heat map. The longer of the two lists of names becomes the rows, which are easier to read.
func newHeat(s *Summary) heat {
	const width = 62
	scenarios := s.scenarioRows()
	rows, columns := s.Models, scenarios
	if len(scenarios) > max(10, len(s.Models)) {
		rows, columns = columns, rows
	}
	longest := longestLabel(columns)
	left, head := labelWidth(s), 24+5*longest // the names of columns are rotated
	d := heat{Width: left + len(columns)*width + 6*longest, Height: head + len(rows)*rowHeight + 4}
	x, y := map[rowKey]int{}, map[rowKey]int{} // of columns and rows
	for i := range columns {
		at := left + i*width
		x[columns[i].rowKey] = at
		d.Columns = append(d.Columns, heatText{at + width/2, head - 8, columns[i].label()})
	}
	for i := range rows {
		at := head + i*rowHeight
		y[rows[i].rowKey] = at
		d.Rows = append(d.Rows, heatText{left - 10, at + 17, rows[i].label()})
	}
	for _, r := range s.ModelsScenarios {
		model, scenario := r.model(), rowKey{Scenario: r.Scenario} // one is a column, the other a row
		c := heatCell{X: x[model] + x[scenario], Y: y[model] + y[scenario], W: width - 2, H: rowHeight - 2,
			Fill: heatColour(r.OKRate), Text: percent(r.OKRate), Title: fmt.Sprintf("%s: %d of %d", r.label(), r.OK, r.Runs)}
		if r.Runs == 0 {
			c.Fill, c.Text = "#777", "–"
		}
		d.Cells = append(d.Cells, c)
	}
	return d
}

// heatColour returns a colour between orange and blue, which people with colour blindness can distinguish; white text is readable on it.
func heatColour(rate float64) string {
	mix := func(a, b float64) int { return int(math.Round(a + (b-a)*rate)) }
	return fmt.Sprintf("#%02x%02x%02x", mix(0xa8, 0x0b), mix(0x43, 0x5a), mix(0x0a, 0x9c))
}

// logarithmic returns a function that maps a time to its position from 0 to 1 on a logarithmic scale, and the number of decades of the
// scale.
func logarithmic(runs []*Run) (at func(ms int64) float64, decades float64) {
	longest := int64(10)
	for _, r := range runs {
		if r.Scored {
			longest = max(longest, r.ElapsedMS)
		}
	}
	decades = math.Ceil(math.Log10(float64(longest)))
	return func(ms int64) float64 { return math.Log10(float64(max(ms, 1))) / decades }, decades
}

const latencyBins = 46

// binned counts the runs of a row by time. most is the largest count, at least 1.
func binned(row *Row, runs []*Run, at func(ms int64) float64) (bins [latencyBins]float64, most float64) {
	most = 1
	for _, r := range runs {
		if r.Scored && r.key().model() == row.rowKey {
			n := min(int(at(r.ElapsedMS)*latencyBins), latencyBins-1)
			bins[n]++
			most = max(most, bins[n])
		}
	}
	return bins, most
}

func duration(ms int64) string {
	switch {
	case ms < 1:
		return "< 1 ms"
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(ms)/1000), ".0") + " s"
}

func short(s string) string {
	if r := []rune(s); len(r) > maxLabel {
		return string(r[:maxLabel-1]) + "…"
	}
	return s
}

// A spoken is one line of a conversation on the page.
type spoken struct {
	Who, Kind, Text string
	Bad             bool
	Call            bool
}

// talk returns a conversation as lines for the page.
func talk(history []lathe.Message) []spoken {
	var out []spoken
	for _, m := range history {
		for _, p := range m.Parts {
			s := spoken{Who: string(m.Role), Kind: "text"}
			switch p := p.(type) {
			case lathe.Text:
				s.Text = p.Text
			case lathe.Reasoning:
				s.Kind, s.Text = "reasoning", p.Text
			case lathe.Refusal:
				s.Kind, s.Text = "refusal", p.Text
			case lathe.ToolCall:
				s.Kind, s.Text, s.Call = "calls "+p.Name, p.Arguments, true
			case lathe.ToolResult:
				s.Kind, s.Text, s.Bad = "answers "+p.Name, p.Content, p.IsError
			case lathe.Blob:
				s.Kind, s.Text = "blob", p.MediaType
			case lathe.Opaque:
				s.Kind, s.Text = "opaque", string(p.JSON)
			}
			s.Text = clip(s.Text, maxShown)
			out = append(out, s)
		}
	}
	return out
}
