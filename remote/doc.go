// Package remote defines how tool calls reach workers on other machines: [Queue] stores each call as a row that a
// worker claims, and [WorkerIndex] lists the connected workers. Package remote/worker executes calls,
// tool/remotetool offers the workers' tools to runs, and the stores implement both interfaces.
package remote
