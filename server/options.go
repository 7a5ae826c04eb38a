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
	// Settings and Limits must be those of Loop. A request can only lower the limits.
	Settings lathe.Settings
	Limits   lathe.Limits
	Created  time.Time // creation time of the model in lists of models; zero: none
	// Pass lists members of a request that Lathe does not interpret and that are sent to the model server unchanged. Without Pass, such a
	// member is refused.
	Pass []string
}

// Models are the models that requests may name. The methods may be called from several goroutines at once.
type Models interface {
	Names() []string // the names of all models, sorted
	// Model returns the model with this name; "" means the default model. The error for an unknown name must have the code not_found.
	Model(name string) (*Model, error)
}

// Tools gives access to the tools of this server. The methods may be called from several goroutines at once.
type Tools interface {
	// Specs returns the definitions of all tools, sorted by name. The server does not change the slice.
	Specs() []*lathe.ToolSpec
	// Advertised returns the definitions of the tools that the model of the run would receive. allow names the tools to consider; nil: all.
	Advertised(run *lathe.RunInfo, allow []string) []*lathe.ToolSpec
	// Execute executes one tool call as a run of its own, with all checks of the runner. allow names the tools that may be called; nil:
	// all. limits lower the limits of the runner, and of a run that the call starts; zero fields lower nothing. emit receives the events of
	// the call.
	Execute(ctx context.Context, run *lathe.RunInfo, allow []string, limits lathe.Limits, call lathe.ToolCall, emit func(event.Data)) (lathe.ToolResult, error)
}

// A Setup is the part of the configuration that [Server.Reload] can replace. Models is required.
type Setup struct {
	Models Models
	Tools  Tools // the tools of this server; nil: none
	// Policy must be the policy of the runners. Lists of tools show its decisions; nil: they show none.
	Policy lathe.Policy
	// State gives operators access to the state of the server; nil: /api/servers and the other routes for operators return 404.
	State State
	// Evals gives access to stored results of evaluations, which only admin keys may read; nil: /api/evals returns 404.
	Evals Evals
	// Replay returns a loop that repeats a recorded run with the named model: calls get their results from the record, and no tool is
	// called. record is the whole log of the run. The error must have the code not_found if the model is unknown, and content_removed if
	// content of the record was removed. nil: POST /api/runs/{id}/replay cannot take results from the record.
	Replay func(model string, record []event.Event) (*loop.Loop, error)
	Keys   []Key // API keys; nil: no key is needed, and every client has all rights, unless RequireKey is set
	// RequireKey makes the server refuse requests without a key with status 401 even if Keys is empty.
	RequireKey bool
	// Warnings are messages about doubtful settings of a configuration that is nevertheless used. They must contain no secrets. POST
	// /api/reload returns them.
	Warnings []string
	// Identity identifies callers by signed tokens, in addition to the secrets of Keys. Keys must contain the profiles of these callers, so
	// it must not be empty. nil: tokens are not accepted.
	Identity IdentityProvider
	// Hosts are the names that the Host header of requests may have, besides localhost and IP addresses. If Hosts is nil, any other name is
	// accepted too, provided that requests need a key and arrive at an address that is not a loopback address.
	Hosts []string
	// PublicURL is the scheme and host at which clients reach the server, such as https://lathe.example.com. It is used in the metadata of
	// RFC 9728. "": the scheme and host of each request are used.
	PublicURL string
	// Origins are the origins of web pages that may call the server, besides the server's own pages. An origin must have the form
	// SCHEME://HOST, such as https://chat.example.com.
	Origins []string
	// WaitingText is the template of the text that a completion returns as its answer while its run waits for an approval: see
	// [approval.NewSentence]. "": [approval.DefaultSentence].
	WaitingText string
	// Hold is how long the response of a completion stays open while its run waits for an approval; 0: it ends at once. A positive value
	// requires Options.Index and Options.Bus.
	Hold time.Duration
}

