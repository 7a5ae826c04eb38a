package server

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// Hosted tools are tools that a client declares and the vendor's server executes, such as web_search. They are sent to
// models on the client's wire. For models on other wires they are listed as ignored rather than refused, since agents
// declare them in every request. A request whose tool choice forces such a tool is then refused.

func (a *exchange) hasClientsWire() bool { return a.plan.model.Loop.Wire() == a.protocol.Wire() }

func (a *exchange) acceptHosted() *problem {
	same := a.hasClientsWire()
	for _, t := range a.req.Hosted {
		switch {
		case t.Type == "mcp":
			if p := a.acceptServer(t.JSON); p != nil {
				return p
			}
		case a.plan.relayed: // the model server gets the tool unchanged with the body
		case same:
			a.passHosted(&t)
		case t.Disallowed: // the request does not allow the tool, so leaving it out has no effect
		case t.Forced:
			return badRequest(a.protocol.tools, "The tool choice forces a tool of type %.64q, which the server of this model does not have.", t.Type)
		default:
			a.ignored = append(a.ignored, cmp.Or(t.Item, a.protocol.tools)+"."+t.Type)
		}
	}
	return nil
}

// passHosted adds a hosted tool to those that are sent to the model server, unless it is sent with an item.
func (a *exchange) passHosted(t *wire.HostedTool) {
	if t.Item != "" {
		return
	}
	tool := json.RawMessage(t.JSON)
	if t.Disallowed {
		tool = disallowedTool(tool)
	}
	extra := runinput.Of(&a.in)
	extra.HostedTools = append(extra.HostedTools, tool)
}

// acceptTools leaves out of a request that is not relayed what this server or the model server cannot do with the client's
// tools, and lists it as ignored: tools that only code may call, if the model is on another wire and so has no code execution
// of the vendor, and `async`, since this server returns a call to the client and calls the model next with its result. A tool
// choice that forces a tool which is left out is refused.
func (a *exchange) acceptTools() *problem {
	same := a.hasClientsWire()
	kept := make([]*lathe.ToolSpec, 0, len(a.req.Tools))
	for _, t := range a.req.Tools {
		path := a.protocol.tools + "." + t.Name
		switch {
		case same: // the model server has all of them
		case slices.Contains(a.req.Removed, t.Name): // the conversation has removed the tool
			continue
		case isForCode(t) && a.req.ToolChoice.Mode == lathe.ChoiceFunction && a.req.ToolChoice.Name == t.Name:
			return badRequest(a.protocol.tools, "The tool choice forces the tool %.64q, which only code may call (allowed_callers), and the server of this model executes no code.", t.Name)
		case isForCode(t):
			a.ignored = append(a.ignored, path)
			continue
		}
		if string(wire.MemberValue(t.Extra, "async")) == "true" {
			a.ignored = append(a.ignored, path+".async")
			withoutAsync := *t
			withoutAsync.Extra = slices.DeleteFunc(slices.Clone(t.Extra), func(m lathe.Member) bool { return m.Name == "async" })
			t = &withoutAsync
		}
		kept = append(kept, t)
	}
	if len(a.in.ClientTools) > 0 { // a compaction has no tools
		a.in.ClientTools = kept
	}
	a.req.Tools = kept
	return nil
}

// isForCode reports whether only code that the vendor's server executes may call the tool: whether its member
// "allowed_callers" is an array without "direct".
func isForCode(t *lathe.ToolSpec) bool {
	callers := wire.MemberValue(t.Extra, "allowed_callers")
	if rawjson.Kind(callers) != '[' {
		return false
	}
	n := 0
	for el := range rawjson.Elements(callers) {
		if n++; rawjson.Text(el) == "direct" {
			return false
		}
	}
	return n > 0
}

// disallowedTool returns a copy of a hosted tool that is marked as one that the model may not call.
func disallowedTool(tool []byte) json.RawMessage {
	return rawjson.AppendEdited(nil, tool, func(name string, v []byte) (key, to []byte, keep bool) { return nil, v, name != wire.DisallowedMember },
		func(dst []byte) []byte { return wire.JSON(dst).Bool(wire.DisallowedMember, true) })
}

// acceptServer accepts a tool of type mcp only if it names a configured MCP server, whose tools the run has anyway: a
// client must not choose the servers that this server connects to. If the request is relayed, it refuses every tool of that
// type: the vendor would connect to its server.
func (a *exchange) acceptServer(raw []byte) *problem {
	label, c := rawjson.TextAt(raw, "server_label"), a.caller
	if !a.plan.relayed && label != "" && c.hasTool(nil, func(s *lathe.ToolSpec) bool { return c.serverOf(s.Name) == label }) {
		return nil
	}
	return badRequest(a.protocol.tools, "A tool of type mcp must name, in server_label, an MCP server of this gateway's configuration.")
}

