// Package runlog derives from the log of a run what the gateway needs: the state of the run, its approvals and decisions ([View]), and the
// part of it that is one answer to a client ([Span], [AnswerID]).
//
// Package server reads a View for each request about a run. A View reflects the log at the time of reading and belongs to the goroutine of
// the request.
package runlog
