// Package eval measures how well models use tools. A [Suite] says what a model is told and what must
// hold afterwards, of the state it leaves and of the way it took; [Measure] tries each scenario with each
// model, several times, and keeps one file for each run; a [Report] counts, draws and compares.
//
// What is measured is the model. A server that cannot be reached, refuses the key or breaks off is
// an error of the harness and never a score: see [Run.Scored].
package eval
