// Package eval measures how well models use tools. A [Suite] defines the messages for a model and the conditions on the resulting state and
// on the trace; [Measure] runs each scenario with each model, several times, and writes one file for each run; a [Report] counts, draws and
// compares the runs.
//
// A score describes the model. A run whose server cannot be reached has no score: see [Run.Scored]. A run that the server refuses, for example
// because of the key, or whose connection it closes after it was reached, counts as failed; refused runs are also counted separately: see
// [Row].
package eval
