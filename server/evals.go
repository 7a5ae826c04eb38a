package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
)

// Evals gives access to stored results of evaluations. Only admin keys may read them. The methods may be called from several goroutines at
// once. They must return an error of code not_found for an unknown id or run.
type Evals interface {
	// List returns the results, newest first. truncated reports that there are more. For a result that cannot be read, List returns a row
	// with a Problem.
	List(ctx context.Context) (rows []EvalRow, truncated bool, err error)
	// Show returns the result with this id, with a row for each of its runs.
	Show(ctx context.Context, id string) (*EvalResult, error)
	// Run returns the stored file of the run name of the result id, unchanged. The file contains the conversation of the run.
	Run(ctx context.Context, id, name string) (json.RawMessage, error)
}

// An EvalRow describes one evaluation result in the list of [Evals].List.
type EvalRow struct {
	ID      string    `json:"id"`
	Suite   string    `json:"suite,omitempty"`
	Status  string    `json:"status,omitempty"` // "passed", "failed" or "inconclusive"
	Started time.Time `json:"started,omitzero"` // start of the first run of the evaluation
	// Models has the success rates of each model, as in the file summary.json of the result.
	Models []EvalModel `json:"models"` // nil is sent as an empty list
	// Problem says why the result cannot be read; only ID is set then. "": the result was read.
	Problem string `json:"problem,omitempty"`
}

// An EvalModel contains the figures of one model, with one strategy, in a result, as package lab/eval writes them to summary.json.
type EvalModel struct {
	Model    string   `json:"model"`
	Strategy string   `json:"strategy,omitempty"` // how much Lathe corrected mistakes of the model in these runs
	Fallback bool     `json:"fallback,omitempty"` // whether requests were repeated without tools if the server did not support them
	Runs     int      `json:"runs"`
	OK       int      `json:"ok"`          // number of successful runs
	Errors   int      `json:"errors"`      // number of runs that could not be scored
	Rate     *float64 `json:"ok_rate"`     // OK / Runs, 0 to 1; null if no run was scored
	Low      *float64 `json:"ok_rate_low"` // lower bound of the 95 % confidence interval of Rate; High is the upper bound
	High     *float64 `json:"ok_rate_high"`
	P50      int64    `json:"ms_p50"`         // median of the run times, in milliseconds
	P95      int64    `json:"ms_p95"`         // 95th percentile of the run times, in milliseconds
	Cost     float64  `json:"cost,omitempty"` // cost of all runs in US dollars
}

// An EvalResult is one result: its summary as the evaluation wrote it, and a row for each run.
type EvalResult struct {
	EvalRow
	Summary json.RawMessage `json:"summary"`
	Runs    []EvalRun       `json:"runs"` // the runs of the evaluation, sorted by name
	// Truncated reports that Runs is incomplete.
	Truncated bool `json:"truncated,omitempty"`
}

// An EvalRun describes one run of an evaluation.
type EvalRun struct {
	Name     string    `json:"name"` // name of the run's file without .json: the argument of [Evals].Run
	Model    string    `json:"model"`
	Scenario string    `json:"scenario"`
	Category string    `json:"category,omitempty"`
	Strategy string    `json:"strategy,omitempty"`
	Fallback bool      `json:"fallback,omitempty"`
	Trial    int       `json:"trial"` // number of the repetition of the scenario
	OK       bool      `json:"ok"`
	Control  bool      `json:"control,omitempty"`     // the scenario has no tools; beside scenarios with tools, the run does not count in the rate
	Provokes bool      `json:"provokes,omitempty"`    // the scenario provokes a mistake; beside others, the run does not count in the rate
	Scored   bool      `json:"scored"`                // false: the run failed for a reason that is not the model's, and does not count
	Class    string    `json:"error_class,omitempty"` // why the run failed, such as "ASSERTION_FAILED"; "": it passed
	Error    string    `json:"error_message,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Elapsed  int64     `json:"elapsed_ms"`     // duration of the run in milliseconds
	Cost     float64   `json:"cost,omitempty"` // cost of the run in US dollars
}

func (h *catalogHandler) listEvals(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	rows, truncated, err := c.setup.Evals.List(r.Context())
	if err != nil {
		return h.evalProblem(c, err)
	}
	for i := range rows {
		rows[i].Models = nonNil(rows[i].Models)
	}
	return answerPart(w, rows, "", truncated)
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
