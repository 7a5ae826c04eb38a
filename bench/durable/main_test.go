package main

import (
	"testing"
	"time"
)

// Every figure can be made, and runs that wait are gone on with.
func TestFigures(t *testing.T) {
	if err := run(0, 20*time.Millisecond, t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := run(70, 0, t.TempDir()); err != nil {
		t.Error(err)
	}
}
