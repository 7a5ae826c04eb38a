package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/loop"
)

// safeName matches valid ids of imported runs. Ids are parts of paths, headers and file names. It is also used for names of
// tools.
var safeName = lazy.Regexp(`^[A-Za-z0-9_-]{1,64}$`)

// maxImportAhead bounds how far the time of an imported event may be in the future, since the clocks of servers differ.
const maxImportAhead = 24 * time.Hour

// importRun handles POST /api/runs/import: it stores the log of a run that has ended, in the format of
// [runsHandler.exportRun]. Nothing is executed. A key imports its own runs, and runs without an owner, as ownImport returns
// them. An admin imports runs of every key unchanged.
func (h *runsHandler) importRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	events, p := h.readImport(c)
	if p != nil {
		return p
	}
	id, status := events[0].RunID, http.StatusCreated
	stored := events
	if !c.key.isAdmin() {
		stored = ownImport(c.key, events)
	}
	_, err := h.opts.Index.Append(r.Context(), id, 0, stored...)
	if errors.Is(err, lathe.ErrConflict) {
		status, err = http.StatusOK, nil
		if !h.hasEvents(r.Context(), id, stored) && !h.hasEvents(r.Context(), id, events) {
			return conflict("run_exists", "The store has a run with this id and other events.")
		}
	}
	if err != nil {
		return h.runFailed(c, err)
	}
	if status == http.StatusCreated {
		h.opts.Log.Info("a run was imported", "request_id", c.requestID, "run_id", id, "events", len(events))
	}
	return h.answerCreated(w, r, c, id, status)
}

// readImport reads the body of an import. It returns a problem unless the events are a complete run that the caller may
// import.
func (h *runsHandler) readImport(c *caller) ([]event.Event, *problem) {
	events, err := event.ReadLog(bytes.NewReader(c.body))
	if err != nil {
		return nil, badRequest("", "The body is no exported run: %v.", err).WithCode("invalid_export")
	}
	if !safeName().MatchString(events[0].RunID) {
		return nil, badRequest("", "The id of the run may have 64 letters, digits, _ and -.").WithCode("invalid_export")
	}
	for i := range events {
		if at := events[i].Time; at.UTC().Year() < 1970 || at.After(h.opts.Now().Add(maxImportAhead)) {
			return nil, badRequest("", "The time of an event is before 1970 or in the future.").WithCode("invalid_export")
		}
	}
	state, err := loop.Fold(events)
	if err != nil {
		return nil, badRequest("", "The events do not make a run.").WithCode("invalid_export")
	}
	if state.Finished == nil {
		return nil, badRequest("", "The run has not ended, and could be continued here and where it came from. Export it again after its end.").WithCode("run_unfinished")
	}
	if d := events[0].Data.(*event.RunStarted); !c.key.isAdmin() && d.Principal != c.key.Name && d.Principal != "" {
		return nil, forbidden("principal_forbidden", "The run belongs to another key: import it with that one.")
	}
	return events, nil
}

// ownImport returns a copy of the events as a run of the key. Owner, profile and labels of the log are replaced by those of
// the key. Costs and names of approvers are removed, because only the server may set them.
func ownImport(key *Key, events []event.Event) []event.Event {
	out := slices.Clone(events)
	for i := range out {
		switch d := out[i].Data.(type) {
		case *event.RunStarted:
			own := *d
			own.Principal, own.Profile, own.Executor = key.Name, key.Profile, ""
			own.Labels = shownLabels(withOwn(d.Labels, key.Labels))
			out[i].Data = &own
		case *event.ModelCallFinished:
			own := *d
			own.Cost, own.ProviderCost = nil, nil
			out[i].Data = &own
		case *event.ToolCallExecuted:
			own := *d
			own.ChildCost = 0
			out[i].Data = &own
		case *event.ApprovalResolved:
			own := *d
			own.By = ""
			out[i].Data = &own
		default: // other events have no member that only the server sets
		}
	}
	return out
}

// hasEvents reports whether the stored run has exactly these events.
func (h *runsHandler) hasEvents(ctx context.Context, id string, events []event.Event) bool {
	n := 0
	for e, err := range h.opts.Index.Read(ctx, id, 0) {
		if err != nil || n == len(events) {
			return false
		}
		has, _ := e.MarshalJSON() // if it fails, the bytes are not equal
		want, err := events[n].MarshalJSON()
		if err != nil || !bytes.Equal(has, want) {
			return false
		}
		n++
	}
	return n == len(events)
}
