// Package audit writes a tamper-evident log: a file of JSON lines, each of which contains the hash of the previous line.
//
// A [Log] is written ahead: an event of a run is on disk before it is stored or published, and a tool call is on disk before the tool is
// called. If the line cannot be written, the action is not performed. Lines contain the hash of messages, arguments and outputs; they
// contain the text only if [Options] enable it.
//
// The chain of hashes reveals a line that was changed, removed, added or moved. It does not reveal that the end of the log was cut off, or
// that the whole log was written again: to detect these, store the [Head] of the log elsewhere.
package audit
