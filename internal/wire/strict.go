package wire

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Strict states whether tools of the server are sent with strict set, in which case the model server constrains the arguments of calls to
// the schema. What a client sets on its own tools is sent unchanged.
type Strict uint8

// Values of Strict.
const (
	StrictOff    Strict = iota
	StrictSubset        // the schema is reduced to the keywords that the vendor supports; see [StrictRules]
	StrictWhole         // the schema of the tool is sent unchanged, because the server supports all of it
)

// SetsStrict reports whether s sets strict on the tool: the tool is one of the server, and its Extra does not mention strict.
func (s Strict) SetsStrict(t *lathe.ToolSpec) bool {
	return s != StrictOff && t.Owner == lathe.OwnerServer && t.Wire == "" &&
		!slices.ContainsFunc(t.Extra, func(m lathe.Member) bool { return m.Name == "strict" || m.Name == "function" })
}

// StrictRules are a vendor's rules for schemas of strict tools.
type StrictRules struct {
	// Keeps reports whether a keyword with the value may remain. It is not called for keywords that every vendor accepts or that contain
	// schemas.
	Keeps func(keyword string, value []byte) bool
	// AllOf is set if the vendor accepts allOf.
	AllOf bool
	// RequireAll is set if objects must require all of their properties.
	RequireAll bool
}

// StrictOpenAI are the rules of chat completions and Responses.
var StrictOpenAI = StrictRules{RequireAll: true, Keeps: func(keyword string, _ []byte) bool { return openAIKeywords.Has(keyword) }}

var openAIKeywords = rawjson.NewNames(strings.Fields(`pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems
`)...)

// maxStrictChanges bounds the listed changes of one schema.
const maxStrictChanges = 64

// A StrictSchema is a JSON Schema in the form that a vendor accepts as strict.
type StrictSchema struct {
	Schema []byte
	// Changes are the paths of keywords that were removed or replaced, such as ".properties.n.minimum"; at most 64. The caller must
	// validate arguments against the original schema.
	Changes []string
	// Misfit is the path of the first keyword that the form cannot express, such as an optional property where all must be required; "":
	// none. A schema with a misfit must not be sent as strict.
	Misfit string
}

// Strict returns the schema in the form that the rules require. Removed keywords are added to the description as text. If no change is
// necessary, the result is the schema itself. Levels beyond [rawjson.DefaultMaxDepth] are copied and count as a misfit.
func (r *StrictRules) Strict(schema []byte) StrictSchema {
	s := stricter{rules: r}
	out := s.appendSchema(make([]byte, 0, len(schema)+len(schema)/4), schema, "", rawjson.DefaultMaxDepth)
	if len(s.Changes) > 0 {
		s.Schema = out
	} else {
		s.Schema = schema
	}
	return s.StrictSchema
}

// StrictArguments does what [StrictRules.Strict] does, for the arguments of a tool, which must be an object. ok is false if the schema must
// not be sent as strict.
func (r *StrictRules) StrictArguments(schema []byte) (s StrictSchema, ok bool) {
	schema = schema[rawjson.SkipSpace(schema, 0):]
	if !rawjson.EqualKey(rawjson.At(schema, "type"), "object") {
		return s, false
	}
	if has(schema, "anyOf") || has(schema, "oneOf") || has(schema, "allOf") {
		return s, false
	}
	s = r.Strict(schema)
	return s, s.Misfit == ""
}

// typed are the keywords that restrict the type of a value. A schema with none of them allows every value, which no strict form expresses.
var typed = strings.Fields("type anyOf oneOf allOf enum const $ref properties")

// A stricter reduces one schema and collects what it changes.
type stricter struct {
	rules *StrictRules
	StrictSchema
}

func (s *stricter) changed(path, keyword string) {
	if len(s.Changes) < maxStrictChanges {
		s.Changes = append(s.Changes, path+"."+keyword)
	}
}

func (s *stricter) misfit(path, keyword string) {
	if s.Misfit == "" {
		s.Misfit = path + "." + keyword
	}
}

// appendSchema appends the strict form of the schema at path. depth is the number of levels that are still read.
func (s *stricter) appendSchema(dst JSON, schema []byte, path string, depth int) JSON {
	if rawjson.Kind(schema) != '{' || depth == 0 {
		s.misfit(path, "")
		return dst.Raw(schema)
	}
	if !slices.ContainsFunc(typed, func(keyword string) bool { return has(schema, keyword) }) {
		s.misfit(path, "type")
	}
	isObject, isOpen := s.checkObject(schema, path)
	l := strictLevel{stricter: s, schema: schema, path: path, depth: depth}
	dst = dst.Lit("{")
	for key, v := range rawjson.Members(schema) {
		dst = l.appendKeyword(dst, rawjson.Text(key), v)
	}
	if isObject {
		if isOpen {
			s.changed(path, "additionalProperties")
		}
		dst = dst.Key("additionalProperties").Lit("false")
	}
	description := rawjson.Text(l.description)
	if len(l.notes) > 0 {
		if description != "" {
			description += "\n\n"
		}
		description += "{" + strings.Join(l.notes, ", ") + "}"
	}
	if description != "" || l.description != nil {
		dst = dst.Str("description", description)
	}
	return dst.Lit("}")
}

