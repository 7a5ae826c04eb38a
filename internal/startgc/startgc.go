// Package startgc postpones the garbage collections during the start of a program. Package variables take 3 MiB, and Go collects for the
// first time at 4 MiB: without startgc, a program collects while packages are initialized, when there is almost no garbage.
//
// A program that imports startgc collects at four times as much memory until it calls [Resume] or, after [ResumeAtCollection], until the
// first collection. If GOGC is set in the environment, startgc changes nothing. A limit in GOMEMLIMIT always applies.
//
// startgc also switches off the sampling of allocations, which Go does for each 512 KiB if anything in the program can read the samples.
// Programs that import startgc offer no memory profile, and under load the samples and the symbol tables for their stacks take 2 to 3 MiB.
// A rate in GODEBUG (memprofilerate) applies.
//
// Go initializes packages that are ready in the order of their import paths. startgc imports only the standard library, so that it is
// initialized before the packages that allocate most, which are libraries whose paths sort behind it.
package startgc

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// percent is the GOGC value during the start.
const percent = 400

var resume = sync.OnceFunc(postpone())

// defaultSampleRate is Go's value of [runtime.MemProfileRate].
const defaultSampleRate = 512 << 10

func init() {
	if runtime.MemProfileRate == defaultSampleRate {
		runtime.MemProfileRate = 0
	}
}

// postpone raises the GOGC value and returns a function that restores it.
func postpone() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}

// ResumeAtCollection calls [Resume] after the first collection, for a start that may allocate much: the first collection is at 16 MiB,
// later ones are as without this package. A program may call Resume earlier.
func ResumeAtCollection() { atCollection(Resume) }

// atCollection calls fn after the next collection.
func atCollection(fn func()) {
	unreachable := &struct{ self *byte }{} // has a pointer field: objects without pointers may share memory, which delays the cleanup
	runtime.AddCleanup(unreachable, func(fn func()) { fn() }, fn)
}

// Resume ends the start: from now on Go collects as without this package. Further calls do nothing.
func Resume() { resume() }
