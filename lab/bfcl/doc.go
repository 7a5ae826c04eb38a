// Package bfcl reads the files of the Berkeley Function Calling Leaderboard and scores calls by its rules, with the same verdict and the
// same error type as the leaderboard's own AST checker.
//
// The package does no I/O of its own: it reads the files from an [io/fs.FS]. [Suite] yields the cases of one category with messages and
// tools, [Case.ScoreCalls] scores the calls of a model, and a [Scorer] scores outputs that were recorded elsewhere. [Measure] returns a
// suite that package eval runs with models; for cases with several turns, only the form of the first calls is scored.
//
// If a function or an answer of the data does not have the expected form, the leaderboard's checker raises an exception. Here the verdict
// is then invalid, with an error type that begins with [InputError].
package bfcl
