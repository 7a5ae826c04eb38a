package sim

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// readNamespace returns the tools that harmony's TypeScript types declare, with their names, descriptions and the first level of their
// parameters:
//
//	// Adds two numbers.
//	type add = (_: {
//	    // the first
//	    a: number,
//	    b?: number, // default: 1
//	}) => any;
func readNamespace(text string) []*lathe.ToolSpec {
	var tools []*lathe.ToolSpec
	var comment []string     // the lines above the declaration or the parameter
	var tool *lathe.ToolSpec // the tool whose declaration is read
	var schema objectSchema  // of its parameters
	depth := 0               // number of open braces: 0 between declarations, 1 among the parameters of tool
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		remark, isComment := strings.CutPrefix(line, "//")
		name, arguments, isTool := declared(line)
		switch {
		case isComment:
			if depth <= 1 {
				comment = append(comment, strings.TrimSpace(remark))
			}
			continue
		case depth <= 0 && !isTool:
			continue
		case depth <= 0:
			tool = &lathe.ToolSpec{Name: name, Description: strings.Join(comment, " ")}
			tools = append(tools, tool)
			schema, comment, line = objectSchema{}, nil, arguments
		case depth == 1 && !strings.HasPrefix(line, "}"):
			schema.add(line, strings.Join(comment, " "))
			comment = nil
		}
		depth += strings.Count(line, "{") - strings.Count(line, "}")
		if depth == 0 {
			tool.Schema, comment = schema.bytes(), nil
		}
	}
	return tools
}

// declared returns the name of the tool that a line such as `type add = (_: {` declares, and the text of its arguments on that line.
func declared(line string) (name, arguments string, ok bool) {
	declaration, isType := strings.CutPrefix(line, "type ")
	name, arguments, ok = strings.Cut(declaration, " = (")
	return name, arguments, isType && ok
}

// An objectSchema collects the properties of an object schema.
type objectSchema struct {
	properties, required []string
}

// add adds the property of a line such as `name?: type, // default: value`.
func (s *objectSchema) add(line, description string) {
	line, trailer, _ := strings.Cut(line, " // default: ")
	name, kind, ok := strings.Cut(line, ": ")
	if !ok {
		return
	}
	name, optional := strings.CutSuffix(name, "?")
	name = strings.Trim(name, `"`)
	if !optional {
		s.required = append(s.required, quote(name))
	}
	member := typeSchema(strings.TrimSuffix(strings.TrimSpace(kind), ","))
	if description != "" {
		member += `,"description":` + quote(description)
	}
	if rawjson.Check([]byte(trailer), rawjson.Limits{}) == nil {
		member += `,"default":` + trailer
	}
	s.properties = append(s.properties, quote(name)+":{"+strings.TrimPrefix(member, ",")+"}")
}

// typeSchema returns the members of the schema for a TypeScript type, without braces; "" for other types.
func typeSchema(kind string) string {
	kind = strings.TrimSuffix(kind, " | null")
	if words := strings.Split(kind, " | "); strings.HasPrefix(kind, `"`) {
		return `"type":"string","enum":[` + strings.Join(words, ",") + "]"
	}
	item, isArray := strings.CutSuffix(kind, "[]")
	if isArray {
		return `"type":"array","items":{` + typeSchema(strings.Trim(item, "()")) + "}"
	}
	switch {
	case kind == "string", kind == "number", kind == "boolean", kind == "object":
		return `"type":` + quote(kind)
	case strings.HasPrefix(kind, "{"):
		return `"type":"object"`
	}
	return ""
}

func (s *objectSchema) bytes() []byte {
	return []byte(`{"type":"object","properties":{` + strings.Join(s.properties, ",") + `},"required":[` + strings.Join(s.required, ",") + "]}")
}