// Options configure a [Server]. [New] copies them.
type Options struct {
	Setup  Setup          // required: at least its field Models
	Engine *engine.Engine // executes the runs; required
	// Supervisor must be the supervisor of Engine. It executes detached runs, which continue without their client. nil: requests with the
	// option `detach` are refused.
	Supervisor *engine.Supervisor
	// Executor, if not nil, executes detached runs in place of Supervisor. Supervisor still executes replays with recorded results, and
	// runs that continue after an approval when their request has ended. Executor requires Index and Bus.
	Executor Executor
	// Index must be the store of the engine, and must also implement [store.SignalStore]. If it implements [store.Shared], other processes
	// may own its runs. nil: runs are not stored.
	Index store.RunIndex
	// Cluster configures requests between the processes that share Index. If it is zero, subscribers receive the deltas only of runs that
	// this process executes; they receive the other events of all runs from the store.
	Cluster Cluster
	// Bus must be a sink of the engine. It passes events to the subscribers of runs. nil: /api/runs is not served.
	Bus *observe.Bus
	// Approvals must be the approver of the runners. It stores its answers in Index. nil: no call can be approved.
	Approvals *approval.Queue
	// Ledger supplies the usage that /api/usage and /api/keys show; nil: they show no usage.
	Ledger store.Ledger
	// Ready, if not nil, is called for each request to /readyz, with a time limit of 5 s. If it returns an error, /readyz returns 503. The
	// error is logged once until the next success. Ready may be called from several goroutines at once.
	Ready func(ctx context.Context) error
	// MCP, if not nil, serves /mcp. It receives only requests that have passed the checks of keys, limits, Host and Origin: see [CallerOf]
	// and [Charge]. nil: /mcp returns 404.
	MCP http.Handler
	// Workers, if not nil, serves the connections of workers. The caller must call its methods Serve and Close. nil: no worker can connect.
	Workers *Workers
	// SealKey encrypts hidden turns: the tool calls of the server and their results, which are part of answers on Responses, Messages and
	// Gemini, and which clients send back with the next request. It must have at least 32 bytes. "": a random key, which the servers with
	// the same Index share if Index implements [store.SecretKeeper]. PreviousSealKey decrypts hidden turns that were encrypted with the
	// previous key; "": none.
	SealKey, PreviousSealKey secret.Secret
	Metrics                  *observe.Metrics // the metrics that /metrics serves and that requests are counted in; nil: none
	// NoMetrics removes the route /metrics from this handler, for a program that serves [Server.Metrics] on another listener.
	NoMetrics bool
	// SumUsage makes the member `usage` of a completion the sum over all model calls of its run; false: it is the usage of the last model
	// call.
	SumUsage bool
	// NoPage removes the console at the path /.
	NoPage bool
	// SeparateConsole removes the console and its sessions from this handler, for a program that serves [Server.Console] on another
	// listener.
	SeparateConsole bool
	// Switches disables individual tools while the server runs. The policies of the runners must call it. nil: POST
	// /api/tools/{name}/disable returns 404.
	Switches ToolSwitches
	// Reload, if not nil, must read the configuration again and call [Server.Reload]. POST /api/reload calls it; by is the name of the
	// caller's key. The caller receives the text of the error, which must not contain a secret. Reload may be called concurrently. nil:
	// POST /api/reload returns 404.
	Reload func(ctx context.Context, by string) error
	// Removing, if not nil, is called before a run is deleted at the request of a client; by is the name of the client's key. If it returns
	// an error, the run is not deleted.
	Removing func(ctx context.Context, by string, run *lathe.RunInfo) error
	Limits   Limits
	Log      *slog.Logger     // logs requests, without their content; nil: nothing is logged
	Now      func() time.Time // the clock; nil: time.Now
}

