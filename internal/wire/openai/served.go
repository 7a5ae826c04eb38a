package openai

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// Served is the codec of chat completions for requests of clients.
type Served struct{}

var _ wire.Served = Served{}

// Wire implements [wire.Served].
func (Served) Wire() lathe.Wire { return lathe.WireOpenAIChat }

// ParseRequest implements [wire.Served]. See [ParseAny].
func (Served) ParseRequest(body []byte) (*wire.ClientRequest, error) { return ParseAny(body) }

// AppendError implements [wire.Served].
func (Served) AppendError(dst []byte, e *wire.APIError) []byte { return AppendError(dst, e) }

func completionID(head *wire.AnswerHead) string {
	return "chatcmpl-" + head.ID
}
