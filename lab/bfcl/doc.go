// Package bfcl reads the files of the Berkeley Function Calling Leaderboard and judges calls by its
// rules: the same verdict and the same error type as the leaderboard's own checker of call trees.
//
// The package does no I/O of its own: the files come from an [io/fs.FS]. [Suite] yields the cases of
// one category with messages and tools, [Case.ScoreCalls] judges what a model called, and a [Scorer]
// judges outputs that were recorded elsewhere. [Measure] makes a suite of cases that package eval runs
// with models; of cases of several turns it judges only the form of the first calls.
//
// Where the leaderboard's checker would end with an exception, because a function or an answer of the
// data is not of the form it reads, the verdict here is invalid with an error type that begins with
// [InputError].
package bfcl
