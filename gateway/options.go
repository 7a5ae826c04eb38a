package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/store"
)

// A Model is a model as requests name it, with the loop that runs it.
type Model struct {
	Loop *loop.Loop
	// Settings and Limits are those that the loop was made with: what requests say narrows them.
	Settings lathe.Settings
	Limits   lathe.Limits
	Created  time.Time // for listings
	// Pass names members of a request that Lathe does not read and that go to the model server although OpenAI's
	// published schema does not have them, or has something stored with them.
	Pass []string
}

// Models are the models that requests may name. The methods may be called from several goroutines at once.
type Models interface {
	Names() []string // sorted
	// Model returns the model of a name; "" is the default model. A name that there is not is an
	// error of code not_found.
	Model(name string) (*Model, error)
}

// Tools are the tools of this server. The methods may be called from several goroutines at once.
type Tools interface {
	Specs() []*lathe.ToolSpec // sorted by name
	// Advertised are those that a run with these names of tools may see; nil stands for all.
	Advertised(run *lathe.RunInfo, allow []string) []*lathe.ToolSpec
	// Execute has one call of the tool made by the runner, with all its stages.
	Execute(ctx context.Context, run *lathe.RunInfo, allow []string, call lathe.ToolCall, emit func(lathe.EventData)) (lathe.ToolResult, error)
}

// A Setup is what may change while the gateway serves. See [Gateway.Reload].
type Setup struct {
	Models Models
	Tools  Tools // nil: none
	// Policy is that of the runners, for listings: what it says of a tool as such. nil: nothing is said.
	Policy lathe.Policy
	Keys   []Key // nil: everybody who reaches the address is the same caller
	// Hosts are names under which the gateway is reached, besides localhost and addresses. On an
	// address of this machine alone other names are refused, always; elsewhere only where there are Hosts.
	Hosts []string
	// Origins are the pages of other hosts that may call the gateway, such as https://chat.example.com.
	Origins []string
	// WaitingText is the template of the sentence with which a completion says that its run waits for an approval; see
	// [approval.NewSentence]. "": [approval.DefaultSentence].
	WaitingText string
	// Hold is how long the answer of a completion is held open while its run waits for an approval; 0: it is given
	// at once. It wants Options.Index and Options.Bus.
	Hold time.Duration
}

// Options say how the gateway serves. They are copied.
type Options struct {
	Setup  Setup          // Models are required
	Engine *engine.Engine // required
	// Crew carries runs that go on without their client; nil: `detach` is refused.
	Crew *engine.Crew
	// Index is the store of the engine, where it can list; nil: nothing is kept. It must be a
	// [lathe.FactStore], too. Where it is a [lathe.SharedStore] other processes may carry its runs.
	Index lathe.RunIndex
	// Cluster is how processes that share a store reach each other; zero: they do not, and a watcher sees
	// text as it comes only of runs that are carried in its process.
	Cluster Cluster
	// Bus is a sink of the engine, from which runs are watched; nil: the runs under /api/runs are not served.
	Bus *observe.Bus
	// Desk is the approver of the runners; nil: nobody can be asked here. It keeps answers in Index.
	Desk *approval.Desk
	// Ready, when set, is asked by /readyz: its error says why the server should get no requests, such as
	// that its store cannot be written. The cause is logged.
	Ready func(ctx context.Context) error
	// MCP, when set, serves /mcp under the same keys, limits, log, Host and Origin rules as the rest. What
	// it gets was admitted. See [Charge].
	MCP     http.Handler
	Metrics *observe.Metrics // counts stream clients; nil: nothing is counted
	// NoMetrics leaves /metrics to another listener. See [Options.Metrics].
	NoMetrics bool
	// SumUsage has `usage` of a completion hold the tokens of all model calls of its run; else it holds those of the last.
	SumUsage bool
	// NoPage serves no page for people at /.
	NoPage bool
	// Removing, when set, is called before a client removes a run, with the name of the key. An error keeps the run.
	Removing func(ctx context.Context, by string, run *lathe.RunInfo) error
	Limits   Limits
	Log      *slog.Logger     // of requests, without their content; nil: nothing is logged
	Now      func() time.Time // nil: time.Now
}

// Limits bound what clients can make the gateway hold. A zero field has the default in its comment.
type Limits struct {
	MaxBody       int           // 16 MiB of a request body, decompressed
	MaxMessages   int           // 10 000 messages in a conversation that a request has
	MaxParts      int           // 20 000 parts of its messages together, tool calls left out
	MaxCalls      int           // 10 000 tool calls of its messages together
	MaxText       int           // 1 000 000 characters of one text that a user sends to /api/chat
	MaxConcurrent int           // 1 024 requests at once; more are answered 503. With several keys one key has a quarter of them at most
	MaxWatchers   int           // 1 024 streams of events of runs at once, beside those requests; likewise
	MaxIdle       int           // 4 096 connections between two requests; beyond it the longest idle one is closed
	MaxBuffer     int           // 4 MiB that wait for one slow reader, which is cut beyond them
	MaxHeader     int           // 64 KiB of a request's head
	HeaderTimeout time.Duration // 5 s for the head of a request
	BodyTimeout   time.Duration // 30 s for its body
	IdleTimeout   time.Duration // 2 min between requests of one connection
	WriteTimeout  time.Duration // 30 s for one write to a client, up to an eighth more
	KeepAlive     time.Duration // 15 s without a byte until a stream gets a comment
	// Expiry is 10 s: at most until a run goes on whose request for approval has expired, and between looks for runs
	// of the store that wait for an approval.
	Expiry time.Duration
	Claim  time.Duration // 1 s between looks for runs of a shared store that nobody carries
	Poll   time.Duration // 250 ms between looks for news of a watched run that is carried elsewhere
	// RetryWindow is 10 min: after the end of a run in which a repetition of its request finds it; below 0: none does.
	RetryWindow time.Duration
	// RepeatWindow is 0: after the delivery of an answer in which a repetition of its request gets the same answer.
	RepeatWindow time.Duration
	// MaxKept and MaxKeptBytes bound what is kept of runs that handed calls over, and KeepFor how
	// long: 10 000, 64 MiB, 1 h. Without it a conversation goes on, without what the server's tools said.
	MaxKept      int
	MaxKeptBytes int
	KeepFor      time.Duration
}

