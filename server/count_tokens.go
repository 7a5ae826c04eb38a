package server

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/responses"
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

// countResponse answers with the number of tokens of a request of Responses, with the response that it continues.
func (h *chatHandler) countResponse(w http.ResponseWriter, r *http.Request, c *caller) {
	h.countTokens(w, r, c, responsesAPI)
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
	if p == nil && pr == responsesAPI {
		p = h.completeInput(r.Context(), c, req)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	c.named = req.Model
	n := estimateTokens(req)
	switch pr {
	case geminiAPI:
		c.answerRaw(w, gemini.AppendCount(nil, n))
	case responsesAPI:
		c.answerRaw(w, responses.AppendCount(nil, n))
	default:
		c.answerRaw(w, messages.AppendCount(nil, n))
	}
}

// completeInput sets the messages of a request of Responses to those that a model would receive.
func (h *chatHandler) completeInput(ctx context.Context, c *caller, req *wire.ClientRequest) *problem {
	a := &chat{handler: h, caller: c, members: members{protocol: responsesAPI, req: req}}
	waits, p := h.continueResponse(ctx, a)
	if p == nil && waits != nil {
		own := *c // a copy, since the request of the original belongs to another run
		v, bad := h.view(ctx, &own, waits.runID)
		if bad != nil {
			return bad
		}
		req.Messages = slices.Concat(v.state.Messages, req.Messages)
		return nil
	}
	if p != nil {
		return p
	}
	j, p := h.restore(ctx, a, false)
	if p == nil {
		req.Messages = j.messages
	}
	return p
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
