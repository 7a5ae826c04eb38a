package uistream

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// assistant adds an assistant message, as one turn for each of its steps.
func (p *parser) assistant(o wire.Object, content string) {
	t := &p.thread
	run := ""
	if o.Get("metadata") != nil {
		run = p.limits.name(o.Object("metadata", names), "runId")
	}
	t.beginAnswer(o.OptString("id"), run)
	hasSteps := false // the message has step-start parts
	answered := false // a call of the turn has a result
	for typ, part := range p.parts(o, content) {
		switch {
		case typ == "step-start":
			hasSteps = true
			if len(t.last().Parts) > 0 {
				t.addTurn()
			}
		case typ == "text":
			s := text(part.Object, part.text, "max_answer_text", p.limits.MaxAnswerText)
			if s == "" {
				continue
			}
			if answered && !hasSteps { // without steps, text after a result belongs to a later turn
				t.addTurn()
				answered = false
			}
			t.addPart(lathe.Text{Text: s, Commentary: isCommentary(part.Get("providerMetadata"))})
		case typ == "reasoning":
			s := text(part.Object, "text", "max_answer_text", p.limits.MaxAnswerText)
			p.out.Reasoning = true
			if p.keepReasoning && s != "" {
				t.addPart(lathe.Reasoning{Text: s})
			}
		case typ == "tool-call":
			if p.modelCall(part).result != nil {
				answered = true
			}
		case typ == "dynamic-tool" || strings.HasPrefix(typ, "tool-") && typ != "tool-result":
			if p.toolPart(typ, part.Object).result != nil {
				answered = true
			}
		case typ == "file" || ignored(typ): // parts that are not sent to a model: files of an answer, and parts for the page only
		default:
			part.Fail("type", "A part of an assistant message is text, reasoning, a tool or a file.")
		}
	}
	if o.Get("toolCalls") != nil {
		p.agCalls(o)
	}
}

func isCommentary(metadata []byte) bool {
	return string(rawjson.At(metadata, "lathe", "commentary")) == "true"
}

// callHead returns a call with the id in the member id and with the given name, both checked.
func (p *parser) callHead(o wire.Object, id, name string) *readCall {
	c := &readCall{}
	c.call.ID = p.limits.identifier(o, id)
	p.limits.checkToolName(o, "toolName", name)
	c.call.Name = name
	return c
}

// arguments returns the arguments in a member as text. A JSON string contains text that was not an object.
func (l *Limits) arguments(o wire.Object, name string) string {
	return value(o, name, "{}", "max_args", l.MaxArgs)
}

// output returns the result in a member as text for the model.
func (l *Limits) output(o wire.Object, name string) string {
	return value(o, name, "null", "max_result", l.MaxResult)
}

// value returns the text of a member: that of a JSON string, the JSON text of other values, and absent if there is no such member.
func value(o wire.Object, name, absent, limit string, most int) string {
	v, s := o.Get(name), absent
	switch rawjson.Kind(v) {
	case 0:
	case '"':
		s = rawjson.Text(v)
	default:
		if s = string(v); !finite(s) {
			o.Fail(name, "It has a number that is not finite.")
		}
	}
	within(o, name, s, limit, most)
	return s
}

// toolPart adds the call in a tool part of a UI message, with its result if the part has one.
func (p *parser) toolPart(typ string, o wire.Object) *readCall {
	name, static := strings.CutPrefix(typ, "tool-")
	if !static {
		name = o.OptString("toolName")
	}
	c := p.callHead(o, "toolCallId", name)
	input := "input"
	if o.Get(input) == nil && o.Get("rawInput") != nil {
		input = "rawInput"
	}
	c.call.Arguments = p.limits.arguments(o, input)
	state := o.OptString("state")
	var decision *Approval
	if o.Get("approval") != nil {
		decision = p.decision(c, o.Object("approval", names))
	}
	switch state {
	case "input-streaming", "input-available", "approval-requested":
	case "approval-responded":
		c.approval = decision
		if decision == nil {
			o.Fail("approval", "It says whether the call was approved.")
		}
	case "output-available":
		c.result, c.own = &lathe.ToolResult{Content: p.limits.output(o, "output")}, true
	case "output-error":
		c.result, c.own = failed(text(o, "errorText", "max_result", p.limits.MaxResult)), true
	case "output-denied":
		c.result = &lathe.ToolResult{IsError: true, Code: lathe.CodeApprovalDenied, Content: deniedContent}
	default:
		o.Fail("state", "It is no state of a tool's part.")
	}
	p.addCall(o, c)
	return c
}

// addCall adds a call to the last message.
func (p *parser) addCall(o wire.Object, c *readCall) {
	if c.result != nil {
		c.result.CallID, c.result.Name = c.call.ID, c.call.Name
	}
	if !p.thread.call(c) {
		o.Fail("toolCallId", "duplicate toolCallId: another call has the same id.")
	}
}

// decision parses the approval in the part of a call. It returns nil if the approval was only requested.
func (p *parser) decision(c *readCall, o wire.Object) *Approval {
	c.asked = p.limits.identifier(o, "id")
	reason := text(o, "reason", "max_text", p.limits.MaxText)
	approved := o.OptBool("approved")
	if approved == nil {
		return nil
	}
	return &Approval{ID: c.asked, CallID: c.call.ID, Approved: *approved, Reason: reason}
}

