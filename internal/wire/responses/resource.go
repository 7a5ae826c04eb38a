package responses

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A resource writes the response objects of one answer. They always have all members, since clients distinguish absent and null.
type resource struct {
	id, model string
	rest      string // the part that all ids of the answer have in common
	created   int64
	answer    *wire.AnswerHead
	head      []byte // members before output
	settings  []byte // members between error and usage
	limits    []byte // members after usage
}

// newResource returns the resource of an answer, which repeats members of its request.
func newResource(head *wire.AnswerHead) *resource {
	r := &resource{rest: head.ID, model: head.Model, created: head.Created, answer: head}
	if r.rest == "" || len(r.rest) > maxID-16 || !wire.PlainName(r.rest) {
		r.rest = wire.Hash(head.ID)
	}
	r.id = "resp_" + r.rest
	req := head.Request
	if req == nil {
		req = &wire.ClientRequest{}
	}
	body := req.Body
	if rawjson.SkipSpace(body, 0) == len(body) {
		body = []byte("{}")
	}
	body = rawjson.Without(body, "input") // which is not repeated, and may be long
	r.head = textOr([]byte{'{'}, "previous_response_id", req.PreviousID)
	r.head = r.echo(r.head, body, "instructions", '"', "null")[1:]
	r.settings = r.appendSettings([]byte{'{'}, req, body)[1:]
	l := r.echo([]byte{'{'}, body, "max_output_tokens", '0', "null")
	l = r.echo(l, body, "max_tool_calls", '0', "null")
	l = wire.AppendKey(l, "store")
	if head.Kept {
		l = append(l, "true"...)
	} else {
		l = append(l, "false"...)
	}
	l = append(l, `,"background":false`...)
	l = r.echo(l, body, "service_tier", '"', `"default"`)
	l = r.echo(l, body, "metadata", '{', "{}")
	l = r.echo(l, body, "safety_identifier", '"', "null")
	r.limits = r.echo(l, body, "prompt_cache_key", '"', "null")[1:]
	return r
}

// echo appends a member of the request if the first byte of its value is typ ('0': any number), else with the value other.
func (r *resource) echo(dst, obj []byte, name string, typ byte, other string) []byte {
	v := get(obj, name)
	k := wire.Kind(v)
	if k == '-' || k >= '0' && k <= '9' {
		k = '0'
	}
	dst = wire.AppendKey(dst, name)
	if k != typ {
		return append(dst, other...)
	}
	return rawjson.AppendCompact(dst, v)
}

func textOr(dst []byte, name, value string) []byte {
	if value == "" {
		return append(wire.AppendKey(dst, name), "null"...)
	}
	return wire.AppendText(dst, name, value)
}

func (r *resource) appendSettings(dst []byte, req *wire.ClientRequest, body []byte) []byte {
	dst = wire.AppendKey(dst, "tools")
	dst = append(dst, '[')
	for t := range rawjson.Elements(get(body, "tools")) {
		dst = r.appendTool(appendComma(dst), t)
	}
	dst = r.appendChoice(append(dst, ']'), get(body, "tool_choice"))
	dst = r.echo(dst, body, "truncation", '"', `"disabled"`)
	dst = wire.AppendKey(dst, "parallel_tool_calls")
	if string(get(body, "parallel_tool_calls")) == "false" {
		dst = append(dst, "false"...)
	} else {
		dst = append(dst, "true"...)
	}
	dst = r.appendTextForm(append(wire.AppendKey(dst, "text"), '{'), get(body, "text"))
	for _, m := range [...]struct{ name, other string }{{"top_p", "1"}, {"presence_penalty", "0"}, {"frequency_penalty", "0"}, {"top_logprobs", "0"}, {"temperature", "1"}} {
		dst = r.echo(dst, body, m.name, '0', m.other)
	}
	dst = textOr(append(wire.AppendKey(dst, "reasoning"), '{'), "effort", req.Sampling.ReasoningEffort)
	return append(textOr(dst, "summary", req.Sampling.ReasoningSummary), '}')
}

// appendTool appends a tool: a function with all its members, other tools unchanged except for secrets in them.
func (r *resource) appendTool(dst, t []byte) []byte {
	typ := text(t, "type")
	if typ != "function" {
		out := wire.AppendMembers([]byte{'{'}, members(t, "authorization", "headers"), nil)
		return rawjson.AppendCompact(dst, append(out, '}'))
	}
	fn := t
	if inner := get(t, "function"); wire.Kind(inner) == '{' {
		fn = inner
	}
	dst = append(dst, `{"type":"function"`...)
	dst = r.echo(dst, fn, "name", '"', `""`)
	dst = r.echo(dst, fn, "description", '"', "null")
	dst = r.echo(dst, fn, "parameters", '{', "null")
	dst = wire.AppendKey(dst, "strict")
	strict := get(fn, "strict")
	if strict == nil {
		strict = get(t, "strict")
	}
	if s := string(strict); s == "true" || s == "false" {
		dst = append(dst, s...)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, '}')
}

