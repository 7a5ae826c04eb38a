// Package workers serves the connections of workers, which execute tools on other machines. It authenticates a worker by the token of its
// pool, registers the tools that the worker offers, assigns calls from a queue ([remote.Queue]) to it, and stores their results before it
// acknowledges them. Package server calls it behind its middleware; package internal/wire/workers defines the frames.
//
// A [Handler] has three goroutines for each connection, which end with the connection. [Handler.Serve], which the caller runs, returns the
// calls of lost workers to the queue. The locks of a handler and of a connection are not held during I/O; that of the handler is acquired
// first.
package workers
