package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/store"
)

// A Model is a model that requests can name, with the loop that executes its runs.
type Model struct {
	Loop *loop.Loop
	// Settings and Limits are those that the loop was created with. A request can only narrow the limits.
	Settings lathe.Settings
	Limits   lathe.Limits
	Created  time.Time // the time that lists of models show
	// Pass lists request members that Lathe does not read and still sends to the model server, although OpenAI's
	// published schema does not define them or lets the server store data because of them.
	Pass []string
}

// Models contains the models that requests may name. The methods may be called from several goroutines at once.
type Models interface {
	Names() []string // sorted
	// Model returns the model with that name; "" is the default model. For an unknown name it returns an error with
	// code not_found.
	Model(name string) (*Model, error)
}

// Tools contains the tools of this server. The methods may be called from several goroutines at once.
type Tools interface {
	// Specs returns the definitions of all tools, sorted by name. The server does not modify the slice.
	Specs() []*lathe.ToolSpec
	// Advertised returns the specs of the tools that the run advertises to its model. allow restricts them by name; nil
	// allows all.
	Advertised(run *lathe.RunInfo, allow []string) []*lathe.ToolSpec
	// Execute executes one tool call with all stages of the runner, as the only call of a run. The limits narrow those of
	// the runner, including those of a run that the call starts; zero fields do not narrow. Its events are passed to emit.
	Execute(ctx context.Context, run *lathe.RunInfo, allow []string, limits lathe.Limits, call lathe.ToolCall, emit func(event.Data)) (lathe.ToolResult, error)
}

// A Setup is the part of the configuration that [Server.Reload] replaces while the server runs.
type Setup struct {
	Models Models
	Tools  Tools // nil: none
	// Policy is the policy of the runners. Listings show its decision for each tool; nil: they show none.
	Policy lathe.Policy
	// State describes the parts of the server to operators; nil: /api/servers and the other routes for operators return
	// 404.
	State State
	// Evals contains results of evaluations, for admin keys; nil: /api/evals returns 404.
	Evals Evals
	// Replay returns a loop for one run that repeats a recorded run: it uses the named model, and calls get their results
	// from the record, so no tool is called. record is the log of the recorded run from the first event on. The error has
	// code not_found if the model is unknown, and content_removed if the record has lost its content. nil: POST
	// /api/runs/{id}/replay does not support recorded results.
	Replay func(model string, record []event.Event) (*loop.Loop, error)
	Keys   []Key // nil: all clients are the same caller, unless RequireKey is set
	// RequireKey refuses requests without a key even if Keys is empty: every route that requires a key then returns 401.
	RequireKey bool
	// Warnings are messages about a configuration that is valid and in force. They contain no secret. POST /api/reload
	// returns them.
	Warnings []string
	// Identity identifies callers by signed tokens, in addition to Keys; nil: tokens are not accepted. It requires Keys,
	// which are the profiles of these callers.
	Identity IdentityProvider
	// Hosts are the host names that requests may use, besides localhost and IP addresses. On a loopback address other
	// names are always refused; on other addresses they are refused only if Hosts is not empty.
	Hosts []string
	// PublicURL is the scheme and host at which clients reach the server, such as https://lathe.example.com. If Identity is
	// set, the server publishes it in its metadata of RFC 9728. If PublicURL is empty, the scheme and host of each request
	// are used.
	PublicURL string
	// Origins are the origins of pages on other hosts that may call the server, such as https://chat.example.com.
	Origins []string
	// WaitingText is the template of the sentence in a completion whose run waits for an approval; see
	// [approval.NewSentence]. "": [approval.DefaultSentence].
	WaitingText string
	// Hold is how long the response of a completion is held open while its run waits for an approval; 0: the response ends
	// at once. A positive value requires Options.Index and Options.Bus.
	Hold time.Duration
}

