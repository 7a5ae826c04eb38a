package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lathe-run/lathe"
)

// A Report is all runs of an evaluation.
type Report struct {
	Suite string
	Runs  []*Run
	// Skipped are the file names of runs that were not tried, since the model's server could not be reached or took no key.
	Skipped []string
}

// maxFirst bounds the failures that a row of a summary lists.
const maxFirst = 3

// A Row counts runs that have something in common.
type Row struct {
	Model    string   `json:"model,omitempty"`
	Scenario string   `json:"scenario,omitempty"`
	Category string   `json:"category,omitempty"`
	Strategy Strategy `json:"strategy,omitempty"`
	Fallback bool     `json:"fallback,omitempty"`

	Runs   int `json:"runs"`   // that count in the rates
	Errors int `json:"errors"` // that reached no server, or that the harness broke
	OK     int `json:"ok"`
	// Refused are those of Runs that the server refused: AUTH, PAYMENT_REQUIRED, FORBIDDEN, NOT_FOUND, REQUEST_TOO_LARGE, RATE_LIMIT.
	Refused int `json:"refused,omitempty"`
	// NotProvoked are runs whose scenario did not apply, since the model made no mistake to recover from.
	NotProvoked int `json:"not_provoked,omitempty"`
	// Controls are runs of scenarios without tools, and ControlsOK those that passed: they are in none of the other
	// numbers, but for the rows of such a scenario itself.
	Controls   int     `json:"control_runs,omitempty"`
	ControlsOK int     `json:"control_ok,omitempty"`
	OKRate     float64 `json:"-"` // of Runs; in JSON ok_rate, null without runs
	Low        float64 `json:"-"` // the Wilson interval of 95 %, ok_rate_low and ok_rate_high
	High       float64 `json:"-"`
	// The rates of runs whose state, trace and last words were right, among those with such asserts.
	StateRate *float64 `json:"state_rate,omitempty"`
	TraceRate *float64 `json:"trace_rate,omitempty"`
	TextRate  *float64 `json:"text_rate,omitempty"`
	P50       int64    `json:"ms_p50"`
	P95       int64    `json:"ms_p95"`

	Usage lathe.Usage `json:"usage"` // of all runs
	Cost  float64     `json:"cost,omitempty"`

	Classes  map[Class]int `json:"failure_classes,omitempty"`
	Failures []Failure     `json:"failures,omitempty"` // the first ones
}

// MarshalJSON writes no rate where there is no run to have one.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	out := struct {
		plain
		OKRate *float64 `json:"ok_rate"`
		Low    *float64 `json:"ok_rate_low"`
		High   *float64 `json:"ok_rate_high"`
	}{plain: plain(r)}
	if r.Runs > 0 {
		out.OKRate, out.Low, out.High = &r.OKRate, &r.Low, &r.High
	}
	return json.Marshal(out)
}

// A Failure names one run that did not pass.
type Failure struct {
	Model         string `json:"model"`
	Scenario      string `json:"scenario"`
	Trial         int    `json:"trial"`
	Class         Class  `json:"error_class"`
	Error         string `json:"error_message"`
	ServerMessage string `json:"error_hint,omitempty"` // the server's own words
}

// A Summary counts a report's runs: all, by model (with strategy and fallback), by scenario, and by both.
// Where scenarios have categories, it counts by them, too.
type Summary struct {
	Suite            string   `json:"suite,omitempty"`
	Status           Status   `json:"status"`
	Measured         []About  `json:"measured,omitempty"` // what was measured, by model
	All              Row      `json:"all"`
	Models           []Row    `json:"models"`
	Categories       []Row    `json:"categories,omitempty"`
	ModelsCategories []Row    `json:"models_categories,omitempty"`
	Scenarios        []Row    `json:"scenarios"`
	ModelsScenarios  []Row    `json:"models_scenarios"`
	Skipped          []string `json:"skipped,omitempty"`
}

// An About describes what was measured under a model's name.
type About struct {
	Model   string            `json:"model"`
	About   map[string]string `json:"about"`
	Started time.Time         `json:"started"` // of the first run
	Trials  int               `json:"trials"`
}

// Status is the outcome of an evaluation.
type Status string

// The statuses.
const (
	Passed       Status = "passed"
	Failed       Status = "failed"       // a run that counts did not pass
	Inconclusive Status = "inconclusive" // the only failures are runs that were not measured or that the server refused
)

// Status returns the outcome of the evaluation. Runs whose scenario did not apply do not matter.
func (rep *Report) Status() Status {
	status := Passed
	if len(rep.Skipped) > 0 {
		status = Inconclusive
	}
	for _, r := range rep.Runs {
		switch {
		case r.OK || r.Class == ClassNotProvoked:
		case r.Scored && !r.Class.Refused():
			return Failed
		default:
			status = Inconclusive
		}
	}
	return status
}

