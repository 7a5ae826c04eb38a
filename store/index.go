package store

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A RunIndex is a [Store] that lists its runs. The rows are derived from the events; they contain no argument, output or
// message text.
type RunIndex interface {
	Store
	// Runs returns the runs that match the filter, newest first, and the cursor of the next page ("" after the last page).
	Runs(ctx context.Context, f *RunFilter) (rows []RunSummary, next string, err error)
	// ModelCalls returns the finished model calls of the runs that match the filter, newest first.
	ModelCalls(ctx context.Context, f *RunFilter) (rows []CallSummary, next string, err error)
}

// A RunFilter selects runs. Empty fields select all.
type RunFilter struct {
	RunID     string
	SessionID string
	Principal string
	Status    string // "running", "parked", or the status of a run that has ended: see [lathe.Reason.Status]
	// Signaled selects parked runs that have signals which no owner of the run has read: see [SignalStore]. It selects no run
	// in a store without signals.
	Signaled bool
	// Since and Until bound when the run started, and for ModelCalls when the call finished: Since is included, Until is
	// not. Zero does not bound.
	Since, Until time.Time
	// After is the cursor that the previous page returned.
	After string
	// Limit is the number of rows of a page: 50 if it is 0, at most 1,000.
	Limit int
}

// A RunSummary is the row of one run.
type RunSummary struct {
	RunID     string `json:"run_id"`
	RequestID string `json:"request_id"`
	SessionID string `json:"session_id,omitempty"`
	Principal string `json:"principal,omitempty"`
	Target    string `json:"target,omitempty"`
	// ParentRunID is the run whose tool call started this run, "" if no call did.
	ParentRunID string       `json:"parent_run_id,omitempty"`
	Provider    string       `json:"provider"`
	Model       string       `json:"model"`
	Status      string       `json:"status"` // "running" until the run is parked or ends
	Reason      lathe.Reason `json:"reason,omitempty"`
	Started     time.Time    `json:"started"`
	ErrorCode   string       `json:"error_code,omitempty"` // of a run that failed
	Updated     time.Time    `json:"updated"`              // the time of the last event
	Ended       time.Time    `json:"ended,omitzero"`       // zero until the run ends, and in rows that an older version wrote
	LastID      int64        `json:"last_event_id"`
	Turns       int          `json:"turns"`
	ToolCalls   int          `json:"tool_calls"` // planned
	// Tools are the names of the tools that were planned, in the order of their first call: at most 64. Rows
	// that an older version wrote have none.
	Tools []string    `json:"tools,omitempty"`
	Usage lathe.Usage `json:"usage"`
	Cost  float64     `json:"cost,omitempty"` // in US dollars, as far as it is known
	// Resumable says that the stored log is enough to resume the run.
	Resumable bool `json:"resumable,omitempty"`
	// Executor names the engine that executes the run step by step, such as temporal; "": the processes that use the store do.
	// [Shared].Claim returns no run with an executor.
	Executor string   `json:"executor,omitempty"`
	Pending  []string `json:"pending,omitempty"` // the ids of the calls that a parked run waits for
	// WakeAt is when the first unanswered approval request of a parked run expires, and the run is to be resumed. It is
	// zero if the run waits only for input.
	WakeAt time.Time `json:"wake_at,omitzero"`
	// Retention is "due" if content of the run is to be removed after its end, "applied" once it was, and empty if all
	// of it is kept.
	Retention string `json:"retention,omitempty"`
}

// A CallSummary is the row of one finished model call.
type CallSummary struct {
	RunID        string      `json:"run_id"`
	EventID      int64       `json:"event_id"`
	RequestID    string      `json:"request_id,omitempty"` // as in the events of the run; "" in rows that an older version wrote
	SessionID    string      `json:"session_id,omitempty"`
	Principal    string      `json:"principal,omitempty"`
	Time         time.Time   `json:"time"` // when it finished
	Turn         int         `json:"turn"`
	Attempt      int         `json:"attempt"`
	PromptHash   string      `json:"prompt_hash"`
	PromptHashV2 string      `json:"prompt_hash_v2"`
	Provider     string      `json:"provider"`
	Model        string      `json:"model"`
	Status       string      `json:"status"`
	ErrorCode    string      `json:"error_code,omitempty"`
	Usage        lathe.Usage `json:"usage"`
	Cost         *float64    `json:"cost,omitempty"`
	LatencyMS    int64       `json:"latency_ms"`
	FirstTokenMS int64       `json:"first_token_ms,omitempty"`
	ToolCalls    int         `json:"tool_calls"`
	// ToolLatencyMS is the sum of the times of the tool calls that this model call asked for.
	ToolLatencyMS int64 `json:"tool_latency_ms"`
	// Tools are the executed ones of these calls, in order: at most 64. Rows that an older version wrote have none.
	Tools []ToolTiming `json:"tools,omitempty"`
}

// maxRowTools bounds the tools that one row names.
const maxRowTools = 64

// A ToolTiming is one executed tool call.
type ToolTiming struct {
	Tool      string `json:"tool"`
	Success   bool   `json:"success"`
	LatencyMS int64  `json:"latency_ms"`
}

// Cursor returns the place of the row in the list of [RunIndex.Runs].
func (r *RunSummary) Cursor() Cursor { return Cursor{Nanos: r.Started.UnixNano(), RunID: r.RunID} }

// Cursor returns the place of the row in the list of [RunIndex.ModelCalls].
func (r *CallSummary) Cursor() Cursor {
	return Cursor{Nanos: r.Time.UnixNano(), RunID: r.RunID, EventID: r.EventID}
}

const (
	defaultPage = 50
	maxPage     = 1_000
)

// Page returns how many rows a filter asks for.
func Page(f *RunFilter) int {
	if f == nil || f.Limit <= 0 {
		return defaultPage
	}
	return min(f.Limit, maxPage)
}

// A Cursor is the place after a row: its time in nanoseconds, its run, and its event.
type Cursor struct {
	Nanos   int64
	RunID   string
	EventID int64
}

// String returns the form in which a cursor is handed out. Its holder must not look into it.
func (c Cursor) String() string {
	return strconv.FormatInt(c.Nanos, 36) + "." + strconv.FormatInt(c.EventID, 36) + "." + c.RunID
}

// ParseCursor reads what String wrote. The error is of code invalid_request.
func ParseCursor(s string) (c Cursor, err error) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) == 3 {
		var first, second error
		c.Nanos, first = strconv.ParseInt(parts[0], 36, 64)
		c.EventID, second = strconv.ParseInt(parts[1], 36, 64)
		c.RunID = parts[2]
		if first == nil && second == nil {
			return c, nil
		}
	}
	return Cursor{}, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "store: list", Err: errors.New("the cursor is not one that a list has given")}
}

// before reports whether c comes before other in a list, which has the newest first.
func (c Cursor) before(other Cursor) int {
	return cmp.Or(cmp.Compare(other.Nanos, c.Nanos), strings.Compare(other.RunID, c.RunID), cmp.Compare(other.EventID, c.EventID))
}
