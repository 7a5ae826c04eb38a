package uistream

import (
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// assistant adds a message of the assistant, with one turn for each of its steps.
func (p *parser) assistant(f fields, raw []byte, at, at2 string) error {
	t := &p.thread
	t.closed = false
	t.lastID, t.lastRun = "", ""
	if id, err := f.text("id", at); err == nil {
		t.lastID = id
	}
	if meta := f["metadata"]; meta != nil && string(meta) != "null" {
		m, err := object(meta, at+".metadata")
		if err != nil {
			return err
		}
		id, err := m.text("runId", at+".metadata.runId")
		if err == nil {
			err = within(at+".metadata.runId", "max_id", id, p.limits.MaxID)
		}
		if err != nil {
			return err
		}
		t.lastRun = id
	}
	t.lastFrom = len(t.messages)
	turn := func() { t.add(lathe.Message{Role: lathe.RoleAssistant}) }
	turn()
	steps, answered := false, false
	err := p.eachPart(raw, at2, func(typ string, f fields, at string) error {
		m := &t.messages[len(t.messages)-1]
		switch {
		case typ == "step-start":
			if steps = true; len(m.Parts) > 0 {
				turn()
			}
			return nil
		case typ == "text":
			s, err := f.text("text", at+".text")
			if err == nil {
				err = within(at+".text", "max_answer_text", s, p.limits.MaxAnswerText)
			}
			if err != nil || s == "" {
				return err
			}
			if answered && !steps { // text after a result was said in a later turn
				turn()
				answered = false
				m = &t.messages[len(t.messages)-1]
			}
			m.Parts = append(m.Parts, lathe.Text{Text: s, Commentary: isCommentary(f)})
			return nil
		case typ == "reasoning":
			s, err := f.text("text", at+".text")
			if err == nil {
				err = within(at+".text", "max_answer_text", s, p.limits.MaxAnswerText)
			}
			if err != nil {
				return err
			}
			p.out.Reasoning = true
			if p.keep && s != "" {
				m.Parts = append(m.Parts, lathe.Reasoning{Text: s})
			}
			return nil
		case typ == "tool-call":
			h, err := p.modelCall(f, at)
			answered = answered || h != nil && h.result != nil
			return err
		case typ == "dynamic-tool" || strings.HasPrefix(typ, "tool-") && typ != "tool-result":
			h, err := p.toolPart(typ, f, at)
			answered = answered || h != nil && h.result != nil
			return err
		case typ == "file" || ignored(typ):
			return nil // models cannot revoke output
		}
		return wrong(at+".type", "A part of an assistant message is text, reasoning, a tool or a file.")
	})
	if err != nil {
		return err
	}
	return p.agCalls(f["toolCalls"], at+".toolCalls")
}

func isCommentary(f fields) bool {
	meta, err := object(f["providerMetadata"], "")
	if err != nil {
		return false
	}
	own, err := object(meta["lathe"], "")
	return err == nil && string(own["commentary"]) == "true"
}

// head reads id and name of a call, and its argument text.
func (p *parser) callHead(f fields, at, name string) (*heard, error) {
	h := &heard{at: at}
	var err error
	if h.call.ID, err = f.text("toolCallId", at+".toolCallId"); err == nil {
		err = p.limits.identifier(at+".toolCallId", h.call.ID)
	}
	if err == nil && name == "" {
		name, err = f.text("toolName", at+".toolName")
	}
	if err == nil {
		err = p.toolName(at+".toolName", name)
	}
	h.call.Name = name
	return h, err
}

// arguments returns the argument text of a value. A JSON string holds text that was not an object.
func (p *parser) arguments(v []byte, at string) (string, error) {
	s := "{}"
	switch {
	case v == nil || string(v) == "null":
	case v[0] == '"':
		s = rawjson.Text(v)
	default:
		if !finite(string(v)) {
			return "", wrong(at, "It has a number that is not finite.")
		}
		s = string(v)
	}
	return s, within(at, "max_args", s, p.limits.MaxArgs)
}

// output returns the text of a result for the model.
func (p *parser) output(v []byte, at string) (string, error) {
	s := ""
	switch {
	case v == nil:
		s = "null"
	case v[0] == '"':
		s = rawjson.Text(v)
	default:
		if !finite(string(v)) {
			return "", wrong(at, "It has a number that is not finite.")
		}
		s = string(v)
	}
	return s, within(at, "max_result", s, p.limits.MaxResult)
}

// toolPart reads a tool's part of a UI message.
func (p *parser) toolPart(typ string, f fields, at string) (*heard, error) {
	name, static := strings.CutPrefix(typ, "tool-")
	if !static {
		name = ""
	}
	h, err := p.callHead(f, at, name)
	if err != nil {
		return nil, err
	}
	input, where := f["input"], at+".input"
	if input == nil || string(input) == "null" {
		if raw := f["rawInput"]; raw != nil {
			input, where = raw, at+".rawInput"
		}
	}
	if h.call.Arguments, err = p.arguments(input, where); err != nil {
		return nil, err
	}
	state, err := f.text("state", at+".state")
	if err != nil {
		return nil, err
	}
	if err := p.approvalOf(h, f["approval"], at+".approval"); err != nil {
		return nil, err
	}
	switch state {
	case "input-streaming", "input-available":
		h.approval = nil
	case "approval-requested":
		h.waits, h.approval = true, nil
	case "approval-responded":
		if h.approval == nil {
			return nil, wrong(at+".approval", "It says whether the call was approved.")
		}
	case "output-available":
		content, err := p.output(f["output"], at+".output")
		if err != nil {
			return nil, err
		}
		h.result, h.own, h.approval = &lathe.ToolResult{Content: content}, true, nil
	case "output-error":
		s, err := f.text("errorText", at+".errorText")
		if err == nil {
			err = within(at+".errorText", "max_result", s, p.limits.MaxResult)
		}
		if err != nil {
			return nil, err
		}
		h.result, h.own, h.approval = failed(s), true, nil
	case "output-denied":
		h.result, h.approval = &lathe.ToolResult{IsError: true, Code: lathe.CodeApprovalDenied, Content: deniedContent}, nil
	default:
		return nil, wrong(at+".state", "It is no state of a tool's part.")
	}
	return p.heard(h)
}

func (p *parser) heard(h *heard) (*heard, error) {
	if h.result != nil {
		h.result.CallID, h.result.Name = h.call.ID, h.call.Name
	}
	return h, p.thread.call(h)
}

// approvalOf reads the approval of a part, which may be requested or decided.
func (p *parser) approvalOf(h *heard, raw []byte, at string) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	f, err := object(raw, at)
	if err != nil {
		return err
	}
	if h.asked, err = f.text("id", at+".id"); err == nil {
		err = p.limits.identifier(at+".id", h.asked)
	}
	if err != nil {
		return err
	}
	reason, err := f.text("reason", at+".reason")
	if err == nil {
		err = within(at+".reason", "max_text", reason, p.limits.MaxText)
	}
	if err != nil {
		return err
	}
	switch string(f["approved"]) {
	case "true", "false":
		h.approval = &Approval{ID: h.asked, CallID: h.call.ID, Approved: string(f["approved"]) == "true", Reason: reason}
	case "", "null":
	default:
		return wrong(at+".approved", "It must be true or false.")
	}
	return nil
}

