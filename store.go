package lathe

import (
	"context"
	"iter"
	"time"
)

// A Store keeps each run's events as an append-only log. Delta events are never stored.
// Its methods may be called from several goroutines at once.
type Store interface {
	// Append adds events whose IDs follow last without a gap. It returns the last ID of the log,
	// and [ErrConflict] if the log does not end at last. All events are appended or none.
	Append(ctx context.Context, runID string, last int64, events ...Event) (int64, error)
	// Read yields the events after the given ID, in order; an error instead of a part.
	Read(ctx context.Context, runID string, after int64) iter.Seq2[Event, error]
	// Delete removes a run's log. Deleting what is not there is no error.
	Delete(ctx context.Context, runID string) error
}

// A RunIndex is a [Store] that lists what it has. Its rows are made of the events: they hold no text
// of arguments, outputs or messages.
type RunIndex interface {
	Store
	// Runs returns the runs that fit, the newest first, and the cursor of the next page, "" after the last.
	Runs(ctx context.Context, f *RunFilter) (rows []RunSummary, next string, err error)
	// ModelCalls returns the finished model calls of the runs that fit, the newest first.
	ModelCalls(ctx context.Context, f *RunFilter) (rows []CallSummary, next string, err error)
}

// A RunFilter says which runs are listed. Empty fields do not count.
type RunFilter struct {
	RunID     string
	SessionID string
	Principal string
	Status    string // "running", "parked", or how the run ended: see [Reason.Status]
	// Told leaves only runs that wait and to which something came that nobody has taken up yet: see
	// [FactStore]. A store that keeps no facts has none of them.
	Told bool
	// After is the cursor of the page before.
	After string
	// Limit is how many rows are wanted; 0: 50. At most 1 000 are given.
	Limit int
}

// A RunSummary is what a list says of a run.
type RunSummary struct {
	RunID     string `json:"run_id"`
	RequestID string `json:"request_id"`
	SessionID string `json:"session_id,omitempty"`
	Principal string `json:"principal,omitempty"`
	Target    string `json:"target,omitempty"`
	// ParentRunID is the run whose tool call started this one, "" where no call did.
	ParentRunID string    `json:"parent_run_id,omitempty"`
	Provider    string    `json:"provider"`
	Model       string    `json:"model"`
	Status      string    `json:"status"` // "running" until it is parked or ends
	Reason      Reason    `json:"reason,omitempty"`
	Started     time.Time `json:"started"`
	Updated     time.Time `json:"updated"` // the time of the last event
	LastID      int64     `json:"last_event_id"`
	Turns       int       `json:"turns"`
	ToolCalls   int       `json:"tool_calls"` // planned
	Usage       Usage     `json:"usage"`
	Cost        float64   `json:"cost,omitempty"` // in US dollars, as far as servers say it
	// Resumable says that the run was started as one that can be gone on with.
	Resumable bool     `json:"resumable,omitempty"`
	Pending   []string `json:"pending,omitempty"` // the ids of the calls that a parked run waits for
	// WakeAt is when a parked run goes on by itself: the first of its requests for approval has expired
	// then. Zero: it waits for an answer only.
	WakeAt time.Time `json:"wake_at,omitzero"`
	// Retention is "due" if content of the run is to be removed after its end, "applied" once it was, and empty if all
	// of it is kept.
	Retention string `json:"retention,omitempty"`
}

// A CallSummary is what a list says of one finished model call.
type CallSummary struct {
	RunID        string    `json:"run_id"`
	EventID      int64     `json:"event_id"`
	SessionID    string    `json:"session_id,omitempty"`
	Principal    string    `json:"principal,omitempty"`
	Time         time.Time `json:"time"` // when it finished
	Turn         int       `json:"turn"`
	Attempt      int       `json:"attempt"`
	PromptHash   string    `json:"prompt_hash"`
	PromptHashV2 string    `json:"prompt_hash_v2"`
	Provider     string    `json:"provider"`
	Model        string    `json:"model"`
	Status       string    `json:"status"`
	ErrorCode    string    `json:"error_code,omitempty"`
	Usage        Usage     `json:"usage"`
	Cost         *float64  `json:"cost,omitempty"`
	LatencyMS    int64     `json:"latency_ms"`
	ToolCalls    int       `json:"tool_calls"`
	// ToolLatencyMS is the time that the tools took which this call asked for, one after the other.
	ToolLatencyMS int64 `json:"tool_latency_ms"`
}
