// Package workers serves the connections of workers, which execute tools on other machines: it authenticates a worker by the token of its pool,
// registers the tools that it offers, and gives it calls of a queue ([remote.Queue]), whose results it stores before it acknowledges them. Package
// server calls it behind its middleware; package internal/wire/workers has the frames.
//
// A [Handler] has three goroutines for each connection, which end with the connection, and [Handler.Serve], which the caller runs, returns calls
// whose worker is lost to the queue. The locks of a handler and of a connection are held for no I/O, that of the handler first.
package workers
