package mcptool

import "context"

// take reports whether a call may begin on the session. release must follow it.
func (x *session) take() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.isLost || x.life.Err() != nil {
		return false
	}
	x.calls++
	return true
}

// release ends what take began.
func (x *session) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.calls--; x.isLost && x.calls == 0 {
		close(x.unused)
	}
}

// lose ends the use of a session that the server does not know any more. Calls that were sent before have answers of their own: the
// session is closed when the last of them has returned.
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

// drain waits until no call runs on a lost session.
func (x *session) drain(ctx context.Context) {
	select {
	case <-x.unused:
	case <-x.ended:
	case <-ctx.Done():
	}
}
