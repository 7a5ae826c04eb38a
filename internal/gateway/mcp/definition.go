package mcp

import (
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
)

// definition describes a tool to clients. Its effect becomes the annotations that MCP calls hints, which grant nothing.
func definition(spec *lathe.ToolSpec, settings *lathe.Settings) *mcp.Tool {
	t := &mcp.Tool{Name: spec.Name, Description: spec.Description, InputSchema: inputSchema(spec.Schema), Annotations: annotations(spec)}
	if showsOutput(spec, settings) {
		t.OutputSchema = spec.OutputSchema
	}
	return t
}

func annotations(spec *lathe.ToolSpec) *mcp.ToolAnnotations {
	readOnly := spec.Effect == lathe.ReadOnly
	h := &mcp.ToolAnnotations{ReadOnlyHint: readOnly, IdempotentHint: readOnly || spec.Effect == lathe.Idempotent, DestructiveHint: new(!readOnly)}
	if slices.Contains(spec.Labels, lathe.LabelCanExfiltrate) || slices.Contains(spec.Labels, lathe.LabelReadsUntrusted) {
		h.OpenWorldHint = new(true)
	}
	return h
}

var noArguments = json.RawMessage(`{"type":"object","additionalProperties":false}`)

// inputSchema returns the schema with `"type":"object"` added if it has no type, because the protocol requires one.
func inputSchema(given json.RawMessage) json.RawMessage {
	if len(given) == 0 {
		return noArguments
	}
	return schema.Typed(given)
}

// showsOutput reports whether clients receive the output schema of a tool. They validate results against it, so it is included only if they
// receive the complete output and the schema describes an object.
func showsOutput(spec *lathe.ToolSpec, settings *lathe.Settings) bool {
	if len(spec.OutputSchema) == 0 || !slices.Contains(spec.Allowlist, "*") || settings.Executor == lathe.ExecutorNoop {
		return false
	}
	return rawjson.TextAt(spec.OutputSchema, "type") == "object"
}
