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

// retainEvery is the time between two removals of old runs.
const retainEvery = 10 * time.Minute

// retain removes the runs that exceed the age or the size of bounds, until ctx is done.
func retain(ctx context.Context, s store.Retainer, bounds func() *config.Keep, log *slog.Logger) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		if err := retainOnce(ctx, s, bounds(), time.Now()); err != nil && ctx.Err() == nil {
			log.Error("old runs could not be removed", "code", lathe.CodeOf(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
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
