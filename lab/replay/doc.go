// Package replay executes a recorded run again: the answers of the model come from the record, and tools return their recorded results or
// are called again. It compares the new events with the record.
//
// It shows the effect of a change of settings, policy, tools or of Lathe itself on a run. The comparison covers everything except times:
// event times, latencies, and the expiry of approvals.
//
// Some input is not in the record: an output that was truncated, a process that ended early, a cancellation while a tool ran, and results
// of the client's tools of a run that could not be resumed. There the runs differ.
package replay
