package lathe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"
)

// A CallQueue keeps tool calls as rows that workers elsewhere claim, and says which workers there are.
// Only its own clock counts: no method takes a time of the caller. Its methods may be called from
// several goroutines at once; each is one transaction, and what it has returned is kept.
//
// A call is queued, then claimed, then started, then done. A call whose lease ends while it is claimed
// is queued again: nothing was sent. One whose lease ends while it is started is queued again where its
// effect is [ReadOnly] or [Idempotent], and else becomes unknown: nobody runs it again.
//
// Errors are *[Error]: not_found for a key that is not there, conflict (wraps [ErrConflict]) for whoever
// does not hold the call, unavailable where a limit is reached or the store cannot be reached.
type CallQueue interface {
	WorkerIndex
	// PutCall queues a call that must start within the time given, and returns its row. Where the key is
	// there already, its row is returned as it stands, and nothing is changed; [ErrConflict] where that
	// is a call of another tool, or has other arguments.
	PutCall(ctx context.Context, c *RemoteCall, within time.Duration) (*RemoteCall, error)
	// FindCall returns the row of a key.
	FindCall(ctx context.Context, key string) (*RemoteCall, error)
	// ClaimCalls takes at most limit queued calls of these definitions for a worker, the oldest first.
	// Nobody else gets them while the lease holds. Calls that are being claimed elsewhere are passed over.
	ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]RemoteCall, error)
	// StartCall is the intent: it has to return before the first byte of the call goes to the worker.
	// It returns [ErrConflict] where the claim does not hold, somebody wants the call cancelled, or its
	// time is up: then nothing may be sent.
	StartCall(ctx context.Context, c CallRef, lease time.Duration) error
	// BeatCalls prolongs the leases of those of the calls that the worker holds. stop are those that it need
	// not go on with: somebody wants them cancelled, or they are not the worker's any more. A lease
	// of 0 has ended at once.
	BeatCalls(ctx context.Context, worker string, held []CallRef, lease time.Duration) (stop []CallRef, err error)
	// FinishCall keeps the result of a call that was started. A late one is taken, too, while no other
	// attempt was claimed and an unknown call was not decided. The same attempt finished again is no
	// error, and the first result stays. All else is [ErrConflict].
	FinishCall(ctx context.Context, c CallRef, r *CallResult) error
	// ReturnCall puts a claimed or started call back into the queue. Whoever returns a started call knows
	// that it was not run.
	ReturnCall(ctx context.Context, c CallRef) error
	// CancelCall ends a call that was not started. It notes the wish for one that was: its worker is
	// told, and the call is not queued again. It returns the row as it is then.
	CancelCall(ctx context.Context, key string) (*RemoteCall, error)
	// DecideCall says that an unknown call stays so: no late result settles it. It returns the row as it
	// is then; one that is not unknown is not changed.
	DecideCall(ctx context.Context, key string) (*RemoteCall, error)
	// ReapCalls deals with the calls whose lease or time has ended, forgets those that ended more than
	// [CallsKept] ago and whose run is over or not kept, and returns how many it changed. Somebody has
	// to call it, again and again.
	ReapCalls(ctx context.Context) (int, error)
	// WatchCalls calls fn with what may have changed, until ctx is done or the connection is lost. A hint
	// may come twice, late or never. fn must not block.
	WatchCalls(ctx context.Context, fn func(CallHint)) error
}

// A WorkerIndex says which workers there are, whichever process they are connected to.
type WorkerIndex interface {
	// PutWorker keeps what a worker says of itself until ttl has passed; 0 forgets the worker.
	PutWorker(ctx context.Context, w *Worker, ttl time.Duration) error
	// ShortenWorker has a worker forgotten when ttl has passed, unless it is put again or is forgotten
	// earlier. What is known of it stays as it is; nothing is done where it is not known.
	ShortenWorker(ctx context.Context, id string, ttl time.Duration) error
	// Workers returns the workers, those first that have been there longest.
	Workers(ctx context.Context) ([]Worker, error)
}

// CallsKept is how long a call that has ended is kept at least.
const CallsKept = time.Hour

// MaxStarts is how often a call that may run again is started: the last of its workers that is lost
// answers it `unavailable`.
const MaxStarts = 5

// A CallState says how far a call in a [CallQueue] has come.
type CallState string

// The states. In the last three a call has ended, but for a late result of an unknown one.
const (
	CallQueued    CallState = "queued"
	CallClaimed   CallState = "claimed"
	CallStarted   CallState = "started" // the worker may have it
	CallDone      CallState = "done"
	CallUnknown   CallState = "unknown"   // it was started, and nobody knows what came of it
	CallCancelled CallState = "cancelled" // it was not run, or may run again and is not to
)

