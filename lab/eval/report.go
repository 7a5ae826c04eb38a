package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
)

// A Report contains the runs of an evaluation.
type Report struct {
	Suite string // name of the suite
	Runs  []*Run
	// Skipped are the names, MODEL__SCENARIO__trial_NN, of runs that were not made, because three runs of the model in a row reached no server
	// or were refused, or because [Measure] ended early.
	Skipped []string
}

// maxFirst is the largest number of failures in a row of a summary.
const maxFirst = 3

// A rowKey has the properties that the runs of a row have in common.
type rowKey struct {
	Model    string   `json:"model,omitempty"`
	Scenario string   `json:"scenario,omitempty"`
	Category string   `json:"category,omitempty"`
	Strategy Strategy `json:"strategy,omitempty"`
	Fallback bool     `json:"fallback,omitempty"`
}

// key returns the row key of a run by model and scenario.
func (r *Run) key() rowKey {
	return rowKey{Model: r.Model, Scenario: r.Scenario, Strategy: r.Strategy, Fallback: r.Fallback}
}

// model returns the key without scenario and category.
func (k rowKey) model() rowKey {
	k.Scenario, k.Category = "", ""
	return k
}

// A Row counts runs that have something in common, such as the model. Rates are from 0 to 1, times in milliseconds.
type Row struct {
	rowKey

	Runs   int `json:"runs"`   // runs that count in the rates
	Errors int `json:"errors"` // runs that do not count: they reached no server, or the harness failed
	OK     int `json:"ok"`
	// Refused counts the runs among Runs that the server refused: AUTH, PAYMENT_REQUIRED, FORBIDDEN, NOT_FOUND, REQUEST_TOO_LARGE,
	// RATE_LIMIT.
	Refused int `json:"refused,omitempty"`
	// NotProvoked counts runs whose scenario did not apply, because the model made no mistake.
	NotProvoked int `json:"not_provoked,omitempty"`
	// Controls counts runs of scenarios without tools, and ControlsOK those of them that passed. No other number of the row includes them,
	// unless the row is about such a scenario.
	Controls   int `json:"control_runs,omitempty"`
	ControlsOK int `json:"control_ok,omitempty"`
	// Recoveries counts runs of scenarios that provoke a mistake, and RecoveriesOK those of them that passed. No other number of the row
	// includes them, unless the row is about such a scenario.
	Recoveries   int     `json:"recovery_runs,omitempty"`
	RecoveriesOK int     `json:"recovery_ok,omitempty"`
	OKRate       float64 `json:"-"` // rate of Runs; in JSON ok_rate, null without runs
	Low          float64 `json:"-"` // Low and High are the 95 % Wilson interval; in JSON ok_rate_low and ok_rate_high
	High         float64 `json:"-"`
	// StateRate, TraceRate and TextRate are the rates of runs with correct state, trace and last text. Only runs that have such asserts and
	// ended with an answer count. nil: no run counts.
	StateRate *float64 `json:"state_rate,omitempty"`
	TraceRate *float64 `json:"trace_rate,omitempty"`
	TextRate  *float64 `json:"text_rate,omitempty"`
	// PassK contains pass^k for k = 2, 4, 8 and so on, as long as each scenario has at least k runs.
	PassK []PassK `json:"pass_k,omitempty"`
	P50   int64   `json:"ms_p50"` // median of the times of the runs
	P95   int64   `json:"ms_p95"` // 95th percentile
	// ModelCalls is the number of model calls of all runs. TTFT50 and TTFT95 are the median and the 95th percentile of their times to the
	// first delta, and CallP50 and CallP95 those of their total times.
	ModelCalls     int   `json:"model_calls"`
	TTFT50, TTFT95 int64 `json:"-"` // in JSON ttft_ms_p50 and ttft_ms_p95, null if no delta arrived
	CallP50        int64 `json:"call_ms_p50"`
	CallP95        int64 `json:"call_ms_p95"`
	answered       int

	// Unfinished counts the runs among Runs that the server or a limit ended, by reason.
	Unfinished map[lathe.Reason]int `json:"unfinished,omitempty"`
	// ToolCalls counts the calls of all runs, except of scenarios that provoke a mistake. Malformed counts the calls among them that Lathe
	// had to repair, or could not execute because of the text of the model or its server. Calls that were truncated by a limit are not
	// malformed: see Unfinished.
	ToolCalls int `json:"tool_calls"`
	Malformed int `json:"malformed_calls,omitempty"`
	// Deviating counts the answers of models that deviate from their protocol, and Deviations these deviations by kind. Retries counts
	// attempts that failed before an answer, Blank answers without text and calls, and NoUsage answers without usage. They cover the model
	// calls of all runs.
	Deviating  int            `json:"deviating_answers,omitempty"`
	Deviations map[string]int `json:"deviations,omitempty"`
	Retries    int            `json:"retries,omitempty"`
	Blank      int            `json:"blank_answers,omitempty"`
	NoUsage    int            `json:"answers_without_usage,omitempty"`

	Usage lathe.Usage `json:"usage"` // of all runs
	// Cost of all runs in US dollars: by the price of the model, else as reported by the server.
	Cost float64 `json:"cost,omitempty"`
	// Repeated counts the earlier attempts of runs, which reached no server and were repeated.
	Repeated int `json:"repeated,omitempty"`

	Classes  map[Class]int `json:"failure_classes,omitempty"` // number of runs of each class that did not pass
	Failures []failure     `json:"failures,omitempty"`        // the first 3 failures
}

