package mcpserve

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// take carries one tools/call through the runner.
func (t *tenant) take(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	v := t.visitOf(req.Session)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.ctx, cancel)() // the end of the session ends its calls

	transport := "http"
	if isStdio(ctx) {
		transport = "stdio"
	}
	session, history := v.history()
	protocol := protocolOf(req)
	info := t.runInfo(v, transport, protocol)
	info.RunID, info.RequestID, info.SessionID = t.s.opts.NewID("run_"), t.s.opts.NewID("req_"), session

	runner := t.s.runner.Load()
	settings := runner.Settings()
	settings.ResultFormat = lathe.ResultPlain // isError and the content blocks are the envelope
	limits := runner.Limits()
	if t.caller.Limits != nil {
		limits = *t.caller.Limits
	}
	// A call is a run of its own here: what bounds the calls of a run does not bound those of a session.
	limits.MaxToolCalls = 1
	call := lathe.ToolCall{Name: req.Params.Name, Arguments: string(req.Params.Arguments)}
	spec := t.offer(call.Name)
	if spec != nil && showsOutput(spec, &settings) {
		settings.OversizeOutput = lathe.OversizeError // half an object is none
	}
	opts := &tool.RunOptions{Settings: &settings, Limits: &limits, Allow: t.caller.Allow, History: history}

	tell := t.newTeller(ctx, req, info)
	refuse := lathe.Code("")
	switch {
	case settings.ToolUseMode == lathe.ModeDisabled:
		refuse = lathe.CodePolicyDenied
	case t.elsewhere(call.Name):
		refuse = lathe.CodeUnknownTool
	default:
		select {
		case t.s.slots <- struct{}{}:
			defer func() { <-t.s.slots }()
		default:
			refuse = lathe.CodeRateLimited
		}
	}
	stop := t.progress(ctx, req)
	r := execute(ctx, runner, info, opts, call, refuse, tell)
	stop()
	for i := range r.trace {
		if r.trace[i].Executed {
			v.note(r.trace[i].Tool)
		}
	}
	if r.result.Code == lathe.CodeUnknownTool {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool", Data: json.RawMessage(r.result.Content)}
	}
	return resultOf(&r.result, spec != nil && showsOutput(spec, &settings), protocol), nil
}

func (t *tenant) offer(name string) *lathe.ToolSpec {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.offers[name]
}

// elsewhere reports whether the tool of that name is executed by somebody else.
func (t *tenant) elsewhere(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.others[name]
}

// ended is how a call ended.
type ended struct {
	result lathe.ToolResult
	trace  []lathe.CallTrace
}

// execute has the runner do the call. It is answered in any case: the protocol has no place for an
// approval that would come later.
func execute(ctx context.Context, runner *tool.Runner, info *lathe.RunInfo, opts *tool.RunOptions, call lathe.ToolCall, refuse lathe.Code, tell *teller) ended {
	w := runner.Begin(info, opts)
	defer w.Close()
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call}}
	w.Adopt(&msg)
	tell.start(w.Specs(), opts, msg)
	out := w.Execute(ctx, 1, []tool.Call{{ToolCall: msg.Calls()[0], Refuse: refuse}}, tell.event)
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
				return ended{r, trace}
			}
		}
	}
	r := lathe.ToolResult{Name: call.Name, IsError: true, Code: lathe.CodeExecutionFailed,
		Content: `{"ok":false,"error":{"code":"execution_failed","message":"The call has no result."}}`}
	tell.finish(ctx, &r)
	return ended{r, trace}
}

// progress tells the client from time to time that its call goes on, where it wants to know. stop
// ends that, and returns when nothing more is told.
func (t *tenant) progress(ctx context.Context, req *mcp.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		began := time.Now()
		tick := time.NewTicker(t.s.opts.ProgressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// Nobody knows how much is left: progress is the time in seconds.
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // who is gone need not know
					ProgressToken: token, Progress: time.Since(began).Seconds(), Message: "running"})
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// newestHandshake is what the handshake is answered with by default.
const newestHandshake = "2025-11-25"

// protocolOf is the protocol version that a request goes by: one that is known, whatever it says.
func protocolOf(req *mcp.CallToolRequest) string {
	v := req.ProtocolVersion()
	if _, stated := req.Params.Meta[mcp.MetaKeyProtocolVersion]; !stated && modernVersion(v) {
		return newestHandshake
	}
	if !slices.Contains(mcp.SupportedProtocolVersions(), v) {
		return newestHandshake
	}
	return v
}

type stdioKey struct{}

func isStdio(ctx context.Context) bool { return ctx.Value(stdioKey{}) != nil }
