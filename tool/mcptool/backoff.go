package mcptool

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff gives the pauses between attempts: each twice as long as the one before, up to a
// highest one, and each shortened by chance by up to a half, so that many servers that failed
// together do not come back together.
type backoff struct {
	min, max time.Duration
	failures int // in a row
	jitter   func() float64
}

// steadyAfter is how long a session lives before its end counts as the first one again.
const steadyAfter = time.Minute

func newBackoff(lowest, highest time.Duration) *backoff {
	if lowest <= 0 {
		lowest = 500 * time.Millisecond
	}
	if highest <= 0 {
		highest = time.Minute
	}
	return &backoff{min: lowest, max: max(lowest, highest), jitter: rand.Float64}
}

// next counts a failure and returns the pause after it.
func (b *backoff) next() time.Duration {
	d := b.max
	if b.failures < 30 && b.min<<b.failures < b.max {
		d = b.min << b.failures
	}
	b.failures++
	return d - time.Duration(b.jitter()*float64(d)/2)
}

// nextEnd counts the end of a session that was offered and has lived for a while, and returns the pause after it. The count begins again
// after a session that has lived for steadyAfter.
func (b *backoff) nextEnd(lived time.Duration) time.Duration {
	if lived >= steadyAfter {
		b.reset()
	}
	return b.next()
}

// sleep waits for d, or until wake holds something, or until ctx ends.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

func (b *backoff) reset() { b.failures = 0 }