// MarshalJSON implements json.Marshaler. Rates and times without runs are null.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	out := struct {
		plain
		OKRate *float64 `json:"ok_rate"`
		Low    *float64 `json:"ok_rate_low"`
		High   *float64 `json:"ok_rate_high"`
		TTFT50 *int64   `json:"ttft_ms_p50"`
		TTFT95 *int64   `json:"ttft_ms_p95"`
	}{plain: plain(r)}
	if r.answered > 0 {
		out.TTFT50, out.TTFT95 = &r.TTFT50, &r.TTFT95
	}
	if r.Runs > 0 {
		out.OKRate, out.Low, out.High = &r.OKRate, &r.Low, &r.High
	}
	return json.Marshal(out)
}

// A failure describes one run that did not pass.
type failure struct {
	Model         string `json:"model"`
	Scenario      string `json:"scenario"`
	Trial         int    `json:"trial"`
	Class         Class  `json:"error_class"`
	Error         string `json:"error_message"`
	ServerMessage string `json:"error_hint,omitempty"` // error text of the server
}

// A Summary counts the runs of a report, in rows. Models and ModelsScenarios are always set. Categories and ModelsCategories are set only
// if scenarios have categories. All, Scenarios and Categories are set only if Models has one row. A model that was measured with another
// strategy or fallback has a row of its own.
type Summary struct {
	Suite            string   `json:"suite,omitempty"`
	Status           Status   `json:"status"`
	Measured         []About  `json:"measured,omitempty"` // what was measured, for each model
	All              *Row     `json:"all,omitempty"`
	Models           []Row    `json:"models"`
	Categories       []Row    `json:"categories,omitempty"`
	ModelsCategories []Row    `json:"models_categories,omitempty"`
	Scenarios        []Row    `json:"scenarios,omitempty"`
	ModelsScenarios  []Row    `json:"models_scenarios"`
	Skipped          []string `json:"skipped,omitempty"`
}

// An About describes one measured model. Model is its name in the report.
type About struct {
	Model string `json:"model"`
	// About describes the server and the model for readers of the report. It is [Target].About of the model's first run.
	About   map[string]string `json:"about"`
	Started time.Time         `json:"started"` // start of the first run
	Ended   time.Time         `json:"ended"`   // end of the last run
	Trials  int               `json:"trials"`  // the largest number of trials of a scenario
	// Answered are the different model names in the responses of the server, at most 16.
	Answered []string `json:"answered_models,omitempty"`
}

// A Status is the outcome of an evaluation.
type Status string

// The outcomes of an evaluation.
const (
	Passed       Status = "passed"       // all runs that count passed
	Failed       Status = "failed"       // at least one run that counts did not pass
	Inconclusive Status = "inconclusive" // no model failed, but runs were not measured or the server refused them
)

// Status returns the outcome. It is Failed if a run failed and the server did not refuse it. Otherwise it is Inconclusive if a run has no
// score, was refused or was skipped. Otherwise it is Passed. Runs to which the scenario did not apply are ignored.
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

