package mcpserve

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// An errand is one request of a client that goes through the runner: a call of a tool, a resource
// that is read, a prompt that is filled in.
type errand struct {
	t        *tenant
	v        *visit
	protocol string
	duty     *duty        // until run returns
	runner   *tool.Runner // that of the duty, or one like it for the catalog
	settings lathe.Settings
	call     lathe.ToolCall
	refuse   lathe.Code // answered with, in place of calling anything
	output   int        // bytes that may come out; 0: as the limits say
	asker    lathe.Asker
	told     listener
}

// A listener is where the client hears of its errand while it runs: in the request that it has open.
type listener struct {
	mu      sync.Mutex
	ctx     context.Context
	session *mcp.ServerSession
	token   any // of progress; nil: it does not want to know
}

func (l *listener) set(ctx context.Context, session *mcp.ServerSession, token any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.session, l.token = ctx, session, token
}

// hangUp: nobody hears of it until the client makes its request again.
func (l *listener) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = nil
}

// now returns where to tell something, a nil session where nobody hears it.
func (l *listener) now() (context.Context, *mcp.ServerSession, any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx, l.session, l.token
}

// run carries the errand through the runner, and tells it to the sinks as a run of its own. It is
// answered in any case.
func (e *errand) run(ctx context.Context, transport string) lathe.ToolResult {
	t := e.t
	defer e.end()
	session, history := e.v.history()
	info := t.runInfo(e.v, transport, e.protocol)
	info.RunID, info.RequestID, info.SessionID = t.s.opts.NewID("run_"), t.s.opts.NewID("req_"), session
	e.settings.ResultFormat = lathe.ResultPlain // isError and the content blocks are the envelope
	limits := e.runner.Limits()
	if t.caller.Limits != nil {
		limits = *t.caller.Limits
	}
	// A call is a run of its own here: what bounds the calls of a run does not bound those of a session.
	limits.MaxToolCalls = 1
	if e.output > 0 {
		limits.MaxOutputBytes = e.output
	}
	opts := &tool.RunOptions{Settings: &e.settings, Limits: &limits, Allow: t.caller.Allow, History: history}
	if e.refuse == "" {
		select {
		case t.s.slots <- struct{}{}:
			defer func() { <-t.s.slots }()
		default:
			e.refuse = lathe.CodeRateLimited
		}
	}
	if e.asker != nil {
		ctx = lathe.WithAsker(ctx, e.asker)
	}
	stop := e.progress(ctx)
	result, trace := e.execute(ctx, info, opts)
	stop()
	for i := range trace {
		if trace[i].Executed {
			e.v.note(trace[i].Tool)
		}
	}
	return result
}

// end says that the errand does not use its runner any more.
func (e *errand) end() { e.t.s.duties.end(e.duty) }

// execute has the runner do the call. What waits for an approval is denied: the protocol has no
// place for one that would come later.
func (e *errand) execute(ctx context.Context, info *lathe.RunInfo, opts *tool.RunOptions) (lathe.ToolResult, []lathe.CallTrace) {
	w := e.runner.Begin(info, opts)
	defer w.Close()
	ctx = lathe.WithTracer(ctx, info.RunID, e.t.s.opts.Sinks)
	tell := e.newTeller(ctx, info)
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{e.call}}
	w.Adopt(&msg)
	tell.start(w.Specs(), opts, msg)
	out := w.Execute(ctx, 1, []tool.Call{{ToolCall: msg.Calls()[0], Refuse: e.refuse}}, tell.event)
	trace := out.Calls
	if out.Parked {
		waiting := out.Waiting
		for i := range waiting {
			waiting[i].Refuse = lathe.CodeApprovalDenied
		}
		out = w.Execute(ctx, 1, waiting, tell.event)
		trace = append(trace, out.Calls...)
	}
	for _, m := range out.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				tell.finish(ctx, &r)
				return r, trace
			}
		}
	}
	r := lathe.ToolResult{Name: e.call.Name, IsError: true, Code: lathe.CodeExecutionFailed,
		Content: `{"ok":false,"error":{"code":"execution_failed","message":"The call has no result."}}`}
	tell.finish(ctx, &r)
	return r, trace
}

// progress tells the client from time to time that its errand goes on, where it wants to know. stop
// ends that, and returns when nothing more is told.
func (e *errand) progress(ctx context.Context) (stop func()) {
	if _, session, token := e.told.now(); token == nil || session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		began := time.Now()
		tick := time.NewTicker(e.t.s.opts.ProgressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if at, session, token := e.told.now(); session != nil && token != nil {
				// Nobody knows how much is left: progress is the time in seconds.
				_ = session.NotifyProgress(at, &mcp.ProgressNotificationParams{ // who is gone need not know
					ProgressToken: token, Progress: time.Since(began).Seconds(), Message: "running"})
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
