package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// Limits of GET /api/stats. The figures are computed from the rows of the store for each request.
const (
	maxStatCalls   = 20_000 // model calls that are read for one response, newest first
	maxStatRuns    = 20_000 // runs that are read for one response, newest first
	maxStatTools   = 10_000 // names of tools whose runs are counted, those of the newest runs: clients can name any
	maxStatBuckets = 300
	maxStatNames   = 50 // rows of each list of names in the response
)

// Defaults of the request: the number of buckets, and the time span up to now.
const (
	defaultStatBuckets = 60
	defaultStatSpan    = time.Hour
)

// statsBody is the response of GET /api/stats.
type statsBody struct {
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	Step     int64     `json:"step_seconds"`
	Complete time.Time `json:"complete_since,omitzero"` // set if a limit was reached: earlier buckets lack rows
	Total    statRow   `json:"total"`
	Buckets  []statRow `json:"buckets"`
	Models   []statRow `json:"models"`   // by name of the entry of models if the run began since, else of the model; most used first
	Tools    []statRow `json:"tools"`    // most used first; tools without a call here, such as those of clients, have only runs
	Reasons  []statRow `json:"reasons"`  // why runs ended or were suspended, most frequent first
	Statuses []statRow `json:"statuses"` // the statuses of runs, most frequent first
	Keys     []statRow `json:"keys"`     // the keys that own runs, most runs first
}

// A statRow contains the figures of a bucket, a model, a tool, a reason, a status or a key. Members that do not apply are left out.
type statRow struct {
	Time   time.Time  `json:"time,omitzero"` // the start of the bucket
	Name   string     `json:"name,omitempty"`
	Runs   int        `json:"runs,omitempty"`        // number of runs that started
	Failed int        `json:"failed_runs,omitempty"` // number of those runs that have the status failed
	Model  *callStats `json:"model_calls,omitempty"`
	Tool   *callStats `json:"tool_calls,omitempty"`
	Input  int64      `json:"input_tokens,omitempty"`
	Output int64      `json:"output_tokens,omitempty"`
	Cost   float64    `json:"cost,omitempty"`
}

// callStats contains the figures of model calls or of tool calls.
type callStats struct {
	Calls      int   `json:"calls"`
	Errors     int   `json:"errors"`
	P50        int64 `json:"p50_ms"`
	P95        int64 `json:"p95_ms"`
	FirstToken int64 `json:"first_token_p50_ms,omitempty"`

	times, firsts []int64 // latencies and times to the first token, in ms; finish computes the percentiles of them
}

// add adds a call. ms is its latency and first the time to its first token, both in ms; 0: unknown.
func (s *callStats) add(ok bool, ms, first int64) {
	s.Calls++
	if !ok {
		s.Errors++
	}
	s.times = append(s.times, ms)
	if first > 0 {
		s.firsts = append(s.firsts, first)
	}
}

// finish computes the percentiles. s may be nil.
func (s *callStats) finish() {
	if s != nil {
		s.P50, s.P95, s.FirstToken = percentile(s.times, 50), percentile(s.times, 95), percentile(s.firsts, 50)
	}
}

// percentile returns the p-th percentile of values by the nearest-rank method; 0 if none exist. It sorts values.
func percentile(values []int64, p int) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)*p+99)/100-1]
}

func (r *statRow) addCall(c *store.CallSummary) {
	if r.Model == nil {
		r.Model = &callStats{}
	}
	r.Model.add(c.Status == "success", c.LatencyMS, c.FirstTokenMS)
	r.Input += c.Usage.InputTokens
	r.Output += c.Usage.OutputTokens
	if c.Cost != nil {
		r.Cost += *c.Cost
	}
}

func (r *statRow) addTool(t *store.ToolTiming) {
	if r.Tool == nil {
		r.Tool = &callStats{}
	}
	r.Tool.add(t.Success, t.LatencyMS, 0)
}

func (r *statRow) addRun(s *store.RunSummary) {
	r.Runs++
	if s.Status == lathe.ReasonInternal.Status() {
		r.Failed++
	}
}

// statRows are rows by name.
type statRows map[string]*statRow

// A statsTable collects the figures of one response: addRun and addCall add to them, and [runsHandler.stats] finishes them.
type statsTable struct {
	statsBody
	step                                   time.Duration
	model, tool                            string // if one is not empty, the buckets count only its calls
	models, tools, reasons, statuses, keys statRows
	targets                                map[string]string // by run id; two entries of models may name one model of a server
}

// addRun adds a run and returns its time.
func (t *statsTable) addRun(r *store.RunSummary) time.Time {
	t.targets[r.RunID] = r.Target
	t.Total.addRun(r)
	if t.model+t.tool == "" {
		t.bucket(r.Started).addRun(r)
	}
	rowOf(t.reasons, cmp.Or(string(r.Reason), r.Status)).Runs++
	rowOf(t.statuses, r.Status).Runs++
	rowOf(t.keys, r.Principal).Runs++
	rowOf(t.models, cmp.Or(r.Target, r.Model)).Runs++
	for _, tool := range r.Tools {
		if t.tools[tool] != nil || len(t.tools) < maxStatTools {
			rowOf(t.tools, tool).Runs++
		}
	}
	return r.Started
}

