package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/responses"
)

// A compaction shortens a conversation. A client requests it with POST /v1/responses/compact, or with an item
// compaction_trigger at the end of the input of POST /v1/responses. The server makes the compaction itself if the model
// server uses another wire and so does not support that item. The run is like that of any request, except that it has no
// tools and its conversation ends with a message that asks for a summary.
//
// The answer is a shorter conversation: a compaction item whose encrypted_content is the summary as a sealed text (package
// seal) and, unless an item requested the compaction, the last messages of the user before it. In the input of a later
// request the server replaces the item by the summary as a message of the user: the summary comes from the conversation, so
// it must not have the authority of instructions. The item is bound to the key, not to a position, since clients add and
// remove items around it. A sealed item that cannot be opened is an error, since the model would continue without the
// content that the item represents. Compaction items of vendors are not sealed here and are passed on.

const (
	// maxKeptInput is the maximum size in bytes of the user messages that a compacted conversation repeats.
	maxKeptInput = 32 << 10
	// maxSummary is the maximum size of the summary in bytes.
	maxSummary = 256 << 10
	// maxCompactions is the maximum number of compaction items in one request.
	maxCompactions = 64
)

// askSummary is the last message of the conversation for the model that writes the summary. summaryHead is the beginning of
// the user message with the summary in the conversation of a later request.
const (
	askSummary = "Summarize this conversation for a model that will continue it and sees only the summary. State the user's goals and " +
		"constraints; the decisions and facts, with exact names, paths, numbers and ids; what was done, and what tools returned; and what " +
		"remains to be done. If the conversation begins with a summary, include its content. Write the summary only."
	summaryHead = "Summary of the conversation so far, which was compacted:\n\n"
)

// compacted is the JSON that is sealed in a compaction item.
type compacted struct {
	Summary string `json:"summary"`
}

// compactionBinding returns the context to which the sealed text of a compaction item of the caller is bound: its key.
func (c *caller) compactionBinding() []string { return []string{"compaction", c.key.Name} }

// compacting is the codec of the Responses wire for requests for a compaction, and for their answers.
type compacting struct {
	responses.Codec
	asked *exchange // the exchange whose conversation is compacted
	ring  *seal.Ring
	item  bool // an item of the input requests the compaction
}

// ParseRequest implements [wire.Served]. It parses the body of a request for a compaction.
func (c compacting) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	return c.ParseCompaction(body)
}

// NewWriter implements [wire.Served]. The writer collects the summary and writes the compaction.
func (c compacting) NewWriter(head *wire.AnswerHead) wire.Writer {
	return &compactionWriter{textWriter{Writer: c.Codec.NewWriter(head)}, &c, head}
}

// compactedResponses is the protocol of POST /v1/responses/compact.
var compactedResponses = responsesAPI.with(compacting{})

// A compactionWriter collects the text of the answer, which is the summary, and writes a compaction item instead.
type compactionWriter struct {
	textWriter
	answer *compacting
	head   *wire.AnswerHead
}

// AppendCarrier implements [wire.Writer]. It appends nothing.
func (*compactionWriter) AppendCarrier(dst []byte, _ string) []byte { return dst }

// AppendFinish implements [wire.Writer]. It appends the compaction.
func (w *compactionWriter) AppendFinish(dst []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	a := w.answer.asked
	content, _ := json.Marshal(&compacted{Summary: w.text.String()}) // a struct of one string: encoding it does not fail
	c := &responses.Compaction{ID: w.head.ID, Created: w.head.Created, Sealed: w.answer.ring.Seal(content, a.caller.compactionBinding()...), Usage: f.Usage}
	if !w.answer.item {
		c.Kept = keptInput(a.req.Messages)
		return responses.AppendCompaction(dst, c)
	}
	dst = w.Writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaPart, Name: string(lathe.WireResponses), Part: lathe.Opaque{JSON: c.Item()}})
	return w.Writer.AppendFinish(dst, f, extra)
}

// acceptCompaction changes the plan to that of a compaction, without tools, if the request asks for one that the model
// server does not make itself.
func (a *exchange) acceptCompaction(ctx context.Context) *problem {
	item := a.req.Compact && a.protocol == responsesAPI && a.plan.model.Loop.Wire() != lathe.WireResponses
	if !item && a.protocol != compactedResponses {
		return nil
	}
	if options, p := parseOptions(a.asked()); p != nil || options.detach {
		return badRequest(options.param("detach"), "A compaction ends with its request.")
	}
	ring, err := a.handler.seals.Get(ctx)
	if err != nil {
		return problems.NotNow(err)
	}
	a.protocol = responsesAPI.with(compacting{asked: a, ring: ring, item: item})
	if item {
		responses.PrepareCompaction(a.req)
		a.req.Messages = withoutTrigger(a.req.Messages)
	}
	a.in.ClientTools, a.in.Allow = nil, []string{}
	runinput.Of(&a.in).HostedTools = nil
	a.settings.ToolUseMode, a.settings.ToolChoice = lathe.ModeDisabled, lathe.ToolChoice{}
	return nil
}

