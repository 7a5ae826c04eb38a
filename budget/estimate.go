package budget

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// What a request has besides its texts, in tokens at most. No tokenizer makes more tokens of a text than it has bytes.
const (
	perRequest = 2048   // what servers add for tools and templates
	perTool    = 64     // the marks around a tool
	perImage   = 20_000 // an image, of whatever size
)

// most returns the most input and output tokens of a call. limit is the token limit that its request must be sent with; 0: it is
// sent as it is.
func (m *modelMeter) most(req *lathe.Request, wire lathe.Wire) (input, output int64, limit int) {
	input = inputTokens(req)
	output, choices := int64(0), int64(1)
	if p := req.Sampling.MaxTokens; p != nil {
		output = int64(max(*p, 0))
	}
	for _, o := range req.Overrides {
		if n, ok := number(o.Value); ok {
			switch o.Name {
			case "max_tokens", "max_completion_tokens", "max_output_tokens":
				output = max(output, n)
			case "n":
				choices = max(choices, n)
			}
		}
	}
	if req.Relay != nil && len(req.Relay.Request) > 0 {
		for name, value := range rawjson.Members(req.Relay.Request[rawjson.SkipSpace(req.Relay.Request, 0):]) {
			if n, ok := number(value); ok && string(name) == `"n"` {
				choices = max(choices, n)
			}
		}
	}
	switch {
	case output > 0:
	case wire == lathe.WireMessages && m.model.MaxTokens > 0: // which demands a limit, and is sent this one
		output = int64(m.model.MaxTokens)
	case m.model.OutputLimit > 0:
		output = m.model.OutputLimit
	default:
		output, limit = int64(m.model.MaxTokens), m.model.MaxTokens
	}
	const most = 1_000_000_000 // no model reads or writes as much, and the product fits
	return min(input, most), min(min(output, most)*min(choices, most), most), limit
}

// number reads a whole number above 0.
func number(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return n, err == nil && n > 0
}

// inputTokens returns the most tokens that a request can have.
func inputTokens(req *lathe.Request) int64 {
	n := perRequest
	for i := range req.Messages {
		n += messageTokens(&req.Messages[i])
	}
	for _, t := range req.Tools {
		n += perTool + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, t := range req.HostedTools {
		n += perTool + len(t)
	}
	n += len(req.Sampling.ResponseFormat)
	for _, o := range req.Overrides {
		n += len(o.Name) + len(o.Value)
	}
	return int64(n)
}

// messageTokens returns the most tokens of a message, its marks included, for which its size has more than enough. The data of an image counts as an image, other data with its size.
func messageTokens(m *lathe.Message) int {
	n := m.Size()
	blobs := func(list ...lathe.Blob) {
		for i := range list {
			if b := &list[i]; strings.HasPrefix(b.MediaType, "image/") || b.URL != "" {
				n += perImage - min(b.Size(), n)
			}
		}
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Blob:
			blobs(p)
		case lathe.ToolResult:
			blobs(p.Blobs...)
		default: // text
		}
	}
	return n
}