func (r *resource) appendChoice(dst, choice []byte) []byte {
	dst = wire.AppendKey(dst, "tool_choice")
	if wire.Kind(choice) == '"' {
		return append(dst, choice...)
	}
	if wire.Kind(choice) != '{' {
		return append(dst, `"auto"`...)
	}
	if inner := get(choice, "function"); inner != nil {
		return append(wire.AppendText(append(dst, `{"type":"function"`...), "name", text(inner, "name")), '}')
	}
	if inner := get(choice, "allowed_tools"); inner != nil {
		choice = inner
	}
	if get(choice, "tools") == nil {
		return rawjson.AppendCompact(dst, choice)
	}
	dst = append(dst, `{"type":"allowed_tools","tools":`...)
	dst = rawjson.AppendCompact(dst, get(choice, "tools"))
	return append(r.echo(dst, choice, "mode", '"', `"auto"`), '}')
}

// appendTextForm appends the members of text, with format always.
func (r *resource) appendTextForm(dst, form []byte) []byte {
	dst = wire.AppendKey(dst, "format")
	format := get(form, "format")
	switch {
	case text(format, "type") == "json_schema":
		dst = append(dst, `{"type":"json_schema"`...)
		dst = r.echo(dst, format, "name", '"', `"answer"`)
		dst = r.echo(dst, format, "description", '"', "null")
		dst = r.echo(dst, format, "schema", '{', "null")
		dst = wire.AppendKey(dst, "strict")
		if string(get(format, "strict")) == "true" {
			dst = append(dst, "true}"...)
		} else {
			dst = append(dst, "false}"...)
		}
	case wire.Kind(format) == '{':
		dst = rawjson.AppendCompact(dst, format)
	default:
		dst = append(dst, `{"type":"text"}`...)
	}
	if v := get(form, "verbosity"); wire.Kind(v) == '"' {
		dst = append(wire.AppendKey(dst, "verbosity"), v...)
	}
	return append(dst, '}')
}

// A state has the members of a response object that change while the answer is written.
type state struct {
	status string
	reason string // why it is incomplete
	output []outDone
	err    *wire.APIError
	usage  *lathe.Usage
	extra  []lathe.Member
}

// append appends the response object.
func (r *resource) append(dst []byte, s *state) []byte {
	dst = append(wire.AppendText(append(dst, '{'), "id", r.id), `,"object":"response"`...)
	dst = appendInt(dst, "created_at", r.created)
	if s.status == statusCompleted {
		dst = appendInt(dst, "completed_at", max(r.created, r.answer.Completed))
	} else {
		dst = append(dst, `,"completed_at":null`...)
	}
	dst = wire.AppendText(dst, "status", s.status)
	if s.reason != "" {
		dst = append(wire.AppendText(append(wire.AppendKey(dst, "incomplete_details"), '{'), "reason", s.reason), '}')
	} else {
		dst = append(dst, `,"incomplete_details":null`...)
	}
	dst = append(append(wire.AppendText(dst, "model", r.model), ','), r.head...)
	dst = append(dst, `,"output":[`...)
	for i := range s.output {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, s.output[i].json...)
	}
	dst = append(dst, ']')
	if s.err != nil {
		dst = wire.AppendText(append(wire.AppendKey(dst, "error"), '{'), "code", errorCode(s.err))
		dst = append(wire.AppendText(dst, "message", s.err.Message), '}')
	} else {
		dst = append(dst, `,"error":null`...)
	}
	dst = append(append(append(dst, ','), r.settings...), `,"usage":`...)
	if s.usage != nil {
		dst = appendUsage(dst, s.usage)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(append(dst, ','), r.limits...)
	return append(wire.AppendExtra(dst, s.extra, resourceNames.Has), '}')
}

// resourceNames are the members that extra ones cannot replace.
var resourceNames = rawjson.NewNames("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model",
	"previous_response_id", "instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text",
	"top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage", "max_output_tokens",
	"max_tool_calls", "store", "background", "service_tier", "metadata", "safety_identifier", "prompt_cache_key")

// itemID returns the id of the item at an index.
func (r *resource) itemID(prefix string, index int) string {
	return string(appendIndex(append([]byte(prefix), r.rest...), index))
}
