package messages

import (
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// serverPrefix is the prefix of the ids of this server's calls in answers. A client returns the blocks in its next request.
const serverPrefix = "mcptoolu_lathe_"

// ServerCallID returns the id of a call of this server in the blocks of an answer.
func ServerCallID(id string) string {
	return serverPrefix + wire.ShortID("h_", id, maxID-len(serverPrefix))
}

// appendServerCall returns the two blocks for a call that this server executed. The first one contains the complete input, since some
// clients refuse deltas of such a block.
func appendServerCall(c *wire.ServerCall) (call, result []byte) {
	input, _, _ := wire.SentArguments(c.Arguments)
	id := ServerCallID(c.ID)
	return wire.ObjectOf("type", "mcp_tool_use", "id", id, "name", c.Name, "server_name", c.Server, "input", input),
		wire.ObjectOf("type", "mcp_tool_result", "tool_use_id", id, "is_error", c.Failed, "content", wire.ArrayOf(wire.ObjectOf("type", "text", "text", c.Output)))
}

// OriginalCallID is the inverse of [ServerCallID], except for call ids that ServerCallID shortened.
func OriginalCallID(id string) string { return strings.TrimPrefix(id, serverPrefix) }

// IsServerBlock reports whether a block is one of the two blocks of a call of this server. ParseRequest reads them as opaque parts, and
// AppendRequest omits them: the caller must first replace them by the call and its result.
func IsServerBlock(block []byte) bool {
	typ, id := "", ""
	for key, v := range rawjson.Members(block) {
		switch string(key) {
		case `"type"`:
			typ = rawjson.Text(v)
		case `"id"`, `"tool_use_id"`:
			id = rawjson.Text(v)
		}
	}
	return (typ == "mcp_tool_use" || typ == "mcp_tool_result") && strings.HasPrefix(id, serverPrefix)
}
