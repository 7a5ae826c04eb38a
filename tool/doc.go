// Package tool holds the set of tools that a run may use, typed Go functions as tools, and the one
// runner that calls tools.
//
// A [Set] is made of tools whose definitions are checked when they are added. A [Runner] puts a set
// under a policy, an approver and limits. [Runner.Begin] opens the [Work] of one run: it says which
// tools are advertised, makes the ids of calls unique, and executes the calls of each turn.
//
// What happens to a call stands in one function, Work.runCall in runner.go; each of its steps is a
// function in the file of its name. Every call is answered exactly once, whatever happens to it,
// and a failure that the model can act on is an answer, never an error of the run. The zero
// [Options] deny every call.
//
// A call has one deadline, tool_timeout after it has passed policy, approval and cache. It includes
// the time that the call waits for a place under a limit on concurrency; a call that finds none is
// rate_limited. A tool that goes on after its deadline is abandoned after a short grace, and counted.
package tool
