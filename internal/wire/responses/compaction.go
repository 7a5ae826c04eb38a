package responses

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// typeCompaction is the type of the item that replaces a compacted conversation. typeTrigger is the type of the item at the end of the
// input that requests a compaction.
const (
	typeCompaction = "compaction"
	typeTrigger    = "compaction_trigger"
)

// unused are members that have no effect in a request to compact a conversation, although agents send them.
var unused = []string{"tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "max_tool_calls", "text", "include",
	"truncation", "top_logprobs"}

// ParseCompaction parses the body of a request to compact a conversation, which has the members that ParseRequest reads. Tools and the
// format of the answer have no effect and are listed in Dropped. The error is an *[wire.APIError].
func (c Codec) ParseCompaction(body []byte) (*wire.ClientRequest, error) {
	req, err := c.ParseRequest(body)
	if err != nil {
		return nil, err
	}
	if req.Stream {
		err := wire.BadRequest("stream", "A compaction is not streamed.")
		err.Code = codeUnsupported
		return nil, err
	}
	PrepareCompaction(req)
	return req, nil
}

// PrepareCompaction removes the members without effect on a compaction from a request.
func PrepareCompaction(req *wire.ClientRequest) {
	for _, name := range unused {
		if get(req.Body, name) != nil {
			req.Drop(name)
		}
	}
	req.Unknown = slices.DeleteFunc(req.Unknown, func(m lathe.Member) bool { return slices.Contains(unused, m.Name) })
	req.Tools, req.Allowed, req.ToolChoice, req.ParallelToolCalls = nil, nil, lathe.ToolChoice{}, nil
	req.Hosted = slices.DeleteFunc(req.Hosted, func(t wire.HostedTool) bool { return t.Item == "" }) // tools in the input are sent with it
	for _, s := range []*lathe.Sampling{&req.Sampling, req.Updated} {
		if s != nil {
			s.MaxTokens, s.ResponseFormat = nil, nil
		}
	}
}

// A Compaction is the response to a request to compact a conversation.
type Compaction struct {
	ID      string // see [wire.AnswerHead]
	Created int64  // Unix time in seconds
	// Kept are user messages that precede the compaction item in the compacted conversation.
	Kept   []lathe.Message
	Sealed string // encrypted_content of the compaction item
	Usage  lathe.Usage
}

// AppendCompaction appends the body of the response.
func AppendCompaction(dst wire.JSON, c *Compaction) wire.JSON {
	r := newResource(&wire.AnswerHead{ID: c.ID})
	dst = dst.Lit("{").Fields("id", r.id, "object", "response.compaction", "created_at", c.Created).Arr("output")
	e := &encoder{req: &lathe.Request{}, opts: &wire.EncodeOptions{}}
	for i := range c.Kept {
		dst = dst.Next().Lit("{").Fields("id", r.itemID(prefixMessage, i), "type", "message", "role", "user", "status", statusCompleted).Arr("content")
		parts := slices.Clone(c.Kept[i].Parts)
		for j, p := range parts {
			if blob, ok := p.(lathe.Blob); ok && blob.Detail == "" { // the wire requires it in output
				blob.Detail = "auto"
				parts[j] = blob
			}
		}
		dst = e.parts(dst, parts, c.Kept[i].Wire, wire.Element("output", i)+".content").Lit("]}")
	}
	dst = dst.Next().Raw(c.Item()).Lit("]")
	return appendUsage(append(dst, `,"usage":`...), &c.Usage).Lit("}")
}

// Item returns the JSON of the compaction item.
func (c *Compaction) Item() []byte {
	r := newResource(&wire.AnswerHead{ID: c.ID})
	return wire.ObjectOf("id", r.itemID(prefixCompaction, len(c.Kept)), "type", typeCompaction, fieldEncrypted, c.Sealed)
}

// CompactionContent returns the encrypted_content of a compaction item, or "" for other items.
func CompactionContent(item []byte) string {
	if text(item, "type") != typeCompaction {
		return ""
	}
	return text(item, fieldEncrypted)
}

// AppendCount appends the response with a number of tokens.
func AppendCount(dst wire.JSON, tokens int64) wire.JSON {
	return dst.Raw(wire.ObjectOf("object", "response.input_tokens", "input_tokens", tokens))
}
