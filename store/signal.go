package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"
)

// A SignalStore stores signals, the external input of runs: answers to approval requests, results of client tools, cancel requests. A
// signal is stored before its sender gets a response. The process that owns the run reads it when the run next suspends. The signals of a
// run are deleted with it.
type SignalStore interface {
	// PutSignal stores a signal and sets its Time to the current time of the store. The error wraps [lathe.ErrConflict] if the run has
	// ended, or if it already has a signal of the same kind and key, which stays unchanged. It has the code not_found if the run does not
	// exist.
	PutSignal(ctx context.Context, f Signal) error
	// Signals returns the signals of a run, oldest first.
	Signals(ctx context.Context, runID string) ([]Signal, error)
}

// The kinds of signals.
const (
	SignalApproval = "approval" // an answer to an approval request; the key is the id of the call
	SignalResult   = "result"   // the result of a client's tool; the key is the id of the call
	SignalCancel   = "cancel"   // a request to cancel the run
)

// A Signal is external input of one run.
type Signal struct {
	RunID string
	Kind  string // [SignalApproval], [SignalResult] or [SignalCancel]
	Key   string // id of the call; "" for the whole run
	// Body is content: it must not appear in a log, metric or trace.
	Body json.RawMessage
	Time time.Time // when the signal was stored; set by the store
}

// CheckSignal checks the argument of [SignalStore].PutSignal: it returns an error if RunID or Kind is "". A store must call it in PutSignal
// and give the error, which has no code, the code invalid_request.
func CheckSignal(f *Signal) error {
	switch {
	case f.RunID == "":
		return errors.New("the signal has no run id")
	case f.Kind == "":
		return errors.New("the signal has no kind")
	}
	return nil
}

// signalRecords implements [SignalStore] over [Rows].
type signalRecords struct{ begin transaction }

// PutSignal implements [SignalStore].
func (s signalRecords) PutSignal(ctx context.Context, f Signal) error {
	const op = "put signal"
	if err := CheckSignal(&f); err != nil {
		return invalid(op, err)
	}
	f.Body = bytes.Clone(f.Body)
	return s.begin(ctx, op, readWrite, func(rows Rows, now time.Time) error {
		f.Time = now
		return rows.PutSignal(&f)
	})
}

// Signals implements [SignalStore].
func (s signalRecords) Signals(ctx context.Context, runID string) (out []Signal, err error) {
	err = s.begin(ctx, "signals", readOnly, func(rows Rows, _ time.Time) error {
		out, err = rows.Signals(runID)
		return err
	})
	return out, err
}