// Options are the options of [New], which copies them.
type Options struct {
	Setup  Setup          // Models are required
	Engine *engine.Engine // required
	// Supervisor executes detached runs, which continue without their client; nil: `detach` is refused.
	Supervisor *engine.Supervisor
	// Executor, if set, executes detached runs instead of Supervisor. Supervisor still executes two kinds: runs that
	// continue after an approval although their request has ended, and replays with recorded results. Executor requires
	// Index and Bus.
	Executor Executor
	// Index is the store of the engine, if it can list runs; nil: runs are not stored. It must also implement
	// [store.SignalStore]. If it implements [store.Shared], other processes may own its runs.
	Index store.RunIndex
	// Cluster configures the requests between processes that share a store. If it is zero, watchers get deltas only of
	// runs that this process executes; the events of other runs come from the store.
	Cluster Cluster
	// Bus is a sink of the engine to which watchers of runs subscribe; nil: /api/runs is not served.
	Bus *observe.Bus
	// Approvals is the approver of the runners. It stores its answers in Index. If it is nil, no call can be approved.
	Approvals *approval.Queue
	// Ledger contains the usage of model calls, for /api/usage and /api/keys; nil: these show no usage.
	Ledger store.Ledger
	// Ready, if set, is called for each /readyz. If it returns an error, for example because the store cannot be written,
	// /readyz returns 503 and the cause is logged.
	Ready func(ctx context.Context) error
	// MCP, if set, serves /mcp behind the same keys, limits, log, Host and Origin rules as the other routes. It gets only
	// requests that the middleware has admitted. See [Charge].
	MCP http.Handler
	// Workers, if set, serves the connections of workers at their path, behind the same middleware.
	Workers *Workers
	// SealKey encrypts the hidden turns of a run in answers on Responses, Messages and Gemini, which clients send back in
	// their next request. It has at least 32 bytes. If it is empty and Index implements [store.SecretKeeper], Index stores
	// a random key for all servers that use it; otherwise each server generates a key. PreviousSealKey decrypts hidden
	// turns that were encrypted with the previous key.
	SealKey, PreviousSealKey secret.Secret
	Metrics                  *observe.Metrics // counts stream clients; nil: nothing is counted
	// NoMetrics disables /metrics on this handler; [Server.Metrics] serves it on another listener.
	NoMetrics bool
	// SumUsage makes `usage` of a completion the sum over all model calls of its run, instead of the usage of the last one.
	SumUsage bool
	// NoPage disables the console at /.
	NoPage bool
	// SeparateConsole serves the console and its sessions only on the listener of [Server.Console].
	SeparateConsole bool
	// Switches disables tools while the server runs; nil: POST /api/tools/{name}/disable returns 404. The policies of the
	// runners must consult it: see [ToolSwitches].
	Switches ToolSwitches
	// Reload reads the configuration again and activates it with [Server.Reload], or changes nothing and returns an error.
	// The caller gets the text of the error, which must not contain a secret. by is the name of the caller's key. Calls may
	// be concurrent. nil: POST /api/reload returns 404.
	Reload func(ctx context.Context, by string) error
	// Removing, if set, is called before a client's request deletes a run; by is the name of the client's key. If it
	// returns an error, the run is not deleted.
	Removing func(ctx context.Context, by string, run *lathe.RunInfo) error
	Limits   Limits
	Log      *slog.Logger     // logs requests, without their content; nil: nothing is logged
	Now      func() time.Time // nil: time.Now
}

