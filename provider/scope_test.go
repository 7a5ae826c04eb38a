package provider

import (
	"context"
	"errors"
	"testing"
)

// An odd context is no pointer, and comparing two of it panics.
type odd struct {
	context.Context
	_ []int
}

func TestScope(t *testing.T) {
	t.Parallel()
	parent, stop := context.WithCancel(t.Context())
	defer stop()
	var s scope
	first, cancel := s.open(parent)
	if again, _ := s.open(parent); again != first {
		t.Error("a context that is not done was not used again")
	}
	cancel(errReadTimeout)
	second, _ := s.open(parent)
	if second.Err() != nil || !errors.Is(context.Cause(first), errReadTimeout) {
		t.Errorf("after a cancel: %v, cause %v", second.Err(), context.Cause(first))
	}
	type key struct{}
	other := context.WithValue(parent, key{}, "v")
	third, _ := s.open(other)
	if third.Value(key{}) != "v" || second.Err() == nil {
		t.Error("a context of another parent goes on")
	}
	for range 2 {
		if c, _ := s.open(odd{Context: other}); c.Err() != nil {
			t.Error(c.Err())
		}
	}
	last, _ := s.open(parent)
	stop()
	if last.Err() == nil {
		t.Error("it outlives its parent")
	}
	s.close()
	s.close()
}
