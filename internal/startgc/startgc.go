// Package startgc postpones the garbage collections of a program's start. The variables of packages take 3 MiB, and Go collects
// for the first time at 4 MiB: a program collected while packages were initialized, and almost nothing was garbage.
//
// A program that imports it collects at four times as much memory until it calls [Resume], or, after [ResumeAtCollection], until the first collection. With GOGC in the environment
// the package does nothing. A limit in GOMEMLIMIT applies all the time.
//
// It also ends the sampling of allocations, which Go does for each 512 KiB that a program allocates if anything in the program can read
// the samples. Programs that import this package offer no memory profile, and under load the samples and the tables that their stacks are read
// from take 2 to 3 MiB. A rate in GODEBUG (memprofilerate) applies.
//
// Go initializes packages that are ready in the order of their import paths. This one needs nothing but the standard library, so
// that it comes before the packages that make most: those of libraries whose paths sort behind its own.
package startgc

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// percent is that of GOGC during the start.
const percent = 400

var resume = sync.OnceFunc(postpone())

// defaultSampleRate is Go's value of [runtime.MemProfileRate].
const defaultSampleRate = 512 << 10

func init() {
	if runtime.MemProfileRate == defaultSampleRate {
		runtime.MemProfileRate = 0
	}
}

// postpone raises the percentage, and returns a function that restores it.
func postpone() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}

// ResumeAtCollection ends the start at the first collection, for a start that may take much memory: garbage is collected at 16 MiB, and
// from then on as without this package. It may be called before [Resume], which ends a start that takes less.
func ResumeAtCollection() { atCollection(Resume) }

// atCollection calls fn after the next collection.
func atCollection(fn func()) {
	unreachable := &struct{ self *byte }{} // with a pointer: objects without may share their memory
	runtime.AddCleanup(unreachable, func(fn func()) { fn() }, fn)
}

// Resume ends the start: from now on garbage is collected as without this package. Further calls do nothing.
func Resume() { resume() }
