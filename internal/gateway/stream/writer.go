package stream

import (
	"net/http"
	"time"
)

// A Writer writes the bytes of a stream to an HTTP response. The headers are sent with the first write.
type Writer struct {
	Started bool      // the headers were sent
	Last    time.Time // time of the last write
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	head    func(http.Header)
	bounded time.Time // time at which the write deadline was last set
}

// NewWriter returns a Writer. Each write may take timeout and up to an eighth more. head sets the headers, except for the type of the
// stream.
func NewWriter(w http.ResponseWriter, timeout time.Duration, head func(http.Header)) *Writer {
	return &Writer{w: w, rc: http.NewResponseController(w), timeout: timeout, head: head}
}

// Cut makes a blocked write fail. It may be called from any goroutine.
func (s *Writer) Cut() { _ = s.rc.SetWriteDeadline(time.Unix(1, 0)) }

// End removes the write deadline, so that the connection can be reused.
func (s *Writer) End() { _ = s.rc.SetWriteDeadline(time.Time{}) }

// bound sets the deadline of the next write. It does so only if an eighth of the timeout has passed since the last time, because a stream
// writes often and each deadline sets a timer.
func (s *Writer) bound(now time.Time) {
	if now.Sub(s.bounded) > s.timeout/8 {
		s.bounded = now
		_ = s.rc.SetWriteDeadline(now.Add(s.timeout + s.timeout/8)) // the writer of a test has no deadlines
	}
}

// Write writes b, after the headers if it is the first write, and flushes it.
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
