package provider

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// ReducedSchema returns the parts of the definition of a tool that the model server is not sent as they are, because the wire of
// the model or [Options].Strict has nothing for them: paths such as tools[0].parameters.properties.n.minimum, 32 at most. The
// runner validates arguments against the whole schema nevertheless. It makes no request.
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
