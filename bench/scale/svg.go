package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
)

// The sizes of a picture, in pixels. A panel is the frame of its axes; the legend is below it.
const (
	panelWidth, panelHeight = 330, 250
	marginLeft, marginTop   = 66, 58
	gap                     = 90 // between panels, with the second axis
	legendLine              = 17
)

// style has the colours of the lines for light and for dark pages. The lines differ by their marks, too.
const style = `<style>
.page{fill:#fff}.text{fill:#1f2328}.weak{fill:#59636e}.grid{stroke:#d8dee4}.axis{stroke:#818b98}
.c0{stroke:#0969da;fill:#0969da}.c1{stroke:#bc4c00;fill:#bc4c00}.c2{stroke:#1a7f37;fill:#1a7f37}.c3{stroke:#8250df;fill:#8250df}
.c4{stroke:#bf3989;fill:#bf3989}.c5{stroke:#1b7c83;fill:#1b7c83}.c6{stroke:#9a6700;fill:#9a6700}.c7{stroke:#57606a;fill:#57606a}
text{font-family:-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-size:12px;stroke:none}
.title{font-size:15px;font-weight:600}.small{font-size:11px}polyline,.mark{fill:none;stroke-width:1.8}.peer{stroke-dasharray:5 4}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}.text{fill:#e6edf3}.weak{fill:#9198a1}.grid{stroke:#2a313c}.axis{stroke:#656c76}
.c0{stroke:#58a6ff;fill:#58a6ff}.c1{stroke:#f0883e;fill:#f0883e}.c2{stroke:#3fb950;fill:#3fb950}.c3{stroke:#bc8cff;fill:#bc8cff}
.c4{stroke:#f778ba;fill:#f778ba}.c5{stroke:#39c5cf;fill:#39c5cf}.c6{stroke:#d29922;fill:#d29922}.c7{stroke:#9198a1;fill:#9198a1}}
</style>
`

// A panel is one pair of axes with its lines.
type panel struct {
	title  string
	series []*Series
}

// panels groups the series that are drawn.
func (c *Chart) panels() []*panel {
	var out []*panel
	for i := range c.Series {
		s := &c.Series[i]
		if s.Panel == "" || len(s.Points) == 0 {
			continue
		}
		at := slices.IndexFunc(out, func(p *panel) bool { return p.title == s.Panel })
		if at < 0 {
			out = append(out, &panel{title: s.Panel})
			at = len(out) - 1
		}
		out[at].series = append(out[at].series, s)
	}
	return out
}

