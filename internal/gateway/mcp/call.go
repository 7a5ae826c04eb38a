package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
)

// callTool handles tools/call: it executes the call with the runner, and returns its result, a question for the client or a task.
func (t *tenant) callTool(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	p := req.Params
	round := round{session: req.Session, token: p.GetProgressToken(), caps: req.ClientCapabilities(), answers: p.InputResponses}
	protocol := protocolOf(req.ProtocolVersion(), p.Meta)
	rule, able := t.s.opts.Tasks.Rules[p.Name], t.s.opts.Tasks.After > 0 && modernVersion(protocol) && knowsTasks(round.caps)
	round.tasks, round.atOnce = able, able && rule.AtOnce
	if rule.Required && !able && t.offer(p.Name) != nil {
		return nil, errNoTasks()
	}
	if p.RequestState != "" {
		return t.resume(ctx, p.RequestState, fingerprint("tools/call", p.Name, p.Arguments), &round)
	}
	runnerRef := t.s.runners.begin()
	e := &runnerCall{t: t, v: t.sessionOf(req.Session), protocol: protocol, runnerRef: runnerRef, runner: runnerRef.runner, settings: runnerRef.runner.Settings(),
		call: lathe.ToolCall{Name: p.Name, Arguments: string(p.Arguments)}}
	spec := t.offer(p.Name)
	typed := spec != nil && showsOutput(spec, &e.settings)
	if typed {
		e.settings.OversizeOutput = lathe.OversizeError // a truncated object is not valid JSON
	}
	switch {
	case e.settings.ToolUseMode == lathe.ModeDisabled:
		e.refuse = lathe.CodePolicyDenied
	case t.elsewhere(p.Name):
		e.refuse = lathe.CodeUnknownTool
	}
	if spec == nil || e.refuse != "" { // the call is refused immediately, and a task would hide the error
		round.tasks, round.atOnce = false, false
	}
	return send(ctx, e, fingerprint("tools/call", p.Name, p.Arguments), &round, toolAsks, func(_ context.Context, r *lathe.ToolResult) (mcp.Result, error) {
		if r.Code == lathe.CodeUnknownTool {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool", Data: json.RawMessage(r.Content)}
		}
		return resultOf(r, typed, protocol), nil
	})
}

// offer returns the tool of that name that the server offers, or nil.
func (t *tenant) offer(name string) *lathe.ToolSpec {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.offers[name]
}

// elsewhere reports whether the tool of that name is executed by a client and therefore not offered.
func (t *tenant) elsewhere(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.others[name]
}

// newestHandshake is the protocol version with which initialize is answered by default.
const newestHandshake = "2025-11-25"

// protocolOf returns the protocol version that applies to a request. It is newestHandshake if the request names a version that the server
// does not support.
func protocolOf(v string, meta mcp.Meta) string {
	_, stated := meta[mcp.MetaKeyProtocolVersion]
	if !stated && modernVersion(v) || !slices.Contains(mcp.SupportedProtocolVersions(), v) {
		return newestHandshake
	}
	return v
}

type stdioKey struct{}

func isStdio(ctx context.Context) bool { return ctx.Value(stdioKey{}) != nil }

func transportOf(ctx context.Context) string {
	if isStdio(ctx) {
		return "stdio"
	}
	return "http"
}
