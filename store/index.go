package store

import (
	"cmp"
	"context"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A RunIndex is a [Store] that lists its runs and their model calls. The lists are derived from the events and contain no text of
// arguments, outputs or messages.
type RunIndex interface {
	Store
	// Runs returns one page of the runs that match the filter, newest first, and the cursor of the next page: "" after the last page. f may
	// be nil. An invalid cursor is an error of code invalid_request.
	Runs(ctx context.Context, f *RunFilter) (rows []RunSummary, next string, err error)
	// ModelCalls returns one page of the finished model calls of the runs that match the filter, newest first, and the cursor of the next
	// page. Filter, cursor and errors are as for Runs.
	ModelCalls(ctx context.Context, f *RunFilter) (rows []CallSummary, next string, err error)
}

// A RunFilter selects runs that match all of its fields, and a page of the list. A zero field matches every run.
type RunFilter struct {
	RunID     string
	SessionID string
	Principal string
	Status    string // "running", "parked", or the status of an ended run: see [lathe.Reason.Status]
	// Signaled selects parked runs with signals that no owner of the run has read yet: see [SignalStore]. A store without signals returns
	// no runs for it.
	Signaled bool
	// Since and Until select by time: the start of a run, or for ModelCalls the end of a call. Since is inclusive, Until exclusive.
	Since, Until time.Time
	// After is the cursor that was returned with the previous page; "": the first page.
	After string
	// Limit is the maximum number of elements of a page; 0 or less: 50. Above 1,000 it is 1,000.
	Limit int
}

// All yields all runs of the index that match the filter, newest first. It begins after f.After and reads page by page. f.Limit is the size
// of a page, not a limit on the number of runs; 0: 1,000. If reading fails, the last element is the error, with a nil run.
func (f *RunFilter) All(ctx context.Context, index RunIndex) iter.Seq2[*RunSummary, error] {
	return func(yield func(*RunSummary, error) bool) {
		page := *f
		page.Limit = cmp.Or(f.Limit, maxPage)
		for {
			rows, next, err := index.Runs(ctx, &page)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				if !yield(&rows[i], nil) {
					return
				}
			}
			page.After = next
			if next == "" {
				return
			}
		}
	}
}

// A RunSummary describes one run in the list of [RunIndex.Runs].
type RunSummary struct {
	RunID     string `json:"run_id"`
	RequestID string `json:"request_id"`
	SessionID string `json:"session_id,omitempty"`
	Principal string `json:"principal,omitempty"`
	Target    string `json:"target,omitempty"`
	// ParentRunID is the id of the run whose tool call started this run; "": none.
	ParentRunID string       `json:"parent_run_id,omitempty"`
	Provider    string       `json:"provider"`
	Model       string       `json:"model"`
	Status      string       `json:"status"`           // "running", "parked", or [lathe.Reason.Status] of a run that has ended
	Reason      lathe.Reason `json:"reason,omitempty"` // why the run has ended or is parked; "" while it is running
	Started     time.Time    `json:"started"`
	ErrorCode   string       `json:"error_code,omitempty"` // error code of a run that has failed
	Updated     time.Time    `json:"updated"`              // the time of the last event
	Ended       time.Time    `json:"ended,omitzero"`       // zero until the run ends, and in summaries that an older version stored
	LastID      int64        `json:"last_event_id"`        // id of the last event
	Turns       int          `json:"turns"`                // number of model calls
	ToolCalls   int          `json:"tool_calls"`           // number of planned tool calls
	// Tools are the names of the called tools in the order of their first call, at most 64; nil in summaries that an older version stored.
	Tools []string    `json:"tools,omitempty"`
	Usage lathe.Usage `json:"usage"`          // sum over the model calls of this run; those of runs that it started do not count
	Cost  float64     `json:"cost,omitempty"` // cost of the same model calls in US dollars; a model call of unknown cost adds nothing
	// Resumable reports whether the log contains all that is needed to resume the run.
	Resumable bool `json:"resumable,omitempty"`
	// Executor is the name of the external engine that executes the run, such as temporal; "": the processes that share the store execute
	// it. [Shared].Claim returns no run with an executor.
	Executor string   `json:"executor,omitempty"`
	Pending  []string `json:"pending,omitempty"` // ids of the calls that a parked run waits for
	// WakeAt is the time at which a parked run must be resumed even if no input has arrived, because the first unanswered approval request
	// expires then. Zero: no such time.
	WakeAt time.Time `json:"wake_at,omitzero"`
	// Retention is "due" if content of the run must be removed after its end, "applied" once it was removed, and "" if all content is kept.
	Retention string `json:"retention,omitempty"`
}

