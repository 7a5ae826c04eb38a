package guest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Host runs models for guests. [LoopHost] is the Host for a [lathe.Model]. Another implementation must execute Request.Tools with a
// tool.Runner, under a policy of its choice, because the functions of guests declare no effect. If it calls a tool after Send has returned,
// the call fails with the code cancelled.
type Host interface {
	// Send executes one run of the model with the messages of a session, and returns when the run has ended. It returns an error only if
	// there was no run. The guest receives the code of the error; it receives the text only of a *[lathe.Error] of code invalid_request.
	// Send may be called from several goroutines at once, and recursively from a tool call.
	Send(ctx context.Context, req *Request) (*Reply, error)
}

// A Request is what a guest sends to a model: the messages and the parameters of a session.
type Request struct {
	Run lathe.RunInfo // principal and labels of [RunOptions], and the id of the session
	// Model is the model that the guest names; "": it names none. The host decides which model it uses.
	Model    string
	Messages []lathe.Message // all messages of the session, in order
	// Auto says who executes the calls of the guest's functions. If it is true, the host executes them: Tools are these functions. If it is
	// false, the guest executes them: the host must offer the definitions in Offers to the model as client tools.
	Auto   bool
	Tools  []lathe.Tool
	Offers []*lathe.ToolSpec
	MCP    *MCP // tools of MCP servers that the session may use; nil: none
	// Limits has the limits that a guest may set: MaxIterations, MaxToolCalls and MaxOutputBytes, each at least 1. The host uses its own
	// values for the other limits.
	Limits            lathe.Limits
	Timeout           time.Duration    // time limit of the run; 0: that of the host
	StrictUnknownTool bool             // true: a call of an unknown tool ends the run; false: the setting of the host
	ToolChoice        lathe.ToolChoice // tool choice that the guest sets; zero: the setting of the host
	ParallelToolCalls *bool            // whether the model may call tools in parallel; nil: the setting of the host
	ResponseFormat    json.RawMessage  // member response_format of the model request; nil: none
	// Overrides are further members of the request to the model server, sorted by name. The host must pass them on unchanged.
	Overrides []lathe.Member
}

// A Reply is the result of [Host].Send.
type Reply struct {
	Result *event.Result // how the run ended
	// History is the part of Result.History that the session keeps and sends with its next request.
	History []lathe.Message
	RunID   string // id of the run
	// Backend is the name of the provider, and Model that of the model, that answered.
	Backend, Model string
}
