package stream

import (
	"net/http"
	"time"
)

// A Writer writes the bytes of a stream. The head of the answer goes with the first of them.
type Writer struct {
	Started bool      // the head was written
	Last    time.Time // when something was written
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	head    func(http.Header)
	bounded time.Time // when the deadline of writes was set
}

// NewWriter returns a writer of a stream. Each write takes at most timeout, and up to an eighth more. head sets what the head says besides the type.
func NewWriter(w http.ResponseWriter, timeout time.Duration, head func(http.Header)) *Writer {
	return &Writer{w: w, rc: http.NewResponseController(w), timeout: timeout, head: head}
}

// Cut makes a write that waits fail. Any goroutine may call it.
func (s *Writer) Cut() { _ = s.rc.SetWriteDeadline(time.Unix(1, 0)) }

// End lifts the bound of writes: the connection may be used again.
func (s *Writer) End() { _ = s.rc.SetWriteDeadline(time.Time{}) }

// bound bounds the write that follows. The deadline is set anew once an eighth of the time for a write has
// passed: a stream writes often, and each deadline is a timer.
func (s *Writer) bound(now time.Time) {
	if now.Sub(s.bounded) > s.timeout/8 {
		s.bounded = now
		_ = s.rc.SetWriteDeadline(now.Add(s.timeout + s.timeout/8)) // a test's writer has none
	}
}

// Write writes b, after the head if it is the first, and flushes it.
func (s *Writer) Write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if !s.Started {
		s.Started = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.head(h)
		s.w.WriteHeader(http.StatusOK)
	}
	s.Last = time.Now()
	s.bound(s.Last)
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}
