// Package gemini is the codec of Google's generateContent, for servers and for clients: [Codec] implements [wire.Served] and
// [wire.Upstream].
//
// The model and the choice to stream are in the path of a request, not in its body, so ParseRequest does not set Model and Stream of a
// [wire.ClientRequest]; the server sets them from the path. Like Google's servers, the codec reads members in camel case and in snake case.
// It writes them in camel case.
//
// The parts of a content become parts of a [lathe.Message] in their order:
//
//	{"text":T}                          lathe.Text
//	{"text":T,"thought":true}           lathe.Reasoning with Field "thought"; its thoughtSignature is Data
//	{…,"thoughtSignature":S}            lathe.Reasoning with Field "thoughtSignature" and Data S, directly before the part
//	{"functionCall":…}                  lathe.ToolCall
//	{"functionResponse":…}              lathe.ToolResult in a message of its own
//	{"inlineData":…}, {"fileData":…}    lathe.Blob
//	{}                                  nothing; its path is in Dropped
//	any other                           lathe.Opaque
//
// Unknown members of a part are kept in Extra, or in Raw of a Blob. For a call or a result, Extra may have a member functionCall or
// functionResponse: an object with the unknown members of that object.
package gemini

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Codec translates between generateContent and the internal form. The zero value writes streams as server-sent events.
type Codec struct {
	// Array makes Writers write one JSON array instead of server-sent events, as streamGenerateContent does without alt=sse. An answer in
	// this form cannot be relayed: [wire.Writer.Pass] must not be called.
	Array bool
}

var (
	_ wire.Served   = Codec{}
	_ wire.Upstream = Codec{}
)

// Wire implements [wire.Served] and [wire.Upstream].
func (Codec) Wire() lathe.Wire { return lathe.WireGemini }

// Path implements [wire.Upstream].
func (Codec) Path(model string, stream bool) string {
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	if stream {
		return "/" + model + ":streamGenerateContent?alt=sse"
	}
	return "/" + model + ":generateContent"
}

// Vendor implements [wire.Upstream].
func (Codec) Vendor() wire.Vendor {
	return wire.Vendor{BaseURL: "https://generativelanguage.googleapis.com/v1beta", KeyHeader: "x-goog-api-key"}
}

// Values of lathe.Reasoning.Field: see the documentation of the package.
const (
	fieldThought   = "thought"
	fieldSignature = "thoughtSignature"
)

// noSignature is the value that Google's servers accept as the signature of a call that another model wrote.
const noSignature = "skip_thought_signature_validator"

// The features that [Codec.Refused] returns.
const (
	featureIDs        = "call_ids"
	featureJSONSchema = "json_schema"
	featureUnsigned   = "unsigned_calls"
	featureLevel      = "thinking_level"
	featureThinking   = "thinking"
)

// generation returns the number after "gemini-" in the name of a model, or 0 if none exists.
func generation(model string) int {
	_, rest, _ := strings.Cut(model, "gemini-")
	end := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 0
	}
	return n
}
