package store

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A RunIndex is a [Store] that lists its runs. The rows are derived from the events; they contain no text of arguments, outputs or
// messages.
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
	// Signaled selects parked runs with signals that no owner of the run has read: see [SignalStore]. In a store without signals it selects
	// no run.
	Signaled bool
	// Since and Until limit the time at which the run started, or, for ModelCalls, the time at which the call finished. Since is inclusive,
	// Until exclusive. A zero time is no limit.
	Since, Until time.Time
	// After is the cursor that the previous page returned.
	After string
	// Limit is the maximum number of rows of a page; 0: 50. It is at most 1,000.
	Limit int
}

// A RunSummary is the row of one run.
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
	Status      string       `json:"status"` // "running" until the run is parked or ends
	Reason      lathe.Reason `json:"reason,omitempty"`
	Started     time.Time    `json:"started"`
	ErrorCode   string       `json:"error_code,omitempty"` // error code of a failed run
	Updated     time.Time    `json:"updated"`              // the time of the last event
	Ended       time.Time    `json:"ended,omitzero"`       // zero until the run ends, and in rows of an older version
	LastID      int64        `json:"last_event_id"`
	Turns       int          `json:"turns"`
	ToolCalls   int          `json:"tool_calls"` // number of planned tool calls
	// Tools are the names of the tools of planned calls, in the order of their first call, at most 64. It is nil in rows of an older
	// version.
	Tools []string    `json:"tools,omitempty"`
	Usage lathe.Usage `json:"usage"`
	Cost  float64     `json:"cost,omitempty"` // in US dollars, as far as the cost is known
	// Resumable reports that the stored log is sufficient to resume the run.
	Resumable bool `json:"resumable,omitempty"`
	// Executor is the name of the engine that executes the run step by step, such as temporal; "": the processes that use the store execute
	// it. [Shared].Claim returns no run with an executor.
	Executor string   `json:"executor,omitempty"`
	Pending  []string `json:"pending,omitempty"` // ids of the calls that a parked run waits for
	// WakeAt is the time at which the first unanswered approval request of a parked run expires, and the run must be resumed. It is zero if
	// the run waits only for input.
	WakeAt time.Time `json:"wake_at,omitzero"`
	// Retention is "due" if content of the run must be removed after its end, "applied" after it was removed, and "" if all content is
	// retained.
	Retention string `json:"retention,omitempty"`
}

// A CallSummary is the row of one finished model call.
type CallSummary struct {
	RunID        string      `json:"run_id"`
	EventID      int64       `json:"event_id"`
	RequestID    string      `json:"request_id,omitempty"` // from the events of the run; "" in rows of an older version
	SessionID    string      `json:"session_id,omitempty"`
	Principal    string      `json:"principal,omitempty"`
	Time         time.Time   `json:"time"` // when the call finished
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
	// ToolLatencyMS is the sum of the latencies of the tool calls that this model call requested.
	ToolLatencyMS int64 `json:"tool_latency_ms"`
	// Tools are the executed tool calls of this model call, in order, at most 64. It is nil in rows of an older version.
	Tools []ToolTiming `json:"tools,omitempty"`
}

// maxRowTools is the maximum number of tools in one row.
const maxRowTools = 64

// A ToolTiming is one executed tool call.
type ToolTiming struct {
	Tool      string `json:"tool"`
	Success   bool   `json:"success"`
	LatencyMS int64  `json:"latency_ms"`
}

// Cursor returns the position of the row in the list of [RunIndex.Runs].
func (r *RunSummary) Cursor() Cursor { return Cursor{Nanos: r.Started.UnixNano(), RunID: r.RunID} }

// Cursor returns the position of the row in the list of [RunIndex.ModelCalls].
func (r *CallSummary) Cursor() Cursor {
	return Cursor{Nanos: r.Time.UnixNano(), RunID: r.RunID, EventID: r.EventID}
}

const (
	defaultPage = 50
	maxPage     = 1_000
)

// Page returns the maximum number of rows of a page for the filter, which may be nil.
func Page(f *RunFilter) int {
	if f == nil || f.Limit <= 0 {
		return defaultPage
	}
	return min(f.Limit, maxPage)
}

// A Cursor is a position in a list: that of the row with this time in nanoseconds, run and event. The next page begins behind it.
type Cursor struct {
	Nanos   int64
	RunID   string
	EventID int64
}

// String returns the form of a cursor for clients, which must not interpret it.
func (c Cursor) String() string {
	return strconv.FormatInt(c.Nanos, 36) + "." + strconv.FormatInt(c.EventID, 36) + "." + c.RunID
}

// ParseCursor parses the form that String returns. Its error has the code invalid_request.
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
	return Cursor{}, lathe.CodeInvalidRequest.Errorf("store: list", "the cursor is not one that a list has given")
}

// before compares the positions of c and other in a list with the newest row first. It returns a negative number if c comes first.
func (c Cursor) before(other Cursor) int {
	return cmp.Or(cmp.Compare(other.Nanos, c.Nanos), strings.Compare(other.RunID, c.RunID), cmp.Compare(other.EventID, c.EventID))
}
