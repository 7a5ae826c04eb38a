package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/lathe-run/lathe/lab/doctor"
)

// reportWidth is the width in characters at which sentences are wrapped.
const reportWidth = 100

// A reportWriter writes a report of the doctor: with marks on a terminal that shows UTF-8, with words elsewhere.
type reportWriter struct {
	strings.Builder
	view  *screen
	marks bool
}

// writeReport writes the verdict, the probes, the findings by group and the settings to stdout.
func writeReport(view *screen, rep *doctor.Report, took time.Duration) error {
	w := &reportWriter{view: view, marks: view.outTerm && speaksUTF8()}
	name := printable(rep.Model)
	if isSimulated(rep.Model) {
		name += " (simulated)"
	}
	requests := 0
	for _, p := range rep.Probes {
		requests += p.Requests
	}
	fmt.Fprintf(w, "%s: %s; %s in %s\n", w.bold(name), w.verdict(rep), count(requests, "request"), took.Round(time.Millisecond))
	w.probes(rep.Probes)
	group := ""
	for _, f := range rep.Findings {
		if f.Group != group {
			group = f.Group
			w.heading(group)
		}
		w.finding(&f)
	}
	if mends := rep.Profile.Mends(); len(mends) > 0 {
		w.heading("settings")
		for _, s := range mends {
			fmt.Fprintf(w, "  %s: %s\n", s.Key, printable(s.Value))
		}
	}
	_, err := io.WriteString(view.out, w.String())
	return err
}

// probes writes the probes that were made, and then the skipped ones by reason.
func (w *reportWriter) probes(probes []doctor.Probe) {
	w.heading("probes")
	skipped, whys := map[string][]string{}, []string{}
	for _, p := range probes {
		if p.Outcome != doctor.Skipped {
			fmt.Fprintf(w, "  %s %-15s  %s\n", w.mark(p.Outcome), p.Name, p.Asks)
			continue
		}
		if skipped[p.Why] == nil {
			whys = append(whys, p.Why)
		}
		skipped[p.Why] = append(skipped[p.Why], p.Name)
	}
	for _, why := range whys {
		mark := w.mark(doctor.Skipped)
		for _, line := range breakText(why+": "+strings.Join(skipped[why], ", "), reportWidth) {
			fmt.Fprintf(w, "  %s %s\n", mark, line)
			mark = strings.Repeat(" ", w.markWidth())
		}
	}
}

func (w *reportWriter) verdict(rep *doctor.Report) string {
	broken, warnings, notes := rep.Count(doctor.Broken), rep.Count(doctor.Warning), rep.Count(doctor.Note)
	parts := []string{"nothing broken"}
	if broken > 0 {
		parts[0] = fmt.Sprintf("%d broken", broken)
	}
	if warnings > 0 {
		parts = append(parts, count(warnings, "warning"))
	}
	if notes > 0 {
		parts = append(parts, count(notes, "note"))
	}
	return strings.Join(parts, ", ")
}

func (w *reportWriter) heading(text string) { fmt.Fprintf(w, "\n%s\n", w.bold(text)) }

func (w *reportWriter) finding(f *doctor.Finding) {
	fmt.Fprintf(w, "  %s %s\n", w.mark(f.Severity), f.ID)
	seen := f.Seen
	if f.Detail != "" {
		seen += " (" + printable(f.Detail) + ")"
	}
	for _, text := range []string{seen, f.Then} {
		indent := "      "
		for _, line := range breakText(text, reportWidth) {
			fmt.Fprintln(w, indent+line)
			indent = "        "
		}
	}
}

var severityMarks = map[doctor.Severity][2]string{
	doctor.OK: {"green", "✓"}, doctor.Note: {"dim", "·"}, doctor.Warning: {"yellow", "!"}, doctor.Broken: {"red", "✗"}, doctor.Skipped: {"dim", "-"},
}

func (w *reportWriter) mark(s doctor.Severity) string {
	if !w.marks {
		return fmt.Sprintf("%-8s", s)
	}
	m := severityMarks[s]
	return w.paint(m[0], m[1])
}

func (w *reportWriter) markWidth() int {
	if w.marks {
		return 1
	}
	return 8
}

func (w *reportWriter) bold(text string) string { return w.paint("bold", text) }

// paint adds a colour to text for stdout, if stdout is a terminal that shows colours.
func (w *reportWriter) paint(colour, text string) string {
	if !w.view.outTerm || os.Getenv("TERM") == "dumb" || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + colours[colour] + "m" + text + "\x1b[0m"
}

// speaksUTF8 reports whether the locale of the terminal is UTF-8.
func speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}
