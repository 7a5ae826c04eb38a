package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
)

// Evals are the stored evaluation results that the server shows to admin keys. The methods may be called from several goroutines at once.
// The error for an unknown id or run has the code not_found.
type Evals interface {
	// List returns the results, newest first. truncated reports that there are more. A result that cannot be read is a row with a Problem.
	List(ctx context.Context) (rows []EvalRow, truncated bool, err error)
	// Show returns one result with a row for each of its runs.
	Show(ctx context.Context, id string) (*EvalResult, error)
	// Run returns the file of one run, which contains its conversation, as it is stored.
	Run(ctx context.Context, id, name string) (json.RawMessage, error)
}

// An EvalRow is one result in a list.
type EvalRow struct {
	ID      string    `json:"id"`
	Suite   string    `json:"suite,omitempty"`
	Status  string    `json:"status,omitempty"` // passed, failed or inconclusive
	Started time.Time `json:"started,omitzero"` // the start of the first run
	// Models are the success rates of each model, as in summary.json.
	Models []EvalModel `json:"models"` // nil is sent as an empty list
	// Problem is why the result cannot be read; only ID is set then. "": it could be read.
	Problem string `json:"problem,omitempty"`
}

// An EvalModel contains the figures of one model (with its strategy) in a result, as package lab/eval writes them to summary.json.
type EvalModel struct {
	Model    string   `json:"model"`
	Strategy string   `json:"strategy,omitempty"` // as Strategy of an EvalRun
	Fallback bool     `json:"fallback,omitempty"` // as Fallback of an EvalRun
	Runs     int      `json:"runs"`
	OK       int      `json:"ok"`          // successful runs
	Errors   int      `json:"errors"`      // runs that could not be scored
	Rate     *float64 `json:"ok_rate"`     // OK / Runs, 0 to 1; null if no run was scored
	Low      *float64 `json:"ok_rate_low"` // bounds of the 95 % confidence interval of Rate
	High     *float64 `json:"ok_rate_high"`
	P50      int64    `json:"ms_p50"`         // median of the run times, in milliseconds
	P95      int64    `json:"ms_p95"`         // milliseconds
	Cost     float64  `json:"cost,omitempty"` // US dollars
}

// An EvalResult is one result: its summary as the evaluation wrote it, and a row for each run.
type EvalResult struct {
	EvalRow
	Summary json.RawMessage `json:"summary"`
	Runs    []EvalRun       `json:"runs"` // sorted by name
	// Truncated reports that Runs is incomplete.
	Truncated bool `json:"truncated,omitempty"`
}

// An EvalRun is one run of an evaluation.
type EvalRun struct {
	Name     string    `json:"name"` // name of its file without .json, for [Evals].Run
	Model    string    `json:"model"`
	Scenario string    `json:"scenario"`
	Category string    `json:"category,omitempty"`
	Strategy string    `json:"strategy,omitempty"`
	Fallback bool      `json:"fallback,omitempty"`
	Trial    int       `json:"trial"` // number of the repetition
	OK       bool      `json:"ok"`
	Scored   bool      `json:"scored"`                // false: it failed for a reason that is not the model's
	Class    string    `json:"error_class,omitempty"` // why it failed, such as "ASSERTION_FAILED"; "": it passed
	Error    string    `json:"error_message,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Elapsed  int64     `json:"elapsed_ms"`     // milliseconds
	Cost     float64   `json:"cost,omitempty"` // US dollars
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