// Ended reports whether the call is over.
func (s CallState) Ended() bool { return s == CallDone || s == CallUnknown || s == CallCancelled }

// A RemoteCall is one row of a [CallQueue].
type RemoteCall struct {
	// Key names the call: the idempotency key of the tool call, the same for each attempt.
	Key                                 string
	RunID, CallID, RequestID, SessionID string
	Depth                               int // of the run that made the call
	Trace                               TraceContext
	Tool                                string
	Definition                          string // see [WorkerTool.Definition]: only who serves it gets the call
	Effect                              Effect
	// Arguments are content: they go to the worker and to nobody else, and are gone once the call has ended.
	Arguments json.RawMessage

	// The rest is set by the queue.
	State   CallState
	Attempt int    // counted from 1, with each claim
	Worker  string // that holds the call, or that held it last and may still have it; "" where nobody does
	// Left is how much was left of its time; at or below 0: it is up.
	Left      time.Duration
	Cancelled bool        // somebody wants it cancelled
	Decided   bool        // it stays unknown
	Result    *CallResult // nil unless it is done
}

// Ref returns what names the attempt.
func (c *RemoteCall) Ref() CallRef { return CallRef{Key: c.Key, Attempt: c.Attempt, Worker: c.Worker} }

// A CallRef names one attempt of a call, and who holds it.
type CallRef struct {
	Key     string
	Attempt int
	Worker  string
}

// A CallHint says what may have changed. The zero hint stands for the workers.
type CallHint struct {
	Key string `json:"key,omitempty"` // of a call
	// Definition is set when a call of it waits to be claimed.
	Definition string `json:"definition,omitempty"`
	// Cancelled says that somebody wants the call cancelled.
	Cancelled bool `json:"cancelled,omitempty"`
}

// A CallResult is what came of a call. It is content.
type CallResult struct {
	Data    json.RawMessage // a JSON value; nil: none
	Blobs   []Blob
	IsError bool
	Code    Code   // of an error
	Detail  string // of an error, for the model
	RC      int
}

type callResultJSON struct {
	Data    optionalRaw `json:"data,omitzero"`
	Blobs   blobList    `json:"blobs,omitzero"`
	IsError bool        `json:"is_error,omitempty"`
	Code    Code        `json:"code,omitempty"`
	Detail  string      `json:"detail,omitempty"`
	RC      int         `json:"rc,omitempty"`
}

// MarshalJSON returns Lathe's own form of the result.
func (r *CallResult) MarshalJSON() ([]byte, error) {
	out := callResultJSON{optionalRaw(r.Data), blobList(r.Blobs), r.IsError, r.Code, r.Detail, r.RC}
	var w appender
	w.value(&out)
	return w.b, w.err
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *CallResult) UnmarshalJSON(b []byte) error {
	var in callResultJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return errors.New("lathe: reading a call's result: not in its form")
	}
	*r = CallResult{json.RawMessage(in.Data), in.Blobs, in.IsError, in.Code, in.Detail, in.RC}
	return nil
}

// A Worker is a process that executes calls for others.
type Worker struct {
	ID    string // unique, and the same for as long as the process lives
	Fleet string // whose token it has shown
	Tools []WorkerTool
	Since time.Time // set by the index when the worker was put first
}

// A WorkerTool is a tool as its worker describes it. Its fields are those of a [ToolSpec].
type WorkerTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Schema       json.RawMessage `json:"schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Effect       string          `json:"effect,omitempty"`
	Allowlist    []string        `json:"allowlist"`
	Target       []string        `json:"target,omitempty"`
	Labels       []string        `json:"labels,omitempty"`
	Version      string          `json:"version,omitempty"`    // of the schema
	TimeoutMS    int64           `json:"timeout_ms,omitempty"` // of one call; 0: the caller's
	Principals   []string        `json:"principals,omitzero"`  // whose runs have it, as the gateway says; nil: everybody's
}

// Definition returns the hash of everything that the description says: SHA-256 in hexadecimal.
func (t *WorkerTool) Definition() string {
	b, err := json.Marshal(t)
	if err != nil { // a schema that is no JSON: it is refused when the tool is registered
		b = []byte(err.Error())
	}
	sum := sha256.Sum256(append([]byte("lathe/worker-tool/1\x00"), b...))
	return hex.EncodeToString(sum[:])
}
