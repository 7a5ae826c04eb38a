// Package upstreams selects the codec for requests to model servers by its wire.
package upstreams

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
)

// Of returns the codec of a wire, or nil if the wire is unknown. "" means chat completions.
func Of(w lathe.Wire) wire.Upstream {
	switch w {
	case "", lathe.WireOpenAIChat:
		return openai.Upstream{}
	case lathe.WireResponses:
		return responses.Codec{}
	case lathe.WireMessages:
		return messages.Codec{}
	case lathe.WireGemini:
		return gemini.Codec{}
	}
	return nil
}
