package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/responses"
)

// Factors of [estimateTokens].
const (
	bytesPerToken    = 4
	tokensPerMessage = 4
	tokensPerBlob    = 1500 // tokens of an image or of a page of a document
)

// counting is the codec of Messages for requests to count tokens, which do not require max_tokens.
type counting struct{ messages.Codec }

func (c counting) ParseRequest(body []byte) (*wire.ClientRequest, error) { return c.ParseCount(body) }

// countingGemini is the codec of generateContent for requests to count tokens, which may be within generateContentRequest.
type countingGemini struct{ gemini.Codec }

func (countingGemini) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	return gemini.ParseCount(body)
}

// countedMessages and countedGemini are the protocols of requests to count tokens.
var countedMessages, countedGemini = messagesAPI.with(counting{}), geminiAPI.with(countingGemini{})

func (pr *protocol) with(codec wire.Served) *protocol {
	other := *pr
	other.Served = codec
	return &other
}

// estimatedHeader is the response header that is "true" if the number of tokens is an estimate of this server, and "false"
// if the model server has counted them.
const estimatedHeader = "X-Lathe-Estimated"

// countTokens responds with the number of tokens of a request, in the format of its protocol. The model server counts if it
// uses the same wire and can count; otherwise the number is an estimate.
func (h *tokenCounter) countTokens(w http.ResponseWriter, r *http.Request, c *caller, pr *protocol) *problem {
	req, _, p := h.read(c, pr, r, c.body)
	if p == nil {
		p = h.objects.check(r.Context(), c, withoutReferences(objectsIn(req.Body)))
	}
	if p != nil {
		return p
	}
	m, p := c.model(req.Model)
	if p == nil {
		p = h.checkSize(r.Context(), c, req.Messages)
	}
	if p == nil && pr == responsesAPI {
		p = h.completeInput(r.Context(), c, req)
	}
	if p == nil {
		p = (&members{protocol: pr, req: req}).requireWholeConversation(nil)
	}
	if p != nil {
		return p
	}
	c.named = req.Model
	n, counted := h.askCount(r, c, m, pr, req)
	if !counted {
		n = estimateTokens(req)
	}
	w.Header().Set(estimatedHeader, strconv.FormatBool(!counted))
	count := messages.AppendCount
	switch pr {
	case countedGemini:
		count = gemini.AppendCount
	case responsesAPI:
		count = responses.AppendCount
	}
	return answerRaw(w, http.StatusOK, count(nil, n))
}

// completeInput sets the messages of a Responses request to those that a model would get, including the response that it
// continues.
func (h *tokenCounter) completeInput(ctx context.Context, c *caller, req *wire.ClientRequest) *problem {
	a := h.newChat(c, responsesAPI, req)
	if p := h.restoreIDs(ctx, a); p != nil {
		return p
	}
	waits, p := h.responses.continueResponse(ctx, a)
	if p != nil {
		return p
	}
	if waits != "" {
		v, p := h.viewOther(ctx, c, waits)
		if p != nil {
			return p
		}
		req.Messages = slices.Concat(v.State.Messages, req.Messages)
		return h.checkSize(ctx, c, req.Messages)
	}
	conv, p := h.restore(ctx, a)
	if p == nil {
		req.Messages = conv.Messages
	}
	return p
}

// askCount requests the number of tokens from the model server. ok is false if that server uses another wire, cannot count,
// or fails.
func (h *tokenCounter) askCount(r *http.Request, c *caller, m *Model, pr *protocol, req *wire.ClientRequest) (n int64, ok bool) {
	if m.Loop.Wire() != pr.Wire() || req.Foreign != nil {
		return 0, false
	}
	counted := lathe.Request{Tools: req.Tools, ToolChoice: req.ToolChoice, ParallelToolCalls: req.ParallelToolCalls, Sampling: req.Sampling, RequestID: c.requestID}
	given, _, _ := h.reasoning.apply(c.key.Name, req.Model, req.Messages)
	for i := range given {
		message := given[i]
		message.Parts = slices.DeleteFunc(slices.Clone(message.Parts), splice.IsCarrier) // only this server can open a carrier
		counted.Messages = append(counted.Messages, message)
	}
	for _, t := range req.Hosted {
		if t.Type != "mcp" && t.Item == "" {
			counted.HostedTools = append(counted.HostedTools, t.JSON)
		}
	}
	if pr.Wire() == lathe.WireMessages {
		counted.Betas = betasOf(r.Header)
		if v := r.Header.Get("Anthropic-Version"); messages.AcceptsVersion(v) {
			counted.APIVersion = v
		}
	}
	n, err := m.Loop.CountTokens(r.Context(), &counted)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		h.opts.Log.Debug("the model server counted no tokens, they are estimated", "request_id", c.requestID, "code", lathe.CodeOf(err))
	}
	return n, err == nil
}

// estimateTokens estimates the tokens of a request from the size of its texts. The gateway has no tokenizer of the vendor.
func estimateTokens(req *wire.ClientRequest) int64 {
	bytes, n := 0, 0
	for _, m := range req.Messages {
		n += tokensPerMessage
		for _, p := range m.Parts {
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

// read checks the number of elements in the body against the limits, removes the vendor's tools that the caller may not
// use, and parses the body. withheld contains the types of the removed tools.
func (h *planner) read(c *caller, pr *protocol, r *http.Request, body []byte) (req *wire.ClientRequest, withheld []string, p *problem) {
	if p := checkElements(&h.opts.Limits, body, pr.conversation, pr.tools); p != nil {
		return nil, nil, p
	}
	req, err := pr.ParseRequest(body)
	if err == nil {
		if body, withheld, p = withholdTools(c, pr, body); p != nil {
			return nil, nil, p
		}
		if len(withheld) > 0 {
			req, err = pr.ParseRequest(body)
		}
	}
	if err != nil {
		return nil, nil, misread(err)
	}
	if p := checkItemServers(req); p != nil {
		return nil, nil, p
	}
	if pr.complete != nil {
		if p := pr.complete(r, req); p != nil {
			return nil, nil, p
		}
	}
	return req, withheld, nil
}
