package lazy_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/testdata"
)

type key struct{}

func TestTimeoutEndsAsTheStandardContextDoes(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(context.Context){
		"nothing was asked":   func(context.Context) {},
		"Err was asked":       func(ctx context.Context) { _ = ctx.Err() },
		"Done was asked":      func(ctx context.Context) { ctx.Done() },
		"a child was made":    func(ctx context.Context) { _, cancel := context.WithCancel(ctx); cancel() },
		"a value was asked":   func(ctx context.Context) { ctx.Value(key{}) },
		"its cause was asked": func(ctx context.Context) { context.Cause(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				parent := context.WithValue(context.WithoutCancel(t.Context()), key{}, "value")

				ctx := lazy.Timeout(parent, time.Minute)
				look(ctx)
				if at, ok := ctx.Deadline(); !ok || !at.Equal(began.Add(time.Minute)) || ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(key{}) != "value" {
					t.Fatalf("before: %v, %v, %v", at, ctx.Err(), ctx.Value(key{}))
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("after its time: %v", ctx.Err())
				}
				ctx.Cancel()
				if <-ctx.Done(); !errors.Is(ctx.Err(), context.DeadlineExceeded) || ctx.Value(key{}) != "value" {
					t.Errorf("after its time and Cancel: %v", ctx.Err())
				}

				ctx = lazy.Timeout(parent, time.Minute)
				look(ctx)
				ctx.Cancel()
				time.Sleep(time.Hour)
				if !errors.Is(ctx.Err(), context.Canceled) {
					t.Errorf("after Cancel: %v", ctx.Err())
				}
				if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), context.Canceled) {
					t.Errorf("after Cancel: %v because of %v", ctx.Err(), context.Cause(ctx))
				}
			})
		})
	}
}

func TestTimeoutEndsItsChildren(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := lazy.Timeout(context.WithoutCancel(t.Context()), time.Minute)
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		time.Sleep(time.Minute)
		if <-child.Done(); !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Error(child.Err())
		}
		ctx = lazy.Timeout(context.WithoutCancel(t.Context()), time.Minute)
		child, cancel = context.WithCancel(ctx)
		defer cancel()
		ctx.Cancel()
		if <-child.Done(); !errors.Is(child.Err(), context.Canceled) {
			t.Error(child.Err())
		}
	})
}

func TestTimeoutThatNothingWaitsForCostsOneAllocation(t *testing.T) {
	testdata.CountsAllocations(t)
	parent := context.WithoutCancel(t.Context())
	n := testing.AllocsPerRun(100, func() {
		ctx := lazy.Timeout(parent, time.Minute)
		if ctx.Err() != nil {
			t.Error(ctx.Err())
		}
		ctx.Cancel()
	})
	if n > 1 {
		t.Errorf("%v allocations, want at most 1", n)
	}
}
