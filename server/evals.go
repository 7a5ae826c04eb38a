package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
)

// Evals contains the results of evaluations that the server shows to admin keys. The methods may be called from several
// goroutines at once. They return an error with code not_found for a result or a run that does not exist.
type Evals interface {
	// List returns the results, newest first. truncated is true if there are more than it has read.
	List(ctx context.Context) (rows []EvalRow, truncated bool, err error)
	// Show returns a result with one row for each of its runs.
	Show(ctx context.Context, id string) (*EvalResult, error)
	// Run returns the file of one run, which includes its conversation, unchanged.
	Run(ctx context.Context, id, name string) (json.RawMessage, error)
}

// An EvalRow is the JSON of a result in a list.
type EvalRow struct {
	ID      string    `json:"id"`
	Suite   string    `json:"suite,omitempty"`
	Status  string    `json:"status,omitempty"` // passed, failed or inconclusive
	Started time.Time `json:"started,omitzero"` // the start of the first run
	// Models contains the success rates of each model, as in summary.json.
	Models []EvalModel `json:"models"`
	// Problem is the reason why the result cannot be read; the other members are then empty.
	Problem string `json:"problem,omitempty"`
}

// An EvalModel contains the figures of one model in a result.
type EvalModel struct {
	Model    string   `json:"model"`
	Strategy string   `json:"strategy,omitempty"`
	Fallback bool     `json:"fallback,omitempty"`
	Runs     int      `json:"runs"`
	OK       int      `json:"ok"`
	Errors   int      `json:"errors"`
	Rate     *float64 `json:"ok_rate"` // null if there are no runs
	Low      *float64 `json:"ok_rate_low"`
	High     *float64 `json:"ok_rate_high"`
	P50      int64    `json:"ms_p50"`
	P95      int64    `json:"ms_p95"`
	Cost     float64  `json:"cost,omitempty"`
}

// An EvalResult is the JSON of one result: the summary that the evaluation wrote, and a row for each run.
type EvalResult struct {
	EvalRow
	Summary json.RawMessage `json:"summary"`
	Runs    []EvalRun       `json:"runs"` // sorted by name
	// Truncated is set if there are more runs than were read.
	Truncated bool `json:"truncated,omitempty"`
}

// An EvalRun is the JSON of one run of an evaluation.
type EvalRun struct {
	Name     string    `json:"name"` // the name of its file, without .json
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

// evalRoutes returns the routes for results of evaluations, which only admin keys may use.
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

// evalProblem converts an error of [Evals] to a problem.
func (h *catalogHandler) evalProblem(c *caller, err error) *problem {
	if lathe.CodeOf(err) == lathe.CodeNotFound {
		return notFound("eval_not_found", "There is no such result of an evaluation.")
	}
	h.opts.Log.Error("results of evaluations could not be read", "request_id", c.requestID, "cause", problems.Cause(err))
	return internalError("The results could not be read; the gateway's log says why.")
}