// A strictLevel is one schema of the tree, without the schemas in it, while its strict form is written.
type strictLevel struct {
	*stricter
	schema      []byte
	path        string
	depth       int
	description []byte   // the value of the keyword; nil: none
	notes       []string // the removed keywords with their values, which are added to the description
}

// note records that a keyword is removed, for the description.
func (l *strictLevel) note(keyword string, v []byte) {
	l.changed(l.path, keyword)
	l.notes = append(l.notes, keyword+": "+rawjson.CompactText(v))
}

// appendKeyword appends the strict form of one keyword, or removes it.
func (l *strictLevel) appendKeyword(dst JSON, keyword string, v []byte) JSON {
	switch keyword {
	case "description":
		l.description = v
	case "type", "enum", "const", "title", "required", "$ref", "default":
		return dst.Val(keyword, v)
	case "anyOf", "allOf":
		if keyword == "allOf" && !l.rules.AllOf {
			l.misfit(l.path, keyword)
		}
		return l.appendList(dst.Arr(keyword), keyword, v)
	case "oneOf": // becomes anyOf
		if !has(l.schema, "anyOf") {
			l.changed(l.path, keyword)
			return l.appendList(dst.Arr("anyOf"), keyword, v)
		}
		l.note(keyword, v)
	case "properties", "$defs", "definitions":
		dst = dst.Obj(keyword)
		for name, el := range rawjson.Members(v) {
			dst = dst.Next().Raw(name).Lit(":")
			dst = l.appendSchema(dst, el, l.path+"."+keyword+"."+rawjson.Text(name), l.depth-1)
		}
		return dst.Lit("}")
	case "items":
		return l.appendSchema(dst.Key(keyword), v, l.path+"."+keyword, l.depth-1)
	case "additionalProperties": // written after the other keywords
		if string(v) != "false" {
			l.note(keyword, v)
		}
	case "patternProperties", "prefixItems", "$anchor", "$dynamicRef", "$dynamicAnchor":
		l.misfit(l.path, keyword)
		l.note(keyword, v)
	case "$schema", "$id", "$comment": // left out, because they restrict nothing
	default:
		if l.rules.Keeps(keyword, v) {
			return dst.Val(keyword, v)
		}
		l.note(keyword, v)
	}
	return dst
}

// appendList appends the elements and the end of a list of schemas, which is the value of a keyword.
func (l *strictLevel) appendList(dst JSON, keyword string, list []byte) JSON {
	for el := range rawjson.Elements(list) {
		dst = l.appendSchema(dst.Next(), el, l.path+"."+keyword, l.depth-1)
	}
	return dst.Lit("]")
}

// checkObject reports whether a schema is that of an object, and whether it lacks additionalProperties. It records a misfit for an object
// with arbitrary properties, and for optional properties if all must be required.
func (s *stricter) checkObject(schema []byte, path string) (isObject, isOpen bool) {
	typ := rawjson.At(schema, "type")
	properties := rawjson.At(schema, "properties")
	additional := rawjson.At(schema, "additionalProperties")
	isObject = string(typ) == `"object"` || properties != nil || string(additional) == "false"
	if !isObject {
		if rawjson.Kind(typ) == '[' && strings.Contains(string(typ), `"object"`) {
			s.misfit(path, "type")
		}
		return false, false
	}
	isOpen = additional == nil
	declaresNone := len(properties) <= len("{}")
	allowsAny := string(additional) == "true" || isOpen && path != "" // the arguments of a tool may be empty
	if rawjson.Kind(additional) == '{' || declaresNone && allowsAny {
		s.misfit(path, "additionalProperties")
	}
	if s.rules.RequireAll {
		var names []string
		for el := range rawjson.Elements(rawjson.At(schema, "required")) {
			names = append(names, rawjson.Text(el))
		}
		for key := range rawjson.Members(properties) {
			if !slices.Contains(names, rawjson.Text(key)) {
				s.misfit(path+".properties."+rawjson.Text(key), "required")
			}
		}
	}
	return true, isOpen
}

func has(schema []byte, key string) bool { return rawjson.At(schema, key) != nil }
