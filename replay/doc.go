// Package replay runs a recorded run again: the model says what it said then, and tools answer what
// they answered, or run anew. What comes of it is held against the record, event by event.
//
// It shows what a change of settings, policy, tools or of Lathe itself does to a run. What is compared
// is everything but times: event times, latencies, and when an approval expires.
//
// What the record does not hold cannot be made again: an output that was cut to size, a process that
// ended in the middle, a person who cancelled while a tool ran, or the tools of the client of a run that
// could not be resumed. There the runs differ.
package replay
