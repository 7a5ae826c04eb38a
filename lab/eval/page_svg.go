package eval

import (
	"fmt"
	"math"
)

// intervals draws the rate of each row with its interval.
func (p *page) intervals(s *Summary, rows []Row) {
	left := labelWidth(s)
	labels, side, width, bottom := left-10, left+plotWidth+40, left+plotWidth+150, len(rows)*rowHeight+26
	x := func(rate float64) float64 { return float64(left) + rate*plotWidth }
	p.Put(`<svg width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="rates with intervals">
`, width, bottom, width, bottom)
	for i := range 5 {
		p.tick(x(float64(i)/4), 2, bottom, fmt.Sprintf("%d %%", 25*i))
	}
	for i := range rows {
		r, y := &rows[i], i*rowHeight+16
		p.name(labels, y, r.label())
		if r.Runs == 0 {
			p.noScore(labels, y)
		} else {
			p.Put(`<g transform="translate(0 {})"><line class="span" x1="{}" x2="{}" y1="-4" y2="-4"/><circle class="dot" cx="{}" cy="-4" r="5"/></g><text x="{}" y="{}">{} <tspan class="soft">{}</tspan></text>`,
				y, x(r.Low), x(r.High), x(r.OKRate), side, y, percent(r.OKRate), r.passed())
		}
		p.Put("\n")
	}
	p.Put("</svg>")
}

func (p *page) heat(d heat) {
	p.Put(`
<h2>Models and scenarios</h2>
<div class="scroll" tabindex="0" role="region" aria-label="models and scenarios"><svg width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="rate of each model at each scenario">
`, d.Width, d.Height, d.Width, d.Height)
	for _, c := range d.Columns {
		p.Put("<text transform=\"translate({} {}) rotate(-40)\">{}<title>{}</title></text>\n", c.X, c.Y, short(c.Name), c.Name)
	}
	for _, r := range d.Rows {
		p.name(r.X, r.Y, r.Name)
	}
	for _, c := range d.Cells {
		p.Put(`<g><rect x="{}" y="{}" width="{}" height="{}" rx="3" fill="{}"><title>{}</title></rect><text class="cell" transform="translate({} {})" x="30" y="17" text-anchor="middle">{}</text></g>
`, c.X, c.Y, c.W, c.H, c.Fill, c.Title, c.X, c.Y, c.Text)
	}
	p.Put("</svg></div>\n")
}

// latency draws the distribution of the times of the runs of each model, on a logarithmic scale.
func (p *page) latency(s *Summary, runs []*Run) {
	const height = 40
	left := labelWidth(s)
	labels, side, width, bottom := left-10, left+plotWidth+20, left+plotWidth+190, len(s.Models)*height+26
	x := func(part float64) float64 { return float64(left) + plotWidth*part }
	p.Put(`
<h2>Time of a run</h2>
<p class="soft">Each bar counts runs. Solid line: half of the runs took less (p50). Broken line: 95 of 100 took less (p95). The scale multiplies.</p>
<div class="scroll" tabindex="0" role="region" aria-label="times"><svg width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="distribution of times">
`, width, bottom, width, bottom)
	at, decades := logarithmic(runs)
	for i := range int(decades) + 1 {
		p.tick(x(float64(i)/decades), 4, bottom, duration(int64(math.Pow10(i))))
	}
	for i := range s.Models {
		row, y := &s.Models[i], i*height+height-8
		p.name(labels, y, row.label())
		if row.Runs == 0 {
			p.noScore(labels, y)
		} else {
			bins, most := binned(row, runs, at)
			for n, v := range bins {
				if v > 0 {
					h := max(2, v/most*(height-14)) // at least 2 pixels, so that one run among hundreds is visible
					p.Put("<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", x(float64(n)/latencyBins), float64(y)-h, plotWidth/float64(latencyBins)-1, h)
				}
			}
			half, most95 := x(at(row.P50)), x(at(row.P95))
			p.Put(`<g transform="translate(0 {})"><line class="p50" x1="{}" x2="{}" y1="-28" y2="2" stroke-width="2"/><line class="p95" x1="{}" x2="{}" y1="-28" y2="2" stroke-width="2"/></g><text class="soft" x="{}" y="{}">{}</text>`,
				y, half, half, most95, most95, side, y, fmt.Sprintf("p50 %s, p95 %s", duration(row.P50), duration(row.P95)))
		}
		p.Put("\n")
	}
	p.Put("</svg></div>\n")
}

func (p *page) tick(x float64, top, bottom int, text string) {
	p.Put("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/><text class=\"soft\" x=\"{}\" y=\"{}\" dx=\"3\" dy=\"-3\">{}</text>\n",
		x, x, top, bottom, x, bottom, text)
}

// name writes the name of a row, right-aligned at x.
func (p *page) name(x, y int, name string) {
	p.Put("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}<title>{}</title></text>\n", x, y, short(name), name)
}

func (p *page) noScore(x, y int) {
	p.Put(`<text class="soft" x="{}" y="{}" dx="18">no score</text>`, x, y)
}
