package guest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Host runs models for guests. [LoopHost] is the Host for a [lathe.Model]; other implementations must execute Request.Tools with a
// tool.Runner, under a policy of their choice, because the functions of guests declare no effect. A tool that is called after Send has
// returned fails with cancelled.
type Host interface {
	// Send runs the model once with the messages of a session, and returns when the run has ended. It returns an error if there was no run:
	// the guest receives the code, and the text only of a *[lathe.Error] of code invalid_request. Send may be called from several
	// goroutines at once, and recursively from a tool call.
	Send(ctx context.Context, req *Request) (*Reply, error)
}

// A Request is one send of a guest's session.
type Request struct {
	Run lathe.RunInfo // principal and labels of the program, and the session's id
	// Model is the model that the guest names; "": none. The host decides which one it uses.
	Model    string
	Messages []lathe.Message // of the session, from its first
	// Auto says who executes calls of the guest's functions: if it is set, the host, for which Tools are these functions; otherwise the
	// guest, and the host offers the definitions in Offers as client tools.
	Auto   bool
	Tools  []lathe.Tool
	Offers []*lathe.ToolSpec
	MCP    *MCP // nil: the session uses no tools of MCP servers
	// Limits are the limits that a guest may set: MaxIterations, MaxToolCalls and MaxOutputBytes, each at least 1. The other limits are
	// those of the host.
	Limits            lathe.Limits
	Timeout           time.Duration    // 0: the timeout of the host
	StrictUnknownTool bool             // true: as [lathe.Settings].StrictUnknownTool; false: the setting of the host
	ToolChoice        lathe.ToolChoice // zero: the setting of the host
	ParallelToolCalls *bool            // nil: the setting of the host
	ResponseFormat    json.RawMessage  // member response_format of the model request; nil: none
	// Overrides are further members of the model request, unchanged, sorted by name.
	Overrides []lathe.Member
}

// A Reply is the result of [Host].Send.
type Reply struct {
	Result *event.Result // how the run ended
	// History is the part of Result.History that the session keeps and sends again.
	History []lathe.Message
	RunID   string // id of the run
	// Backend and Model name the provider and the model that answered.
	Backend, Model string
}
