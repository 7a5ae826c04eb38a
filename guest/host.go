package guest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Host executes the sends of guests: each is one run of a model and tools, with the host's own policy, limits, redaction and events.
// It must execute Request.Tools with a tool.Runner. A tool that is called after Send has returned fails with the code cancelled.
// [LoopHost] is the Host for a model. Other implementations choose the policy for Request.Tools, which declare no effect.
//
// Send returns an error if no run was possible. The guest receives its code, and its text if it is a *[lathe.Error] with the code
// invalid_request. Send may be called from several goroutines at once, for several guests, and recursively by a function that a run
// calls.
type Host interface {
	Send(ctx context.Context, req *Request) (*Reply, error)
}

// A Request is one send of a session.
type Request struct {
	Run lathe.RunInfo // principal and labels of the program, and the id of the session
	// Model is the model that the guest requests; "" if it requests none. The host may use another one.
	Model    string
	Messages []lathe.Message
	// Auto: the host executes calls, and Tools are the guest's functions. Otherwise Offers are the definitions of the functions, which
	// the host offers as tools of the client.
	Auto   bool
	Tools  []lathe.Tool
	Offers []*lathe.ToolSpec
	MCP    *MCP // nil: the session uses no tools of MCP servers
	// Limits are the limits of this run that a guest may set: MaxIterations, MaxToolCalls and MaxOutputBytes, each at least 1. For all
	// others the limits of the host apply.
	Limits            lathe.Limits
	Timeout           time.Duration // 0: the timeout of the host
	StrictUnknownTool bool
	ToolChoice        lathe.ToolChoice
	ParallelToolCalls *bool
	ResponseFormat    json.RawMessage
	// Overrides are the parameters for the model, unchanged, sorted by name.
	Overrides []lathe.Member
}

// A Reply is the outcome of a [Request].
type Reply struct {
	Result *event.Result // how the run ended
	// History is the part of Result.History that the session stores and sends again.
	History []lathe.Message
	RunID   string
	// Backend and Model are the names of the provider and the model that answered.
	Backend, Model string
}
