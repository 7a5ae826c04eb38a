package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A remedy is a change of a history that a server may require, with the settings that make Lathe send it in this form.
type remedy struct {
	finding string
	change  func(m *lathe.Message, c *lathe.ToolCall)
	mends   []Setting
}

// remedies are tried one by one in this order, then all together.
var remedies = []remedy{
	{"id-refused", func(_ *lathe.Message, c *lathe.ToolCall) { c.ID = "d0ct0r001" },
		[]Setting{{Key: "transforms.tool_call", Value: "tool_call_ids_nine_alphanumeric"}}},
	{"reasoning-wanted", func(m *lathe.Message, _ *lathe.ToolCall) {
		m.Extra = append(m.Extra, lathe.Member{Name: "reasoning_content", Value: json.RawMessage(`""`)})
	}, []Setting{{Key: "reasoning_field", Value: "reasoning_content"},
		{Key: "transforms.message", Value: "assistant_tool_calls_reasoning_content_empty_if_missing"}}},
	{"signature-wanted", func(_ *lathe.Message, c *lathe.ToolCall) {
		c.Extra = append(c.Extra, lathe.Member{Name: "extra_content",
			Value: json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)})
	}, []Setting{{Key: "transforms.message", Value: "assistant_tool_calls_extra_content_skip_validator_if_missing"}}},
	{"content-null-wanted", func(m *lathe.Message, _ *lathe.ToolCall) {
		m.Parts = slices.DeleteFunc(m.Parts, func(p lathe.Part) bool {
			t, ok := p.(lathe.Text)
			return ok && strings.TrimSpace(t.Text) == ""
		})
	}, []Setting{{Key: "transforms.message", Value: "assistant_tool_calls_content_null_if_blank"}}},
}

// saved is the result of save_note.
const saved = `{"saved":true}`

// foreignID is a call id in the form of other servers.
const foreignID = "call_lathe_doctor_0001"

// probeHistory sends a call that the server did not make. If the server refuses it, probeHistory tries the remedies, because the texts of
// errors differ too much to be interpreted.
func probeHistory(ctx context.Context, x *examiner) {
	e := x.post(ctx, x.history(nil), unstreamed)
	switch {
	case e.status == http.StatusOK:
		x.sendQuestion(ctx, nil)
		return
	case !e.refused() || isTemporary(e.status) || e.status == http.StatusUnauthorized:
		x.refusal(e, withoutTools, "history-refused")
	default:
		x.refusedWith = e.explain()
	}
	if slices.ContainsFunc(x.probe.Findings, func(id string) bool { return x.found[id].Severity == Broken }) {
		return // the failure has another cause than the history
	}
	for i := range remedies {
		if x.acceptsHistory(ctx, remedies[i:i+1]) {
			x.remedied(&remedies[i])
			x.sendQuestion(ctx, remedies[i:i+1])
			return
		}
	}
	if x.acceptsHistory(ctx, remedies) {
		for i := range remedies {
			x.remedied(&remedies[i])
		}
		return
	}
	x.find("history-refused", x.refusedWith)
}

// remedied records a remedy with which the server accepts the history.
func (x *examiner) remedied(r *remedy) {
	x.remedies = append(x.remedies, *r)
	x.find(r.finding, x.refusedWith)
	for _, s := range r.mends {
		x.mend(r.finding, s.Key, s.Value)
	}
}

// acceptsHistory reports whether the server accepts the history with these remedies.
func (x *examiner) acceptsHistory(ctx context.Context, with []remedy) bool {
	return x.post(ctx, x.history(with), unstreamed).status == http.StatusOK
}

// sendQuestion sends an accepted history followed by a user message, like the request for a final answer. Templates that require
// alternating roles refuse it.
func (x *examiner) sendQuestion(ctx context.Context, with []remedy) {
	req := x.history(with)
	req.Messages = append(req.Messages, lathe.User(lathe.DefaultFixEmptyFinalText))
	expectAccepted(ctx, x, req, "strict-roles", Setting{Key: "accepts.turns", Value: "alternate"})
}

// expectAccepted sends a request. If the server refuses it, it records a finding, with the setting with which Lathe sends it in another form.
func expectAccepted(ctx context.Context, x *examiner, req *lathe.Request, finding string, s Setting) {
	if e := x.post(ctx, req, unstreamed); e.status >= 400 && !isTemporary(e.status) {
		x.findAndMend(finding, s.Key, s.Value, e.explain())
	}
}

// history returns a request with a call that the server did not make, and with the result of the call.
func (x *examiner) history(with []remedy) *lathe.Request {
	call := lathe.ToolCall{ID: foreignID, Name: saveNote.Name, Arguments: `{"title":"Shopping","text":"bread"}`}
	m := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "\n"}}} // many models write a line end before a call
	for _, r := range with {
		r.change(&m, &call)
	}
	m.Parts = append(m.Parts, call)
	req := x.request(`Call save_note with the title "Shopping" and the text "bread"`, saveNote)
	WithResult(req, m, saved)
	return req
}
