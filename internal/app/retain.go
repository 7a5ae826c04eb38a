package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/store"
)

// retainEvery is the interval at which old runs are removed.
const retainEvery = 10 * time.Minute

// retain removes the runs that exceed the age or the size in bounds, until ctx is done.
func retain(ctx context.Context, s store.Retainer, bounds func() *config.Keep, log *slog.Logger) {
	once := func() {
		if err := retainOnce(ctx, s, bounds(), time.Now()); err != nil && ctx.Err() == nil {
			log.Error("old runs could not be removed", "code", lathe.CodeOf(err))
		}
	}
	once()
	every(ctx, retainEvery, once)
}

func retainOnce(ctx context.Context, s store.Retainer, k *config.Keep, now time.Time) error {
	var errs []error
	if k.MaxAge > 0 {
		errs = append(errs, s.DeleteBefore(ctx, now.Add(-k.MaxAge)))
	}
	if k.MaxBytes > 0 {
		errs = append(errs, s.Trim(ctx, k.MaxBytes))
	}
	return errors.Join(errs...)
}

// every calls do at each interval until ctx is done.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.Tick(interval)
	for {
		select {
		case <-tick:
			do()
		case <-ctx.Done():
			return
		}
	}
}
