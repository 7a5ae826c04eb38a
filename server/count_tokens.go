package server

import (
	"errors"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// Estimates of [estimateTokens].
const (
	bytesPerToken    = 4
	tokensPerMessage = 4
	tokensPerBlob    = 1500 // an image or a page
)

// counting is the codec of Messages for requests to count tokens, in which max_tokens is not required.
type counting struct{ messages.Codec }

func (c counting) ParseRequest(body []byte) (*wire.ClientRequest, error) { return c.ParseCount(body) }

var countedMessages = func() *protocol {
	pr := *messagesAPI
	pr.Served = counting{}
	return &pr
}()

// countMessages answers with the number of tokens of a request of Anthropic's API.
func (h *chatHandler) countMessages(w http.ResponseWriter, r *http.Request, c *caller) {
	h.countTokens(w, r, c, countedMessages)
}

// countTokens answers with an estimate of the tokens of a request, in the form of its wire.
func (h *chatHandler) countTokens(w http.ResponseWriter, r *http.Request, c *caller, pr *protocol) {
	req, p := pr.read(r, c.body)
	if p == nil {
		_, p = c.model(req.Model)
	}
	if p == nil {
		p = h.checkSize(r.Context(), req.Messages)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	c.named = req.Model
	n := estimateTokens(req)
	if pr == geminiAPI {
		c.answerRaw(w, gemini.AppendCount(nil, n))
		return
	}
	c.answerRaw(w, messages.AppendCount(nil, n))
}

// estimateTokens estimates the tokens of a request from the size of its texts, since the server has no vendor's tokenizer.
func estimateTokens(req *wire.ClientRequest) int64 {
	bytes, n := 0, 0
	for i := range req.Messages {
		n += tokensPerMessage
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case lathe.Text:
				bytes += len(p.Text)
			case lathe.Reasoning:
				bytes += len(p.Text)
			case lathe.Refusal:
				bytes += len(p.Text)
			case lathe.ToolCall:
				bytes += len(p.Name) + len(p.Arguments)
			case lathe.ToolResult:
				bytes += len(p.Content)
				n += tokensPerBlob * len(p.Blobs)
			case lathe.Opaque:
				bytes += len(p.JSON)
			case lathe.Blob:
				n += tokensPerBlob
			}
		}
	}
	for _, t := range req.Tools {
		bytes += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return int64(n + (bytes+bytesPerToken-1)/bytesPerToken)
}

// read parses the body of a request.
func (pr *protocol) read(r *http.Request, body []byte) (*wire.ClientRequest, *problem) {
	req, err := pr.ParseRequest(body)
	if err != nil {
		var bad *wire.APIError
		if !errors.As(err, &bad) {
			bad = &wire.APIError{Status: http.StatusBadRequest, Message: "The request could not be read."}
		}
		return nil, misread(bad)
	}
	if pr.complete != nil {
		if p := pr.complete(r, req); p != nil {
			return nil, p
		}
	}
	return req, nil
}
