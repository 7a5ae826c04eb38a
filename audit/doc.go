// Package audit keeps a record of what was done that cannot be changed unseen: a file of JSON lines,
// each of which holds the hash of the line before it.
//
// A [Log] is written before the fact: an event of a run is on the disk before it is stored or told,
// and a call of a tool before the tool is called. Where the line cannot be written, nothing is done.
// Lines hold no text of messages, arguments or outputs unless the options say so, but the hash of it.
//
// The chain shows a line that was changed, removed, added or moved. It does not show that its end was
// cut off, or that all of it was written anew: for that, keep the [Head] of a log elsewhere.
package audit
