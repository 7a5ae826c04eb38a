package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// tag returns the structural tag of a turn: free text up to a trigger, which begins a tag. A tag is one call, or a list of calls with its
// marks:
//
//	{"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<tool_call>"],"tags":[
//	  {"type":"tag","begin":"<tool_call>{\"name\": \"add\", …","content":{"type":"json_schema",…},"end":"}</tool_call>"}],…}}
func (c *constrainer) tag() (string, error) {
	l := c.layout
	before, after := l.before, l.after
	if l.between != "" {
		before, after = "", "" // they surround the list
	}
	var tags []string
	for _, pieces := range c.calls {
		tag, err := c.callTag(pieces, before, after)
		if err != nil {
			return "", err
		}
		tags = append(tags, tag)
	}
	triggers := []string{l.before}
	if l.between == "" {
		triggers = shortest(c.begins(l.before))
	} else {
		tags = []string{tagFormat(l.before, c.section(tags), l.after)}
	}
	calls := triggeredTags{triggers: triggers, tags: tags, atLeastOne: c.must, stopAfterFirst: c.single || l.once}
	return `{"type":"structural_tag","format":` + calls.format() + "}", nil
}

// section returns the format of the calls inside the marks of a section or of a list.
func (c *constrainer) section(calls []string) string {
	if c.layout.separator == "" {
		return triggeredTags{triggers: shortest(c.begins("")), tags: calls, atLeastOne: true, stopAfterFirst: c.single}.format()
	}
	end := "}"
	if c.single {
		end = `,"stop_after_first":true}`
	}
	return `{"type":"tags_with_separator","tags":` + array(calls) + `,"separator":` + quoteJSON(c.layout.separator) + `,"at_least_one":true` + end
}

// callTag returns the tag of a call, with the texts before and after it.
func (c *constrainer) callTag(pieces []piece, before, after string) (string, error) {
	list := joined(slices.Concat([]piece{{text: before}}, pieces, []piece{{text: after}}))
	begin, end := list[0].text, ""
	list = list[1:]
	if n := len(list); n > 0 && list[n-1].expr == "" {
		end = list[n-1].text
		list = list[:n-1]
	}
	if len(list) == 0 {
		list = []piece{{}}
	}
	var elements []string
	for _, p := range list {
		switch {
		case p.format != nil:
			elements = append(elements, p.format())
		case p.expr != "":
			text, err := c.b.Grammar(p.expr)
			if err != nil {
				return "", err
			}
			elements = append(elements, `{"type":"grammar","grammar":`+quoteJSON(text)+"}")
		default:
			elements = append(elements, `{"type":"const_string","value":`+quoteJSON(p.text)+"}")
		}
	}
	content := elements[0]
	if len(elements) > 1 {
		content = `{"type":"sequence","elements":` + array(elements) + "}"
	}
	return tagFormat(begin, content, end), nil
}

// tagFormat returns a tag: its begin, its content and its end.
func tagFormat(begin, content, end string) string {
	return fmt.Sprintf(`{"type":"tag","begin":%s,"content":%s,"end":%s}`, quoteJSON(begin), content, quoteJSON(end))
}

// triggeredTags are free text in which each of triggers begins one of tags.
type triggeredTags struct {
	triggers       []string
	tags           []string // their formats
	atLeastOne     bool
	stopAfterFirst bool // the turn ends after the first tag
}

// format returns the format of the tags.
func (t triggeredTags) format() string {
	var triggers []string
	for _, text := range t.triggers {
		triggers = append(triggers, quoteJSON(text))
	}
	return fmt.Sprintf(`{"type":"triggered_tags","triggers":%s,"tags":%s,"at_least_one":%t,"stop_after_first":%t}`,
		array(triggers), array(t.tags), t.atLeastOne, t.stopAfterFirst)
}

// array returns a JSON array with these elements.
func array(elements []string) string { return "[" + strings.Join(elements, ",") + "]" }

// shortest returns the texts of list that do not begin with another text of list: xgrammar requires that exactly one trigger matches the
// beginning of a tag.
func shortest(list []string) []string {
	var out []string
	for _, text := range list {
		covers := func(other string) bool { return other != text && strings.HasPrefix(text, other) }
		if !slices.ContainsFunc(list, covers) {
			out = append(out, text)
		}
	}
	return out
}

var constraintServers = []string{"llamacpp", "vllm", "sglang"}

// ConstraintServers returns the names of the servers for which [Constraint.Members] has request members: llamacpp, vllm and sglang.
func ConstraintServers() []string { return slices.Clone(constraintServers) }

// Members returns the members to add to a chat completion request so that the server applies the constraint: `grammar` for llama.cpp,
// `structured_outputs` for vLLM 0.12 and later, and for SGLang `response_format`, or `ebnf` if c.Tag is nil. The request must not contain
// tools and, for vLLM and SGLang, no other response format. Members returns an error for a server that is not among [ConstraintServers].
func (c *Constraint) Members(server string) ([]lathe.Member, error) {
	name, value := "grammar", quoteJSON(c.GBNF)
	switch server {
	case "llamacpp":
	case "vllm":
		name, value = "structured_outputs", `{"grammar":`+value+"}"
		if c.Tag != nil {
			value = `{"structural_tag":` + quoteJSON(string(c.Tag)) + "}"
		}
	case "sglang":
		name = "ebnf"
		if c.Tag != nil {
			name, value = "response_format", string(c.Tag)
		}
	default:
		return nil, lathe.CodeInvalidRequest.Wrap("dialect: constrain", fmt.Errorf("no form for the server %.64q; there are %s", server, strings.Join(constraintServers, ", ")))
	}
	return []lathe.Member{{Name: name, Value: json.RawMessage(value)}}, nil
}
