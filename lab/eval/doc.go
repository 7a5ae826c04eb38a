// Package eval measures how well models use tools. A [Suite] defines the messages for a model and the conditions on the resulting state and
// on the trace; [Measure] runs each scenario with each model, several times, and writes one file for each run; a [Report] counts, draws and
// compares the runs.
//
// A score describes the model. A server that cannot be reached, refuses the key or closes the connection is an error of the harness and
// never a score: see [Run.Scored].
package eval
