package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Queue stores tool calls, which workers claim, and lists the connected workers. All times are measured by the clock of the store. Its
// methods may be called from several goroutines at once. Each method is atomic: when it returns, its change is stored.
//
// A call is queued, claimed by a worker, started, and done. If the lease of a call ends, its new state depends on whether the call may have
// been executed:
//
//	claimed                              queued again: nothing was sent to the worker
//	started, read-only or idempotent     queued again, at most [MaxStarts] times; then done with code unavailable
//	started, any other effect            unknown: it may have been executed, so it is not executed again
//
// Errors are *[lathe.Error]: not_found for a key that is not stored, conflict (wraps [lathe.ErrConflict]) for a worker without a claim on
// the call, unavailable if a limit is reached or the store cannot be reached.
type Queue interface {
	WorkerIndex
	// PutCall queues a call, and returns the stored call. A worker must start it within the duration within; otherwise it ends as
	// cancelled. If a call with the same key is stored already, PutCall changes nothing: it returns the stored call, or an error that wraps
	// [lathe.ErrConflict] if that call has another tool or other arguments.
	PutCall(ctx context.Context, c *Call, within time.Duration) (*Call, error)
	// FindCall returns the call with this key.
	FindCall(ctx context.Context, key string) (*Call, error)
	// ClaimCalls claims queued calls of these definitions for a worker: at most limit calls, oldest first. Until the lease ends, no other
	// worker can claim them. It skips calls that another worker is claiming at the same time.
	ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]Call, error)
	// StartCall records that the call is about to be sent to the worker, and sets its lease. The caller must not send any byte of the call
	// before StartCall has returned nil. If StartCall returns [lathe.ErrConflict], the caller must not send the call: the claim is no
	// longer valid, the call was cancelled, or its time is up.
	StartCall(ctx context.Context, c Ref, lease time.Duration) error
	// RenewCalls sets a new lease for those calls in held that the worker has claimed; a lease of 0 ends at once. stop lists the calls that
	// the worker may stop: those that were cancelled, and those that the worker has not claimed.
	RenewCalls(ctx context.Context, worker string, held []Ref, lease time.Duration) (stop []Ref, err error)
	// FinishCall stores the result of a call that was started. It also accepts a late result, unless another attempt was claimed or
	// DecideCall was called. If the same attempt is finished again, FinishCall keeps the first result and returns nil. In any other case it
	// returns an error that wraps [lathe.ErrConflict].
	FinishCall(ctx context.Context, c Ref, r *Result) error
	// ReturnCall queues a claimed or started call again. For a started call, the caller must know that the worker has not executed it.
	ReturnCall(ctx context.Context, c Ref) error
	// CancelCall ends a call that was not started. If the call was started, CancelCall records the cancellation: the worker is notified,
	// and the call is not queued again. It does not change a call that has ended. It returns the call in its new state.
	CancelCall(ctx context.Context, key string) (*Call, error)
	// DecideCall makes the state [Unknown] of a call final, so that FinishCall refuses a late result. It does not change a call in any
	// other state. It returns the call in its new state.
	DecideCall(ctx context.Context, key string) (*Call, error)
	// ExpireCalls changes the state of the calls whose lease or time to start has ended, by the rules in the comment of [Queue]. It also
	// removes calls that ended more than [CallsKept] ago and whose run has ended or does not exist. It returns the number of changed and
	// removed calls. It must be called regularly.
	ExpireCalls(ctx context.Context) (int, error)
	// WatchCalls calls fn with notifications of changes, and blocks until ctx is done or the connection is lost. A notification may arrive
	// twice, late or not at all, so callers also poll. fn must not block.
	WatchCalls(ctx context.Context, fn func(Notification)) error
}

// A WorkerIndex lists the connected workers of all processes.
type WorkerIndex interface {
	// PutWorker stores the description of a worker for ttl, in place of an earlier one with the same id. A ttl of 0 removes the worker.
	PutWorker(ctx context.Context, w *Worker, ttl time.Duration) error
	// ShortenWorker makes a stored worker expire after ttl, unless it expires earlier or PutWorker is called again. It does nothing if the
	// worker is not stored.
	ShortenWorker(ctx context.Context, id string, ttl time.Duration) error
	// Workers returns the stored workers that have not expired, in the order in which they connected.
	Workers(ctx context.Context) ([]Worker, error)
}

// CallsKept is the minimum time for which a call that has ended is stored.
const CallsKept = time.Hour

// MaxStarts is the maximum number of times that a call with a read-only or idempotent effect is started. If the lease of its last start
// ends, too, the call ends with the code unavailable.
const MaxStarts = 5

// A State is the state of a call in a [Queue].
type State string

// The states. A call in one of the last three has ended; a late result can still change an unknown call to done.
const (
	Queued    State = "queued"    // no worker has claimed the call
	Claimed   State = "claimed"   // a worker has claimed the call, which was not sent yet
	Started   State = "started"   // the call may have been sent to the worker
	Done      State = "done"      // the call has a result
	Unknown   State = "unknown"   // the call was started and may have been executed; its result is not known
	Cancelled State = "cancelled" // the call was not executed; or it was cancelled after its start, and its effect allows a repetition
)

// Ended reports whether a call in this state has ended.
func (s State) Ended() bool { return s == Done || s == Unknown || s == Cancelled }