// Limits limit the memory, connections and time that clients can use. A zero field has the default in its comment.
type Limits struct {
	MaxBody     int `key:"max_body" default:"16MiB"`     // maximum size of a decompressed request body, in bytes; 0: 16 MiB
	MaxMessages int `key:"max_messages" default:"10000"` // maximum number of messages in the conversation of a request; 0: 10,000
	MaxParts    int `key:"max_parts" default:"20000"`    // maximum number of parts of all messages of a request, without tool calls; 0: 20,000
	MaxCalls    int `key:"max_calls" default:"10000"`    // maximum number of tool calls in all messages of a request; 0: 10,000
	MaxTools    int `key:"max_tools" default:"10000"`    // maximum number of tools that a request declares; 0: 10,000
	MaxText     int `key:"max_text" default:"1000000"`   // maximum number of characters of one text that a user sends to /api/chat; 0: 1,000,000
	// MaxConcurrent is the maximum number of concurrent requests; 0: 1,024. Further ones get 503. If there are several keys, one key has at
	// most a quarter of them.
	MaxConcurrent int `key:"max_concurrent" default:"1024"`
	// MaxWatchers is the maximum number of concurrent event streams of runs, and also that of WebSockets; 0: 1,024. They do not count in
	// MaxConcurrent. If there are several keys, one key has at most a quarter of each.
	MaxWatchers int `key:"max_watchers" default:"1024"`
	// MaxInflightBytes is the maximum memory in bytes that requests in progress use: their decompressed bodies, the conversations decoded
	// from them, and messages of WebSockets. If there are keys, one key has at most half of it. 0: a quarter of the limit in GOMEMLIMIT, or
	// 1 GiB if that is not set.
	MaxInflightBytes int64
	MaxIdle          int           `key:"max_idle_connections" default:"4096"` // maximum number of idle connections; 0: 4,096. Beyond it, the one that is idle longest is closed
	MaxBuffer        int           `key:"max_buffer" default:"4MiB"`           // maximum bytes of unsent output for one client; 0: 4 MiB. Beyond it, the client is disconnected
	MaxHeader        int           `key:"max_header" default:"64KiB"`          // maximum bytes of the request line and the headers; 0: 64 KiB
	HeaderTimeout    time.Duration `key:"header_timeout" default:"5s"`         // time limit for receiving the headers of a request; 0: 5 s
	BodyTimeout      time.Duration `key:"body_timeout" default:"30s"`          // time limit for receiving the body of a request; 0: 30 s
	IdleTimeout      time.Duration `key:"idle_timeout" default:"2m"`           // maximum time between two requests of one connection; 0: 2 min
	WriteTimeout     time.Duration `key:"write_timeout" default:"30s"`         // time limit of one write to a client, up to an eighth more; 0: 30 s
	SocketIdle       time.Duration `key:"socket_idle" default:"10m"`           // a WebSocket is closed after this time without a request; 0: 10 min
	SocketAge        time.Duration `key:"socket_age" default:"1h"`             // a WebSocket of this age is closed after its current response; 0: 60 min
	KeepAlive        time.Duration `key:"keep_alive" default:"15s"`            // a stream without output gets a keep-alive comment after this time; 0: 15 s
	// Expiry is the interval between queries for stored runs that wait for an approval; 0: 10 s. It is also the longest time from the
	// expiry of an approval request until its run is resumed.
	Expiry time.Duration `key:"expiry" default:"10s"`
	Claim  time.Duration `key:"claim" default:"1s"`   // interval between queries for runs of a shared store that no process owns; 0: 1 s
	Poll   time.Duration `key:"poll" default:"250ms"` // interval between queries for new events of a watched run that another process owns; 0: 250 ms
	// RetryWindow is the time after the end of a run in which a repetition of its request gets the response of that run instead of a new
	// run; 0: 10 min. Negative: a repetition always starts a new run.
	RetryWindow time.Duration `key:"retry_window" default:"10m"`
	// RepeatWindow is the time after the delivery of an answer in which a repetition of its request gets the same answer; 0: none.
	RepeatWindow time.Duration
	// MaxKept is the maximum number of hidden turns in memory (0: 10,000), MaxKeptBytes their maximum size in bytes (0: 64 MiB), and
	// KeepFor their maximum age (0: 1 h). Hidden turns are stored for runs that returned calls to the client or whose answer is text. After
	// a hidden turn has been dropped, the conversation continues without the results of the server's tools in it.
	MaxKept      int           `key:"max_kept" default:"10000"`
	MaxKeptBytes int           `key:"max_kept_bytes" default:"64MiB"`
	KeepFor      time.Duration `key:"keep_for" default:"1h"`
	// SessionLife is the time after which a browser that has signed in to the console must sign in again; 0: 12 h.
	SessionLife time.Duration `key:"session_life" default:"12h"`
}

func (l Limits) withDefaults() Limits {
	setting.Fill(&l)
	if l.MaxInflightBytes == 0 {
		l.MaxInflightBytes = memory.Default()
	}
	return l
}