// Limits bound the memory, connections and time that clients can use. A zero field has the default in its comment.
type Limits struct {
	MaxBody       int `key:"max_body" default:"16MiB"`      // 16 MiB of a request body, decompressed
	MaxMessages   int `key:"max_messages" default:"10000"`  // 10,000 messages in the conversation of a request
	MaxParts      int `key:"max_parts" default:"20000"`     // 20,000 parts of the messages of a request together, without tool calls
	MaxCalls      int `key:"max_calls" default:"10000"`     // 10,000 tool calls in the messages of a request together
	MaxTools      int `key:"max_tools" default:"10000"`     // 10,000 tools that a request declares
	MaxText       int `key:"max_text" default:"1000000"`    // 1,000,000 characters of one text that a user sends to /api/chat
	MaxConcurrent int `key:"max_concurrent" default:"1024"` // 1,024 concurrent requests; further ones get 503. With several keys one key has at most a quarter of them
	MaxWatchers   int `key:"max_watchers" default:"1024"`   // 1,024 concurrent event streams of runs, and 1,024 WebSockets; neither count in MaxConcurrent. With several keys one key has at most a quarter of each
	// MaxInflightBytes bounds the memory for requests in progress: their decompressed bodies, the conversations decoded
	// from them, and messages of WebSockets. If there are keys, one key has at most half of it. Default: a quarter of the
	// limit in GOMEMLIMIT, or 1 GiB if that is not set.
	MaxInflightBytes int64
	MaxIdle          int           `key:"max_idle_connections" default:"4096"` // 4,096 idle connections; if there are more, the one that has been idle longest is closed
	MaxBuffer        int           `key:"max_buffer" default:"4MiB"`           // 4 MiB of unsent output for one slow client, which is disconnected beyond it
	MaxHeader        int           `key:"max_header" default:"64KiB"`          // 64 KiB of the request line and headers of a request
	HeaderTimeout    time.Duration `key:"header_timeout" default:"5s"`         // 5 s to receive the headers of a request
	BodyTimeout      time.Duration `key:"body_timeout" default:"30s"`          // 30 s to receive the body of a request
	IdleTimeout      time.Duration `key:"idle_timeout" default:"2m"`           // 2 min between requests of one connection
	WriteTimeout     time.Duration `key:"write_timeout" default:"30s"`         // 30 s for one write to a client, up to an eighth more
	SocketIdle       time.Duration `key:"socket_idle" default:"10m"`           // 10 min without a request until a WebSocket is closed
	SocketAge        time.Duration `key:"socket_age" default:"1h"`             // 60 min after which a WebSocket is closed, once its response in progress has ended
	KeepAlive        time.Duration `key:"keep_alive" default:"15s"`            // 15 s without output until a keep-alive comment is sent on a stream
	// Expiry is 10 s: the interval between queries for stored runs that wait for an approval, and so the longest time until
	// a run is resumed after its approval request has expired.
	Expiry time.Duration `key:"expiry" default:"10s"`
	Claim  time.Duration `key:"claim" default:"1s"`   // 1 s between queries for runs of a shared store that no process owns
	Poll   time.Duration `key:"poll" default:"250ms"` // 250 ms between queries for new events of a watched run that another process owns
	// RetryWindow is 10 min: the time after the end of a run in which a repetition of its request gets that run instead of
	// a new one. A negative value disables this.
	RetryWindow time.Duration `key:"retry_window" default:"10m"`
	// RepeatWindow is the time after the delivery of an answer in which a repetition of its request gets the same answer.
	// Default: 0.
	RepeatWindow time.Duration
	// MaxKept (10,000) and MaxKeptBytes (64 MiB) bound the number and the size of hidden turns in memory, and KeepFor (1 h)
	// bounds their age. Hidden turns are stored for runs that returned calls to the client or whose answer is text. After a
	// hidden turn has been dropped, the conversation continues without the results of the server's tools in it.
	MaxKept      int           `key:"max_kept" default:"10000"`
	MaxKeptBytes int           `key:"max_kept_bytes" default:"64MiB"`
	KeepFor      time.Duration `key:"keep_for" default:"1h"`
	// SessionLife is 12 h: the time after which a browser that has signed in to the console must sign in again.
	SessionLife time.Duration `key:"session_life" default:"12h"`
}

func (l Limits) withDefaults() Limits {
	setting.Fill(&l)
	if l.MaxInflightBytes == 0 {
		l.MaxInflightBytes = memory.Default()
	}
	return l
}
