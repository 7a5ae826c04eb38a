package eval

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
)

// This file parses the parts of a suite that concern databases: tools with steps, gold actions and simulated users.

func (p *parser) database(into *json.RawMessage) member {
	return member{"database", func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return p.errorf(n, "database wants a mapping")
		}
		if err := p.read(n, "database", into); err != nil {
			return err
		}
		if len(*into) > maxDatabase {
			return p.errorf(n, "a database has at most %d bytes", maxDatabase)
		}
		return nil
	}}
}

// step returns a parser of a step. The first key of a step is its kind.
func (p *parser) step(into *[]step) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
			return p.errorf(n, "a step wants a mapping")
		}
		s := step{Kind: stepKind(n.Content[0].Value)}
		// The members point into s: p.mapping below sets the fields.
		at := member{string(s.Kind), &s.Pointer}
		otherwise := member{"else", &s.Else}
		members := []member{at, otherwise}
		switch s.Kind {
		case stepGet:
			members = []member{at, {"as", &s.As}, otherwise}
		case stepList:
			members = []member{at, {"where", &s.Where}, otherwise}
		case stepCheck:
			for _, c := range conditions {
				members = append(members, member{c, func(n *yaml.Node) error {
					if s.Condition != "" {
						return p.errorf(n, "a check has one of %s", strings.Join(conditions, ", "))
					}
					s.Condition = c
					return p.read(n, c, &s.Operand)
				}})
			}
		case stepSet, stepAppend, stepAdd, stepSubtract:
			members = []member{at, {"value", &s.Value}, otherwise}
		case stepDelete: // no other members
		case stepReturn:
			members = []member{{"return", &s.Value}}
		default:
			words := make([]string, len(stepKinds))
			for i, k := range stepKinds {
				words[i] = string(k)
			}
			return p.errorf(n, "a step begins with %s, not with %q", strings.Join(words, ", "), s.Kind)
		}
		if err := p.mapping(n, "the step "+string(s.Kind), members); err != nil {
			return err
		}
		if why := s.wrong(); why != "" {
			return p.errorf(n, "%s", why)
		}
		if len(*into) == maxSteps {
			return p.errorf(n, "a tool has at most %d steps", maxSteps)
		}
		*into = append(*into, s)
		return nil
	}
}

// wrong describes the first mistake in a step, or returns "".
func (s *step) wrong() string {
	if err := checkPointer(s.Pointer); err != nil {
		return err.Error()
	}
	switch s.Kind {
	case stepCheck:
		if s.Condition == "" {
			return "check wants one of " + strings.Join(conditions, ", ")
		}
		if s.Condition == "missing" && string(s.Operand) != "true" {
			return "missing wants true"
		}
	case stepList:
		if s.Where != nil && s.Where[0] != '{' {
			return "where wants a mapping"
		}
	case stepSet, stepAppend, stepAdd, stepSubtract, stepDelete:
		if s.Kind != stepDelete && s.Value == nil {
			return string(s.Kind) + " wants a value"
		}
		if s.Pointer == "" {
			return string(s.Kind) + " wants the pointer of a value within the database"
		}
	case stepGet, stepReturn:
	}
	return ""
}

// checkSteps refuses a placeholder that is neither a parameter of the tool nor a value that an earlier step binds.
func (p *parser) checkSteps(n *yaml.Node, m *mockTool) error {
	var known []string
	for k := range rawjson.Members(rawjson.At(m.Schema, "properties")) {
		known = append(known, rawjson.Text(k))
	}
	for _, s := range m.Steps {
		for _, name := range s.placeholders() {
			if !slices.Contains(known, name) {
				return p.errorf(n, "a step of %s uses {%s}, which is no parameter of its schema and bound by no earlier step", m.Name, name)
			}
		}
		if s.As != "" {
			known = append(known, s.As)
		}
	}
	return nil
}