// withoutTrigger returns the messages without their last part, the item compaction_trigger.
func withoutTrigger(messages []lathe.Message) []lathe.Message {
	last := messages[len(messages)-1]
	messages = messages[: len(messages)-1 : len(messages)-1]
	last.Parts = last.Parts[: len(last.Parts)-1 : len(last.Parts)-1]
	if len(last.Parts) > 0 {
		messages = append(messages, last)
	}
	return messages
}

// compacts reports whether the answer to the request is a compaction made by this server.
func (ms *members) compacts() bool {
	c, ok := ms.protocol.Served.(compacting)
	return ok && c.ring != nil
}

// checkSummary returns a problem with status 502 if the result is not a complete summary of at most maxSummary bytes.
func checkSummary(res *event.Result) *problem {
	switch {
	case res.Reason != lathe.ReasonAnswered || strings.TrimSpace(res.Answer) == "":
		return problems.New(http.StatusBadGateway, "compaction_failed", "The model wrote no complete summary of the conversation (%s).", res.Reason)
	case len(res.Answer) > maxSummary:
		return problems.New(http.StatusBadGateway, "compaction_failed", "The model's summary of the conversation is too long.")
	}
	return nil
}

func keptInput(messages []lathe.Message) (kept []lathe.Message) {
	bytes := 0
	for _, m := range slices.Backward(messages) {
		if m.Role != lathe.RoleUser || len(m.Parts) == 0 {
			continue
		}
		if bytes += m.Size(); bytes > maxKeptInput {
			break
		}
		kept = append(kept, m)
	}
	slices.Reverse(kept)
	return kept
}

// sealedCompaction returns the sealed text if the part is a compaction item that a Lathe server sealed; else "".
func sealedCompaction(p lathe.Part) string {
	o, _ := p.(lathe.Opaque)
	if text := responses.CompactionContent(o.JSON); seal.Sealed(text) {
		return text
	}
	return ""
}

// vendorSummary returns the summary of a compaction that a vendor's server made, if it is text: that of a content block of the
// Messages wire. It returns "" for other parts, and for compactions that only the vendor's server can read.
func vendorSummary(p lathe.Part) string {
	o, _ := p.(lathe.Opaque)
	if rawjson.TextAt(o.JSON, "type") != "compaction" {
		return ""
	}
	return rawjson.TextAt(o.JSON, "content")
}

// openVendorSummaries replaces the compactions of the vendor's server whose summary is text by messages of the user, for a
// model on another wire. Others are parts without a form on that wire: see [Model.checkContent].
func (a *exchange) openVendorSummaries(conv *splice.Spliced) {
	hasSummary := func(p lathe.Part) bool { return vendorSummary(p) != "" }
	model := a.plan.model
	if model == nil || model.Loop.Wire() == a.protocol.Wire() || !pairs.AnyPart(conv.Messages, hasSummary) {
		return
	}
	var out []lathe.Message
	for _, m := range conv.Messages {
		others := make([]lathe.Part, 0, len(m.Parts))
		for _, part := range m.Parts {
			if summary := vendorSummary(part); summary != "" {
				out = append(out, lathe.User(summaryHead+summary))
			} else {
				others = append(others, part)
			}
		}
		m.Parts = others
		if len(others) > 0 {
			out = append(out, m)
		}
	}
	conv.Messages, conv.Changed = out, true
}

// openCompactions replaces the sealed compaction items in a conversation by their summaries, as messages of the user. It does
// the same with those of vendors if the model is on another wire, unless the request is relayed.
func (h *planner) openCompactions(ctx context.Context, a *chat, conv *splice.Spliced) *problem {
	if !a.plan.relayed {
		a.openVendorSummaries(conv)
	}
	isSealed := func(p lathe.Part) bool { return sealedCompaction(p) != "" }
	if a.protocol.Wire() != lathe.WireResponses || !pairs.AnyPart(conv.Messages, isSealed) {
		return nil
	}
	ring, err := h.seals.Get(ctx)
	if err != nil {
		return problems.NotNow(err)
	}
	var out []lathe.Message
	opened := 0
	for _, m := range conv.Messages {
		others := m // the parts that are not compactions and not in out yet
		others.Parts = nil
		for _, part := range m.Parts {
			if !isSealed(part) {
				others.Parts = append(others.Parts, part)
				continue
			}
			opened++
			raw, err := ring.Open(sealedCompaction(part), a.caller.compactionBinding()...)
			var content compacted
			switch {
			case len(others.Calls()) > 0:
				return badRequest(a.protocol.conversation, "A compaction item stands between a call and its result.").WithCode("invalid_encrypted_content")
			case opened > maxCompactions:
				return badRequest(a.protocol.conversation, "The input has more than %d compaction items.", maxCompactions)
			case err != nil || json.Unmarshal(raw, &content) != nil:
				return badRequest(a.protocol.conversation, "A compaction item cannot be read: it was changed, or another key or gateway made it, or the gateway's seal key was replaced. Send the conversation without it.").WithCode("invalid_encrypted_content")
			}
			if len(others.Parts) > 0 { // the parts before the compaction
				out, others.Parts = append(out, others), nil
			}
			out = append(out, lathe.User(summaryHead+content.Summary))
		}
		if len(others.Parts) > 0 || len(m.Parts) == 0 { // a message of compactions alone is left out
			out = append(out, others)
		}
	}
	conv.Messages, conv.Changed = out, true
	return nil
}
