package mcptool

import (
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

func (b *backoff) reset() { b.failures = 0 }
