package messages

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// searchTool is the name of the tool by which a model searches the tools of its run (package tool, SearchName). Its result lists the tools
// that were found, as {"tools":[{"name":…},…]}.
const searchTool = "tool_search"

// The betas that are necessary for tool definitions within the conversation, and for asking the server to drop thinking: see [Betas].
var (
	additionBetas = []string{"mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"}
	bindingBetas  = []string{"thinking-binding-controls-2026-08-01"}
)

// Betas returns the betas that a request needs in addition to its own if the destination binds thinking to what precedes it. without are
// features that the server has refused.
func Betas(req *lathe.Request, takes *destination.Row, without []string) []string {
	switch {
	case takes.ThinkingBinding == destination.DropBlock && !slices.Contains(without, featureBinding):
		return bindingBetas
	case takes.ThinkingBinding == destination.Keep && len(found(req)) > 0:
		return additionBetas
	}
	return nil
}

// found returns the tools that searches in the conversation have found, by the index of the message after which their definitions are
// placed: the last tool result of the turn.
func found(req *lathe.Request) map[int][]*lathe.ToolSpec {
	tools := map[int][]*lathe.ToolSpec{}
	seen := map[string]bool{}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			r, ok := p.(lathe.ToolResult)
			if !ok || r.Name != searchTool || r.IsError {
				continue
			}
			for el := range rawjson.Elements(rawjson.At([]byte(r.Content), "tools")) {
				name := text(el, "name")
				at := slices.IndexFunc(req.Tools, func(t *lathe.ToolSpec) bool { return t.Name == name })
				if at < 0 || seen[name] {
					continue
				}
				seen[name] = true
				last := i
				for last+1 < len(req.Messages) && req.Messages[last+1].Role == lathe.RoleTool {
					last++
				}
				tools[last] = append(tools[last], req.Tools[at])
			}
		}
	}
	return tools
}

// placeFound removes the definitions of tools that were found by a search from the tools of the request, and returns them separately. In
// the tools, they would change what precedes bound thinking.
func placeFound(req *lathe.Request, takes *destination.Row) (*lathe.Request, map[int][]*lathe.ToolSpec) {
	if takes.ThinkingBinding != destination.Keep {
		return req, nil
	}
	placed := found(req)
	own := *req
	own.Tools = slices.Clone(own.Tools)
	for _, specs := range placed {
		own.Tools = slices.DeleteFunc(own.Tools, func(t *lathe.ToolSpec) bool { return slices.Contains(specs, t) })
	}
	return &own, placed
}

// appendAdditions appends a system turn with the definitions of tools, in the order in which they were found.
func appendAdditions(dst wire.JSON, e *encoder, tools []*lathe.ToolSpec) wire.JSON {
	dst = dst.Next().Lit(`{"role":"system","content":[`)
	for i, t := range tools {
		dst = dst.If(i > 0, ",").Lit(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":`)
		dst = e.tool(dst, t).Lit(`}}`)
	}
	return dst.Lit("]}")
}
