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

// A Model is a model that requests can name, and the loop that executes its runs.
type Model struct {
	Loop *loop.Loop
	// Settings and Limits are those of Loop. A request can only lower the limits.
	Settings lathe.Settings
	Limits   lathe.Limits
	Created  time.Time // the time that lists of models show; zero: none
	// Pass lists request members that are sent to the model server unchanged, although Lathe does not interpret them and would refuse them
	// otherwise.
	Pass []string
}

// Models are the models that requests may name. The methods may be called from several goroutines at once.
type Models interface {
	Names() []string // sorted
	// Model returns the model with this name; "" is the default model. The error for an unknown name has the code not_found.
	Model(name string) (*Model, error)
}

// Tools are the tools of this server. The methods may be called from several goroutines at once.
type Tools interface {
	// Specs returns the definitions of all tools, sorted by name. The server does not change the slice.
	Specs() []*lathe.ToolSpec
	// Advertised returns the definitions that the run's model would be sent. allow restricts them by name; nil: all.
	Advertised(run *lathe.RunInfo, allow []string) []*lathe.ToolSpec
	// Execute executes one tool call as a run of its own, with all checks of the runner. limits lower those of the runner, also for a run
	// that the call starts; zero fields lower nothing. emit receives its events.
	Execute(ctx context.Context, run *lathe.RunInfo, allow []string, limits lathe.Limits, call lathe.ToolCall, emit func(event.Data)) (lathe.ToolResult, error)
}

// A Setup is the part of the configuration that [Server.Reload] can replace. Models is required.
type Setup struct {
	Models Models
	Tools  Tools // nil: none
	// Policy is the policy of the runners, whose decision lists of tools show; nil: they show none.
	Policy lathe.Policy
	// State is what operators see and change; nil: /api/servers and the other routes for operators return 404.
	State State
	// Evals are evaluation results for admin keys; nil: /api/evals returns 404.
	Evals Evals
	// Replay returns a loop that repeats a recorded run with the named model: calls get their results from the record, and no tool is
	// called. record is the whole log of the run. The error has the code not_found if the model is unknown, content_removed if content of
	// the record was removed. nil: POST /api/runs/{id}/replay refuses recorded results.
	Replay func(model string, record []event.Event) (*loop.Loop, error)
	Keys   []Key // nil: all clients are the same caller with all rights, unless RequireKey is set
	// RequireKey refuses requests without a key with status 401 even if Keys is empty.
	RequireKey bool
	// Warnings are messages about a configuration that is nevertheless in force, without secrets. POST /api/reload returns them.
	Warnings []string
	// Identity identifies callers by signed tokens, in addition to Keys, which are the profiles of these callers and must not be empty;
	// nil: tokens are not accepted.
	Identity IdentityProvider
	// Hosts are the host names that requests may use, besides localhost and IP addresses. If it is empty, other names are refused on a
	// loopback address only.
	Hosts []string
	// PublicURL is the scheme and host at which clients reach the server, such as https://lathe.example.com, for the metadata of RFC 9728;
	// "": those of each request.
	PublicURL string
	// Origins are the origins of web pages that may call the server, besides its own, such as https://chat.example.com. Another form than
	// SCHEME://HOST is an error.
	Origins []string
	// WaitingText is the template of the answer of a completion whose run waits for an approval: see [approval.NewSentence]. "":
	// [approval.DefaultSentence].
	WaitingText string
	// Hold is how long the response of a completion stays open while its run waits for an approval; 0: it ends at once. A positive value
	// requires Options.Index and Options.Bus.
	Hold time.Duration
}

// Options configure a [Server]. [New] copies them.
type Options struct {
	Setup  Setup          // Models are required
	Engine *engine.Engine // required
	// Supervisor executes detached runs, which continue without their client; nil: requests with `detach` are refused.
	Supervisor *engine.Supervisor
	// Executor, if not nil, executes detached runs in place of Supervisor, except replays with recorded results and runs that continue
	// after an approval when their request has ended. It requires Index and Bus.
	Executor Executor
	// Index is the store of the engine, which must also implement [store.SignalStore]; nil: runs are not stored. If it implements
	// [store.Shared], other processes may own its runs.
	Index store.RunIndex
	// Cluster configures requests between the processes that share Index. If it is zero, subscribers receive the deltas of runs that this
	// process executes only; the other events come from the store.
	Cluster Cluster
	// Bus must be a sink of the engine. Subscribers of runs read from it; nil: /api/runs is not served.
	Bus *observe.Bus
	// Approvals is the approver of the runners and stores its answers in Index; nil: no call can be approved.
	Approvals *approval.Queue
	// Ledger has the usage that /api/usage and /api/keys show; nil: they show no usage.
	Ledger store.Ledger
	// Ready, if not nil, is called for each /readyz, with a timeout of 5 s. If it returns an error, /readyz returns 503; the error is logged once
	// until the next success. It may be called from several goroutines at once.
	Ready func(ctx context.Context) error
	// MCP, if not nil, serves /mcp. It receives only requests that have passed the checks of keys, limits, Host and Origin: see [CallerOf]
	// and [Charge]. nil: /mcp returns 404.
	MCP http.Handler
	// Workers, if not nil, serves the connections of workers; the caller calls its Serve and Close. nil: no worker can connect.
	Workers *Workers
	// SealKey encrypts the hidden turns (tool calls of the server and their results) in answers on Responses, Messages and Gemini, which
	// clients send back with the next request. It has at least 32 bytes. "": the servers with the same Index share a random key if it
	// implements [store.SecretKeeper]; otherwise each server has its own. PreviousSealKey decrypts hidden turns that were encrypted with
	// the previous key.
	SealKey, PreviousSealKey secret.Secret
	Metrics                  *observe.Metrics // counts stream clients; nil: nothing is counted
	// NoMetrics removes /metrics from this handler: [Server.Metrics] serves it on another listener.
	NoMetrics bool
	// SumUsage makes the `usage` of a completion the sum over all model calls of its run; otherwise it is that of the last one.
	SumUsage bool
	// NoPage disables the console at /.
	NoPage bool
	// SeparateConsole serves the console and its sessions on the listener of [Server.Console] only.
	SeparateConsole bool
	// Switches disables single tools while the server runs; the policies of the runners must consult it. nil: POST
	// /api/tools/{name}/disable returns 404.
	Switches ToolSwitches
	// Reload, if not nil, reads the configuration again and calls [Server.Reload]. by is the name of the caller's key. The caller receives
	// the text of the error, which must not contain a secret. It may be called concurrently. nil: POST /api/reload returns 404.
	Reload func(ctx context.Context, by string) error
	// Removing, if not nil, is called before a run is deleted at the request of the key by. If it returns an error, the run is not deleted.
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