func (l Limits) withDefaults() Limits {
	count := func(p *int, def int) {
		if *p == 0 {
			*p = def
		}
	}
	span := func(p *time.Duration, def time.Duration) {
		if *p == 0 {
			*p = def
		}
	}
	count(&l.MaxBody, 16<<20)
	count(&l.MaxMessages, 10_000)
	count(&l.MaxParts, 20_000)
	count(&l.MaxCalls, 10_000)
	count(&l.MaxText, uistream.DefaultLimits().MaxText)
	count(&l.MaxConcurrent, 1024)
	count(&l.MaxWatchers, 1024)
	count(&l.MaxIdle, 4096)
	count(&l.MaxBuffer, 4<<20)
	count(&l.MaxHeader, 64<<10)
	count(&l.MaxKept, 10_000)
	count(&l.MaxKeptBytes, 64<<20)
	span(&l.HeaderTimeout, 5*time.Second)
	span(&l.BodyTimeout, 30*time.Second)
	span(&l.IdleTimeout, 2*time.Minute)
	span(&l.WriteTimeout, 30*time.Second)
	span(&l.KeepAlive, 15*time.Second)
	span(&l.Expiry, 10*time.Second)
	span(&l.Claim, time.Second)
	span(&l.RetryWindow, 10*time.Minute)
	span(&l.Poll, 250*time.Millisecond)
	span(&l.KeepFor, time.Hour)
	return l
}

// A Gateway is the handler. It may be used by several goroutines at once.
type Gateway struct {
	opts     Options
	mux      *http.ServeMux
	work     work
	usage    *usage
	kept     *kept
	origins  origins
	held     *runLocks
	recalled recall
	seen     map[string]surveyed // by run; of the goroutine that surveys
	flying   flying

	requests   lathe.RequestStore // the store, where it records requests; else in memory
	deliveries deliveries
	results    results // where no store keeps runs

	facts  lathe.FactStore   // nil: nothing is kept
	shared lathe.SharedStore // nil: no other process carries runs of the store
	relays relays
	hinted sleepers // watchers of runs

	draining atomic.Bool
	unready  atomic.Bool             // /readyz has logged why
	stop     context.CancelCauseFunc // ends the runs of clients
	stopped  context.Context
	leave    context.CancelFunc // sends watchers of runs away
	leaving  context.Context
}

// New makes a gateway.
func New(opts *Options) (*Gateway, error) {
	if opts == nil || opts.Engine == nil {
		return nil, invalid("new", errors.New("an engine is required"))
	}
	g := &Gateway{opts: *opts}
	g.opts.Limits = opts.Limits.withDefaults()
	if g.opts.Now == nil {
		g.opts.Now = time.Now
	}
	if g.opts.Log == nil {
		g.opts.Log = slog.New(slog.DiscardHandler)
	}
	if g.opts.Index != nil {
		var ok bool
		if g.facts, ok = g.opts.Index.(lathe.FactStore); !ok {
			return nil, invalid("new", errors.New("the store must keep facts"))
		}
		g.shared, _ = g.opts.Index.(lathe.SharedStore)
		if g.opts.Desk != nil {
			g.opts.Desk.Keep(g.facts)
		}
	}
	if err := g.opts.Cluster.check(); err != nil {
		return nil, invalid("new", err)
	}
	if g.opts.Cluster.Client == nil {
		g.opts.Cluster.Client = relayClient()
	}
	g.usage = newUsage(g.opts.Now, &g.opts.Limits)
	if g.requests, _ = g.opts.Index.(lathe.RequestStore); g.requests == nil {
		g.requests = store.NewMemory(nil)
	}
	if g.opts.Index == nil {
		g.results.max, g.results.maxBytes = g.opts.Limits.MaxKept, g.opts.Limits.MaxKeptBytes
	}
	g.kept = newKept(&g.opts.Limits, g.opts.Now)
	g.held = newRunLocks()
	g.stopped, g.stop = context.WithCancelCause(context.Background())
	g.leaving, g.leave = context.WithCancel(context.Background())
	if _, err := g.Reload(&opts.Setup); err != nil {
		return nil, err
	}
	g.mux = g.routes()
	return g, nil
}

// Reload replaces the setup for requests from now on: all of it, or, with an error, nothing.
// Requests that are worked on, and runs that go on without their client, keep the setup that they
// began with; former is closed when the last of those has ended that began with the setup before.
func (g *Gateway) Reload(s *Setup) (former <-chan struct{}, err error) {
	next, err := newSetup(s)
	if err != nil {
		return nil, invalid("reload", err)
	}
	return g.work.replace(next), nil
}

func invalid(op string, err error) error {
	return &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "gateway: " + op, Err: err}
}
