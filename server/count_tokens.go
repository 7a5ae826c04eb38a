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
func (h *tokenCounter) countMessages(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	return h.countTokens(w, r, c, countedMessages)
}

// countResponse answers with the number of tokens of a request of Responses, with the response that it continues.
func (h *tokenCounter) countResponse(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	return h.countTokens(w, r, c, responsesAPI)
}

// estimatedHeader says whether the number of tokens in an answer is an estimate of this server ("true") or was counted by the
// model's server ("false").
const estimatedHeader = "X-Lathe-Estimated"

// countTokens answers with the number of tokens of a request, in the form of its wire: as the model's server counts them if it
// has the same wire and such a method, else an estimate.
func (h *tokenCounter) countTokens(w http.ResponseWriter, r *http.Request, c *caller, pr *protocol) *problem {
	req, _, p := h.read(c, pr, r, c.body)
	if p == nil {
		p = h.objects.check(r.Context(), c, objectsOf(req.Body, false))
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
		p = (&members{protocol: pr, req: req}).requireWholeConversation(false, nil)
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
	case geminiAPI:
		count = gemini.AppendCount
	case responsesAPI:
		count = responses.AppendCount
	}
	return answerRaw(w, http.StatusOK, count(nil, n))
}

// completeInput sets the messages of a request of Responses to those that a model would receive.
func (h *tokenCounter) completeInput(ctx context.Context, c *caller, req *wire.ClientRequest) *problem {
	a := &chat{}
	a.request = request{handler: h.planner, caller: c, members: members{protocol: responsesAPI, req: req}}
	if p := h.restoreIDs(ctx, a); p != nil {
		return p
	}
	waits, p := h.responses.continueResponse(ctx, a)
	if p == nil && waits != nil {
		v, bad := h.viewOther(ctx, c, waits.RunID)
		if bad != nil {
			return bad
		}
		req.Messages = slices.Concat(v.State.Messages, req.Messages)
		return h.checkSize(ctx, c, req.Messages)
	}
	if p != nil {
		return p
	}
	j, p := h.restore(ctx, a, false)
	if p == nil {
		req.Messages = j.Messages
	}
	return p
}

// askCount returns the number of tokens that the model's server counts; ok is false if it does not.
func (h *tokenCounter) askCount(r *http.Request, c *caller, m *Model, pr *protocol, req *wire.ClientRequest) (n int64, ok bool) {
	if m.Loop.Wire() != pr.Wire() || req.Foreign != nil {
		return 0, false
	}
	counted := lathe.Request{Tools: req.Tools, ToolChoice: req.ToolChoice, ParallelToolCalls: req.ParallelToolCalls, Sampling: req.Sampling, RequestID: c.requestID}
	given, _, _ := h.reasoning.apply(c.key.Name, req.Model, req.Messages)
	for i := range given {
		message := given[i]
		message.Parts = slices.DeleteFunc(slices.Clone(message.Parts), splice.IsCarrier) // no server but this one can open it
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

// read parses the body of a request, unless it has more elements than the limits allow, without the vendor's tools that the caller may
// not use. withheld are their types.
func (h *planner) read(c *caller, pr *protocol, r *http.Request, body []byte) (req *wire.ClientRequest, withheld []string, p *problem) {
	if p := h.checkElements(body, pr.conversation, pr.tools); p != nil {
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
		var bad *wire.APIError
		if !errors.As(err, &bad) {
			bad = &wire.APIError{Status: http.StatusBadRequest, Message: "The request could not be read."}
		}
		return nil, nil, misread(bad)
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
