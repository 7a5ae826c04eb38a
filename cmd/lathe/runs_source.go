package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/store"
)

// A runSource is the source of runs for the commands of `lathe runs`: a store, or a gateway.
type runSource interface {
	list(ctx context.Context, f *store.RunFilter, q *store.RunQuery) ([]store.RunSummary, string, error)
	// waiting returns the pending calls in one page of runs.
	waiting(ctx context.Context, f *store.RunFilter) ([]waitingRow, string, error)
	show(ctx context.Context, runID string) (*runDetail, error)
	modelCalls(ctx context.Context, f *store.RunFilter) ([]store.CallSummary, string, error)
	// history calls f for the stored events of a run with ids above after.
	history(ctx context.Context, runID string, after int64, f func(e *event.Event) error) error
	close() error
}

// A waitingRow is a call that waits for an approval or a result.
type waitingRow struct {
	RunID     string    `json:"run_id"`
	SessionID string    `json:"session_id,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Model     string    `json:"model"`
	Started   time.Time `json:"started"`
	openCallView
}

// runsFlags select the source of runs: a store, or a gateway.
type runsFlags struct {
	storeFlags
	serverFlags
}

// withSource calls do with the source that the flags select, and then closes it.
func (f *runsFlags) withSource(cmd *cobra.Command, do func(runSource) error) error {
	src, err := openRuns(cmd, &f.serverFlags, f.Store)
	if err != nil {
		return err
	}
	defer func() { _ = src.close() }() // the source was only read
	return do(src)
}

// openRuns opens the store that the flags or the environment name, or returns a client for a gateway: the named one, or else the one at the
// default address.
func openRuns(cmd *cobra.Command, server *serverFlags, store string) (runSource, error) {
	c, err := server.clientIfNamed(store)
	if c != nil || err != nil {
		return c, err
	}
	s, err := openStore(store, readOnly)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return &storedRuns{s, cmd}, nil
	}
	return server.defaultClient()
}

// clientIfNamed returns a client for the gateway that a flag or the environment names, or nil.
func (f *serverFlags) clientIfNamed(store string) (*daemonClient, error) {
	switch {
	case f.URL != "" && store != "":
		return nil, usageError("give one of --server and --store")
	case f.URL != "":
		return f.client(f.URL)
	case store == "" && os.Getenv(serverVariable) != "":
		return f.client(os.Getenv(serverVariable))
	}
	return nil, nil
}

// defaultClient returns a client for a gateway at the default address, for a command for which neither a store nor a gateway is named.
func (f *serverFlags) defaultClient() (*daemonClient, error) {
	c, err := f.client(defaultServer)
	if err != nil {
		return nil, err
	}
	c.instead = fmt.Sprintf("which runs? give --server URL of a gateway (or set %s), or --store sqlite:PATH or postgres://USER@HOST/DATABASE (or set %s)", serverVariable, storeVariable)
	return c, nil
}

// storedRuns reads runs from a store.
type storedRuns struct {
	store app.Store
	cmd   *cobra.Command
}

func (s *storedRuns) close() error { return s.store.Close() }

func (s *storedRuns) list(ctx context.Context, f *store.RunFilter, q *store.RunQuery) ([]store.RunSummary, string, error) {
	rows, next, _, err := store.Find(ctx, s.store, f, q)
	return rows, next, storeError(err)
}

func (s *storedRuns) waiting(ctx context.Context, f *store.RunFilter) ([]waitingRow, string, error) {
	rows, next, err := s.list(ctx, f, &store.RunQuery{})
	if err != nil {
		return nil, "", err
	}
	var out []waitingRow
	for _, r := range rows {
		if r.Reason != lathe.ReasonAwaitingApproval {
			continue
		}
		d, err := s.show(ctx, r.RunID)
		if err != nil {
			return nil, "", err
		}
		for _, o := range d.Open {
			if o.State == "awaiting_approval" {
				out = append(out, waitingRow{r.RunID, r.SessionID, r.Principal, r.Target, r.Started, o})
			}
		}
	}
	return out, next, nil
}

func (s *storedRuns) show(ctx context.Context, runID string) (*runDetail, error) {
	rows, _, err := s.store.Runs(ctx, &store.RunFilter{RunID: runID})
	if err != nil {
		return nil, storeError(err)
	}
	state, err := engine.ReadState(ctx, s.store, runID)
	if err != nil {
		return nil, storeError(err)
	}
	if len(rows) != 1 {
		return nil, storeError(lathe.ErrNotFound)
	}
	d := &runDetail{RunSummary: rows[0]}
	if state.Finished != nil {
		d.Answer = state.Finished.Answer
	}
	for i := range state.Open {
		d.Open = append(d.Open, viewOf(&state.Open[i]))
	}
	return d, describeOpen(s.cmd, s.store, runID, d.Open)
}

func (s *storedRuns) modelCalls(ctx context.Context, f *store.RunFilter) ([]store.CallSummary, string, error) {
	rows, next, err := s.store.ModelCalls(ctx, f)
	return rows, next, storeError(err)
}

func (s *storedRuns) history(ctx context.Context, runID string, after int64, f func(e *event.Event) error) error {
	for e, err := range s.store.Read(ctx, runID, after) {
		if err != nil {
			return storeError(err)
		}
		if err := f(&e); err != nil {
			return err
		}
	}
	return nil
}

func (c *daemonClient) close() error {
	c.http.CloseIdleConnections()
	return nil
}

// query returns the filter as the query of an API request. It refuses a principal, because the API lists the runs of the key.
func (c *daemonClient) query(f *store.RunFilter, more map[string]string) (string, error) {
	if f.Principal != "" {
		return "", usageError("--principal goes with --store: a gateway lists the runs of the key")
	}
	texts := map[string]string{"run_id": f.RunID, "session_id": f.SessionID, "status": f.Status, "after": f.After}
	maps.Copy(texts, more)
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			texts[name] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	if f.Limit > 0 {
		texts["limit"] = strconv.Itoa(f.Limit)
	}
	q := url.Values{}
	for name, v := range texts {
		if v != "" {
			q.Set(name, v)
		}
	}
	return "?" + q.Encode(), nil
}

// A page is one part of a list.
type page[T any] struct {
	Data []T    `json:"data"`
	Next string `json:"next"`
}

func readPage[T any](ctx context.Context, c *daemonClient, path string, f *store.RunFilter, more map[string]string) ([]T, string, error) {
	query, err := c.query(f, more)
	if err != nil {
		return nil, "", err
	}
	var p page[T]
	err = c.call(ctx, "GET", path+query, nil, &p)
	return p.Data, p.Next, err
}

func (c *daemonClient) list(ctx context.Context, f *store.RunFilter, q *store.RunQuery) ([]store.RunSummary, string, error) {
	return readPage[store.RunSummary](ctx, c, "/api/runs", f,
		map[string]string{"tool": q.Tool, "model": q.Model, "reason": string(q.Reason), "error_code": q.ErrorCode, "text": q.Text})
}

func (c *daemonClient) waiting(ctx context.Context, f *store.RunFilter) ([]waitingRow, string, error) {
	own := *f
	own.Status = "" // the API has no such filter: all pending calls are of paused runs
	return readPage[waitingRow](ctx, c, "/api/approvals", &own, nil)
}

func (c *daemonClient) show(ctx context.Context, runID string) (*runDetail, error) {
	var d struct {
		runDetail
		Calls []openCallView `json:"open_calls"`
	}
	err := c.call(ctx, "GET", "/api/runs/"+url.PathEscape(runID), nil, &d)
	d.Open, d.server = d.Calls, c.flag
	return &d.runDetail, err
}

func (c *daemonClient) modelCalls(ctx context.Context, f *store.RunFilter) ([]store.CallSummary, string, error) {
	return readPage[store.CallSummary](ctx, c, "/api/summaries", f, nil)
}

func (c *daemonClient) history(ctx context.Context, runID string, after int64, f func(e *event.Event) error) error {
	return c.events(ctx, runID, after, followNot, f)
}

func timeText(t time.Time) string { return t.Local().Format(time.DateTime) }
