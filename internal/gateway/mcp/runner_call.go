package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// A runnerCall is one request of a client that the runner executes: a tool call, the reading of a resource, or the rendering of a prompt.
// newCall and its caller set the fields. run then changes settings and refuse only.
type runnerCall struct {
	t         *tenant
	session   *clientSession
	protocol  string
	runnerRef *runnerRef   // released when run returns
	runner    *tool.Runner // that of runnerRef, or one like it for the catalog
	settings  lathe.Settings
	call      lathe.ToolCall
	refuse    lathe.Code // if set, the call fails with this code and nothing is executed
	output    int        // limit of the output in bytes; 0: the limits of the runner apply
	asker     tool.Asker
	client    listener
}

// newCall returns a runnerCall with the current runner. The caller must call its run or its end.
func newCall(t *tenant, session *mcp.ServerSession, protocol, name string, args []byte) *runnerCall {
	ref := t.s.runners.begin()
	return &runnerCall{t: t, session: t.useSession(session), protocol: protocol, runnerRef: ref, runner: ref.runner, settings: ref.runner.Settings(),
		call: lathe.ToolCall{Name: name, Arguments: string(args)}}
}

// A listener is the open request of the client, to which progress and log messages of a running call are sent.
type listener struct {
	mu      sync.Mutex
	ctx     context.Context
	session *mcp.ServerSession
	token   any // progress token; nil: the client requests no progress
}

func (l *listener) set(ctx context.Context, session *mcp.ServerSession, token any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.session, l.token = ctx, session, token
}

// detach stops progress and log messages until the client repeats its request.
func (l *listener) detach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = nil
}

// now returns the context, the session and the progress token for a message to the client. The session is nil if the client has no request
// open.
func (l *listener) now() (context.Context, *mcp.ServerSession, any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx, l.session, l.token
}

// run executes the call, and emits its events to the sinks as a run of its own. It always returns a result.
func (rc *runnerCall) run(ctx context.Context, transport string) lathe.ToolResult {
	t := rc.t
	defer rc.end()
	info := t.runInfo()
	info.Labels["transport"], info.Labels["protocol"] = transport, rc.protocol
	info.RunID, info.RequestID = t.s.opts.NewID("run_"), t.s.opts.NewID("req_")
	sessionID, history := rc.session.history()
	info.SessionID = sessionID
	rc.settings.ResultFormat = lathe.ResultPlain // isError and the content blocks replace the envelope
	limits := rc.runner.Limits()
	if t.caller.Limits != nil {
		limits = *t.caller.Limits
	}
	// Each call is a separate run here, so the limit on the calls of a run must not apply to a session.
	limits.MaxToolCalls = 1
	if rc.output > 0 {
		limits.MaxOutputBytes = rc.output
	}
	opts := &tool.RunOptions{Settings: &rc.settings, Limits: &limits, Allow: t.caller.Allow, History: history}
	if rc.refuse == "" {
		select {
		case t.s.slots <- struct{}{}:
			defer func() { <-t.s.slots }()
		default:
			rc.refuse = lathe.CodeRateLimited
		}
	}
	if rc.asker != nil {
		ctx = tool.WithAsker(ctx, rc.asker)
	}
	stop := rc.progress(ctx)
	result, trace := rc.execute(ctx, info, opts)
	stop()
	for _, call := range trace {
		if call.Executed {
			rc.session.note(call.Tool)
		}
	}
	return result
}

// end releases the reference to the runner.
func (rc *runnerCall) end() { rc.t.s.runners.end(rc.runnerRef) }

// execute executes the call. A call that requires an approval is denied, because MCP has no way to answer the approval later.
func (rc *runnerCall) execute(ctx context.Context, info *lathe.RunInfo, opts *tool.RunOptions) (lathe.ToolResult, []event.CallTrace) {
	w := rc.runner.Begin(info, opts)
	ctx = event.WithTracer(ctx, info.RunID, rc.t.s.opts.Sinks)
	notifier := rc.newNotifier(ctx, info)
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{rc.call}}
	w.Adopt(&msg)
	notifier.start(w.Specs(), opts, msg)
	out := w.Execute(ctx, 1, []tool.Call{{ToolCall: msg.Calls()[0], Refuse: rc.refuse}}, notifier.event)
	trace := out.Calls
	if out.Parked {
		waiting := out.Waiting
		for i := range waiting {
			waiting[i].Refuse = lathe.CodeApprovalDenied
		}
		out = w.Execute(ctx, 1, waiting, notifier.event)
		trace = append(trace, out.Calls...)
	}
	r, ok := out.Result()
	if !ok {
		r = lathe.ToolResult{Name: rc.call.Name, IsError: true, Code: lathe.CodeExecutionFailed,
			Content: `{"ok":false,"error":{"code":"execution_failed","message":"The call has no result."}}`}
	}
	notifier.finish(ctx, &r)
	return r, trace
}

// progress notifies the client every ProgressEvery while the call runs, if its request has a progress token. stop ends the notifications
// and returns when the last one has been sent.
func (rc *runnerCall) progress(ctx context.Context) (stop func()) {
	if _, session, token := rc.client.now(); token == nil || session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		began := time.Now()
		tick := time.Tick(rc.t.s.opts.ProgressEvery)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if at, session, token := rc.client.now(); session != nil && token != nil {
				// The total is unknown, so the progress is the elapsed time in seconds.
				_ = session.NotifyProgress(at, &mcp.ProgressNotificationParams{ // the client may have left
					ProgressToken: token, Progress: time.Since(began).Seconds(), Message: "running"})
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
