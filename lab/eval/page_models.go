package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/report"
)

// maxFilters is the largest number of models, and of classes, with a filter.
const maxFilters = 24

// allClasses returns the classes of all failures, the most frequent first.
func (s *Summary) allClasses() []classCount {
	sum := map[Class]int{}
	for i := range s.Models {
		for c, n := range s.Models[i].Classes {
			sum[c] += n
		}
	}
	return classes(sum)
}

// filterStyle returns CSS that hides the elements of each unchecked check box by their class, without a script.
func (s *Summary) filterStyle() string {
	style := ""
	for _, f := range s.filters() {
		style += fmt.Sprintf("body:has(#f-%[1]s:not(:checked)) .%[1]s { display: none; }\n", f.id)
	}
	return style
}

// A filter is a check box: the class of the elements that it shows, and its label.
type filter struct{ id, label string }

const filterPassed = "passed"

// filters returns the check boxes: one for each model if there are several, for each class, and for runs that passed.
func (s *Summary) filters() (list []filter) {
	if len(s.Models) > 1 {
		for i := range min(len(s.Models), maxFilters) {
			list = append(list, filter{fmt.Sprint("m", i), s.Models[i].label()})
		}
	}
	classes := s.allClasses()
	for i := range min(len(classes), maxFilters) {
		list = append(list, filter{fmt.Sprint("c", i), string(classes[i].Class)})
	}
	return append(list, filter{filterPassed, "runs that passed"})
}

// filters writes check boxes for the models and the classes. Runs that passed are hidden initially.
func (p *page) filters(s *Summary) {
	p.Put("<fieldset class=\"filters\"><legend>Show</legend>\n")
	for _, f := range s.filters() {
		p.Put(`<label><input type="checkbox" id="f-{}"`+report.Either(f.id == filterPassed, "", " checked")+"> {}</label>\n", f.id, f.label)
	}
	p.Put("</fieldset>\n")
}

// rateFigure is the name of the figure by which the models are compared.
const rateFigure = "rate"

// A figure is one row of the table of models. Its text is "" if the model has no such figure.
type figure struct{ name, text string }

func (r *Row) figures() []figure {
	return []figure{
		{"passed", share(r.OK, r.Runs)},
		{rateFigure, some(r.Runs, percent(r.OKRate))},
		{"95 % interval", some(r.Runs, percent(r.Low)+" – "+percent(r.High))},
		{"all of 2 runs (pass^2)", r.pass(2)},
		{"all of 4 runs (pass^4)", r.pass(4)},
		{"all of 8 runs (pass^8)", r.pass(8)},
		{"recovery from a mistake", share(r.RecoveriesOK, r.Recoveries)},
		{"did not apply", number(r.NotProvoked)},
		{"control, without tools", share(r.ControlsOK, r.Controls)},
		{"refused by the server, in the rate", number(r.Refused)},
		{"ended without an answer", number(r.unfinished())},
		{"malformed tool calls", some(r.Malformed, share(r.Malformed, r.ToolCalls))},
		{"answers that deviate from the wire", some(r.Deviating, share(r.Deviating, r.ModelCalls))},
		{"attempts repeated", number(r.Retries)},
		{"blank answers", number(r.Blank)},
		{"answers without usage", number(r.NoUsage)},
		{"no score", number(r.Errors)},
		{"attempts without a connection", number(r.Repeated)},
		{"time of a run, p50", some(r.Runs, duration(r.P50))},
		{"time of a run, p95", some(r.Runs, duration(r.P95))},
		{"time to first token, p50", some(r.answered, duration(r.TTFT50))},
		{"time to first token, p95", some(r.answered, duration(r.TTFT95))},
		{"model call, p50", some(r.ModelCalls, duration(r.CallP50))},
		{"model calls", number(r.ModelCalls)},
		{"tokens in", number(int(r.Usage.InputTokens))},
		{"tokens out", number(int(r.Usage.OutputTokens))},
		{"cost", strings.TrimPrefix(r.cost(), "–")},
	}
}

// some returns text, or "" if n is 0.
func some(n int, text string) string {
	if n == 0 {
		return ""
	}
	return text
}

func number(n int) string { return some(n, fmt.Sprint(n)) }

// pass returns pass^k with its interval, or "" if there are too few runs.
func (r *Row) pass(k int) string {
	for _, p := range r.PassK {
		if p.K == k {
			return percent(p.Rate) + " (" + percent(p.Low) + " – " + percent(p.High) + ")"
		}
	}
	return ""
}

// models writes a table with one column for each model: its figures, and its rates for each scenario or category. Each model is compared
// with the first one.
func (p *page) models(s *Summary) {
	if len(s.Models) == 0 {
		return
	}
	p.Put("\n<h2>Models side by side</h2>\n")
	if len(s.Models) > 1 {
		p.Put("<p class=\"soft\">▲ better and ▼ worse than the first by more than noise, = not more than noise: Fisher's exact test, p below {}.</p>\n", significance)
	}
	p.Put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"models side by side\"><table class=\"models\">\n<thead><tr><td></td>")
	for i := range s.Models {
		p.Put("<th scope=\"col\" class=\"n m{}\">{}</th>", i, s.Models[i].label())
	}
	p.Put("</tr></thead>\n<tbody>\n")
	columns := make([][]figure, len(s.Models))
	for i := range s.Models {
		columns[i] = s.Models[i].figures()
	}
	for row, f := range columns[0] {
		if !slices.ContainsFunc(columns, func(c []figure) bool { return c[row].text != "" }) {
			continue
		}
		p.modelRow(s, f.name, func(i int) (text string, compared *Row) {
			if f.name == rateFigure {
				compared = &s.Models[i]
			}
			return columns[i][row].text, compared
		})
	}
	rows := s.ModelsGroups()
	p.Put("</tbody>\n<tbody>\n")
	for _, name := range groupNames(rows) {
		p.modelRow(s, name, func(i int) (string, *Row) {
			r := of(rows, &s.Models[i], name)
			return r.short(), r
		})
	}
	p.Put("</tbody>\n</table></div>\n")
}

// modelRow writes a row of the table of models. cell returns the text for the model i, and its row to compare with that of the first model; nil:
// it is not compared.
func (p *page) modelRow(s *Summary, name string, cell func(i int) (text string, row *Row)) {
	p.Put("<tr><th scope=\"row\">{}</th>", name)
	_, first := cell(0)
	for i := range s.Models {
		text, row := cell(i)
		p.Put("<td class=\"n m{}\">{}", i, text)
		if i > 0 {
			p.against(first, row)
		}
		p.Put("</td>")
	}
	p.Put("</tr>\n")
}

// against writes how a row compares with that of the first model. Both may be nil.
func (p *page) against(first, row *Row) {
	if first == nil || row == nil || first.Runs == 0 || row.Runs == 0 {
		return
	}
	chance := Chance(first.OK, first.Runs, row.OK, row.Runs)
	switch {
	case chance >= significance:
		p.Put(" <small class=\"soft\">= p {}</small>", fmt.Sprintf("%.2f", chance))
	case row.OKRate > first.OKRate:
		p.Put(" <small class=\"good\">▲ p {}</small>", fmt.Sprintf("%.3f", chance))
	default:
		p.Put(" <small class=\"bad\">▼ p {}</small>", fmt.Sprintf("%.3f", chance))
	}
}
