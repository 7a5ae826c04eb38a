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
	p, protocol := req.Params, protocolOf(req.ProtocolVersion(), req.Params.Meta)
	r := round{session: req.Session, token: p.GetProgressToken(), caps: req.ClientCapabilities(), answers: p.InputResponses}
	spec, rule := t.offer(p.Name), t.s.opts.Tasks.Rules[p.Name]
	if t.s.opts.Tasks.After > 0 && modernVersion(protocol) && knowsTasks(r.caps) {
		r.tasks = rule.use()
	} else if rule.Required && spec != nil {
		return nil, errNoTasks()
	}
	hash := fingerprint("tools/call", p.Name, p.Arguments)
	if p.RequestState != "" {
		return t.resume(ctx, p.RequestState, hash, &r)
	}
	rc := newCall(t, req.Session, protocol, p.Name, p.Arguments)
	switch {
	case rc.settings.ToolUseMode == lathe.ModeDisabled:
		rc.refuse = lathe.CodePolicyDenied
	case t.elsewhere(p.Name):
		rc.refuse = lathe.CodeUnknownTool
	}
	if spec == nil || rc.refuse != "" { // the call is refused immediately, and a task would hide the error
		r.tasks = noTask
	}
	typed := spec != nil && showsOutput(spec, &rc.settings)
	if typed {
		rc.settings.OversizeOutput = lathe.OversizeError // a truncated object is not valid JSON
	}
	return send(ctx, rc, hash, &r, toolAsks, func(_ context.Context, result *lathe.ToolResult) (mcp.Result, error) {
		if result.Code == lathe.CodeUnknownTool {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool", Data: json.RawMessage(result.Content)}
		}
		return resultOf(result, typed, protocol), nil
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