// checkItemServers returns a problem if an item of the input has a tool of type mcp: the model server would connect to the
// server that the tool names.
func checkItemServers(req *wire.ClientRequest) *problem {
	if slices.ContainsFunc(req.Hosted, func(t wire.HostedTool) bool { return t.Item != "" && t.Type == "mcp" }) {
		return badRequest("input", "An item of the input must not have a tool of type mcp. Declare an MCP server of this gateway's configuration in tools.")
	}
	return nil
}

// maxBetas is the maximum number of values of anthropic-beta that are read from a request; further ones are ignored.
const maxBetas = 64

// acceptBetas reads the header anthropic-beta. Models on Messages get its values; for models on other wires the header is
// listed as ignored.
func (a *exchange) acceptBetas(header http.Header) {
	if a.protocol != messagesAPI {
		return
	}
	betas := betasOf(header)
	if len(betas) == 0 {
		return
	}
	if !a.hasClientsWire() {
		a.ignored = append(a.ignored, "anthropic-beta")
		return
	}
	runinput.Of(&a.in).Betas = betas
	for _, beta := range betas {
		if messages.NewerBeta(beta) {
			a.handler.newer.note(a.handler.opts.Log, "anthropic-beta", beta)
		}
	}
}

// betasOf returns the values of the header anthropic-beta that have the form of a name, at most maxBetas.
func betasOf(header http.Header) (betas []string) {
	for _, value := range header["Anthropic-Beta"] {
		for beta := range strings.SplitSeq(value, ",") {
			if beta = strings.TrimSpace(beta); isToken(beta) && len(betas) < maxBetas {
				betas = append(betas, beta)
			}
		}
	}
	return betas
}

// acceptVersion reads the header anthropic-version. A model on Messages gets the version of the client, even if it is newer
// than the codec; a value that is not a version of the API is refused. For models on other wires the header has no effect,
// and a version other than that of the codec is listed as ignored.
func (a *exchange) acceptVersion(header http.Header) *problem {
	const name = "anthropic-version"
	values := header["Anthropic-Version"]
	if a.protocol != messagesAPI || len(values) == 0 {
		return nil
	}
	if !a.hasClientsWire() {
		if len(values) != 1 || values[0] != messages.Version {
			a.ignored = append(a.ignored, name)
		}
		return nil
	}
	if len(values) != 1 || !messages.AcceptsVersion(values[0]) {
		return badRequest(name, "The header anthropic-version must be 2023-01-01, %s or a later date, once: the model server gets it as it is.", messages.Version)
	}
	version := values[0]
	if member := sampled(&a.req.Sampling); member != "" && !a.plan.relayed && messages.RefusesSampling(version) {
		return badRequest(member, "The API does not accept %s with anthropic-version %s. Send the request without it.", member, version)
	}
	runinput.Of(&a.in).APIVersion = version
	if messages.NewerVersion(version) {
		a.handler.newer.note(a.handler.opts.Log, name, version)
	}
	return nil
}

// sampled returns the first sampling member of the request that newer versions of Anthropic's API refuse; "" if there is
// none.
func sampled(s *lathe.Sampling) string {
	switch {
	case s.Temperature != nil:
		return "temperature"
	case s.TopP != nil:
		return "top_p"
	case s.TopK != nil:
		return "top_k"
	}
	return ""
}

// maxNoted is the maximum number of header values that a newerHeaders logs.
const maxNoted = 64

// newerHeaders logs header values that are newer than the codec, each value once.
type newerHeaders struct {
	mu   sync.Mutex
	seen map[string]bool
}

// note logs a value of the header, unless it was logged before or maxNoted values were.
func (n *newerHeaders) note(log *slog.Logger, name, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen[value] || len(n.seen) >= maxNoted {
		return
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[value] = true
	log.Info("a client sends a header that is newer than this version knows: the model server gets it, and the request is read as before",
		"header", name, "value", value)
}

// restrictTools removes the tools that the request does not allow from the tools that the run may call. Their definitions
// are still sent to the model, as disallowed client tools, since prompt caches depend on them.
func (a *exchange) restrictTools() {
	if a.req.Allowed == nil || a.plan.relayed {
		return
	}
	allow := a.in.Allow
	if allow == nil {
		allow = a.caller.toolNames()
	}
	a.in.Allow = []string{}
	a.in.ClientTools = slices.Clip(a.in.ClientTools)
	for _, name := range allow {
		if slices.Contains(a.req.Allowed, name) {
			a.in.Allow = append(a.in.Allow, name)
		} else if spec := a.caller.ownTool(name); spec != nil {
			a.in.ClientTools = append(a.in.ClientTools, &lathe.ToolSpec{Name: spec.Name, Description: spec.Description, Schema: spec.Schema, Disallowed: true})
		}
	}
}