// addCall adds a model call with its tool calls and returns its time. The runs were added before.
func (t *statsTable) addCall(m *store.CallSummary) time.Time {
	bucket, name := t.bucket(m.Time), cmp.Or(t.targets[m.RunID], m.Model)
	t.Total.addCall(m)
	rowOf(t.models, name).addCall(m)
	if t.tool == "" && (t.model == "" || t.model == name) {
		bucket.addCall(m)
	}
	for _, call := range m.Tools {
		t.Total.addTool(&call)
		rowOf(t.tools, call.Tool).addTool(&call)
		if t.model == "" && (t.tool == "" || t.tool == call.Tool) {
			bucket.addTool(&call)
		}
	}
	return m.Time
}

// bucket returns the row of the bucket that contains the time, or the nearest one.
func (t *statsTable) bucket(at time.Time) *statRow {
	return &t.Buckets[max(0, min(int(at.Sub(t.Since)/t.step), len(t.Buckets)-1))]
}

// rowOf returns the row with the name. It adds the row if none exists.
func rowOf(rows statRows, name string) *statRow {
	r := rows[name]
	if r == nil {
		r = &statRow{Name: name}
		rows[name] = r
	}
	return r
}

func (r *statRow) calls() int {
	switch {
	case r.Model != nil:
		return r.Model.Calls
	case r.Tool != nil:
		return r.Tool.Calls
	}
	return 0
}

// most finishes the rows, and returns the maxStatNames with the most calls, most first. Of rows with equal calls, those
// with more runs are first. So tools of clients, which are not called here, do not displace tools that are.
func most(rows statRows) []statRow {
	out := []statRow{}
	for _, r := range rows {
		r.finish()
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b statRow) int {
		return cmp.Or(cmp.Compare(b.calls(), a.calls()), cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxStatNames)]
}

// showStats handles GET /api/stats: figures of the runs that the caller may list, over time, by model and by tool: rates,
// errors, latencies, tokens and cost; and numbers of runs by model, tool, reason, status and key. A tool call counts at the
// time of the model call that requested it.
func (h *runsHandler) showStats(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	q := r.URL.Query()
	f, p := c.filter(r)
	if p == nil {
		p = narrowTimes(f, q, h.opts.Now())
	}
	if p != nil {
		return p
	}
	buckets, p := number(q, "buckets", defaultStatBuckets, maxStatBuckets)
	if p != nil {
		return p
	}
	f.Until = cmp.Or(f.Until, h.opts.Now())
	f.Since = cmp.Or(f.Since, f.Until.Add(-defaultStatSpan))
	model, tool := q.Get("model"), q.Get("tool")
	if model != "" && tool != "" {
		return badRequest("tool", "Either model or tool chooses what the buckets count.")
	}
	if !f.Since.Before(f.Until) {
		return badRequest("since", "since must be before until.")
	}
	unlock, p := h.scan(r.Context(), c)
	if p != nil {
		return p
	}
	defer unlock()
	body, err := h.stats(r.Context(), f, buckets, model, tool)
	if err != nil {
		return h.storeFailed(c, err)
	}
	return answer(w, body)
}

// stats computes the figures for the time span of the filter. If model or tool is not empty, the buckets count only its calls.
func (h *runsHandler) stats(ctx context.Context, f *store.RunFilter, buckets int, model, tool string) (*statsBody, error) {
	step := max(time.Second, (f.Until.Sub(f.Since)/time.Duration(buckets)+time.Second-1)/time.Second*time.Second) // rounded up to whole seconds
	t := &statsTable{statsBody: statsBody{Since: f.Since, Until: f.Until, Step: int64(step / time.Second)}, step: step, model: model, tool: tool,
		models: statRows{}, tools: statRows{}, reasons: statRows{}, statuses: statRows{}, keys: statRows{}, targets: map[string]string{}}
	for at := f.Since; at.Before(f.Until); at = at.Add(step) {
		t.Buckets = append(t.Buckets, statRow{Time: at})
	}
	firstRun, err := eachRow(ctx, f, maxStatRuns, h.opts.Index.Runs, t.addRun)
	if err != nil {
		return nil, err
	}
	firstCall, err := eachRow(ctx, f, maxStatCalls, h.opts.Index.ModelCalls, t.addCall)
	if err != nil {
		return nil, err
	}
	t.Complete = firstRun
	if firstCall.After(firstRun) {
		t.Complete = firstCall
	}
	for i := range t.Buckets {
		t.Buckets[i].finish()
	}
	t.Total.finish()
	t.Models, t.Tools, t.Reasons, t.Statuses, t.Keys = most(t.models), most(t.tools), most(t.reasons), most(t.statuses), most(t.keys)
	return &t.statsBody, nil
}

func (r *statRow) finish() {
	r.Model.finish()
	r.Tool.finish()
}

// eachRow calls fn for the rows of a list, newest first; fn returns the time of the row. If there are more than limit rows,
// eachRow stops after a page and returns the time of the last row; otherwise it returns the zero time.
func eachRow[T any](ctx context.Context, f *store.RunFilter, limit int, list func(context.Context, *store.RunFilter) ([]T, string, error),
	fn func(*T) time.Time) (oldest time.Time, err error) {
	page := *f
	page.Limit = maxPage
	for seen := 0; ; {
		rows, next, err := list(ctx, &page)
		if err != nil {
			return time.Time{}, err
		}
		for i := range rows {
			oldest = fn(&rows[i])
		}
		seen += len(rows)
		if next == "" {
			return time.Time{}, nil
		}
		if seen >= limit {
			return oldest, nil
		}
		page.After = next
	}
}
