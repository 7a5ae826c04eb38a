package config

import "time"

// Keep bounds what is kept of runs that have ended.
type Keep struct {
	MaxAge   time.Duration // negative: no bound
	MaxBytes int64         // 0: no bound
}

// keys returns the rows of the bounds, bound to k.
func (k *Keep) keys() []key {
	return []key{
		{"retention.max_age", "none", durationOr(&k.MaxAge, "none"), "How long the daemon keeps a run in its store after it has ended, or `none` for ever.", "ttl keep days"},
		{"retention.max_bytes", "none", sizeOrNone(&k.MaxBytes), "What the runs in the store may take; beyond it those that ended first are removed. `none`: no bound.", "max_size store_size"},
	}
}