// measured returns the descriptions of the measured models, from their runs.
func (rep *Report) measured() (out []About) {
	for _, r := range rep.Runs {
		i := slices.IndexFunc(out, func(a About) bool { return a.Model == r.Model })
		if i < 0 {
			i = len(out)
			out = append(out, About{Model: r.Model, About: r.About, Started: r.Started})
		}
		out[i].Trials = max(out[i].Trials, r.Trial)
		if end := r.Started.Add(time.Duration(r.ElapsedMS) * time.Millisecond); end.After(out[i].Ended) {
			out[i].Ended = end
		}
		for _, c := range r.Calls {
			if c.Model != "" && !slices.Contains(out[i].Answered, c.Model) && len(out[i].Answered) < maxAnswered {
				out[i].Answered = append(out[i].Answered, c.Model)
			}
		}
		if r.Started.Before(out[i].Started) {
			out[i].Started = r.Started
		}
	}
	return out
}

// maxAnswered is the largest number of names in About.Answered.
const maxAnswered = 16

// Summary counts the runs. Rows are in the order of their first runs.
func (rep *Report) Summary() *Summary {
	s := &Summary{Suite: rep.Suite, Status: rep.Status(), Measured: rep.measured(), Skipped: rep.Skipped}
	s.Models = rows(rep.Runs, func(r *Run) rowKey { return r.key().model() })
	categories := slices.ContainsFunc(rep.Runs, func(r *Run) bool { return r.Category != "" })
	if len(s.Models) == 1 {
		all := count(rep.Runs)
		s.All = &all
		s.Scenarios = scenariosOf(rep)
		if categories {
			s.Categories = rows(rep.Runs, func(r *Run) rowKey { return rowKey{Category: r.Category} })
		}
	}
	if categories {
		s.ModelsCategories = rows(rep.Runs, func(r *Run) rowKey {
			return rowKey{Model: r.Model, Category: r.Category, Strategy: r.Strategy, Fallback: r.Fallback}
		})
	}
	s.ModelsScenarios = rows(rep.Runs, (*Run).key)
	return s
}

// ModelsGroups returns ModelsCategories or, if there are no categories, ModelsScenarios.
func (s *Summary) ModelsGroups() []Row {
	if s.ModelsCategories != nil {
		return s.ModelsCategories
	}
	return s.ModelsScenarios
}

// groupNames returns the names of the groups of rows, in order of appearance.
func groupNames(rows []Row) []string {
	var names []string
	for i := range rows {
		if g := rows[i].group(); !slices.Contains(names, g) {
			names = append(names, g)
		}
	}
	return names
}

// of returns the row of a model (with strategy and fallback) in a group, or nil.
func of(rows []Row, model *Row, group string) *Row {
	for i := range rows {
		if r := &rows[i]; r.model() == model.rowKey && r.group() == group {
			return r
		}
	}
	return nil
}

// group returns the category or scenario of the row.
func (k rowKey) group() string { return k.Category + k.Scenario }

