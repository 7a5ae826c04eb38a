package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/lab/eval"
)

// A Report is the result of [Run]. In its JSON, new versions add members and rename none.
type Report struct {
	Version   int       `json:"schema_version"` // always 1
	Status    Status    `json:"status"`
	Why       []string  `json:"why,omitempty"` // the metrics that failed, or how many requests were not measured
	Lathe     string    `json:"lathe,omitempty"`
	Started   time.Time `json:"started"`
	Suite     string    `json:"suite_sha256"` // hash of all prompts, schemas and tools
	Trials    int       `json:"trials"`
	MinRate   float64   `json:"min_rate"`
	Budget    Budget    `json:"budget"`
	Target    Side      `json:"target"`
	Reference *Side     `json:"reference,omitempty"`
	Metrics   []Metric  `json:"metrics"`
	// PassK estimates pass^k, the probability that k trials of one request all succeed, for k = 2, 4, 8 and so on, as long as each metric
	// has k trials. It is the mean over the metrics that repeat one request. It distinguishes an endpoint that fails sometimes from one
	// that always fails on some requests.
	PassK          []eval.PassK `json:"pass_k,omitempty"`
	ReferencePassK []eval.PassK `json:"reference_pass_k,omitempty"`
	// Trigger compares the prompts for which the target calls a tool with those for which the reference does; nil without a reference.
	Trigger *Trigger     `json:"trigger,omitempty"`
	Limits  []LimitsPair `json:"limits,omitempty"`

	sides []*side
}

// A Status is the outcome of a verification.
type Status string

// The outcomes of a verification.
const (
	Passed       Status = "passed"       // no metric failed, and enough was measured
	Failed       Status = "failed"       // at least one metric failed
	Inconclusive Status = "inconclusive" // nothing failed, but too little was measured
)

