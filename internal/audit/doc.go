// Package audit writes a tamper-evident log: a file of JSON lines, each of which holds the hash of the
// line before it.
//
// A [Log] is written ahead: an event of a run is on the disk before it is stored or published, and a
// tool call before the tool is called. If the line cannot be written, the action is not performed.
// Lines hold the hash of messages, arguments and outputs; they hold the text only if the options say so.
//
// The chain shows a line that was changed, removed, added or moved. It does not show that its end was
// cut off, or that all of it was written anew: for that, keep the [Head] of a log elsewhere.
package audit