// failed converts the text of a failure to a result for the model: the error object of this server if the text is one, otherwise
// execution_failed with the text as its message.
func failed(s string) *lathe.ToolResult {
	r := &lathe.ToolResult{IsError: true, Code: lathe.CodeExecutionFailed}
	if isObject(s) {
		if code := rawjson.At([]byte(s), "error", "code"); rawjson.Kind(code) == '"' {
			if c := lathe.Code(rawjson.Text(code)); slices.Contains(known, c) {
				r.Code = c
			}
			r.Content = s
			return r
		}
	}
	if code, message, ok := strings.Cut(s, ": "); ok && slices.Contains(known, lathe.Code(code)) {
		r.Code, r.Content = lathe.Code(code), plainError(code, message)
		return r
	}
	r.Content = plainError(string(lathe.CodeExecutionFailed), s)
	return r
}

// known are the error codes that a result of a call may have.
var known = []lathe.Code{
	lathe.CodePayloadTooLarge, lathe.CodePayloadParseError, lathe.CodeInvalidJSON, lathe.CodeArgumentsTooLarge,
	lathe.CodeInvalidArguments, lathe.CodeUnknownTool, lathe.CodePolicyDenied, lathe.CodeApprovalDenied,
	lathe.CodeApprovalExpired, lathe.CodeExecutionFailed, lathe.CodeUnavailable, lathe.CodeTimeout,
	lathe.CodeCancelled, lathe.CodeInterrupted, lathe.CodeRateLimited, lathe.CodeOutputTooLarge,
	lathe.CodeInvalidOutput, lathe.CodeRedactionFailed, lathe.CodeToolCallLimit, lathe.CodeMaxDepth,
	lathe.CodeTooManyCalls, lathe.CodeIncompleteCall,
}

// modelCall adds a call in the form of models' messages, with its result if the part has one, as those of assistant-ui do.
func (p *parser) modelCall(of part) *readCall {
	c := p.callHead(of.Object, "toolCallId", of.OptString("toolName"))
	c.call.Arguments = p.limits.arguments(of.Object, present(of.Object, "args", "input", "argsText"))
	if rawjson.At(of.raw, "result") != nil {
		c.result, c.own = p.modelResult(of), true
	}
	p.addCall(of.Object, c)
	return c
}

// present returns the first of the names of which o has a member, or the last name if o has none of these members.
func present(o wire.Object, names ...string) (name string) {
	for _, name = range names {
		if o.Get(name) != nil {
			break
		}
	}
	return name
}

// modelResult parses the result of a call in one of its forms: a member result, a member output, or {type, value} in a member output.
func (p *parser) modelResult(of part) *lathe.ToolResult {
	o := of.Object
	isError := string(o.Get("isError")) == "true"
	if rawjson.At(of.raw, "result") != nil {
		return resultOf(p.limits.output(o, "result"), isError)
	}
	v := o.Get("output")
	if rawjson.At(v, "value") == nil || rawjson.At(v, "type") == nil {
		return resultOf(p.limits.output(o, "output"), isError)
	}
	typ := rawjson.TextAt(v, "type")
	isError = isError || strings.HasPrefix(typ, "error") || typ == "execution-denied"
	return resultOf(p.limits.output(o.Object("output", names), "value"), isError)
}

// resultOf returns a result with content or, if isError is set, with the failure whose text is content.
func resultOf(content string, isError bool) *lathe.ToolResult {
	if isError {
		return failed(content)
	}
	return &lathe.ToolResult{Content: content}
}

// toolMessage parses a message of role tool: results of earlier calls.
func (p *parser) toolMessage(o wire.Object, content string) {
	p.thread.closed = false
	if o.Get("toolCallId") != nil { // the form of AG-UI
		result := p.limits.output(o, content)
		isError := rawjson.Text(o.Get("error")) != "" || isObject(result) && strings.HasPrefix(result, `{"ok":false,"error":{"code":`)
		p.answer(o, resultOf(result, isError))
		return
	}
	for typ, part := range p.parts(o, content) {
		if typ != "tool-result" {
			part.Fail("type", "A part of a tool message is a tool-result.")
		}
		p.answer(part.Object, p.modelResult(part))
	}
}

// answer sets the result of the call whose id is in o.
func (p *parser) answer(o wire.Object, r *lathe.ToolResult) {
	id := p.limits.identifier(o, "toolCallId")
	c := p.thread.calls[id]
	switch {
	case c == nil:
		o.Fail("toolCallId", "unknown toolCallId: no call has this id.")
	case c.result != nil:
		o.Fail("toolCallId", "duplicate toolCallId: the call has a result already.")
	}
	r.CallID, r.Name = id, c.call.Name
	c.result, c.own = r, true
}

// agCalls parses the calls in an assistant message of AG-UI.
func (p *parser) agCalls(message wire.Object) {
	for el := range message.Elements("toolCalls") {
		o := p.Object("", el, names)
		fn := o.Object("function", names)
		c := p.callHead(o, "id", fn.OptString("name"))
		c.call.Arguments = p.limits.arguments(fn, "arguments")
		p.addCall(o, c)
	}
}