// draw returns a chart as SVG: its panels side by side, two in a row, with logarithmic axes.
func draw(c *Chart) []byte {
	ps := c.panels()
	const perRow = 2
	lines := 0
	for _, p := range ps {
		lines = max(lines, len(p.series))
	}
	rowHeight := panelHeight + 60 + lines*legendLine
	rows := (len(ps) + perRow - 1) / perRow
	width := max(marginLeft+min(len(ps), perRow)*(panelWidth+gap)-gap+30, 520) // a title and a line of the legend fit
	height := marginTop + rows*rowHeight + max(rows-1, 0)*24
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label=%s>`+"\n", width, height, width, height, quoted(c.Title))
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d" rx="6"/>`+"\n", width, height)
	label(&b, "text title", 16, 24, "start", c.Title)
	for i, p := range ps {
		p.draw(&b, c.Size, float64(marginLeft+i%perRow*(panelWidth+gap)), float64(marginTop+i/perRow*(rowHeight+24)))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// A scale maps values of one axis, in whole decades, to pixels.
type scale struct{ low, high, from, to float64 }

func newScale(least, most, from, to float64) scale {
	low, high := math.Floor(math.Log10(least)+1e-9), math.Ceil(math.Log10(most)-1e-9)
	return scale{low, max(high, low+1), from, to}
}

func (s scale) at(v float64) float64 {
	return s.from + (math.Log10(v)-s.low)/(s.high-s.low)*(s.to-s.from)
}

// draw draws the panel with the upper left corner of its frame at x, y.
func (p *panel) draw(b *bytes.Buffer, size string, x, y float64) {
	var xs, ys []float64
	for _, s := range p.series {
		for _, q := range s.Points {
			if q.Value > 0 {
				xs, ys = append(xs, q.Size), append(ys, q.Value)
			}
		}
	}
	if len(xs) == 0 {
		return
	}
	h, v := newScale(slices.Min(xs), slices.Max(xs), x, x+panelWidth), newScale(slices.Min(ys), slices.Max(ys), y+panelHeight, y)
	title := p.title
	if m := p.series[0].Measure; m != p.title {
		title += ", " + m
	}
	label(b, "text", x, y-10, "start", title)
	for d := h.low; d <= h.high; d++ {
		at := h.at(math.Pow(10, d))
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", at, at, y, y+panelHeight)
		label(b, "weak small", at, y+panelHeight+16, "middle", short(d))
	}
	for d := v.low; d <= v.high; d++ {
		at := v.at(math.Pow(10, d))
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x, x+panelWidth, at, at)
		label(b, "weak small", x-6, at+4, "end", short(d))
	}
	fmt.Fprintf(b, `<rect class="axis" fill="none" x="%.1f" y="%.1f" width="%d" height="%d"/>`+"\n", x, y, panelWidth, panelHeight)
	label(b, "weak small", x+panelWidth/2, y+panelHeight+33, "middle", size)
	for i, s := range p.series {
		class := fmt.Sprintf("c%d", i%8)
		dash := ""
		if s.Peer {
			dash = " peer"
		}
		fmt.Fprintf(b, `<polyline class="%s%s" points="`, class, dash)
		for _, q := range s.Points {
			if q.Value > 0 {
				fmt.Fprintf(b, "%.1f,%.1f ", h.at(q.Size), v.at(q.Value))
			}
		}
		b.WriteString(`" style="fill:none"/>` + "\n")
		for _, q := range s.Points {
			if q.Value > 0 {
				mark(b, class, i, h.at(q.Size), v.at(q.Value))
			}
		}
		ly := y + panelHeight + 54 + float64(i*legendLine)
		fmt.Fprintf(b, `<polyline class="%s%s" points="%.1f,%.1f %.1f,%.1f" style="fill:none"/>`+"\n", class, dash, x, ly-4, x+26, ly-4)
		mark(b, class, i, x+13, ly-4)
		name := s.Name
		if s.Fit != nil {
			name += fmt.Sprintf(": exponent %.2f ± %.2f", s.Fit.Exponent, s.Fit.Error)
		}
		label(b, "text small", x+33, ly, "start", name)
	}
}

// mark draws the mark of a line: a filled or an open circle, square, triangle or diamond.
func mark(b *bytes.Buffer, class string, i int, x, y float64) {
	open := ""
	if i%8 >= 4 {
		open = ` style="fill:none;stroke-width:1.5"`
	}
	switch i % 4 {
	case 0:
		fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="3.2"%s/>`+"\n", class, x, y, open)
	case 1:
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="6" height="6"%s/>`+"\n", class, x-3, y-3, open)
	case 2:
		fmt.Fprintf(b, `<path class="%s" d="M%.1f %.1fl3.8 6.6h-7.6z"%s/>`+"\n", class, x, y-3.8, open)
	default:
		fmt.Fprintf(b, `<path class="%s" d="M%.1f %.1fl4 4l-4 4l-4 -4z"%s/>`+"\n", class, x, y-4, open)
	}
}

func label(b *bytes.Buffer, class string, x, y float64, anchor, text string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, escaped(text))
}

// short writes ten to the power of d.
func short(d float64) string {
	switch n := int(d); {
	case n >= 9:
		return fmt.Sprintf("%dG", int(math.Pow10(n-9)))
	case n >= 6:
		return fmt.Sprintf("%dM", int(math.Pow10(n-6)))
	case n >= 3:
		return fmt.Sprintf("%dk", int(math.Pow10(n-3)))
	case n >= 0:
		return fmt.Sprintf("%d", int(math.Pow10(n)))
	default:
		return fmt.Sprintf("%g", math.Pow10(n))
	}
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}

func quoted(s string) string { return `"` + escaped(s) + `"` }
