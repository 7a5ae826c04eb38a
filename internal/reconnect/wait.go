package reconnect

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds the wait that a server may ask for; one that asks for more is not asked again.
const maxRetryAfter = 10 * time.Second

// RetryAfter returns the wait of a Retry-After header: 0 if there is none, and a negative value if the header is not valid or asks for
// more than 10 s.
func RetryAfter(header string) time.Duration {
	if header == "" {
		return 0
	}
	d := time.Duration(-1)
	if n, err := strconv.Atoi(header); err == nil && n >= 0 {
		d = time.Duration(min(n, 1<<20)) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = max(time.Until(at), 0)
	}
	if d > maxRetryAfter {
		return -1
	}
	return d
}

// Wait blocks for d. It returns the error of ctx if that ends first.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