// measured lists what the runs of each model say of it.
func (rep *Report) measured() (out []About) {
	for _, r := range rep.Runs {
		i := slices.IndexFunc(out, func(a About) bool { return a.Model == r.Model })
		if i < 0 {
			i = len(out)
			out = append(out, About{Model: r.Model, About: r.About, Started: r.Started})
		}
		out[i].Trials = max(out[i].Trials, r.Trial)
		if r.Started.Before(out[i].Started) {
			out[i].Started = r.Started
		}
	}
	return out
}

// Summary counts the runs. Rows stand in the order in which their first run does.
func (rep *Report) Summary() *Summary {
	s := &Summary{Suite: rep.Suite, Status: rep.Status(), Measured: rep.measured(), All: count(rep.Runs), Skipped: rep.Skipped}
	s.Models = rows(rep.Runs, func(r *Run) Row { return Row{Model: r.Model, Strategy: r.Strategy, Fallback: r.Fallback} })
	s.Scenarios = rows(rep.Runs, func(r *Run) Row { return Row{Scenario: r.Scenario} })
	if slices.ContainsFunc(rep.Runs, func(r *Run) bool { return r.Category != "" }) {
		s.Categories = rows(rep.Runs, func(r *Run) Row { return Row{Category: r.Category} })
		s.ModelsCategories = rows(rep.Runs, func(r *Run) Row {
			return Row{Model: r.Model, Category: r.Category, Strategy: r.Strategy, Fallback: r.Fallback}
		})
	}
	s.ModelsScenarios = rows(rep.Runs, func(r *Run) Row {
		return Row{Model: r.Model, Scenario: r.Scenario, Strategy: r.Strategy, Fallback: r.Fallback}
	})
	return s
}

// Groups returns what people are shown beside the models: the categories where there are some, else
// the scenarios.
func (s *Summary) Groups() []Row {
	if s.Categories != nil {
		return s.Categories
	}
	return s.Scenarios
}

// ModelsGroups returns the rows by model and group.
func (s *Summary) ModelsGroups() []Row {
	if s.Categories != nil {
		return s.ModelsCategories
	}
	return s.ModelsScenarios
}

// group returns what the row is one of: a category or a scenario.
func (r *Row) group() string { return r.Category + r.Scenario }

// rows groups the runs by what key fills in.
func rows(runs []*Run, key func(*Run) Row) []Row {
	type id struct {
		model, scenario, category string
		strategy                  Strategy
		fallback                  bool
	}
	var order []id
	groups := map[id][]*Run{}
	for _, r := range runs {
		k := key(r)
		i := id{k.Model, k.Scenario, k.Category, k.Strategy, k.Fallback}
		if groups[i] == nil {
			order = append(order, i)
		}
		groups[i] = append(groups[i], r)
	}
	out := make([]Row, 0, len(order))
	for _, i := range order {
		row := count(groups[i])
		row.Model, row.Scenario, row.Category, row.Strategy, row.Fallback = i.model, i.scenario, i.category, i.strategy, i.fallback
		out = append(out, row)
	}
	return out
}

func count(runs []*Run) Row {
	var row Row
	var ms []int64
	var held, had [3]int
	apart := slices.ContainsFunc(runs, func(r *Run) bool { return !r.Control })
	for _, r := range runs {
		row.Usage.Add(r.Usage)
		row.Cost += r.Cost
		if r.Class == ClassNotProvoked {
			row.NotProvoked++
			continue
		}
		if !r.OK {
			if row.Classes == nil {
				row.Classes = map[Class]int{}
			}
			row.Classes[r.Class]++
			if len(row.Failures) < maxFirst {
				row.Failures = append(row.Failures, Failure{r.Model, r.Scenario, r.Trial, r.Class, r.Error, r.ServerMessage})
			}
		}
		if !r.Scored {
			row.Errors++
			continue
		}
		if r.Control && apart {
			row.Controls++
			if r.OK {
				row.ControlsOK++
			}
			continue
		}
		row.Runs++
		if r.Class.Refused() {
			row.Refused++
		}
		if r.OK {
			row.OK++
		}
		ms = append(ms, r.ElapsedMS)
		for i, g := range groups {
			if ok, checked := r.group(g); checked {
				had[i]++
				if ok {
					held[i]++
				}
			}
		}
	}
	row.OKRate = rate(row.OK, row.Runs)
	row.Low, row.High = wilson(row.OK, row.Runs)
	row.P50, row.P95 = quantile(ms, 0.5), quantile(ms, 0.95)
	for i, p := range []**float64{&row.StateRate, &row.TraceRate, &row.TextRate} {
		if had[i] > 0 {
			v := rate(held[i], had[i])
			*p = &v
		}
	}
	return row
}

// groups of checks, in the order of a row's rates.
var groups = []string{"state", "trace", "text"}

func rate(ok, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(ok) / float64(n)
}