// rows groups the runs by key and counts each group.
func rows(runs []*Run, key func(*Run) rowKey) []Row {
	var order []rowKey
	groups := map[rowKey][]*Run{}
	for _, r := range runs {
		k := key(r)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	out := make([]Row, 0, len(order))
	for _, k := range order {
		row := count(groups[k])
		row.rowKey = k
		out = append(out, row)
	}
	return out
}

// count counts the runs of one row.
func count(runs []*Run) Row {
	row := Row{Classes: map[Class]int{}, Unfinished: map[lathe.Reason]int{}, Deviations: map[string]int{}}
	var ms, ttft, calls []int64
	var passed, checked [3]int // number of runs, by index in groups
	// Controls and recoveries are counted apart, unless the whole row consists of them.
	apart := slices.ContainsFunc(runs, func(r *Run) bool { return r.kind() != runs[0].kind() })
	tallies := map[string]Trials{}
	for _, r := range runs {
		row.Usage.Add(r.Usage)
		row.Cost += r.Cost
		row.Repeated += max(r.Attempts-1, 0)
		row.addCalls(r)
		for _, c := range r.Calls {
			row.ModelCalls++
			calls = append(calls, c.MS)
			if c.TTFTMS != nil {
				ttft = append(ttft, *c.TTFTMS)
			}
		}
		if r.Class == ClassNotProvoked {
			row.NotProvoked++
			continue
		}
		if !r.OK {
			row.Classes[r.Class]++
			if len(row.Failures) < maxFirst {
				row.Failures = append(row.Failures, failure{r.Model, r.Scenario, r.Trial, r.Class, r.Error, r.ServerMessage})
			}
		}
		if !r.Scored {
			row.Errors++
			continue
		}
		if apart && r.kind() != regular {
			row.addApart(r)
			continue
		}
		row.Runs++
		one := tallies[r.Scenario]
		one.N++
		if r.Class.Refused() {
			row.Refused++
		}
		if r.OK {
			row.OK++
			one.OK++
		}
		tallies[r.Scenario] = one
		ms = append(ms, r.ElapsedMS)
		if r.Unfinished {
			row.Unfinished[r.Reason]++
			continue
		}
		for i, g := range groups {
			if ok, has := r.group(g); has {
				checked[i]++
				if ok {
					passed[i]++
				}
			}
		}
	}
	row.OKRate = rate(row.OK, row.Runs)
	row.Low, row.High = Interval(row.OK, row.Runs)
	row.PassK = PassKs(slices.Collect(maps.Values(tallies)))
	row.P50, row.P95 = Quantile(ms, 0.5), Quantile(ms, 0.95)
	row.TTFT50, row.TTFT95, row.answered = Quantile(ttft, 0.5), Quantile(ttft, 0.95), len(ttft)
	row.CallP50, row.CallP95 = Quantile(calls, 0.5), Quantile(calls, 0.95)
	for i, p := range []**float64{&row.StateRate, &row.TraceRate, &row.TextRate} {
		if checked[i] > 0 {
			v := rate(passed[i], checked[i])
			*p = &v
		}
	}
	return row
}

// addApart counts a control or a recovery.
func (r *Row) addApart(run *Run) {
	n, ok := &r.Controls, &r.ControlsOK
	if run.kind() == recovery {
		n, ok = &r.Recoveries, &r.RecoveriesOK
	}
	*n++
	if run.OK {
		*ok++
	}
}

// malformedCodes are the error codes of calls that are not executed because of their text.
var malformedCodes = []lathe.Code{lathe.CodePayloadTooLarge, lathe.CodePayloadParseError, lathe.CodeInvalidJSON, lathe.CodeArgumentsTooLarge, lathe.CodeInvalidArguments,
	lathe.CodeUnknownTool}

// argumentsFault is the kind of deviation of a call whose arguments are not an object: such a call counts only as malformed.
const argumentsFault = "arguments_not_object"

// addCalls counts malformed tool calls and deviating model calls of a run.
func (r *Row) addCalls(run *Run) {
	for _, turn := range run.Trace {
		if run.Provokes {
			break
		}
		for _, c := range turn.Calls {
			r.ToolCalls++
			if c.Repaired || !c.Executed && slices.Contains(malformedCodes, c.Code) {
				r.Malformed++
			}
		}
	}
	for _, c := range run.Calls {
		if c.TTFTMS != nil { // otherwise the class of the run counts the failure
			r.Retries += c.Retries
		}
		if c.Blank {
			r.Blank++
		}
		if c.NoUsage {
			r.NoUsage++
		}
		deviates := false
		for _, f := range c.Faults {
			if f.Kind == argumentsFault {
				continue
			}
			r.Deviations[f.Kind]++
			deviates = true
		}
		if deviates {
			r.Deviating++
		}
	}
}

// A kind is what the runs of a scenario measure.
type kind uint8

const (
	regular  kind = iota // use of tools
	control              // following instructions without tools
	recovery             // recovery from a provoked mistake
)

func (r *Run) kind() kind {
	switch {
	case r.Control:
		return control
	case r.Provokes:
		return recovery
	}
	return regular
}

// groups are the groups of checks, in the order of the rates of a row.
var groups = []string{"state", "trace", "text"}

func rate(ok, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(ok) / float64(n)
}

// label returns the name of the row for people.
func (k rowKey) label() string {
	name := k.Model
	if v := variant(k.Strategy, k.Fallback); k.Strategy != "" && v != "" {
		name += " (" + strings.ReplaceAll(v, "__", ", ") + ")"
	}
	if g := k.group(); g != "" {
		name = strings.TrimSpace(name + " " + g)
	}
	return name
}

// Unscored returns the number of runs that were not measured, including those that were not tried.
func (rep *Report) Unscored() int {
	n := len(rep.Skipped)
	for _, r := range rep.Runs {
		if !r.Scored && r.Class != ClassNotProvoked {
			n++
		}
	}
	return n
}

// Scored reports whether any run counts in the rates.
func (rep *Report) Scored() bool {
	return slices.ContainsFunc(rep.Runs, func(r *Run) bool { return r.Scored })
}

// WriteTable writes the rates by model and by category or scenario, and the first failures, as text.
func (rep *Report) WriteTable(w io.Writer) error {
	s := rep.Summary()
	var b strings.Builder
	writeRows(&b, "MODEL", s.Models)
	writePassK(&b, s.Models)
	fmt.Fprintln(&b)
	s.writeGroups(&b)
	for i := range s.Models {
		writeFailures(&b, &s.Models[i])
	}
	if n := len(rep.Skipped); n > 0 {
		fmt.Fprintf(&b, "\n%d not tried: the model's server could not be reached, or refused the key, %d times in a row\n", n, maxDead)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFailures writes the first failures of a model, and the number of further ones.
func writeFailures(w *strings.Builder, row *Row) {
	for _, f := range row.Failures {
		fmt.Fprintf(w, "\n%s  %s  trial %d  %s\n  %s\n", text.OneLine(f.Model), f.Scenario, f.Trial, f.Class, text.OneLine(f.Error))
		if f.ServerMessage != "" {
			fmt.Fprintf(w, "  the server said: %s\n", text.OneLine(f.ServerMessage))
		}
	}
	failed := row.Runs - row.OK + row.Controls - row.ControlsOK + row.Recoveries - row.RecoveriesOK
	if n := failed + row.Errors - len(row.Failures); n > 0 {
		fmt.Fprintf(w, "\n%s: %d more", text.OneLine(row.Model), n)
		if row.Errors > 0 {
			fmt.Fprintf(w, " (%d in all did not pass, %d have no score)\n", failed, row.Errors)
		} else {
			fmt.Fprintln(w, " did not pass")
		}
	}
	if words := row.form(); words != "" {
		fmt.Fprintf(w, "\n%s: %s\n", text.OneLine(row.Model), words)
	}
	if row.Refused > 0 {
		fmt.Fprintf(w, "\n%s: the server refused %d of %d runs; they count in the rate\n", text.OneLine(row.Model), row.Refused, row.Runs)
	}
	if row.NotProvoked > 0 {
		fmt.Fprintf(w, "\n%s: %d more did not apply: the scenario tests how a model recovers from a mistake, and the model made none\n", text.OneLine(row.Model), row.NotProvoked)
	}
}

// unfinished returns the number of runs that ended without an answer.
func (r *Row) unfinished() (n int) {
	for _, c := range r.Unfinished {
		n += c
	}
	return n
}

// form describes the deviations of calls and answers in words, or returns "".
func (r *Row) form() string {
	var parts []string
	if r.Malformed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tool calls malformed", r.Malformed, r.ToolCalls))
	}
	if r.Deviating > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d answers deviate from the wire (%s)", r.Deviating, r.ModelCalls, r.deviations()))
	}
	if r.Retries > 0 {
		parts = append(parts, fmt.Sprintf("%d attempts repeated", r.Retries))
	}
	if r.Blank > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d answers blank", r.Blank, r.ModelCalls))
	}
	return strings.Join(parts, ", ")
}

