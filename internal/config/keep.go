package config

import "time"

// Keep limits how long and how much of ended runs is stored.
type Keep struct {
	// How long the gateway keeps a run in its store after it has ended, or `none` for ever.
	MaxAge time.Duration `key:"max_age" default:"none" off:"none" also:"ttl keep days"` // negative: no bound
	// What the runs in the store may take; beyond it those that ended first are removed. `none`: no bound.
	MaxBytes int64 `key:"max_bytes" default:"none" is:"size" off:"none" also:"max_size store_size"` // 0: no bound
}
