package mcptool

// This file counts the calls of a session, so that a session that the server no longer knows is closed after its last call.

import "context"

// take reports whether a call may start on the session. If it returns true, the caller must call release.
func (x *session) take() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.isLost || x.life.Err() != nil {
		return false
	}
	x.calls++
	return true
}

// release records the end of a call that take has admitted.
func (x *session) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls--
	if x.isLost && x.calls == 0 {
		close(x.unused)
	}
}

// lose marks a session that the server no longer knows. Calls that were sent before may still get answers: the session is closed after the
// last of them has returned.
func (x *session) lose() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.isLost {
		return
	}
	x.isLost = true
	close(x.loss)
	if x.calls == 0 {
		close(x.unused)
	}
}

// drain waits until a lost session has no calls in progress.
func (x *session) drain(ctx context.Context) {
	select {
	case <-x.unused:
	case <-x.ended:
	case <-ctx.Done():
	}
}