// deviations lists the kinds of deviation with their counts.
func (r *Row) deviations() string {
	var parts []string
	for kind, n := range text.ByName(r.Deviations) {
		parts = append(parts, fmt.Sprintf("%s %d", text.OneLine(kind), n))
	}
	return strings.Join(parts, ", ")
}

// writePassK writes pass^k of each model that has enough runs of each scenario.
func writePassK(w *strings.Builder, models []Row) {
	if !slices.ContainsFunc(models, func(r Row) bool { return len(r.PassK) > 0 }) {
		return
	}
	var t report.Table
	t.Row("MODEL", "ALL OF", "PASS", "95 %")
	for i := range models {
		for _, p := range models[i].PassK {
			t.Row(models[i].label(), fmt.Sprintf("%d runs", p.K), percent(p.Rate), interval(p.Low, p.High))
		}
	}
	fmt.Fprintln(w)
	_ = t.Write(w) // into memory
}

// writeGroups writes the rates by scenario or category: of one model with all figures, of several models side by side.
func (s *Summary) writeGroups(w *strings.Builder) {
	head, single := "SCENARIO", s.Scenarios
	if s.ModelsCategories != nil {
		head, single = "CATEGORY", s.Categories
	}
	if single != nil {
		writeRows(w, head, single)
		return
	}
	rows := s.ModelsGroups()
	var t report.Table
	cells := []any{head}
	for i := range s.Models {
		cells = append(cells, s.Models[i].label())
	}
	t.Row(cells...)
	for _, name := range groupNames(rows) {
		cells := []any{name}
		for i := range s.Models {
			cells = append(cells, of(rows, &s.Models[i], name).short())
		}
		t.Row(cells...)
	}
	_ = t.Write(w) // into memory
}