// A Side is one endpoint, with totals of its requests.
type Side struct {
	Server   string `json:"server"` // scheme and host
	Model    string `json:"model"`
	Wire     string `json:"wire"`
	Answered string `json:"answered_model,omitempty"` // model name in the responses of the server
	Requests int    `json:"requests"`
	// NotMeasured counts requests that were not sent or got no connection. Stopped is the reason why requests were not sent: "silent"
	// (three consecutive requests got no complete response in time, or were refused because of the key), "requests" or "tokens" (the budget
	// is used up); "": all were sent.
	NotMeasured  int    `json:"not_measured"`
	Stopped      string `json:"stopped,omitempty"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	// First50 and First95 are the median and the 95th percentile of the time to the first byte of streamed answers, and Whole50 and Whole95
	// those of the time to their end, all in milliseconds; 0: no answer was streamed.
	First50 int64 `json:"first_byte_ms_p50"`
	First95 int64 `json:"first_byte_ms_p95"`
	Whole50 int64 `json:"elapsed_ms_p50"`
	Whole95 int64 `json:"elapsed_ms_p95"`
}

// A Tally counts the cases of a metric: OK of N.
type Tally struct {
	OK int `json:"ok"`
	N  int `json:"n"`
	// Refused counts cases that the server refused. N does not include them.
	Refused int `json:"refused,omitempty"`
}

// Rate returns OK/N and its 95 % Wilson interval. If N is 0, they are 0, 0 and 1.
func (t Tally) Rate() (rate, low, high float64) {
	low, high = eval.Interval(t.OK, t.N)
	if t.N > 0 {
		rate = float64(t.OK) / float64(t.N)
	}
	return rate, low, high
}

// MarshalJSON implements json.Marshaler. It adds the rate and its interval, which are null if N is 0.
func (t Tally) MarshalJSON() ([]byte, error) {
	type plain Tally
	out := struct {
		plain
		Rate *float64 `json:"rate"`
		Low  *float64 `json:"low"`
		High *float64 `json:"high"`
	}{plain: plain(t)}
	if t.N > 0 {
		rate, low, high := t.Rate()
		out.Rate, out.Low, out.High = &rate, &low, &high
	}
	return json.Marshal(out)
}

// A Verdict is the result of one metric.
type Verdict string

// The verdicts on a metric.
const (
	MetricPassed       Verdict = "passed"        // its rate is at least MinRate, and not worse than that of the reference by more than noise
	MetricFailed       Verdict = "failed"        // its rate is lower than that, or worse
	MetricNotSupported Verdict = "not_supported" // the server refuses the feature
	MetricNotMeasured  Verdict = "not_measured"  // there was no case
)

// words returns the verdict as text for people.
func (v Verdict) words() string { return strings.ReplaceAll(string(v), "_", " ") }

// A Metric is one property of an endpoint, compared with that of the reference, if [Run] was called with one.
type Metric struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Counts  string  `json:"counts"` // describes what the cases are
	Verdict Verdict `json:"verdict"`
	Target  Tally   `json:"target"`
	// Reference is the tally of the reference, and P the probability that equal endpoints differ at least as much (Fisher's exact test).
	// Both are nil without a reference. Differs says that P is below 0.05.
	Reference  *Tally      `json:"reference,omitempty"`
	P          *float64    `json:"p,omitempty"`
	Differs    bool        `json:"differs"`
	Deviations []Deviation `json:"deviations,omitempty"` // the most frequent first
}

// A Deviation is one kind of protocol fault, and how often it was seen.
type Deviation struct {
	ID        string          `json:"id"`
	Severity  doctor.Severity `json:"severity,omitempty"` // as in [doctor.Catalogue]
	Seen      string          `json:"seen,omitempty"`
	Target    int             `json:"target"`    // number of answers with the deviation
	Reference int             `json:"reference"` // the same of the reference
}

// A Trigger says how similar the tool use of two endpoints is.
type Trigger struct {
	Similarity
	F1 *float64 `json:"f1"` // null if it is not defined
	// Noise is the F1 of two series of requests to the reference itself; nil: not defined. A difference between the target and the
	// reference may be chance if F1 is not below Noise.
	Noise *float64 `json:"f1_of_reference_with_itself"`
}

// A LimitsPair is one limit at the target and at the reference; nil: not measured.
type LimitsPair struct {
	Target    *Limit `json:"target,omitempty"`
	Reference *Limit `json:"reference,omitempty"`
	Differs   bool   `json:"differs"`
}

const significance = 0.05

// maxUnmeasured is the share of requests without a result above which a verification is inconclusive.
const maxUnmeasured = 0.05

// finish computes the report from its sides.
func (rep *Report) finish(o *Options) {
	target := rep.sides[0]
	var reference *side
	rep.Target = target.summary()
	if len(rep.sides) > 1 {
		reference = rep.sides[1]
		rep.Reference = new(reference.summary())
		rep.Trigger = similarity(target, reference)
	}
	for _, d := range definitions {
		m := Metric{ID: d.id, Name: d.name, Counts: d.counts, Target: *target.tally(d.id), Deviations: deviations(d.id, target, reference)}
		if reference != nil {
			m.setReference(*reference.tally(d.id))
		}
		m.Verdict = m.verdict(o.MinRate)
		if m.Verdict == MetricFailed {
			rep.Why = append(rep.Why, d.id)
		}
		rep.Metrics = append(rep.Metrics, m)
	}
	rep.PassK = passK(target)
	if reference != nil {
		rep.ReferencePassK = passK(reference)
	}
	rep.Limits = limitPairs(target, reference)
	rep.setStatus()
}

// setReference compares the metric with the tally of the reference.
func (m *Metric) setReference(r Tally) {
	p := eval.Chance(m.Target.OK, m.Target.N, r.OK, r.N)
	oneHasCases := (m.Target.N == 0) != (r.N == 0)
	if oneHasCases && m.Target.Refused+r.Refused > 0 { // the other refuses the feature
		p = eval.Chance(0, max(m.Target.N, m.Target.Refused), max(r.N, r.Refused), max(r.N, r.Refused))
	}
	m.Reference, m.P, m.Differs = &r, &p, p < significance
}

func (m *Metric) verdict(minRate float64) Verdict {
	rate, _, _ := m.Target.Rate()
	low := rate < minRate
	if m.Differs {
		other, _, _ := m.Reference.Rate()
		low = low || rate < other
	}
	switch {
	case m.Target.N == 0 && m.Target.Refused > 0:
		return MetricNotSupported
	case m.Target.N == 0:
		return MetricNotMeasured
	case !low, m.ID == metricShape && m.tolerable():
		return MetricPassed
	default:
		return MetricFailed
	}
}

// setStatus sets the status: failed if a metric failed, and inconclusive if too many requests were not measured.
func (rep *Report) setStatus() {
	unmeasured, requests, budget := 0, 0, ""
	for _, s := range rep.sides {
		unmeasured += s.unreached + s.skipped
		requests += s.requests + s.skipped
		if s.stopped == stoppedRequests || s.stopped == stoppedTokens {
			budget = ", since the budget of " + s.stopped + " was used up"
		}
	}
	switch {
	case len(rep.Why) > 0:
		rep.Status = Failed
	case float64(unmeasured) > maxUnmeasured*float64(requests):
		rep.Status, rep.Why = Inconclusive, []string{fmt.Sprintf("%d of %d requests were not measured%s", unmeasured, requests, budget)}
	default:
		rep.Status = Passed
	}
}

// passK estimates pass^k over the metrics that repeat one request and have cases.
func passK(s *side) []eval.PassK {
	var of []eval.Trials
	for _, d := range definitions {
		if t := s.tally(d.id); t.N > 0 && slices.Contains(repeated, d.id) {
			of = append(of, eval.Trials{OK: t.OK, N: t.N})
		}
	}
	return eval.PassKs(of)
}

// tolerable reports whether Lathe tolerates all deviations of the target without a setting.
func (m *Metric) tolerable() bool {
	return !slices.ContainsFunc(m.Deviations, func(d Deviation) bool {
		return d.Target > 0 && d.Severity != doctor.Note && d.Severity != doctor.OK && d.Severity != ""
	})
}

func (s *side) summary() Side {
	out := s.about
	out.Requests, out.NotMeasured, out.Stopped, out.InputTokens, out.OutputTokens = s.requests, s.unreached+s.skipped, s.stopped, s.input, s.output
	out.First50, out.First95 = eval.Quantile(s.first, 0.5).Milliseconds(), eval.Quantile(s.first, 0.95).Milliseconds()
	out.Whole50, out.Whole95 = eval.Quantile(s.elapsed, 0.5).Milliseconds(), eval.Quantile(s.elapsed, 0.95).Milliseconds()
	return out
}

// deviations returns the deviations that lower a metric, the most frequent first. reference may be nil.
func deviations(metric string, target, reference *side) []Deviation {
	counts := map[string]*Deviation{}
	for _, s := range []*side{target, reference} {
		if s == nil {
			continue
		}
		for id, n := range s.deviations[metric] {
			if counts[id] == nil {
				f := findings()[id]
				counts[id] = &Deviation{ID: id, Severity: f.Severity, Seen: cmp.Or(f.Seen, seen[id])}
			}
			if s == target {
				counts[id].Target = n
			} else {
				counts[id].Reference = n
			}
		}
	}
	var out []Deviation
	for _, d := range counts {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Deviation) int {
		return cmp.Or(cmp.Compare(b.Target+b.Reference, a.Target+a.Reference), strings.Compare(a.ID, b.ID))
	})
	return out
}

// seen has the sentences for deviations that are not in the catalogue of the doctor.
var seen = map[string]string{
	"usage-total":            "Input and output tokens are not the total.",
	"usage-differs-streamed": "The same prompt has other input tokens when the answer is streamed.",
	"usage-not-growing":      "A longer prompt does not have more input tokens.",
	"schema-violated":        "Arguments do not fit the schema of their tool.",
	"accepted-without-tools": "The server answers although tool_choice requires a call and there is no tool.",
}

// similarity compares for which prompts the target and the reference call a tool.
func similarity(target, reference *side) *Trigger {
	t := &Trigger{}
	var noise Similarity
	for i := range triggers {
		a, b, c := target.called[i], reference.called[i], reference.second[i]
		if a.measured && b.measured {
			t.Add(a.called, b.called)
		}
		if b.measured && c.measured {
			noise.Add(c.called, b.called)
		}
	}
	if f1, ok := t.Similarity.F1(); ok {
		t.F1 = &f1
	}
	if f1, ok := noise.F1(); ok {
		t.Noise = &f1
	}
	return t
}

func limitPairs(target, reference *side) []LimitsPair {
	var out []LimitsPair
	for _, p := range limitProbes {
		pair := LimitsPair{Target: target.limits[p.id]}
		if reference != nil {
			pair.Reference = reference.limits[p.id]
		}
		if a, b := pair.Target, pair.Reference; a != nil && b != nil {
			low, high := min(a.Taken, b.Taken), max(a.Taken, b.Taken)
			pair.Differs = high-low > 2*max(1, low/precision)
		}
		if pair.Target != nil || pair.Reference != nil {
			out = append(out, pair)
		}
	}
	return out
}

func (t Tally) text() string {
	count, interval := t.texts()
	return strings.TrimSpace(count + " " + interval)
}

// texts returns the count with the rate, and the interval, which is "" without cases.
func (t Tally) texts() (count, interval string) {
	switch {
	case t.N == 0 && t.Refused > 0:
		return "refused", ""
	case t.N == 0:
		return "–", ""
	}
	rate, low, high := t.Rate()
	return fmt.Sprintf("%d/%d %s", t.OK, t.N, percent(rate)), fmt.Sprintf("(%.0f–%.0f)", 100*low, 100*high)
}

// chance returns P as text, or "–" if there is nothing to compare.
func (m *Metric) chance() string {
	if m.P == nil || m.Target.N+m.Target.Refused == 0 || m.Reference.N+m.Reference.Refused == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", *m.P)
}

// passText lists the estimates of pass^k.
func passText(list []eval.PassK) string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("k=%d %s (%.0f–%.0f)", p.K, percent(p.Rate), 100*p.Low, 100*p.High))
	}
	return strings.Join(out, ", ")
}

func percent(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*v), ".0") + " %"
}

func maybe(v *float64) string {
	if v == nil {
		return "not defined"
	}
	return percent(*v)
}

func (l *Limit) text() string {
	switch {
	case l == nil:
		return "–"
	case l.Refused == 0:
		return fmt.Sprintf("%d, the most that was tried", l.Taken)
	}
	return fmt.Sprintf("%d, not %d (HTTP %d)", l.Taken, l.Refused, l.Status)
}

// WriteTable writes the report as text.
func (rep *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	var about report.Table
	about.Row("target:", rep.Target.words())
	if rep.Reference != nil {
		about.Row("reference:", rep.Reference.words())
	}
	_ = about.Write(&b) // into memory
	b.WriteString("\n")
	_ = rep.metricTable().Write(&b)
	if t := rep.Trigger; t != nil {
		fmt.Fprintf(&b, "\ntrigger similarity: F1 %s (both call %d, only the target %d, only the reference %d); the reference with itself: %s\n", maybe(t.F1), t.TP, t.FP, t.FN, maybe(t.Noise))
	}
	if len(rep.PassK) > 0 {
		fmt.Fprintf(&b, "\nall of k trials of one request (pass^k): %s\n", passText(rep.PassK))
		if len(rep.ReferencePassK) > 0 {
			fmt.Fprintf(&b, "of the reference: %s\n", passText(rep.ReferencePassK))
		}
	}
	if len(rep.Limits) > 0 {
		b.WriteString("\n")
		var t report.Table
		for _, l := range rep.Limits {
			cells := []any{cmp.Or(l.Target, l.Reference).ID, l.Target.text()}
			if rep.Reference != nil {
				cells = append(cells, l.Reference.text())
			}
			t.Row(cells...)
		}
		_ = t.Write(&b)
	}
	blank := "\n" // an empty line before the first deviation
	for i := range rep.Metrics {
		for _, d := range rep.Metrics[i].Deviations {
			fmt.Fprintf(&b, "%s%s: %s: %s\n", blank, rep.Metrics[i].ID, text.OneLine(d.ID), strings.TrimSpace(d.count(rep.Reference != nil)+" "+text.OneLine(d.Seen)))
			blank = ""
		}
	}
	fmt.Fprintf(&b, "\n%s%s: %d requests, first byte %d ms (p50), %d tokens in, %d out%s\n", rep.Status, suffix(rep.Why), rep.Target.Requests, rep.Target.First50, rep.Target.InputTokens, rep.Target.OutputTokens,
		rep.Target.unsent())
	_, err := io.WriteString(w, b.String())
	return err
}

func (rep *Report) metricTable() *report.Table {
	t := &report.Table{}
	if rep.Reference != nil {
		t.Row("METRIC", "TARGET", "REFERENCE", "P", "VERDICT")
	} else {
		t.Row("METRIC", "TARGET", "VERDICT")
	}
	for _, m := range rep.Metrics {
		cells := []any{m.ID, m.Target.text()}
		if m.Reference != nil {
			cells = append(cells, m.Reference.text(), m.chance())
		}
		t.Row(append(cells, m.Verdict.words()+string(report.Either(m.Differs, ", differs", "")))...)
	}
	return t
}

// words returns the model, the server and its protocol.
func (s *Side) words() string { return fmt.Sprintf("%s at %s (%s)", s.Model, s.Server, s.Wire) }

// unsent describes how many requests were not sent and why; "": all were sent.
func (s *Side) unsent() string {
	if s.Stopped == "" {
		return ""
	}
	return fmt.Sprintf("; %d not measured%s", s.NotMeasured, stops[s.Stopped])
}

func suffix(why []string) string {
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, ", ") + ")"
}

func (d *Deviation) count(reference bool) string {
	if reference {
		return fmt.Sprintf("%d answers of the target, %d of the reference.", d.Target, d.Reference)
	}
	return fmt.Sprintf("%d answers.", d.Target)
}
