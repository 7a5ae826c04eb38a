//go:build race

package testdata

// race reports whether the race detector is on.
const race = true
