package server

import (
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
)

// A protocol is a wire that this server offers to clients: its codec, and the properties in which the wires differ for the
// server. A [chat] handles the requests of all protocols.
type protocol struct {
	wire.Served
	// conversation and tools are the names of the members of a request that contain the messages and the tools.
	conversation, tools string
	// published contains the members of the wire's published schema that the codec does not read.
	published *rawjson.Names
	// withheld contains the members of the published schema that are sent to the model server only if the entry of the
	// model lists them (models.NAME.pass): they make that server store data, call its own tools, or answer with another
	// model.
	withheld *rawjson.Names
	// shaping contains the members that only change the bytes of the model server's answer: they have an effect only if the
	// answer is relayed.
	shaping []string
	// ordered is set if an answer is a sequence of elements. Otherwise an answer has one text, and its reasoning in a
	// separate member.
	ordered bool
	// showsCalls is set if the wire has elements for calls of this server.
	showsCalls bool
	// pieces is set if a stream may contain the arguments of a call in pieces.
	pieces bool
	// resent is set if clients resume an interrupted stream by sending the request again with the text received so far as its
	// last message.
	resent bool
	// array is set if a stream is one JSON array instead of server-sent events. Bytes of a model server cannot be relayed
	// into it.
	array bool
	// complete sets the fields of a request that are not in its body; nil: the body has all of them.
	complete func(r *http.Request, req *wire.ClientRequest) *problem
}

// reword translates the name of the member in a problem from chat completions to this wire.
func (pr *protocol) reword(p *problem) *problem {
	member, _, _ := strings.Cut(p.Param, "[")
	switch {
	case pr.Wire() == lathe.WireOpenAIChat, member == pr.conversation:
	case member == "messages":
		p.Param = pr.conversation
	case member == "tools":
		p.Param = pr.tools
	case p.Param == "tool_choice.function.name":
		p.Param = "tool_choice"
	}
	return p
}

var chatCompletions = &protocol{
	Served: openai.Served{}, conversation: "messages", tools: "tools", pieces: true,
	published: openai.Published,
	withheld:  rawjson.NewNames("store", "metadata", "web_search_options"),
	shaping:   []string{"audio", "modalities", "logprobs", "top_logprobs"},
}

var responsesAPI = &protocol{
	Served: responses.Codec{}, conversation: "input", tools: "tools", ordered: true, showsCalls: true, pieces: true, resent: true,
	published: responses.Published,
	withheld:  rawjson.NewNames("conversation", "metadata", "prompt", "store"),
	shaping:   []string{"top_logprobs"},
}

var messagesAPI = &protocol{
	Served: messages.Codec{}, conversation: "messages", tools: "tools", ordered: true, showsCalls: true, pieces: true,
	published: messages.Published,
	withheld:  rawjson.NewNames("container", "fallbacks", "mcp_servers"),
}

var geminiAPI = &protocol{
	Served: gemini.Codec{}, conversation: "contents", tools: "tools", ordered: true,
	published: rawjson.NewNames("cachedContent", "labels", "model", "safetySettings", "serviceTier", "store"),
	withheld:  rawjson.NewNames("cachedContent", "store"),
	complete:  completeGemini,
}

// geminiArray is the Gemini protocol with streams in the form of one JSON array.
var geminiArray = func() *protocol {
	pr := *geminiAPI
	pr.Served, pr.array = gemini.Codec{Array: true}, true
	return &pr
}()