// failed converts the text of a failure into a result for the model: the error object of this server if it is one,
// otherwise execution_failed with the text as message.
func failed(s string) *lathe.ToolResult {
	r := &lathe.ToolResult{IsError: true, Code: lathe.CodeExecutionFailed}
	if isObject(s) {
		if e, ok := rawjson.Get([]byte(s), "error"); ok && len(e) > 0 && e[0] == '{' {
			if code, ok := rawjson.Get(e, "code"); ok && len(code) > 0 && code[0] == '"' {
				if c := lathe.Code(rawjson.Text(code)); known[c] {
					r.Code = c
				}
				r.Content = s
				return r
			}
		}
	}
	if code, message, ok := strings.Cut(s, ": "); ok && known[lathe.Code(code)] {
		r.Code, r.Content = lathe.Code(code), plainError(code, message)
		return r
	}
	r.Content = plainError(string(lathe.CodeExecutionFailed), s)
	return r
}

// known are the codes of calls without a result.
var known = map[lathe.Code]bool{
	lathe.CodePayloadTooLarge: true, lathe.CodePayloadParseError: true, lathe.CodeInvalidJSON: true, lathe.CodeArgumentsTooLarge: true,
	lathe.CodeInvalidArguments: true, lathe.CodeUnknownTool: true, lathe.CodePolicyDenied: true, lathe.CodeApprovalDenied: true,
	lathe.CodeApprovalExpired: true, lathe.CodeExecutionFailed: true, lathe.CodeUnavailable: true, lathe.CodeTimeout: true,
	lathe.CodeCancelled: true, lathe.CodeInterrupted: true, lathe.CodeRateLimited: true, lathe.CodeOutputTooLarge: true,
	lathe.CodeInvalidOutput: true, lathe.CodeRedactionFailed: true, lathe.CodeToolCallLimit: true, lathe.CodeMaxDepth: true,
	lathe.CodeTooManyCalls: true, lathe.CodeIncompleteCall: true,
}

