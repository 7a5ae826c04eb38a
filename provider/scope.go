package provider

import (
	"context"
	"net/http/httptrace"
	"reflect"
)

// A scope is the context of attempts. It belongs to one conversation: nothing has to be cancelled
// after a response that was read to its end, so the next attempt under the same context uses the scope again.
type scope struct {
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
	trace       *httptrace.ClientTrace // of each attempt's request
}

// open returns a context under parent that is not done unless parent is.
func (s *scope) open(parent context.Context) (context.Context, context.CancelCauseFunc) {
	if s.ctx == nil || !same(s.parent, parent) || s.ctx.Err() != nil {
		s.close()
		s.parent = parent
		s.ctx, s.cancel = context.WithCancelCause(parent)
		if s.trace != nil {
			s.ctx = httptrace.WithClientTrace(s.ctx, s.trace)
		}
	}
	return s.ctx, s.cancel
}

// close cancels the context.
func (s *scope) close() {
	if s.cancel != nil {
		s.cancel(nil)
	}
	*s = scope{trace: s.trace}
}

// same reports whether a and b are one context. Comparing others than pointers may panic.
func same(a, b context.Context) bool { return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b }
