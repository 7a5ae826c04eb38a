// Package tool holds the set of tools that a run may use, typed Go functions as tools, and the one
// runner that calls tools.
//
// A [Set] holds tools whose definitions are checked when they are added. A [Runner] applies a policy, an approver and
// limits to the calls of a set. [Runner.Begin] opens the [Work] of one run: it says which tools are advertised, makes the
// ids of calls unique, and executes the calls of each turn. [Runner.Call] makes one call outside a run.
//
// The stages of a call are listed in runner.go: each is a function that returns whether the call proceeds, is parked, or
// ends with a code. Every call is answered exactly once. A failure that the model can act on is an answer, never an
// error of the run. The zero [Options] deny every call.
//
// A set with a [Search] may hold thousands of tools: deferred.go has what a run does that sends its model a few of their
// definitions and loads others.
//
// A call has one deadline, tool_timeout after it has passed policy, approval and cache. It includes
// the time that the call waits for a place under a limit on concurrency; a call that gets none is rate_limited. A tool that still
// runs 100 ms after its deadline is abandoned, and counted.
package tool
