package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/responses"
)

// POST /v1/responses/compact shortens a conversation. The model of the request writes a summary in a run without tools, and the
// answer is a shorter conversation: the last messages of the user, and a compaction item whose encrypted_content is the summary
// as a sealed text (package seal). In the input of a later request the server replaces the item by the summary, as a message of
// the user: its text comes from the conversation, so it must not have the authority of instructions. The item is bound to the
// key, not to a position, since clients add and remove items around it. A sealed item that cannot be opened is an error, since
// the model would continue without what it stands for. Compaction items of vendors, which are not sealed here, are passed on.

const (
	// maxKeptInput limits the messages of the user that a compacted conversation repeats, in bytes.
	maxKeptInput = 32 << 10
	// maxSummary limits the summary, in bytes.
	maxSummary = 256 << 10
	// maxCompactions limits the compaction items of one request.
	maxCompactions = 64
)

// askSummary is the last message of the conversation for the model that summarizes it. summaryHead begins the message with the
// summary in the conversation of a later request.
const (
	askSummary = "Summarize this conversation for a model that will continue it and sees only the summary. State the user's goals and " +
		"constraints; the decisions and facts, with exact names, paths, numbers and ids; what was done, and what tools returned; and what " +
		"remains to be done. If the conversation begins with a summary, include its content. Write the summary only."
	summaryHead = "Summary of the conversation so far, which was compacted:\n\n"
)

// compacted is the content of a compaction item.
type compacted struct {
	Summary string `json:"summary"`
}

// compactionBinding returns what a compaction item of the caller is bound to.
func (c *caller) compactionBinding() []string { return []string{"compaction", c.key.Name} }

// compacting is the codec of Responses for requests to compact a conversation.
type compacting struct{ responses.Codec }

func (c compacting) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	return c.ParseCompaction(body)
}

var compactedResponses = func() *protocol {
	pr := *responsesAPI
	pr.Served = compacting{}
	return &pr
}()

// compact answers with the conversation of the request, compacted.
func (h *chatHandler) compact(w http.ResponseWriter, r *http.Request, c *caller) {
	a, ring, p := h.planCompaction(r, c)
	if p != nil {
		c.fail(w, p)
		return
	}
	kept := keptInput(a.req.Messages)
	res := h.runInline(r.Context(), c, &a.job)
	if r.Context().Err() != nil {
		c.code = "client_gone"
		return
	}
	a.header(w.Header())
	if p = ended(res); p == nil {
		p = checkSummary(res)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	content, _ := json.Marshal(&compacted{Summary: res.Answer}) // a string
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(h.opts.Limits.WriteTimeout)) // a test's writer has none
	c.answerRaw(w, responses.AppendCompaction(nil, &responses.Compaction{ID: answerID{run: c.runID}.String(), Created: a.head.Created, Kept: kept,
		Sealed: ring.Seal(content, c.compactionBinding()...), Usage: res.Usage}))
	_ = rc.SetWriteDeadline(time.Time{})
}

// planCompaction reads the request and makes the run of the model that summarizes its conversation. ring seals the summary.
func (h *chatHandler) planCompaction(r *http.Request, c *caller) (_ *chat, ring *seal.Ring, p *problem) {
	ctx := r.Context()
	req, withheld, p := h.read(c, compactedResponses, r, c.body)
	if p != nil {
		return nil, nil, p
	}
	if p := h.checkSize(ctx, c, req.Messages); p != nil {
		return nil, nil, p
	}
	a := &chat{handler: h, caller: c, members: members{protocol: responsesAPI, req: req, ignored: withheld}, unlock: func() {}, places: places{parsed: req.Messages},
		head: wire.AnswerHead{Model: req.Model, Created: h.opts.Now().Unix(), Request: req}}
	options, p := parseOptions(a.asked())
	if p != nil {
		return nil, nil, p
	}
	if options.detach {
		return nil, nil, badRequest(options.param("detach"), "A compaction ends with its request.")
	}
	a.session = options.session
	if p := h.makePlan(ctx, c, &runRequest{model: req.Model, sampling: &req.Sampling, user: req.User, options: options, accept: a.accept}, &a.plan); p != nil {
		return nil, nil, a.protocol.reword(p)
	}
	in := &a.in
	in.Overrides, in.Allow, in.HandOver = a.passed, []string{}, true
	a.settings.ToolUseMode, a.settings.ToolChoice = lathe.ModeDisabled, lathe.ToolChoice{}
	if p := h.restoreWhole(ctx, a); p != nil {
		return nil, nil, p
	}
	if a.dropped, p = a.plan.model.checkContent(in.Messages, a.place); p != nil {
		return nil, nil, p
	}
	in.Run.RunID = h.opts.Engine.NewRunID()
	a.job = job{loop: a.plan.model.Loop, in: in}
	if a.session == "" {
		a.job.due = c.due(nil)
	}
	ring, err := h.turns.seals.get(ctx)
	if err != nil {
		return nil, nil, notNow(err)
	}
	return a, ring, nil
}

