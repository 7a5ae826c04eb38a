package mcptool

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff returns the pauses between attempts: each is twice as long as the previous one, up to max, and each is reduced by a random part
// of up to half, so that servers that failed together are not contacted together.
type backoff struct {
	min, max time.Duration
	failures int // number of consecutive failures
	jitter   func() float64
}

// steadyAfter is the minimum duration of a session after which its end counts as the first one.
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

// nextEnd counts the end of an offered session after the time lived, and returns the pause after it. After a session of at least
// steadyAfter, the count begins again.
func (b *backoff) nextEnd(lived time.Duration) time.Duration {
	if lived >= steadyAfter {
		b.reset()
	}
	return b.next()
}

// sleep waits for d, for a value from wake, or until ctx is done.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(d):
	}
}

func (b *backoff) reset() { b.failures = 0 }
