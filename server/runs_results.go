package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/store"
)

// maxResults is the maximum number of results in one request.
const maxResults = 1000

// postResults handles POST /api/runs/{id}/tool_results: it stores the results of client calls and resumes the run.
func (h *inputHandler) postResults(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	results, p := readResults(c.body)
	if p != nil {
		return p
	}
	id := r.PathValue("id")
	unlock, p := h.locks.lock(r.Context(), id)
	if p != nil {
		return p
	}
	defer unlock()
	v, p := h.view(r.Context(), c, id)
	if p == nil {
		p = h.originalIDs(r.Context(), v, results)
	}
	status := http.StatusOK
	if p == nil {
		status, p = h.applyResults(r.Context(), c, v, results)
	}
	if p != nil {
		return p
	}
	return h.answerRun(w, r, c, id, status)
}

func readResults(body []byte) (map[string]lathe.Output, *problem) {
	var given struct {
		Results []struct {
			ID      string          `json:"tool_call_id"`
			Content json.RawMessage `json:"content"` // a text or any other JSON value
			IsError bool            `json:"is_error"`
		} `json:"results"`
	}
	if p := readObject(body, &given, `{"results":[{"tool_call_id":"…","content":"…"}]}`); p != nil {
		return nil, p
	}
	if len(given.Results) == 0 || len(given.Results) > maxResults {
		return nil, badRequest("results", "There must be 1 to %d results.", maxResults)
	}
	results := map[string]lathe.Output{}
	for _, one := range given.Results {
		if _, twice := results[one.ID]; one.ID == "" || twice {
			return nil, twoResults()
		}
		if len(one.Content) == 0 {
			return nil, badRequest("results", "Each result has a content, a text or a JSON value.")
		}
		results[one.ID] = lathe.Output{Data: one.Content, IsError: one.IsError}
	}
	return results, nil
}

func twoResults() *problem {
	return badRequest("results", "Each result names the tool_call_id of another call.")
}

// originalIDs replaces, in results, the call ids that this server made for a client by the ids of the model server.
func (h *inputHandler) originalIDs(ctx context.Context, v *runlog.View, results map[string]lathe.Output) *problem {
	for id, out := range results {
		if _, own := v.Client[id]; own || !splice.IsGatewayID(id) {
			continue
		}
		ring, err := h.seals.Get(ctx)
		if err != nil {
			return problems.NotNow(err)
		}
		original := splice.NewCallIDs(ring, v.State.Run.Principal, v.State.Run.RunID).Original(v.State.Messages, id)
		if original == "" {
			continue
		}
		if _, twice := results[original]; twice {
			return twoResults()
		}
		delete(results, id)
		results[original] = out
	}
	return nil
}

// applyResults stores the results and makes the run read them. It returns the statuses of apply.
func (h *inputHandler) applyResults(ctx context.Context, c *caller, v *runlog.View, results map[string]lathe.Output) (int, *problem) {
	if p := checkResults(v, results); p != nil {
		return 0, p
	}
	if p := h.checkExecutor(v); p != nil {
		return 0, p
	}
	if h.orphaned(v) {
		return 0, ownedElsewhere()
	}
	if p := h.storeResults(ctx, c, v.State.Run.RunID, results); p != nil {
		return 0, p
	}
	missing := len(results)
	return h.apply(ctx, c, v, waitForAny, func(d event.Data) bool {
		if e, ok := d.(*event.ToolCallResult); ok {
			if _, mine := results[e.ToolCallID]; mine {
				missing--
			}
		}
		return missing == 0
	})
}

// storeResults stores as many of the results as possible. It returns the problem that a call already has another result only
// if there is no other problem.
func (h *inputHandler) storeResults(ctx context.Context, c *caller, id string, results map[string]lathe.Output) (bad *problem) {
	for call, out := range results {
		if p := h.storeResult(ctx, c, id, call, out); p != nil && (bad == nil || bad.Code == "already_answered") {
			bad = p
		}
	}
	return bad
}

// storeResult stores one result. The first result of a call counts; an equal one may be sent again.
func (co *core) storeResult(ctx context.Context, c *caller, id, call string, out lathe.Output) *problem {
	f, err := engine.ResultSignal(id, call, out)
	if err == nil {
		err = co.signals.PutSignal(ctx, f)
	}
	if lathe.CodeOf(err) == lathe.CodeConflict {
		var signals []store.Signal
		signals, err = co.signals.Signals(ctx, id)
		isStored := slices.ContainsFunc(signals, func(k store.Signal) bool {
			return k.Kind == f.Kind && k.Key == f.Key && bytes.Equal(k.Body, f.Body)
		})
		if err == nil && !isStored {
			return conflict("already_answered", "The call has its result already.")
		}
	}
	return co.runFailed(c, err)
}

// checkResults returns a problem if one of the results is not for an open client call of the run.
func checkResults(v *runlog.View, results map[string]lathe.Output) *problem {
	for id := range results {
		client, known := v.Client[id]
		switch {
		case !known:
			return badRequest("results", "The run has no call of this id.")
		case !client:
			return badRequest("results", "The call is one of this gateway's tools: its result does not come from a client.")
		}
	}
	if p := v.Ended(); p != nil {
		return p
	}
	for id := range results {
		if v.OpenCall(id) == nil {
			return conflict("already_answered", "The call has its result already.")
		}
	}
	return nil
}