// gold parses the messages of a model that makes no mistake. A key of a message is say, or the name of a tool with the arguments of one
// call, or a list of the arguments of several calls:
//
//   - get_order: {id: A1}
//   - cancel_order: [{id: A1}, {id: B2}]
//   - say: Both orders are cancelled.
func (p *parser) gold(into *[]GoldTurn) member {
	calls := 0 // in all turns
	addTurn := func(item *yaml.Node) error {
		var turn GoldTurn
		addEntry := func(k, v *yaml.Node) error {
			if k.Value == "say" {
				return p.read(v, "say", &turn.Say)
			}
			made := []*yaml.Node{v} // the arguments of each call
			if v.Kind == yaml.SequenceNode {
				made = v.Content
			}
			if calls += len(made); calls > maxGoldCalls {
				return p.errorf(v, "a scenario has at most %d gold calls", maxGoldCalls)
			}
			for _, c := range made {
				if c.Kind != yaml.MappingNode {
					return p.errorf(v, "%s wants the arguments of a call, or a list of such", k.Value)
				}
				call := GoldCall{Tool: k.Value, line: k.Line}
				if err := p.read(c, k.Value, &call.Arguments); err != nil {
					return err
				}
				turn.Calls = append(turn.Calls, call)
			}
			return nil
		}
		if err := p.entries(item, "a gold action", addEntry); err != nil {
			return err
		}
		if turn.Say == "" && len(turn.Calls) == 0 {
			return p.errorf(item, "a gold action says something or calls a tool")
		}
		*into = append(*into, turn)
		return nil
	}
	return member{"gold", func(n *yaml.Node) error {
		*into = []GoldTurn{} // not nil, even if the list is empty
		return p.list(n, "gold", addTurn)
	}}
}

// simulator parses a simulated user.
func (p *parser) simulator(into **userSimulator) member {
	return member{"user_simulator", func(n *yaml.Node) error {
		u := &userSimulator{}
		*into = u
		addReply := func(item *yaml.Node) error {
			var r reply
			if err := p.mapping(item, "a reply", []member{{"when", &r.When}, {"say", &r.Say}}); err != nil {
				return err
			}
			if _, err := regexp.Compile("(?i)" + r.When); err != nil {
				return p.errorf(item, "when is no regular expression")
			}
			if strings.TrimSpace(r.Say) == "" {
				return p.errorf(item, "a reply has a text to say")
			}
			u.Replies = append(u.Replies, r)
			return nil
		}
		err := p.mapping(n, "user_simulator", []member{
			{"instructions", &u.Instructions}, {"end", &u.End}, {"max_turns", &u.MaxTurns},
			{"replies", func(n *yaml.Node) error { return p.list(n, "replies", addReply) }},
		})
		switch {
		case err != nil:
			return err
		case len(u.Replies) == 0 && u.Instructions == "":
			return p.errorf(n, "user_simulator wants replies, instructions, or both")
		case u.MaxTurns > maxUserTurns:
			return p.errorf(n, "max_turns is at most %d", maxUserTurns)
		}
		return nil
	}}
}

// maxGenerated is the largest number of tools generated from a list of verbs and nouns.
const maxGenerated = 512

// generated parses lists of verbs and nouns, and adds a tool VERB_NOUN for each pair that the list lacks.
func (p *parser) generated(into *[]mockTool) member {
	return member{"generated_tools", func(n *yaml.Node) error {
		var verbs, nouns []string
		schema := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`)
		if err := p.mapping(n, "generated_tools", []member{{"verbs", &verbs}, {"nouns", &nouns}, {"schema", &schema}}); err != nil {
			return err
		}
		if slices.Contains(slices.Concat(verbs, nouns), "") || len(verbs) == 0 || len(nouns) == 0 || len(verbs)*len(nouns) > maxGenerated {
			return p.errorf(n, "generated_tools wants verbs and nouns, and makes at most %d tools", maxGenerated)
		}
		for _, noun := range nouns {
			for _, verb := range verbs {
				m := mockTool{Name: verb + "_" + noun, Description: strings.ToUpper(verb[:1]) + verb[1:] + " one " + strings.ReplaceAll(noun, "_", " ") + ".", Schema: schema}
				if findTool(*into, m.Name) >= 0 {
					continue
				}
				if _, err := tool.NewSet(m.build(nil)); err != nil {
					return p.errorf(n, "the tool %s cannot be: %s", m.Name, cause(err))
				}
				*into = append(*into, m)
			}
		}
		return nil
	}}
}
