package eval

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

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
	answered       int   // number of model calls with a delta

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

// group returns the category or scenario of the row.
func (k rowKey) group() string { return k.Category + k.Scenario }

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
	c := &counter{Row: Row{Classes: map[Class]int{}, Unfinished: map[lathe.Reason]int{}, Deviations: map[string]int{}}, tallies: map[string]Trials{}}
	// Controls and recoveries are counted apart, unless the whole row consists of them.
	mixed := slices.ContainsFunc(runs, func(r *Run) bool { return r.kind() != runs[0].kind() })
	for _, r := range runs {
		c.addUsage(r)
		if r.Class == ClassNotProvoked {
			c.NotProvoked++
			continue
		}
		if !r.OK {
			c.Classes[r.Class]++
			if len(c.Failures) < maxFirst {
				c.Failures = append(c.Failures, failure{r.Model, r.Scenario, r.Trial, r.Class, r.Error, r.ServerMessage})
			}
		}
		switch {
		case !r.Scored:
			c.Errors++
		case mixed && r.kind() != regular:
			c.addApart(r)
		default:
			c.addScored(r)
		}
	}
	c.OKRate = rate(c.OK, c.Runs)
	c.Low, c.High = Interval(c.OK, c.Runs)
	c.PassK = PassKs(slices.Collect(maps.Values(c.tallies)))
	c.P50, c.P95 = Quantile(c.ms, 0.5), Quantile(c.ms, 0.95)
	c.TTFT50, c.TTFT95, c.answered = Quantile(c.ttft, 0.5), Quantile(c.ttft, 0.95), len(c.ttft)
	c.CallP50, c.CallP95 = Quantile(c.calls, 0.5), Quantile(c.calls, 0.95)
	for i, p := range []**float64{&c.StateRate, &c.TraceRate, &c.TextRate} {
		if c.checked[i] > 0 {
			*p = new(rate(c.passed[i], c.checked[i]))
		}
	}
	return c.Row
}

// A counter is a row to which runs are added, with what its rates and times are computed from.
type counter struct {
	Row
	ms, ttft, calls []int64           // times of the runs, and of their model calls
	tallies         map[string]Trials // by scenario
	checked, passed [3]int            // number of runs, by index in groups
}

// addUsage counts what all runs have, whatever their outcome.
func (c *counter) addUsage(r *Run) {
	c.Usage.Add(r.Usage)
	c.Cost += r.Cost
	c.Repeated += max(r.Attempts-1, 0)
	c.addCalls(r)
	c.ModelCalls += len(r.Calls)
	for _, call := range r.Calls {
		c.calls = append(c.calls, call.MS)
		if call.TTFTMS != nil {
			c.ttft = append(c.ttft, *call.TTFTMS)
		}
	}
}

// addScored counts a run that counts in the rates.
func (c *counter) addScored(r *Run) {
	c.Runs++
	tally := c.tallies[r.Scenario]
	tally.N++
	if r.Class.Refused() {
		c.Refused++
	}
	if r.OK {
		c.OK++
		tally.OK++
	}
	c.tallies[r.Scenario] = tally
	c.ms = append(c.ms, r.ElapsedMS)
	if r.Unfinished {
		c.Unfinished[r.Reason]++
		return
	}
	for i, g := range groups {
		ok, checked := r.group(g)
		if checked {
			c.checked[i]++
		}
		if checked && ok {
			c.passed[i]++
		}
	}
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
