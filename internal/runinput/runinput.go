// Package runinput has the part of a loop.Input that the gateway, the engine and the commands of this module set and that programs which
// embed the module do not. A loop.Input contains an [Extra] in an unexported field, so a copy of an Input has a copy of its Extra.
package runinput

import (
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
)

// An Extra is the part of the input of one run that package loop does not export. It must not change during the run.
type Extra struct {
	// AllowAbsent permits names in Allow of which the runner's set has no tool when the run starts, for sets whose sources may add tools
	// later. A resumed run permits them, too.
	AllowAbsent bool
	// HostedTools are tools that the model's server executes: see [lathe.Request].
	HostedTools []json.RawMessage
	// Betas and APIVersion are those of each model request: see [lathe.Request].
	Betas      []string
	APIVersion string
	// User is an opaque end-user id that the wire may carry.
	User string
	// Relay receives the bytes of the server's answer if its Wire is that of loop.Loop.Relays. Its client receives the calls of the answer
	// with these bytes, so the client must execute all of them, whatever their names, and the run has one turn.
	Relay *lathe.Relay
	// HandOver ends a resumable run, like one that is not resumable, if only results of the caller's tools are pending. It has no effect
	// after the run was resumed.
	HandOver bool
	// Continues is the id of the run whose messages this run takes over: the last TakenOver of Messages, which are that run's messages
	// after those that both runs start from. The calls in them count as calls of this run, except for limits.
	Continues string
	TakenOver int
	// Replays is the id of the run whose conversation this run repeats. It is recorded in RunStarted, and has no other effect.
	Replays string
	// Executor is the name of the engine that executes the run step by step. It is recorded in RunStarted, and has no other effect in
	// package loop. engine.Engine.Accept sets it if it is "".
	Executor string
	// Client is stored with a run that can be resumed, as content, for the caller: see loop.State.Client. It must be JSON.
	Client json.RawMessage

	// Suspend, if set, is called before each model call with nil, and before each tool call that may have an effect with the call and the
	// definition of its tool, as in tool.RunOptions.Suspend. If it returns true, the range ends without a further event and without a
	// result; the state of the events can be resumed. Suspend is not called before a model call that answers the loop's own request, which
	// belongs to the previous step.
	Suspend func(call *lathe.ToolCall, spec *lathe.ToolSpec) bool
	// Suspended reports that Suspend ended the run in the state Resume, and that nothing has happened since. No RunResumed is then yielded.
	Suspended bool
	// Elapsed is the time for which the run was executed before it was suspended. It counts for the time limit and the latency of the run.
	Elapsed time.Duration
}

// Find returns the Extra within a *loop.Input. Package loop sets it when it is initialized, and nothing may set it afterwards: this package
// cannot import loop, which imports it.
var Find func(in any) *Extra

// Of returns the Extra of in, which must be a *loop.Input that is not nil. It panics if in has another type.
func Of(in any) *Extra { return Find(in) }

// With replaces the Extra of in, a *loop.Input that is not nil, and returns in. It panics if in has another type.
func With[Input any](in *Input, extra Extra) *Input {
	*Of(in) = extra
	return in
}