// A CallSummary describes one finished attempt of a model call in the list of [RunIndex.ModelCalls].
type CallSummary struct {
	RunID        string      `json:"run_id"`
	EventID      int64       `json:"event_id"`             // ID of the event ModelCallFinished
	RequestID    string      `json:"request_id,omitempty"` // as in [RunSummary]; "" in summaries that an older version stored
	SessionID    string      `json:"session_id,omitempty"`
	Principal    string      `json:"principal,omitempty"`
	Time         time.Time   `json:"time"`        // when the attempt finished
	Turn         int         `json:"turn"`        // number of the model call in the run, from 1
	Attempt      int         `json:"attempt"`     // number of the attempt within the turn, from 1
	PromptHash   string      `json:"prompt_hash"` // PromptHash and PromptHashV2 are as in [event.ModelCallStarted]
	PromptHashV2 string      `json:"prompt_hash_v2"`
	Provider     string      `json:"provider"`
	Model        string      `json:"model"`                // the model that answered, as in [event.ModelCallFinished]
	Status       string      `json:"status"`               // "success" or "error"
	ErrorCode    string      `json:"error_code,omitempty"` // error code of a failed attempt, as in [event.ModelCallFinished]
	Usage        lathe.Usage `json:"usage"`
	Cost         *float64    `json:"cost,omitempty"`           // cost of the attempt in US dollars; nil: unknown
	LatencyMS    int64       `json:"latency_ms"`               // duration of the attempt in milliseconds
	FirstTokenMS int64       `json:"first_token_ms,omitempty"` // time until the first token in milliseconds; 0: unknown
	ToolCalls    int         `json:"tool_calls"`               // number of tool calls in the answer of the model
	// ToolLatencyMS is the sum of the latencies of the executed tool calls of this answer, in milliseconds.
	ToolLatencyMS int64 `json:"tool_latency_ms"`
	// Tools are the executed tool calls of this answer in order, at most 64; nil in summaries that an older version stored.
	Tools []ToolTiming `json:"tools,omitempty"`
}

// maxRowTools is the maximum number of tools in one row.
const maxRowTools = 64

// A ToolTiming is the outcome and the duration of one executed tool call.
type ToolTiming struct {
	Tool      string `json:"tool"`
	Success   bool   `json:"success"`
	LatencyMS int64  `json:"latency_ms"` // duration in milliseconds, as in [event.ToolCallExecuted]
}

// Cursor returns the cursor of the page of [RunIndex.Runs] that begins after this run.
func (r *RunSummary) Cursor() Cursor { return Cursor{Nanos: r.Started.UnixNano(), RunID: r.RunID} }

// Cursor returns the cursor of the page of [RunIndex.ModelCalls] that begins after this call.
func (r *CallSummary) Cursor() Cursor {
	return Cursor{Nanos: r.Time.UnixNano(), RunID: r.RunID, EventID: r.EventID}
}

const (
	defaultPage = 50
	maxPage     = 1_000
)

// Page returns the size of the page that f requests: f.Limit, at most 1,000. It is 50 if f is nil or f.Limit is 0 or less.
func Page(f *RunFilter) int {
	if f == nil || f.Limit <= 0 {
		return defaultPage
	}
	return min(f.Limit, maxPage)
}

// A Cursor is a position in a list of runs or model calls: that of the element with this time (Nanos, in Unix nanoseconds), run and, for
// model calls, event ID. The next page begins after that element.
type Cursor struct {
	Nanos   int64
	RunID   string
	EventID int64
}

// String returns the cursor as text for clients. [ParseCursor] is its inverse.
func (c Cursor) String() string {
	return strconv.FormatInt(c.Nanos, 36) + "." + strconv.FormatInt(c.EventID, 36) + "." + c.RunID
}

// ParseCursor parses the form that String returns. Its error has the code invalid_request.
func ParseCursor(s string) (Cursor, error) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) == 3 {
		nanos, noTime := strconv.ParseInt(parts[0], 36, 64)
		id, noID := strconv.ParseInt(parts[1], 36, 64)
		if noTime == nil && noID == nil {
			return Cursor{nanos, parts[2], id}, nil
		}
	}
	return Cursor{}, lathe.CodeInvalidRequest.Errorf("store: list", "the cursor is not one that a list has given")
}

// before compares the positions of c and other in a list with the newest row first. It returns a negative number if c comes first.
func (c Cursor) before(other Cursor) int {
	return cmp.Or(cmp.Compare(other.Nanos, c.Nanos), strings.Compare(other.RunID, c.RunID), cmp.Compare(other.EventID, c.EventID))
}
