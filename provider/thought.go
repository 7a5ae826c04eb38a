package provider

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// faultOpenThought is the kind of the fault for calls in a thought that the model never closed.
const faultOpenThought = "call_in_thought"

// thoughtAlone returns the reasoning of an answer that ended normally and has no other content: the model's turn ended inside its
// thought. It returns "" for other answers.
func thoughtAlone(f *lathe.Finish) string {
	if !endsNormally(f) {
		return ""
	}
	var b strings.Builder
	for _, p := range f.Message.Parts {
		switch p := p.(type) {
		case lathe.Reasoning:
			b.WriteString(p.Text)
		case lathe.Text:
			if strings.TrimSpace(p.Text) != "" {
				return ""
			}
		default:
			return ""
		}
	}
	return b.String()
}

func endsNormally(f *lathe.Finish) bool {
	return f.Reason == lathe.FinishStop || f.Reason == lathe.FinishToolCalls
}

// takeThought yields the calls at the end of an open thought, which is marked in the text or separated by the server. It does nothing if
// the answer has a call outside of its thought, a native one or one in its text: the calls in the thought were only considered.
func (r *reading) takeThought(f *lathe.Finish) {
	read := r.message.Message()
	if r.calls > 0 || len(read.Calls()) > 0 || len(f.Message.Calls()) > 0 {
		return
	}
	thought := ""
	if t, ok := r.parser.(dialect.Thinker); ok && endsNormally(f) {
		thought = t.OpenThought()
	}
	if thought == "" {
		thought = thoughtAlone(f)
	}
	calls := r.dialect.CallsInThought(thought, &r.opts)
	r.inThought += len(calls)
	for i := range calls {
		c := &calls[i]
		r.thoughtDialect = c.Dialect
		r.yieldParsed(&lathe.Delta{Kind: lathe.DeltaCallStart, ID: c.ID, Name: c.Name})
		r.yieldParsed(&lathe.Delta{Kind: lathe.DeltaCallArgs, Text: c.Arguments})
		r.yieldParsed(&lathe.Delta{Kind: lathe.DeltaCallEnd})
	}
}

// thoughtCalls appends to an answer the calls in an open thought, and returns their deltas. It is for servers with native calls, which
// read these calls as reasoning. The first mark in the thought selects their dialect.
func (v *modelCall) thoughtCalls(req *lathe.Request, f *lathe.Finish) []lathe.Delta {
	if len(req.Tools) == 0 || req.ToolChoice.Mode == lathe.ChoiceNone || req.Relay != nil || v.chat.wire.Wire() != lathe.WireOpenAIChat {
		return nil
	}
	d, _ := dialect.Lookup("auto")
	opts := dialectOptions(req, req.Tools, 0)
	calls := d.CallsInThought(thoughtAlone(f), &opts)
	if len(calls) == 0 {
		return nil
	}
	f.Message.Parts = slices.Clip(f.Message.Parts)
	var deltas []lathe.Delta
	for i, c := range calls {
		c.Recovered = true
		f.Message.Parts = append(f.Message.Parts, c)
		deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallStart, Index: i, ID: c.ID, Name: c.Name},
			lathe.Delta{Kind: lathe.DeltaCallArgs, Index: i, Text: c.Arguments}, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: i})
	}
	f.Reason = lathe.FinishToolCalls
	f.Faults = append(slices.Clip(f.Faults), lathe.Fault{Kind: faultOpenThought, Count: len(calls)})
	return deltas
}

// dialectOptions returns the options of a parser of answers to req, for calls of tools. most is the max_payload_bytes of the model; 0 if
// it has none.
func dialectOptions(req *lathe.Request, tools []*lathe.ToolSpec, most int) dialect.Options {
	if req.MaxPayloadBytes > 0 && (most <= 0 || req.MaxPayloadBytes < most) {
		most = req.MaxPayloadBytes
	}
	if len(tools) == 0 {
		tools = req.TextCalls.Tools
	}
	return dialect.Options{Tools: tools, MaxPayloadBytes: most, MaxArgsBytes: req.TextCalls.MaxArgsBytes, IgnoreOpenThoughts: req.TextCalls.IgnoreOpenThoughts, Rand: rand.Uint64}
}
