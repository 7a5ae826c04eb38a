package guest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
)

// A Host carries the sends of guests: each is one run of a model and of tools, under the host's own
// policy, limits, redaction and events. It must execute Request.Tools through the one runner of
// tools. A tool that is called when Send has returned answers `cancelled`.
//
// The error is of a send that could not become a run; the guest is told its code, and its text where
// it is a *[lathe.Error] of code invalid_request. Send may be called from several goroutines at
// once, for several guests; and again while it works, by a function that a run calls.
type Host interface {
	Send(ctx context.Context, req *Request) (*Reply, error)
}

// A Request is one send of a session.
type Request struct {
	Run lathe.RunInfo // principal and labels of the program, and the id of the session
	// Model is what the guest asked for; "" nothing. The host decides.
	Model    string
	Messages []lathe.Message
	// Auto says that calls are executed. Tools are then the guest's own functions, to be executed;
	// else Offers are their definitions, to be sent and handed back as calls of the client.
	Auto   bool
	Tools  []lathe.Tool
	Offers []*lathe.ToolSpec
	MCP    *MCP // nil: no tools of MCP servers
	// MaxIterations, MaxToolCalls and MaxOutputBytes are the limits of this run, each at least 1.
	MaxIterations, MaxToolCalls, MaxOutputBytes int
	Timeout                                     time.Duration // 0: the host's
	StrictUnknownTool                           bool
	ToolChoice                                  lathe.ToolChoice
	ParallelToolCalls                           *bool
	ResponseFormat                              json.RawMessage
	// Overrides are the parameters that are the model's, as the guest wrote them, sorted by name.
	Overrides []lathe.Member
}

// A Reply is what became of a [Request].
type Reply struct {
	Result *lathe.Result // how the run ended
	// History is what the session keeps of Result.History. It can be sent again.
	History []lathe.Message
	RunID   string
	// Backend and Model say who answered.
	Backend, Model string
}
