package responses

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A resource writes the response objects of one answer. They always have all members, since clients distinguish absent members from null.
type resource struct {
	id, model string
	rest      string // common part of all ids of the answer
	created   int64
	answer    *wire.AnswerHead
	head      []byte // members before output
	settings  []byte // members between error and usage
	limits    []byte // members after usage
}

// newResource returns the resource of an answer. It repeats members of the request.
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
	body = rawjson.Without(body, "input") // the input is not repeated and may be long
	r.head = wire.JSON("{").Val("previous_response_id", openai.OrNull(req.PreviousID))
	r.head = r.echo(r.head, body, "instructions", '"', "null")[1:]
	r.settings = r.appendSettings([]byte{'{'}, req, body)[1:]
	l := r.echo([]byte{'{'}, body, "max_output_tokens", '0', "null")
	l = r.echo(l, body, "max_tool_calls", '0', "null")
	l = l.Bool("store", head.Kept).Lit(`,"background":false`)
	l = r.echo(l, body, "service_tier", '"', `"default"`)
	l = r.echo(l, body, "metadata", '{', "{}")
	l = r.echo(l, body, "safety_identifier", '"', "null")
	r.limits = r.echo(l, body, "prompt_cache_key", '"', "null")[1:]
	return r
}

// echo appends the member name with its value in the request if the first byte of that value is typ ('0': any number), otherwise with the
// value other.
func (r *resource) echo(dst wire.JSON, obj []byte, name string, typ byte, other string) wire.JSON {
	v := get(obj, name)
	k := rawjson.Kind(v)
	if k == '-' || k >= '0' && k <= '9' {
		k = '0'
	}
	dst = dst.Key(name)
	if k != typ {
		return dst.Lit(other)
	}
	return dst.Compact(v)
}

func (r *resource) appendSettings(dst wire.JSON, req *wire.ClientRequest, body []byte) wire.JSON {
	dst = dst.Arr("tools")
	for t := range rawjson.Elements(get(body, "tools")) {
		dst = r.appendTool(dst.Next(), t)
	}
	dst = r.appendChoice(dst.Lit("]"), get(body, "tool_choice"))
	dst = r.echo(dst, body, "truncation", '"', `"disabled"`)
	dst = dst.Bool("parallel_tool_calls", string(get(body, "parallel_tool_calls")) != "false")
	dst = r.appendTextForm(dst.Obj("text"), get(body, "text"))
	for _, m := range [...]struct{ name, other string }{{"top_p", "1"}, {"presence_penalty", "0"}, {"frequency_penalty", "0"}, {"top_logprobs", "0"}, {"temperature", "1"}} {
		dst = r.echo(dst, body, m.name, '0', m.other)
	}
	return dst.Obj("reasoning").Fields("effort", openai.OrNull(req.Sampling.ReasoningEffort), "summary", openai.OrNull(req.Sampling.ReasoningSummary)).Lit("}")
}

// appendTool appends a tool as the response repeats it: a function with all its members, and other tools unchanged except that members with
// secrets are removed.
func (r *resource) appendTool(dst wire.JSON, t []byte) wire.JSON {
	typ := text(t, "type")
	if typ != "function" {
		return dst.Compact(wire.JSON("{").Members(members(t, "authorization", "headers"), nil).Lit("}"))
	}
	fn := t
	if inner := get(t, "function"); rawjson.Kind(inner) == '{' {
		fn = inner
	}
	dst = dst.Lit(`{"type":"function"`)
	dst = r.echo(dst, fn, "name", '"', `""`)
	dst = r.echo(dst, fn, "description", '"', "null")
	dst = r.echo(dst, fn, "parameters", '{', "null")
	strict := get(fn, "strict")
	if strict == nil {
		strict = get(t, "strict")
	}
	if s := string(strict); s != "true" && s != "false" {
		strict = []byte("null")
	}
	return dst.Val("strict", strict).Lit("}")
}

func (r *resource) appendChoice(dst wire.JSON, choice []byte) wire.JSON {
	dst = dst.Key("tool_choice")
	switch rawjson.Kind(choice) {
	case '"':
		return dst.Raw(choice)
	case '{':
	default:
		return dst.Lit(`"auto"`)
	}
	if inner := get(choice, "function"); inner != nil {
		return dst.Raw(wire.ObjectOf("type", "function", "name", text(inner, "name")))
	}
	if inner := get(choice, "allowed_tools"); inner != nil {
		choice = inner
	}
	if get(choice, "tools") == nil {
		return dst.Compact(choice)
	}
	dst = dst.Lit(`{"type":"allowed_tools","tools":`).Compact(get(choice, "tools"))
	return r.echo(dst, choice, "mode", '"', `"auto"`).Lit("}")
}

// appendTextForm appends the members of text, which always include format.
func (r *resource) appendTextForm(dst wire.JSON, form []byte) wire.JSON {
	dst = dst.Key("format")
	format := get(form, "format")
	switch {
	case text(format, "type") == "json_schema":
		dst = dst.Lit(`{"type":"json_schema"`)
		dst = r.echo(dst, format, "name", '"', `"answer"`)
		dst = r.echo(dst, format, "description", '"', "null")
		dst = r.echo(dst, format, "schema", '{', "null")
		dst = dst.Bool("strict", string(get(format, "strict")) == "true").Lit("}")
	case rawjson.Kind(format) == '{':
		dst = dst.Compact(format)
	default:
		dst = dst.Lit(`{"type":"text"}`)
	}
	if v := get(form, "verbosity"); rawjson.Kind(v) == '"' {
		dst = dst.Val("verbosity", v)
	}
	return dst.Lit("}")
}

// A state contains the members of a response object that change while the answer is written.
type state struct {
	status string
	reason string // reason why the response is incomplete; "": it is not
	output []outDone
	err    *wire.APIError
	usage  *lathe.Usage
	extra  []lathe.Member
}

// append appends the response object.
func (r *resource) append(dst wire.JSON, s *state) wire.JSON {
	null := wire.JSON("null")
	completed, details, failure, usage := null, null, null, null
	if s.status == statusCompleted {
		completed = wire.JSON(nil).Int(max(r.created, r.answer.Completed))
	}
	if s.reason != "" {
		details = wire.ObjectOf("reason", s.reason)
	}
	if s.err != nil {
		failure = wire.ObjectOf("code", errorCode(s.err), "message", s.err.Message)
	}
	if s.usage != nil {
		usage = appendUsage(nil, s.usage)
	}
	dst = dst.Lit("{").Fields("id", r.id, "object", "response", "created_at", r.created, "completed_at", completed, "status", s.status,
		"incomplete_details", details, "model", r.model).Lit(",").Raw(r.head).Arr("output")
	for _, done := range s.output {
		dst = dst.Next().Raw(done.json)
	}
	return dst.Lit("]").Val("error", failure).Lit(",").Raw(r.settings).Val("usage", usage).Lit(",").Raw(r.limits).Extra(s.extra, resourceNames.Has).Lit("}")
}

// resourceNames are the members of a response that additional members must not replace.
var resourceNames = rawjson.NewNames("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model",
	"previous_response_id", "instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text",
	"top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage", "max_output_tokens",
	"max_tool_calls", "store", "background", "service_tier", "metadata", "safety_identifier", "prompt_cache_key")

// itemID returns the id of the item with an output index.
func (r *resource) itemID(prefix string, index int) string {
	return prefix + r.rest + "_" + strconv.Itoa(index)
}
