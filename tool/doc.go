// Package tool contains the set of tools that a run may use, typed Go functions as tools, and the runner that calls tools.
//
// A [Set] contains tools whose definitions are checked when they are added. A [Runner] applies a policy, an approver and limits to calls of
// the tools of a set. [Runner.Begin] starts the [Work] of one run: it determines the advertised tools, makes the ids of calls unique, and
// executes the calls of each turn. [Runner.Call] makes one call outside of a run.
//
// runner.go lists the stages of a call: each is a function that returns whether the call proceeds, is parked, or ends with a code. Every
// call gets exactly one result. A failure that the model can act on is a result, never an error of the run. A call is executed only
// if a policy allows it, and a tool that is withheld from a model is listed with its reason: see [Options].
//
// A set with a [Search] may contain thousands of tools. deferred.go implements runs that send their model a few definitions and load
// others.
//
// A call has one deadline: tool_timeout after it has passed policy, approval and cache. It includes the time that the call waits for a
// place under a limit on concurrency; a call without a place by then is rate_limited. A tool that has not returned 100 ms after its
// deadline is abandoned, and counted.
package tool
