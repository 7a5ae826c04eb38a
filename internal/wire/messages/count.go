package messages

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

var _ wire.Counter = Codec{}

// counted are the members that a request to count tokens may have. The API refuses others, such as max_tokens.
var counted = nameSet("messages model output_config system thinking tool_choice tools")

// CountPath returns "/v1/messages/count_tokens".
func (Codec) CountPath(string) string { return "/v1/messages/count_tokens" }

// AppendCountRequest implements [wire.Counter].
func (c Codec) AppendCountRequest(dst []byte, req *lathe.Request, opts *wire.EncodeOptions) []byte {
	body, _ := c.AppendRequest(nil, req, opts)
	return append(dst, rawjson.Filter(body, counted.Has)...)
}
