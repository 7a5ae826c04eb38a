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
	failures int            // number of consecutive failures
	jitter   func() float64 // returns a random number in [0, 1)
}

// steadyAfter is the duration from which a session was stable: the pause after its end is that after a first failure.
const steadyAfter = time.Minute

func newBackoff(lowest, highest time.Duration) *backoff {
	setDefault(&lowest, 500*time.Millisecond)
	setDefault(&highest, time.Minute)
	return &backoff{min: lowest, max: max(lowest, highest), jitter: rand.Float64}
}

// next counts a failure and returns the pause after it.
func (b *backoff) next() time.Duration {
	d := b.max
	if b.min <= b.max>>b.failures { // min<<failures does not overflow
		d = b.min << b.failures
	}
	b.failures++
	return d - time.Duration(b.jitter()*float64(d)/2)
}

func (b *backoff) reset() { b.failures = 0 }

// afterSession returns the pause after a session that began successfully and then ended. lived is its duration. Its end counts as one more
// failure, or as the first one if the session was stable.
func (b *backoff) afterSession(lived time.Duration) time.Duration {
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