// A Call is one tool call in a [Queue]. CallID is the id of the tool call in its run.
type Call struct {
	// Key is the unique name of the call: the idempotency key of the tool call, which is the same for each attempt.
	Key                                 string
	RunID, CallID, RequestID, SessionID string
	Depth                               int                // depth of the run that made the call; 0: no other run started that run
	Trace                               event.TraceContext // span of the call: the parent of the worker's spans
	Tool                                string             // the name under which the tool is registered
	Definition                          string             // the value of [Tool.Definition]; only workers with this definition get the call
	Effect                              lathe.Effect
	// Arguments are a JSON value from a model. A queue sends them to the worker only, removes them when the call ends, and must not write
	// them to logs, traces or errors.
	Arguments json.RawMessage

	// State is the state of the call. The queue sets State and all fields below; PutCall ignores the values that its caller has set.
	State   State
	Attempt int    // how often a worker has claimed the call; 0: never
	Worker  string // the worker that has the claim, or had the last one and may still execute the call; "": none
	// Left is the remaining time for the call to start; 0 or less if the time is up.
	Left      time.Duration
	Cancelled bool    // whether cancellation of the call was requested
	Decided   bool    // whether DecideCall has made the state Unknown final
	Result    *Result // result of the call; nil unless State is Done
}

// Ref returns the reference to the current attempt of the call, as a worker that has claimed it passes it to [Queue].
func (c *Call) Ref() Ref { return Ref{Key: c.Key, Attempt: c.Attempt, Worker: c.Worker} }

// Check returns an error of code invalid_request if a field that PutCall requires is missing or the arguments are not JSON. op is the Op of
// the error.
func (c *Call) Check(op string) error {
	if c.Key == "" || c.Tool == "" || c.Definition == "" || !json.Valid(c.Arguments) {
		return lathe.CodeInvalidRequest.Errorf(op, "a call has a key, a tool, its definition, and arguments in JSON")
	}
	return nil
}

// ArgumentsHash returns a hash of the arguments. A store keeps the hash, so that it can compare calls after it has removed their arguments.
func (c *Call) ArgumentsHash() string {
	return fmt.Sprintf("%x", sha256.Sum256(c.Arguments))
}

// A Ref identifies one attempt of a call, and the worker that claimed it.
type Ref struct {
	Key     string // key of the call, as in [Call]
	Attempt int    // number of the attempt, as in [Call]
	Worker  string // ID of the worker that has claimed the attempt
}

// A Notification says that the call with this Key may have changed. The zero Notification says that the list of workers may have changed.
type Notification struct {
	Key string `json:"key,omitempty"` // key of the call
	// Definition is the definition of the call if a worker can claim the call; "": no worker can.
	Definition string `json:"definition,omitempty"`
	// Cancelled says that cancellation of the call was requested, so that its worker should stop it.
	Cancelled bool `json:"cancelled,omitempty"`
}

// A Result is the result of a call. Data, Blobs and Detail are output of the tool: a queue stores them with the call and must not write them
// to logs, traces or errors.
type Result struct {
	Data    json.RawMessage `json:"data,omitempty"` // the output of the tool as a JSON value; nil: none
	Blobs   []lathe.Blob    `json:"blobs,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	Code    lathe.Code      `json:"code,omitempty"`   // the error code, if IsError
	Detail  string          `json:"detail,omitempty"` // the error text for the model, if IsError
	RC      int             `json:"rc,omitempty"`     // as [lathe.Output].RC
}

// A plainResult is a Result without methods.
type plainResult Result

// MarshalJSON returns the stored form of the result.
func (r *Result) MarshalJSON() ([]byte, error) {
	return rawjson.Marshal(plainResult(*r))
}

// UnmarshalJSON parses the form that MarshalJSON returns.
func (r *Result) UnmarshalJSON(b []byte) error {
	var in plainResult
	if err := json.Unmarshal(b, &in); err != nil {
		return errors.New("lathe: reading a call's result: not in its form")
	}
	*r = Result(in)
	return nil
}

// A Worker describes a connected worker: a process that executes tool calls for the processes that share the queue.
type Worker struct {
	ID    string // unique id, which does not change while the process runs
	Pool  string // name of the worker pool whose token the worker presented
	Tools []Tool
	Since time.Time // time of the first PutWorker of this worker; set by the index
}

// A Tool is the description of a tool, as its worker sends it. The fields mean the same as those of a [lathe.ToolSpec]. Effect is
// "read_only", "idempotent" or "writes"; any other text counts as "writes".
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Schema       json.RawMessage `json:"schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Effect       string          `json:"effect,omitempty"`
	Allowlist    []string        `json:"allowlist"`
	Target       []string        `json:"target,omitempty"`
	Labels       []string        `json:"labels,omitempty"`
	Version      string          `json:"version,omitempty"`    // the version that the author of the tool gives its schema
	TimeoutMS    int64           `json:"timeout_ms,omitempty"` // time limit of one call in milliseconds; 0: that of the caller
	Principals   []string        `json:"principals,omitzero"`  // the principals whose runs may call the tool, from the configuration of the server; nil: all
}

// Definition returns a hash of the whole description: SHA-256 in hexadecimal. Two tools with the same description have the same hash.
func (t *Tool) Definition() string {
	b, err := json.Marshal(t)
	// The schema is not JSON. Such a tool is refused when the worker registers it.
	if err != nil {
		b = []byte(err.Error())
	}
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte("lathe/worker-tool/1\x00"), b...)))
}
