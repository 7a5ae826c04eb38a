package doctor

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// judge records findings about an answer. Findings that make others meaningless come first.
func (x *reader) judge(a *answer) {
	if a.failed {
		return
	}
	if !a.role {
		x.find("role-missing")
	}
	x.nativeCalls = x.nativeCalls || len(a.pieces) > 0 || a.legacy
	if len(a.pieces) > 0 {
		if !a.whole {
			x.judgeIndexes(a)
		}
		x.judgeIDs(a)
		x.judgeNames(a)
		x.judgeForms(a)
	}
	x.judgeArguments(a)
	if !a.cut {
		x.judgeFinish(a)
	}
	switch {
	case a.cut || a.whole: // no usage is expected in chunks
	case a.usageEarly > 1:
		x.find("usage-every-chunk")
	case a.usage == 0 && !x.noUsage:
		x.find("usage-missing")
	}
	x.judgeAnswerText(a)
}

// judgeFinish records findings about the finish reason.
func (x *reader) judgeFinish(a *answer) {
	if len(a.finishes) > 1 {
		x.find("finish-twice")
	}
	calls := len(a.pieces) > 0 || a.legacy || !x.chat() && len(a.calls()) > 0
	named := a.req.ToolChoice.Mode == lathe.ChoiceFunction || a.req.ToolChoice.Mode == lathe.ChoiceRequired
	switch f := a.finish(); f {
	case "stop":
		if calls && !named { // the OpenAI API itself ends a call that tool_choice requires with stop
			x.find("finish-stop")
		}
	case "tool_calls", "function_call":
		if !calls {
			x.find("finish-tool-calls")
		}
	case "length":
		limit := a.req.Sampling.MaxTokens
		isBelowLimit := limit == nil || a.completion > 0 && a.completion < *limit
		switch {
		case asksLess(a.req, x.opts.MaxTokens): // the probe limits the answer on purpose
		case isBelowLimit:
			x.find("length")
		default:
			x.find("rambles")
		}
	case "content_filter":
		x.find("content-filter")
	case "end_turn":
		x.find("finish-end-turn")
	case "":
		if len(a.finishes) == 0 {
			x.find("finish-missing")
		} else {
			x.find("finish-empty")
		}
	default:
		x.find("finish-unknown", f)
	}
}

// judgeAnswerText records findings about calls and thinking in the text of an answer.
func (x *reader) judgeAnswerText(a *answer) {
	text := a.text.String()
	if text == "" {
		return
	}
	switch aloud, startsOpen := thinksAloud(text); {
	case aloud:
		x.find("think-tags")
	case startsOpen:
		x.findAndMend("think-open", "thinking", "starts_open")
	}
	if len(a.req.Tools) == 0 || a.req.ToolChoice.Mode == lathe.ChoiceNone {
		return
	}
	if writesBare(x.target.Model, text, a.req.Tools) {
		x.findAndMend("bare-calls", "bare_calls", "true")
		return
	}
	names := dialectsOf(text, a.req.Tools)
	if len(names) == 0 {
		return
	}
	auto := dialect.NewAuto(nil)
	auto.Append(nil, text)
	if c, ok := auto.(dialect.Chooser); ok && slices.Contains(names, c.Chosen()) {
		x.marked = c.Chosen()
	}
	x.textProbes = append(x.textProbes, x.probe.Name)
	for _, name := range names {
		x.textCalls[name]++
	}
}

// writesBare reports whether text is a tool call without marks. It returns false for models whose dialect has such calls.
func writesBare(model, text string, tools []*lathe.ToolSpec) bool {
	if name, _ := dialect.ForModel(model); name == "llama3-json" || name == "xlam" {
		return false
	}
	d, _ := dialect.Lookup("hermes")
	pieces := slices.Values([]string{text})
	with, _ := d.Read(pieces, &dialect.Options{Tools: tools, BareCalls: true})
	without, _ := d.Read(pieces, &dialect.Options{Tools: tools})
	return len(with.Calls()) == 1 && len(without.Calls()) == 0
}

// thinksAloud reports whether text contains thinking in tags, and whether it begins within thinking whose opening tag is in the prompt.
func thinksAloud(text string) (aloud, startsOpen bool) {
	var c dialect.Collector
	p := dialect.NewThink(nil)
	c.AddAll(p.Append(nil, text))
	rest, _ := p.Flush(nil) // truncated thinking counts as thinking
	c.AddAll(rest)
	t, ok := p.(dialect.Thinker)
	return slices.ContainsFunc(c.Message().Parts, func(p lathe.Part) bool {
		_, ok := p.(lathe.Reasoning)
		return ok
	}), ok && t.ClosesAlone()
}

// dialectsOf returns the dialects, except auto, that parse all calls in text as complete calls of the tools.
func dialectsOf(text string, tools []*lathe.ToolSpec) []string {
	var out []string
	for _, name := range dialect.Names() {
		if d, ok := dialect.Lookup(name); ok && name != "auto" && parsesCalls(d, text, tools) {
			out = append(out, name)
		}
	}
	return out
}

// parsesCalls reports whether a dialect finds calls in text, and all of them are complete calls of the tools.
func parsesCalls(d *dialect.Dialect, text string, tools []*lathe.ToolSpec) bool {
	var c dialect.Collector
	p := d.NewParser(&dialect.Options{Tools: tools})
	c.AddAll(p.Append(nil, text))
	rest, err := p.Flush(nil)
	c.AddAll(rest)
	m := c.Message()
	calls := m.Calls()
	isWrong := func(call lathe.ToolCall) bool { return call.ParseError != "" || !offered(tools, call.Name) }
	return err == nil && len(calls) > 0 && !slices.ContainsFunc(calls, isWrong)
}

// judgeText selects the dialect that the model writes, after all answers have been read: among the dialects that read the most answers it
// prefers that of the model's name, then the one identified by its mark, then the first.
func (x *reader) judgeText() {
	if len(x.textCalls) == 0 {
		return
	}
	if x.nativeCalls {
		x.findInText("leaked-calls")
		x.mend("leaked-calls", "recover_leaked_calls", "true")
		return
	}
	most := slices.Max(slices.Collect(maps.Values(x.textCalls)))
	var best []string
	for _, name := range dialect.Names() {
		if x.textCalls[name] == most {
			best = append(best, name)
		}
	}
	chosen := best[0]
	if slices.Contains(best, x.marked) {
		chosen = x.marked
	}
	if name, ok := dialect.ForModel(x.target.Model); ok && slices.Contains(best, name) {
		chosen = name
	}
	x.findInText("calls-in-text", "as "+chosen)
	x.mend("calls-in-text", "dialect", chosen)
}

// findInText adds a finding to each probe whose answers had calls in the text.
func (x *reader) findInText(id string, details ...string) {
	for i := range x.report.Probes {
		x.probe = &x.report.Probes[i]
		if slices.Contains(x.textProbes, x.probe.Name) {
			x.find(id, details...)
			x.decide()
		}
	}
}
