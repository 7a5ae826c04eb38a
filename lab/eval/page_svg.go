package eval

func (p *page) intervals(d intervals) {
	p.Put(`<svg width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="rates with intervals">
`, d.Width, d.Height, d.Width, d.Height)
	p.ticks(d.Ticks, 2, d.Height)
	for i := range d.Rows {
		r := &d.Rows[i]
		p.name(d.Labels, r.Y, r.Label, r.Title)
		if r.None {
			p.noScore(d.Labels, r.Y)
		} else {
			p.Put(`<g transform="translate(0 {})"><line class="span" x1="{}" x2="{}" y1="-4" y2="-4"/><circle class="dot" cx="{}" cy="-4" r="5"/></g><text x="{}" y="{}">{} <tspan class="soft">{}</tspan></text>`,
				r.Y, r.Low, r.High, r.At, d.Side, r.Y, r.Percent, r.Count)
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
		p.Put("<text transform=\"translate({} {}) rotate(-40)\">{}<title>{}</title></text>\n", c.X, c.Y, c.Text, c.Title)
	}
	for _, r := range d.Rows {
		p.name(r.X, r.Y, r.Text, r.Title)
	}
	for _, c := range d.Cells {
		p.Put(`<g><rect x="{}" y="{}" width="{}" height="{}" rx="3" fill="{}"><title>{}</title></rect><text class="cell" transform="translate({} {})" x="30" y="17" text-anchor="middle">{}</text></g>
`, c.X, c.Y, c.W, c.H, c.Fill, c.Title, c.X, c.Y, c.Text)
	}
	p.Put("</svg></div>\n")
}

func (p *page) latency(d latency) {
	p.Put(`
<h2>Time of a run</h2>
<p class="soft">Each bar counts runs. Solid line: half of the runs took less (p50). Broken line: 95 of 100 took less (p95). The scale multiplies.</p>
<div class="scroll" tabindex="0" role="region" aria-label="times"><svg width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="distribution of times">
`, d.Width, d.Height, d.Width, d.Height)
	p.ticks(d.Ticks, 4, d.Height)
	for i := range d.Rows {
		r := &d.Rows[i]
		p.name(d.Labels, r.Y, r.Label, r.Title)
		if r.None {
			p.noScore(d.Labels, r.Y)
		} else {
			for _, b := range r.Bars {
				p.Put("<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", b.X, b.Y, b.W, b.H)
			}
			p.Put(`<g transform="translate(0 {})"><line class="p50" x1="{}" x2="{}" y1="-28" y2="2" stroke-width="2"/><line class="p95" x1="{}" x2="{}" y1="-28" y2="2" stroke-width="2"/></g><text class="soft" x="{}" y="{}">{}</text>`,
				r.Y, r.P50, r.P50, r.P95, r.P95, d.Side, r.Y, r.Text)
		}
		p.Put("\n")
	}
	p.Put("</svg></div>\n")
}

func (p *page) ticks(ticks []tick, top, bottom int) {
	for _, t := range ticks {
		p.Put("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/><text class=\"soft\" x=\"{}\" y=\"{}\" dx=\"3\" dy=\"-3\">{}</text>\n",
			t.X, t.X, top, bottom, t.X, bottom, t.Text)
	}
}

func (p *page) name(x, y int, text, title string) {
	p.Put("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}<title>{}</title></text>\n", x, y, text, title)
}

func (p *page) noScore(x, y int) {
	p.Put(`<text class="soft" x="{}" y="{}" dx="18">no score</text>`, x, y)
}
