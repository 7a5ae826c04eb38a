package reconnect_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lathe-run/lathe/internal/reconnect"
)

// A wait that is over reports that its context has ended, too.
func TestWaitReportsTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		if err := reconnect.Wait(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}