// restoreWhole sets the input of a run that summarizes the conversation of the request.
func (h *chatHandler) restoreWhole(ctx context.Context, a *chat) *problem {
	if p := h.turns.recall(ctx, a); p != nil {
		return p
	}
	a.req.Messages, _ = h.origins.apply(a.caller.key.Name, a.req.Model, a.req.Messages)
	waits, p := h.continueResponse(ctx, a)
	if p == nil && waits != nil {
		p = conflict("response_in_progress", "The response that the request goes on from waits: continue it before it is compacted.")
	}
	if p != nil {
		return a.protocol.reword(p)
	}
	if bad := checkAnswers(a.req.Messages); bad != nil {
		return bad.problem(lathe.WireResponses, placesOf(lathe.WireResponses, a.req.Body, a.places.parsed, a.req.Messages))
	}
	j, p := h.restore(ctx, a, false)
	if p != nil {
		return p
	}
	a.lost = j.lost
	a.in.Messages = append(slices.Clip(j.messages), lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: askSummary}}})
	return nil
}

// checkSummary refuses a result that is not a complete summary.
func checkSummary(res *event.Result) *problem {
	switch {
	case res.Reason != lathe.ReasonAnswered || strings.TrimSpace(res.Answer) == "":
		return &problem{Status: http.StatusBadGateway, Code: "compaction_failed", Message: "The model wrote no complete summary of the conversation (" + string(res.Reason) + ")."}
	case len(res.Answer) > maxSummary:
		return &problem{Status: http.StatusBadGateway, Code: "compaction_failed", Message: "The model's summary of the conversation is too long."}
	}
	return nil
}

// keptInput returns the last messages of the user that fit into maxKeptInput, the oldest first.
func keptInput(messages []lathe.Message) (kept []lathe.Message) {
	bytes := 0
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if m.Role != lathe.RoleUser || len(m.Parts) == 0 {
			continue
		}
		if bytes += m.Size(); bytes > maxKeptInput {
			break
		}
		kept = append(kept, *m)
	}
	slices.Reverse(kept)
	return kept
}

// sealedCompaction returns the sealed text of a compaction item of a server like this one; "" if the part is none.
func sealedCompaction(p lathe.Part) string {
	o, ok := p.(lathe.Opaque)
	if !ok {
		return ""
	}
	if text := responses.CompactionContent(o.JSON); seal.Sealed(text) {
		return text
	}
	return ""
}

// openCompactions replaces the sealed compaction items in the messages of j by their summaries.
func (ht *hiddenTurns) openCompactions(ctx context.Context, a *chat, j *spliced) *problem {
	if a.protocol.Wire() != lathe.WireResponses || !slices.ContainsFunc(j.messages, func(m lathe.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p lathe.Part) bool { return sealedCompaction(p) != "" })
	}) {
		return nil
	}
	refused := func(message string) *problem {
		p := badRequest(a.protocol.conversation, "%s", message)
		p.Code = "invalid_encrypted_content"
		return p
	}
	ring, err := ht.seals.get(ctx)
	if err != nil {
		return notNow(err)
	}
	var out []lathe.Message
	opened := 0
	for i := range j.messages {
		m := &j.messages[i]
		rest := *m
		rest.Parts = nil
		for _, part := range m.Parts {
			text := sealedCompaction(part)
			if text == "" {
				rest.Parts = append(rest.Parts, part)
				continue
			}
			if len(rest.Calls()) > 0 {
				return refused("A compaction item stands between a call and its result.")
			}
			if opened++; opened > maxCompactions {
				return badRequest(a.protocol.conversation, "The input has more than %d compaction items.", maxCompactions)
			}
			content, err := ring.Open(text, a.caller.compactionBinding()...)
			var c compacted
			if err != nil || json.Unmarshal(content, &c) != nil {
				return refused("A compaction item cannot be read: it was changed, or another key or server made it, or the server's seal key was replaced. Send the conversation without it.")
			}
			if len(rest.Parts) > 0 {
				out, rest.Parts = append(out, rest), nil
			}
			out = append(out, lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: summaryHead + c.Summary}}})
		}
		if len(rest.Parts) > 0 || len(m.Parts) == 0 {
			out = append(out, rest)
		}
	}
	j.messages, j.changed = out, true
	return nil
}
