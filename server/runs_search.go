package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// maxSearchText is the maximum length in bytes of the text that a search looks for.
const maxSearchText = 200

// runStatuses are the values of the query parameter status.
var runStatuses = []string{"running", "parked", "completed", "limited", "cancelled", "failed"}

// runReasons are the values of the query parameter reason: why a run ended or was suspended.
var runReasons = []lathe.Reason{lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval,
	lathe.ReasonAwaitingToolResults, lathe.ReasonMaxIterations, lathe.ReasonMaxToolCalls, lathe.ReasonToolLoop,
	lathe.ReasonRunTimeout, lathe.ReasonBudgetExceeded, lathe.ReasonBudgetExhausted, lathe.ReasonNoToolCalls, lathe.ReasonInvalidAnswer, lathe.ReasonEmptyAnswer, lathe.ReasonToolError,
	lathe.ReasonUnknownTool, lathe.ReasonContentFilter, lathe.ReasonLength, lathe.ReasonUpstreamError,
	lathe.ReasonGuestFault, lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal}

// runQuery reads the query parameters of GET /api/runs. A key other than an admin key lists only its own runs.
func (c *caller) runQuery(r *http.Request, now time.Time) (*store.RunFilter, *store.RunQuery, *problem) {
	f, p := c.filter(r)
	if p != nil {
		return nil, nil, p
	}
	v := r.URL.Query()
	if p := narrowTimes(f, v, now); p != nil {
		return nil, nil, p
	}
	if name := v.Get("principal"); name != "" {
		if f.Principal != "" && f.Principal != name {
			return nil, nil, forbidden("principal_forbidden", "This key lists its own runs only: leave principal out.").WithParam("principal")
		}
		f.Principal = name
	}
	q := &store.RunQuery{Tool: v.Get("tool"), Model: v.Get("model"), Reason: lathe.Reason(v.Get("reason")), ErrorCode: v.Get("error_code"), Text: v.Get("text")}
	switch {
	case f.Status != "" && !slices.Contains(runStatuses, f.Status):
		return nil, nil, badRequest("status", "status may be %s.%s", strings.Join(runStatuses, ", "), mean(f.Status, runStatuses))
	case q.Reason != "" && !slices.Contains(runReasons, q.Reason):
		return nil, nil, badRequest("reason", "No run ends for the reason %.64q.%s", q.Reason, mean(string(q.Reason), names(runReasons)))
	case len(q.Text) > maxSearchText:
		return nil, nil, badRequest("text", "text may have %d bytes.", maxSearchText)
	}
	return f, q, nil
}

// narrowTimes reads the query parameters since and until into the filter. now is the time that relative values refer to.
func narrowTimes(f *store.RunFilter, v url.Values, now time.Time) *problem {
	for _, bound := range []struct {
		name string
		at   *time.Time
	}{{"since", &f.Since}, {"until", &f.Until}} {
		s := v.Get(bound.name)
		if s == "" {
			continue
		}
		t, err := store.ParseTime(s, now)
		if err != nil {
			return badRequest(bound.name, "%s: %v.", bound.name, err)
		}
		*bound.at = t
	}
	return nil
}
