package server

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/lathe-run/lathe/store"
)

// Limits of the figures about tools, which are computed from the rows of the store for each request.
const (
	maxToolRows   = 5_000          // model calls that are read for one response, newest first
	maxLastCalls  = 20             // calls in the list of the last calls of a tool
	toolCallsSpan = 24 * time.Hour // default time span up to now
)

// A toolCallRow is one executed call of a tool.
type toolCallRow struct {
	Time    time.Time `json:"time"` // the time of the model call that requested the call
	RunID   string    `json:"run_id"`
	Success bool      `json:"success"`
	Latency int64     `json:"latency_ms"`
}

// A toolCalls contains figures of the executed calls in the stored runs.
type toolCalls struct {
	since    time.Time
	complete time.Time // set if the limit was reached: earlier calls are not counted
	stats    map[string]*statRow
	last     []toolCallRow // calls of one tool, newest first
}

// toolCalls reads the executed calls of the runs that the caller may list. last names the tool whose calls are listed; "":
// none. The result is nil if the server has no store of runs.
func (co *core) toolCalls(r *http.Request, c *caller, last string) (*toolCalls, *problem) {
	if co.opts.Index == nil {
		return nil, nil
	}
	f := &store.RunFilter{Principal: c.key.Name}
	if c.key.isAdmin() {
		f.Principal = ""
	}
	if p := narrowTimes(f, url.Values{"since": r.URL.Query()["since"]}, co.opts.Now()); p != nil {
		return nil, p
	}
	if f.Since.IsZero() {
		f.Since = co.opts.Now().Add(-toolCallsSpan)
	}
	unlock, p := co.scan(r.Context(), c)
	if p != nil {
		return nil, p
	}
	defer unlock()
	t, err := co.readToolCalls(r.Context(), f, last)
	if err != nil {
		return nil, co.storeFailed(c, err)
	}
	return t, nil
}

// readToolCalls reads the tool calls in the rows of model calls, newest first, at most maxToolRows rows.
func (co *core) readToolCalls(ctx context.Context, f *store.RunFilter, last string) (*toolCalls, error) {
	t := &toolCalls{since: f.Since, stats: map[string]*statRow{}, last: []toolCallRow{}}
	var err error
	t.complete, err = eachRow(ctx, f, maxToolRows, co.opts.Index.ModelCalls, func(m *store.CallSummary) time.Time {
		for _, one := range m.Tools {
			rowOf(t.stats, one.Tool).addTool(&one)
			if one.Tool == last && len(t.last) < maxLastCalls {
				t.last = append(t.last, toolCallRow{m.Time, m.RunID, one.Success, one.LatencyMS})
			}
		}
		return m.Time
	})
	for _, s := range t.stats {
		s.finish()
	}
	return t, err
}

// of returns the figures of a tool; never nil.
func (t *toolCalls) of(name string) *callStats {
	if row := t.stats[name]; row != nil {
		return row.Tool
	}
	return &callStats{}
}