// short returns a row as a cell of a table. r may be nil.
func (r *Row) short() string {
	switch {
	case r == nil:
		return "–"
	case r.Runs == 0 && r.NotProvoked > 0 && r.Errors == 0:
		return "not provoked"
	case r.Runs == 0:
		return "no score"
	}
	return r.passed() + " " + percent(r.OKRate)
}

// passed returns the number of runs that passed and of runs that count, as text.
func (r *Row) passed() string { return fmt.Sprintf("%d/%d", r.OK, r.Runs) }

func writeRows(w *strings.Builder, head string, rows []Row) {
	controls := slices.ContainsFunc(rows, func(r Row) bool { return r.Controls > 0 })
	recoveries := slices.ContainsFunc(rows, func(r Row) bool { return r.Recoveries > 0 })
	var t report.Table
	row := func(cells []any, recovery, control string) {
		if recoveries {
			cells = append(cells, recovery)
		}
		if controls {
			cells = append(cells, control)
		}
		t.Row(cells...)
	}
	row([]any{head, "OK", "RATE", "95 %", "STATE", "TRACE", "TEXT", "P50", "P95", "TTFT", "TOKENS", "COST"}, "RECOVERY", "CONTROL")
	for i := range rows {
		r := &rows[i]
		cells := []any{r.label(), "–", r.short(), "", "", "", "", "", "", "", "", ""}
		if r.Runs > 0 {
			cells = []any{r.label(), r.passed(), percent(r.OKRate), interval(r.Low, r.High), maybe(r.StateRate), maybe(r.TraceRate), maybe(r.TextRate),
				fmt.Sprintf("%d ms", r.P50), fmt.Sprintf("%d ms", r.P95), r.ttft(), r.tokens(), r.cost()}
		}
		row(cells, share(r.RecoveriesOK, r.Recoveries), share(r.ControlsOK, r.Controls))
	}
	_ = t.Write(w) // into memory
}

func interval(low, high float64) string {
	return strings.TrimSuffix(percent(low), " %") + "–" + percent(high)
}

// share returns "ok/n", or "" if n is 0.
func share(ok, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", ok, n)
}

// ttft returns the median time to the first delta of the model calls.
func (r *Row) ttft() string {
	if r.answered == 0 {
		return "–"
	}
	return fmt.Sprintf("%d ms", r.TTFT50)
}

// tokens returns the numbers of input and output tokens of all runs.
func (r *Row) tokens() string {
	if r.Usage == (lathe.Usage{}) {
		return "–"
	}
	return fmt.Sprintf("%d+%d", r.Usage.InputTokens, r.Usage.OutputTokens)
}

func (r *Row) cost() string {
	if r.Cost == 0 {
		return "–"
	}
	return fmt.Sprintf("$%.4f", r.Cost)
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func maybe(v *float64) string {
	if v == nil {
		return "–"
	}
	return percent(*v)
}
