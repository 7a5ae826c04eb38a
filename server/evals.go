package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
)

// Evals are the results of evaluations that the server shows to admin keys. The methods may be called from several goroutines
// at once. For a result or a run that does not exist they return an error of code not_found.
type Evals interface {
	// List returns the results, the newest first. It reports whether there are more than it has read.
	List(ctx context.Context) (rows []EvalRow, truncated bool, err error)
	// Show returns a result with a row for each of its runs.
	Show(ctx context.Context, id string) (*EvalResult, error)
	// Run returns the file of one run, with its conversation, as the evaluation wrote it.
	Run(ctx context.Context, id, name string) (json.RawMessage, error)
}

// An EvalRow describes a result.
type EvalRow struct {
	ID      string    `json:"id"`
	Suite   string    `json:"suite,omitempty"`
	Status  string    `json:"status,omitempty"` // passed, failed or inconclusive
	Started time.Time `json:"started,omitzero"` // the first run
	// Models are the rates of each model, as in summary.json.
	Models []EvalModel `json:"models"`
	// Problem says why the result cannot be read; the other members are empty then.
	Problem string `json:"problem,omitempty"`
}

// An EvalModel is what a result says of one model.
type EvalModel struct {
	Model    string   `json:"model"`
	Strategy string   `json:"strategy,omitempty"`
	Fallback bool     `json:"fallback,omitempty"`
	Runs     int      `json:"runs"`
	OK       int      `json:"ok"`
	Errors   int      `json:"errors"`
	Rate     *float64 `json:"ok_rate"` // null without runs
	Low      *float64 `json:"ok_rate_low"`
	High     *float64 `json:"ok_rate_high"`
	P50      int64    `json:"ms_p50"`
	P95      int64    `json:"ms_p95"`
	Cost     float64  `json:"cost,omitempty"`
}

// An EvalResult is one result: the summary as the evaluation published it, and its runs.
type EvalResult struct {
	EvalRow
	Summary json.RawMessage `json:"summary"`
	Runs    []EvalRun       `json:"runs"` // by name
	// Truncated says that there are more runs than were read.
	Truncated bool `json:"truncated,omitempty"`
}

// An EvalRun describes one run of an evaluation.
type EvalRun struct {
	Name     string    `json:"name"` // of its file, without .json
	Model    string    `json:"model"`
	Scenario string    `json:"scenario"`
	Category string    `json:"category,omitempty"`
	Strategy string    `json:"strategy,omitempty"`
	Fallback bool      `json:"fallback,omitempty"`
	Trial    int       `json:"trial"`
	OK       bool      `json:"ok"`
	Scored   bool      `json:"scored"`
	Class    string    `json:"error_class,omitempty"`
	Error    string    `json:"error_message,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Elapsed  int64     `json:"elapsed_ms"`
	Cost     float64   `json:"cost,omitempty"`
}

func (h *catalogHandler) evalRoutes() []route {
	return []route{
		{pattern: "GET /api/evals", handle: h.listEvals, needs: evalResults, admin: true},
		{pattern: "GET /api/evals/{id}", handle: h.showEval, needs: evalResults, admin: true},
		{pattern: "GET /api/evals/{id}/runs/{name}", handle: h.showEvalRun, needs: evalResults, admin: true},
	}
}

func (h *catalogHandler) listEvals(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	rows, truncated, err := c.setup.Evals.List(r.Context())
	if err != nil {
		return h.evalProblem(c, err)
	}
	for i := range rows {
		rows[i].Models = nonNil(rows[i].Models)
	}
	return answerList(w, rows, "", truncated)
}

func (h *catalogHandler) showEval(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	res, err := c.setup.Evals.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return h.evalProblem(c, err)
	}
	res.Models, res.Runs = nonNil(res.Models), nonNil(res.Runs)
	return answer(w, res)
}

func (h *catalogHandler) showEvalRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	raw, err := c.setup.Evals.Run(r.Context(), r.PathValue("id"), r.PathValue("name"))
	if err != nil {
		return h.evalProblem(c, err)
	}
	return answerRaw(w, http.StatusOK, raw)
}

// evalProblem returns the problem of an error of [Evals].
func (h *catalogHandler) evalProblem(c *caller, err error) *problem {
	if lathe.CodeOf(err) == lathe.CodeNotFound {
		return notFound("eval_not_found", "There is no such result of an evaluation.")
	}
	h.opts.Log.Error("results of evaluations could not be read", "request_id", c.requestID, "cause", problems.Cause(err))
	return internalError("The results could not be read; the server's log says why.")
}
