package provider

import (
	"time"

	"github.com/lathe-run/lathe"
)

const (
	// firstPoll and maxPoll are the shortest and the longest pause between two requests to a server that loads its model.
	firstPoll = 250 * time.Millisecond
	maxPoll   = 5 * time.Second
)

// A loading is the state of a model call while the server loads the model.
type loading struct {
	until time.Time // the end of the wait; zero while the server has not reported that it loads the model
	pause time.Duration
	polls int // number of requests to which the server answered that it loads
}

// attempts returns the number of attempts that the wait counts as: 1 for any number of polls.
func (l *loading) attempts() int { return min(l.polls, 1) }

// wait returns the pause before the next request. It returns false if the call does not wait, because the failure is another one, or the
// limit has passed. Once the server has reported that it loads the model, a refused connection is part of the wait,
// because a server that restarts accepts none for a moment.
func (l *loading) wait(limit time.Duration, up *lathe.UpstreamError) (time.Duration, bool) {
	started := !l.until.IsZero()
	restarts := started && up.Kind == lathe.UpstreamAborted && up.Retryable
	if limit <= 0 || up.Kind != lathe.UpstreamLoading && !restarts {
		return 0, false
	}
	now := time.Now()
	if !started {
		l.until, l.pause = now.Add(limit), firstPoll
	}
	left := l.until.Sub(now)
	if left <= 0 {
		return 0, false
	}
	l.polls++
	pause := max(l.pause, min(up.RetryAfter, maxPoll))
	l.pause = min(2*l.pause, maxPoll)
	return min(pause, left), true
}
