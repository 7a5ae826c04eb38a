package provider

import (
	"io"
	"sync"
)

// OpenSession returns the memory of one run, for Request.Session: its requests are encoded where the last one was. A request that is
// made while another one of the session is under way, or after the session was closed, is encoded elsewhere.
func (c *Chat) OpenSession() io.Closer { return &session{c: c, v: c.take()} }

// A session owns a conversation until it is closed; the conversation then serves another caller.
type session struct {
	c *Chat
	v *conversation

	mu           sync.Mutex
	busy, closed bool
}

// acquire reserves the conversation for one request. It returns false if the conversation is in use or closed.
func (s *session) acquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.closed {
		return false
	}
	s.busy = true
	return true
}

// release ends the request that acquired the conversation.
func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if s.closed {
		s.c.giveBack(s.v)
	}
}

// Close returns the conversation's memory to the model, after the request that is under way. It may be called more than
// once. The error is nil.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy && !s.closed {
		s.c.giveBack(s.v)
	}
	s.closed = true
	return nil
}
