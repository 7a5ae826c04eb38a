package reconnect

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter is the longest wait of a Retry-After header that is obeyed. If a server requests more, the request is not repeated.
const maxRetryAfter = 10 * time.Second

// RetryAfter returns the wait of a Retry-After header: 0 if header is empty, and a negative value if it is not valid or more than 10 s.
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

// Wait blocks for d. It returns the error of ctx if ctx ends first.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}