// modelCall reads a call in the form of models' messages; assistant-ui puts the result beside it.
func (p *parser) modelCall(f fields, at string) (*heard, error) {
	h, err := p.callHead(f, at, "")
	if err != nil {
		return nil, err
	}
	input, where := f["args"], at+".args"
	if input == nil {
		input, where = f["input"], at+".input"
	}
	if input == nil {
		input, where = f["argsText"], at+".argsText"
	}
	if h.call.Arguments, err = p.arguments(input, where); err != nil {
		return nil, err
	}
	if v := f["result"]; v != nil {
		if h.result, err = p.modelResult(f, at); err != nil {
			return nil, err
		}
		h.own = true
	}
	return p.heard(h)
}

// modelResult reads the result of a call in one of its forms.
func (p *parser) modelResult(f fields, at string) (*lathe.ToolResult, error) {
	v, where := f["result"], at+".result"
	bad := string(f["isError"]) == "true"
	if v == nil {
		v, where = f["output"], at+".output"
		if o, err := object(v, where); err == nil && o["type"] != nil && o["value"] != nil {
			typ, _ := o.text("type", where)
			bad = bad || strings.HasPrefix(typ, "error") || typ == "execution-denied"
			v, where = o["value"], where+".value"
		}
	}
	content, err := p.output(v, where)
	if err != nil {
		return nil, err
	}
	if bad {
		return failed(content), nil
	}
	return &lathe.ToolResult{Content: content}, nil
}

// toolMessage reads a message of role tool: results, each of a call before it.
func (p *parser) toolMessage(f fields, raw []byte, at, at2 string) error {
	p.thread.closed = false
	if f["toolCallId"] != nil { // AG-UI's
		id, err := f.text("toolCallId", at+".toolCallId")
		if err == nil {
			err = p.limits.identifier(at+".toolCallId", id)
		}
		if err != nil {
			return err
		}
		content, err := p.output(raw, at2)
		if err != nil {
			return err
		}
		r := &lathe.ToolResult{Content: content}
		if e, err := f.text("error", at+".error"); err == nil && e != "" {
			r = failed(content)
		} else if isObject(content) && strings.HasPrefix(content, `{"ok":false,"error":{"code":`) {
			r = failed(content)
		}
		return p.thread.answer(at, id, r)
	}
	return p.eachPart(raw, at2, func(typ string, f fields, at string) error {
		if typ != "tool-result" {
			return wrong(at+".type", "A part of a tool message is a tool-result.")
		}
		id, err := f.text("toolCallId", at+".toolCallId")
		if err == nil {
			err = p.limits.identifier(at+".toolCallId", id)
		}
		if err != nil {
			return err
		}
		r, err := p.modelResult(f, at)
		if err != nil {
			return err
		}
		return p.thread.answer(at, id, r)
	})
}

// agCalls reads the calls of an assistant's message of AG-UI.
func (p *parser) agCalls(raw []byte, at string) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if raw[0] != '[' {
		return wrong(at, "It must be an array.")
	}
	i := -1
	for e := range rawjson.Elements(raw) {
		i++
		here := fmt.Sprintf("%s[%d]", at, i)
		f, err := object(e, here)
		if err != nil {
			return err
		}
		fn, err := object(f["function"], here+".function")
		if err != nil {
			return err
		}
		h, err := p.callHead(fields{"toolCallId": f["id"], "toolName": fn["name"]}, here, "")
		if err != nil {
			return err
		}
		if h.call.Arguments, err = p.arguments(fn["arguments"], here+".function.arguments"); err != nil {
			return err
		}
		if _, err := p.heard(h); err != nil {
			return err
		}
	}
	return nil
}
