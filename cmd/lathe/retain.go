package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
)

// retainEvery is how often the daemon removes what is not to be kept any longer.
const retainEvery = 10 * time.Minute

// retain removes what the store is not to keep any longer, until ctx is done. bounds says what holds now.
func retain(ctx context.Context, s lathe.Retainer, bounds func() *config.Keep, log *slog.Logger) {
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

func retainOnce(ctx context.Context, s lathe.Retainer, k *config.Keep, now time.Time) error {
	var errs []error
	if k.MaxAge > 0 {
		errs = append(errs, s.DeleteBefore(ctx, now.Add(-k.MaxAge)))
	}
	if k.MaxBytes > 0 {
		errs = append(errs, s.Trim(ctx, k.MaxBytes))
	}
	return errors.Join(errs...)
}
