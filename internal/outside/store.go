package outside

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A MapStore stores the events of each run as lines of JSON in memory. It has only the methods of store.Store: runs can be stored and
// resumed, but not listed. The zero value is ready to use.
type MapStore struct {
	mu   sync.Mutex
	runs map[string][][]byte
}

// Append implements store.Store.
func (s *MapStore) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	if err := done(ctx); err != nil {
		return 0, err
	}
	if err := store.CheckAppend(runID, last, events); err != nil {
		return 0, failed(lathe.CodeInvalidRequest, err)
	}
	lines := make([][]byte, len(events))
	for i, e := range events {
		line, err := e.MarshalJSON() // json.Marshal would escape <, > and & in raw JSON
		if err != nil {
			return 0, failed(lathe.CodeInvalidRequest, err)
		}
		lines[i] = line
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have := int64(len(s.runs[runID]))
	switch {
	case have != last:
		return have, failed(lathe.CodeConflict, lathe.ErrConflict)
	case len(lines) == 0:
		return have, nil
	case s.runs == nil:
		s.runs = map[string][][]byte{}
	}
	s.runs[runID] = append(s.runs[runID], lines...)
	return have + int64(len(lines)), nil
}

// Read implements store.Store.
func (s *MapStore) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		s.mu.Lock()
		lines := s.runs[runID]
		s.mu.Unlock()
		err := done(ctx)
		if err == nil && (len(lines) == 0 || after < 0 || after > int64(len(lines))) {
			err = failed(lathe.CodeNotFound, lathe.ErrNotFound)
		}
		for i := after; err == nil && i < int64(len(lines)); i++ {
			if err = done(ctx); err != nil {
				break
			}
			var e event.Event
			if err = json.Unmarshal(lines[i], &e); err != nil {
				err = failed(lathe.CodeInternal, err)
				break
			}
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(event.Event{}, err)
		}
	}
}

// Delete implements store.Store.
func (s *MapStore) Delete(ctx context.Context, runID string) error {
	if err := done(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, runID)
	return nil
}

func failed(code lathe.Code, err error) error {
	return code.Wrap("outside: store", err)
}

// done returns an error with the matching code if ctx is done, else nil.
func done(ctx context.Context) error {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return failed(lathe.CodeTimeout, err)
	case err != nil:
		return failed(lathe.CodeCancelled, err)
	}
	return nil
}
