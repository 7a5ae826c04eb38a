package provider

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// ReducedSchema returns the parts of a tool's definition that are not sent to the model server unchanged, because the wire or
// [Server].Strict does not support them: at most 32 paths such as tools[0].parameters.properties.n.minimum. The runner still validates
// arguments against the whole schema. ReducedSchema makes no request.
func (c *Chat) ReducedSchema(spec *lathe.ToolSpec) []string {
	opts := c.encode
	_, dropped := c.wire.AppendRequest(nil, &lathe.Request{Model: c.model, Tools: []*lathe.ToolSpec{spec}}, &opts)
	var out []string
	for _, path := range dropped {
		if strings.HasPrefix(path, "tools") {
			out = append(out, path)
		}
	}
	return out
}