// label names the row for people.
func (r *Row) label() string {
	name := r.Model
	if v := variant(r.Strategy, r.Fallback); r.Strategy != "" && v != "" {
		name += " (" + strings.ReplaceAll(v, "__", ", ") + ")"
	}
	if g := r.group(); g != "" {
		name = strings.TrimSpace(name + " " + g)
	}
	return name
}

// Unscored counts the runs that were not measured, those that were not tried included.
func (rep *Report) Unscored() int {
	n := len(rep.Skipped)
	for _, r := range rep.Runs {
		if !r.Scored && r.Class != ClassNotProvoked {
			n++
		}
	}
	return n
}

// Scored reports whether any run counts.
func (rep *Report) Scored() bool {
	return slices.ContainsFunc(rep.Runs, func(r *Run) bool { return r.Scored })
}

// WriteTable writes the rates by model and by scenario, or by category where there are some, and the
// first failures.
func (rep *Report) WriteTable(w io.Writer) error {
	s := rep.Summary()
	if err := writeRows(w, "MODEL", s.Models); err != nil {
		return err
	}
	fmt.Fprintln(w)
	head := "SCENARIO"
	if s.Categories != nil {
		head = "CATEGORY"
	}
	if err := writeRows(w, head, s.Groups()); err != nil {
		return err
	}
	for i := range s.Models {
		if err := writeFailures(w, &s.Models[i]); err != nil {
			return err
		}
	}
	if n := len(rep.Skipped); n > 0 {
		fmt.Fprintf(w, "\n%d not tried: the model's server could not be reached, or refused the key, %d times in a row\n", n, maxDead)
	}
	return nil
}

// writeFailures writes the first failures of a model, and how many more there are.
func writeFailures(w io.Writer, row *Row) error {
	for _, f := range row.Failures {
		if _, err := fmt.Fprintf(w, "\n%s  %s  trial %d  %s\n  %s\n", oneLine(f.Model), f.Scenario, f.Trial, f.Class, oneLine(f.Error)); err != nil {
			return err
		}
		switch {
		case f.ServerMessage == "":
		case f.Class == ClassConnection || f.Class == ClassConnectionLost: // the words of the transport
			fmt.Fprintf(w, "  %s\n", oneLine(f.ServerMessage))
		default:
			fmt.Fprintf(w, "  the server said: %s\n", oneLine(f.ServerMessage))
		}
	}
	failed := row.Runs - row.OK + row.Controls - row.ControlsOK
	if n := failed + row.Errors - len(row.Failures); n > 0 {
		fmt.Fprintf(w, "\n%s: %d more", oneLine(row.Model), n)
		if row.Errors > 0 {
			fmt.Fprintf(w, " (%d in all did not pass, %d have no score)\n", failed, row.Errors)
		} else {
			fmt.Fprintln(w, " did not pass")
		}
	}
	if row.Refused > 0 {
		fmt.Fprintf(w, "\n%s: the server refused %d of %d runs; they count in the rate\n", oneLine(row.Model), row.Refused, row.Runs)
	}
	if row.NotProvoked > 0 {
		fmt.Fprintf(w, "\n%s: %d more did not apply: the scenario tests how a model recovers from a mistake, and the model made none\n", oneLine(row.Model), row.NotProvoked)
	}
	return nil
}

func writeRows(w io.Writer, head string, rows []Row) error {
	controls := slices.ContainsFunc(rows, func(r Row) bool { return r.Controls > 0 })
	var lines bytes.Buffer
	tw := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "%s\tOK\tRATE\t95 %%\tSTATE\tTRACE\tTEXT\tP50\tP95", head)
	if controls {
		fmt.Fprint(tw, "\tCONTROL")
	}
	fmt.Fprintln(tw)
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Runs == 0 && r.NotProvoked > 0 && r.Errors == 0:
			fmt.Fprintf(tw, "%s\t–\tnot provoked\t\t\t\t\t\t", oneLine(r.label()))
		case r.Runs == 0:
			fmt.Fprintf(tw, "%s\t–\tno score\t\t\t\t\t\t", oneLine(r.label()))
		default:
			fmt.Fprintf(tw, "%s\t%d/%d\t%s\t%s–%s\t%s\t%s\t%s\t%d ms\t%d ms", oneLine(r.label()), r.OK, r.Runs, percent(r.OKRate),
				strings.TrimSuffix(percent(r.Low), " %"), percent(r.High), maybe(r.StateRate), maybe(r.TraceRate), maybe(r.TextRate), r.P50, r.P95)
		}
		if controls && r.Controls > 0 {
			fmt.Fprintf(tw, "\t%d/%d", r.ControlsOK, r.Controls)
		}
		fmt.Fprintln(tw)
	}
	_ = tw.Flush() // into memory
	return writeTrimmed(w, lines.Bytes())
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func maybe(v *float64) string {
	if v == nil {
		return "–"
	}
	return percent(*v)
}
