// Package runlog says what the log of a run says to the gateway: the state of the run, its approvals and decisions ([View]), and which part of it is one
// answer to a client ([Span], [AnswerID]).
//
// Package server reads a View for each request that is about a run. A View is that of the time at which it was read, and belongs to the goroutine of the
// request.
package runlog
