package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// tag returns the structural tag of a turn: free text up to a trigger, which begins a tag. A tag is one call, or a list of calls with its
// marks.
func (c *constrainer) tag(tools []*lathe.ToolSpec) ([]byte, error) {
	l := c.layout
	var triggers []string
	var tags [][]byte
	if l.between == "" {
		for i := range tools {
			tag, err := c.callTag(c.calls[i], l.before, l.after)
			if err != nil {
				return nil, err
			}
			tags = append(tags, tag)
		}
		triggers = shortest(c.begins())
	} else {
		var calls [][]byte
		for i := range tools {
			tag, err := c.callTag(c.calls[i], "", "")
			if err != nil {
				return nil, err
			}
			calls = append(calls, tag)
		}
		triggers = []string{l.before}
		tags = [][]byte{appendTag(nil, l.before, c.section(calls), l.after)}
	}
	return append(appendTriggered([]byte(`{"type":"structural_tag","format":`), triggers, tags, c.must, c.single || l.once), '}'), nil
}

// section returns the format of the calls inside the marks of a section or of a list.
func (c *constrainer) section(calls [][]byte) []byte {
	if c.layout.separator == "" {
		var begins []string
		for _, pieces := range c.calls {
			if text := c.begin("", pieces); !slices.Contains(begins, text) {
				begins = append(begins, text)
			}
		}
		return appendTriggered(nil, shortest(begins), calls, true, c.single)
	}
	out := append(appendTags([]byte(`{"type":"tags_with_separator","tags":`), calls), `,"separator":`...)
	out = rawjson.AppendQuote(out, c.layout.separator)
	out = append(out, `,"at_least_one":true`...)
	if c.single {
		out = append(out, `,"stop_after_first":true`...)
	}
	return append(out, '}')
}

// callTag returns the tag of a call, with the texts before and after it.
func (c *constrainer) callTag(pieces []piece, before, after string) ([]byte, error) {
	list := joined(append(append([]piece{{text: before}}, pieces...), piece{text: after}))
	begin, end := list[0].text, ""
	list = list[1:]
	if n := len(list); n > 0 && list[n-1].expr == "" {
		end = list[n-1].text
		list = list[:n-1]
	}
	var elements [][]byte
	for _, p := range list {
		switch {
		case p.format != nil:
			elements = append(elements, p.format())
		case p.expr != "":
			text, err := c.b.Grammar(p.expr)
			if err != nil {
				return nil, err
			}
			elements = append(elements, append(rawjson.AppendQuote([]byte(`{"type":"grammar","grammar":`), text), '}'))
		default:
			elements = append(elements, append(rawjson.AppendQuote([]byte(`{"type":"const_string","value":`), p.text), '}'))
		}
	}
	var content []byte
	switch len(elements) {
	case 0:
		content = []byte(`{"type":"const_string","value":""}`)
	case 1:
		content = elements[0]
	default:
		content = append(appendList([]byte(`{"type":"sequence","elements":`), elements), '}')
	}
	return appendTag(nil, begin, content, end), nil
}

// appendTag appends a tag: its begin, its content and its end.
func appendTag(dst []byte, begin string, content []byte, end string) []byte {
	dst = rawjson.AppendQuote(append(dst, `{"type":"tag","begin":`...), begin)
	dst = append(append(dst, `,"content":`...), content...)
	dst = rawjson.AppendQuote(append(dst, `,"end":`...), end)
	return append(dst, '}')
}

// appendTriggered appends the format of free text in which each of triggers begins one of tags. must requires at least one tag, single
// ends the turn after the first.
func appendTriggered(dst []byte, triggers []string, tags [][]byte, must, single bool) []byte {
	dst = append(dst, `{"type":"triggered_tags","triggers":[`...)
	for i, t := range triggers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendQuote(dst, t)
	}
	dst = append(appendTags(append(dst, `],"tags":`...), tags), `,"at_least_one":`...)
	if must {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	if single {
		dst = append(dst, `,"stop_after_first":true`...)
	} else {
		dst = append(dst, `,"stop_after_first":false`...)
	}
	return append(dst, '}')
}

func appendTags(dst []byte, tags [][]byte) []byte { return appendList(dst, tags) }

func appendList(dst []byte, list [][]byte) []byte {
	dst = append(dst, '[')
	for i, el := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, el...)
	}
	return append(dst, ']')
}

// appendSchemaFormat appends the format of arguments that are JSON, by the schema of the tool.
func appendSchemaFormat(dst []byte, t *lathe.ToolSpec) []byte {
	dst = append(dst, `{"type":"json_schema","json_schema":`...)
	dst = rawjson.AppendCompact(dst, argumentsSchema(t))
	return append(dst, '}')
}

// shortest returns the texts of list that do not begin with another text of list: xgrammar requires that exactly one trigger matches the
// beginning of a tag.
func shortest(list []string) []string {
	var out []string
	for i, text := range list {
		covered := false
		for j, other := range list {
			covered = covered || i != j && len(other) < len(text) && text[:len(other)] == other
		}
		if !covered {
			out = append(out, text)
		}
	}
	return out
}

var constraintServers = []string{"llamacpp", "vllm", "sglang"}

// ConstraintServers returns the names of the servers for which [Constraint.Members] has request members: llamacpp, vllm and sglang.
func ConstraintServers() []string { return slices.Clone(constraintServers) }

// Members returns the members that apply the constraint to a request for a chat completion: `grammar` for llama.cpp, `structured_outputs`
// for vLLM 0.12 and later, and for SGLang `response_format`, or `ebnf` if c.Tag is nil. The request must have no tools, and for vLLM and
// SGLang no other response format. It returns an error for a server that is not among [ConstraintServers].
func (c *Constraint) Members(server string) ([]lathe.Member, error) {
	member := func(name string, value []byte) []lathe.Member { return []lathe.Member{{Name: name, Value: value}} }
	grammar := rawjson.AppendQuote(nil, c.GBNF)
	switch server {
	case "llamacpp":
		return member("grammar", grammar), nil
	case "vllm":
		if c.Tag != nil {
			return member("structured_outputs", append(rawjson.AppendQuote([]byte(`{"structural_tag":`), string(c.Tag)), '}')), nil
		}
		return member("structured_outputs", append(append([]byte(`{"grammar":`), grammar...), '}')), nil
	case "sglang":
		if c.Tag != nil {
			return member("response_format", c.Tag), nil
		}
		return member("ebnf", grammar), nil
	}
	return nil, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "dialect: constrain", Err: fmt.Errorf("no form for the server %.64q; there are %s", server, strings.Join(constraintServers, ", "))}
}
