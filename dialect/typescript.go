package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxTypeDepth and maxTypes limit the nesting and the number of the types that are written for one schema; further types are written as
// any. With references a small schema can have endlessly many types.
const (
	maxTypeDepth = 16
	maxTypes     = 4096
)

// appendNamespace appends tools in harmony's form: a section with one TypeScript type for each tool.
func appendNamespace(dst []byte, tools []*lathe.ToolSpec) []byte {
	dst = append(dst, "# Tools\n\n## functions\n\nnamespace functions {\n\n"...)
	for _, t := range tools {
		dst = appendComment(dst, "", t.Description)
		dst = append(dst, "type "...)
		dst = appendName(dst, t.Name)
		dst = append(dst, " = ("...)
		schema := rawjson.AppendCompact(nil, t.Schema)
		if props, ok := rawjson.Get(schema, "properties"); ok && string(props) != "{}" {
			dst = append(dst, "_: "...)
			w := typeWriter{root: schema}
			dst = w.value(dst, schema, "", 0)
		}
		dst = append(dst, ") => any;\n\n"...)
	}
	return append(dst, "} // namespace functions"...)
}

// appendComment appends each line of text as a TypeScript comment. It appends nothing if text is blank.
func appendComment(dst []byte, indent, text string) []byte {
	text = strings.TrimSpace(text)
	if text == "" {
		return dst
	}
	for line := range strings.SplitSeq(cleanHarmony(text), "\n") {
		dst = append(dst, indent...)
		dst = append(dst, strings.TrimRight("// "+line, " \r")...)
		dst = append(dst, '\n')
	}
	return dst
}

// A typeWriter writes one schema as TypeScript types. It omits keywords that it does not support; the runner validates arguments by the
// schema itself.
type typeWriter struct {
	root  []byte // the whole schema, compact, for references
	types int    // number of types written so far
}

// value appends the type of schema.
func (w *typeWriter) value(dst, schema []byte, indent string, depth int) []byte {
	schema = w.resolve(schema)
	w.types++
	if depth > maxTypeDepth || w.types > maxTypes || len(schema) == 0 || schema[0] != '{' {
		return append(dst, "any"...)
	}
	if variants := oneOf(schema); variants != nil {
		for i, v := range variants {
			if i > 0 {
				dst = append(dst, " | "...)
			}
			dst = w.value(dst, v, indent, depth+1)
		}
		return dst
	}
	if c, ok := rawjson.Get(schema, "const"); ok {
		return appendLiteral(dst, c)
	}
	n := len(dst)
	list, _ := rawjson.Get(schema, "enum")
	for v := range rawjson.Elements(list) {
		if len(dst) > n {
			dst = append(dst, " | "...)
		}
		dst = appendLiteral(dst, v)
	}
	if len(dst) > n {
		return w.nullable(dst, schema, n)
	}
	types, _ := rawjson.Get(schema, "type")
	if len(types) > 0 && types[0] == '[' {
		for name := range rawjson.Elements(types) {
			if len(dst) > n {
				dst = append(dst, " | "...)
			}
			dst = w.named(dst, schema, rawjson.Text(name), indent, depth)
		}
		return dst
	}
	return w.nullable(w.named(dst, schema, rawjson.Text(types), indent, depth), schema, n)
}

// nullable appends null to the type at dst[n:], if schema has nullable set.
func (w *typeWriter) nullable(dst, schema []byte, n int) []byte {
	if null, ok := rawjson.Get(schema, "nullable"); ok && string(null) == "true" && !strings.Contains(string(dst[n:]), "null") {
		return append(dst, " | null"...)
	}
	return dst
}

// named appends the type with the JSON Schema name name.
func (w *typeWriter) named(dst, schema []byte, name, indent string, depth int) []byte {
	switch name {
	case "object":
		return w.object(dst, schema, indent, depth)
	case "array":
		items, ok := rawjson.Get(schema, "items")
		if !ok {
			return append(dst, "any[]"...)
		}
		item := string(w.value(nil, items, indent, depth+1))
		if strings.Contains(item, " | ") && !strings.HasSuffix(item, "}") {
			item = "(" + item + ")"
		}
		return append(append(dst, item...), "[]"...)
	case "integer", "number":
		return append(dst, "number"...)
	case "string", "boolean", "null":
		return append(dst, name...)
	default:
		if _, ok := rawjson.Get(schema, "properties"); ok {
			return w.object(dst, schema, indent, depth)
		}
		return append(dst, "any"...)
	}
}

// object appends the type of an object with its properties.
func (w *typeWriter) object(dst, schema []byte, indent string, depth int) []byte {
	props, ok := rawjson.Get(schema, "properties")
	if !ok || props[0] != '{' {
		return append(dst, "object"...)
	}
	if text := member(schema, "description"); text != "" {
		dst = appendComment(dst, indent, text)
	}
	required := map[string]bool{}
	list, _ := rawjson.Get(schema, "required")
	for name := range rawjson.Elements(list) {
		required[rawjson.Text(name)] = true
	}
	dst = append(dst, "{\n"...)
	for key, value := range rawjson.Members(props) {
		name := rawjson.Text(key)
		dst = w.property(dst, name, value, !required[name], indent, depth+1)
	}
	dst = append(dst, indent...)
	return append(dst, '}')
}

// property appends one property of an object, with its description, examples and default as comments.
func (w *typeWriter) property(dst []byte, name string, schema []byte, optional bool, indent string, depth int) []byte {
	schema = w.resolve(schema)
	if title := member(schema, "title"); title != "" {
		dst = appendComment(dst, indent, title)
		dst = append(append(dst, indent...), "//\n"...)
	}
	isObject := member(schema, "type") == "object"
	if !isObject { // w.object writes the description of an object
		dst = appendComment(dst, indent, member(schema, "description"))
	}
	if list, ok := rawjson.Get(schema, "examples"); ok && list[0] == '[' {
		dst = append(append(dst, indent...), "// Examples:\n"...)
		for v := range rawjson.Elements(list) {
			dst = appendComment(dst, indent, "- "+string(appendLiteral(nil, v)))
		}
	}
	fallback := defaultOf(schema)
	variants := oneOf(schema)
	if variants != nil && fallback != "" {
		dst = appendComment(dst, indent, fallback)
	}
	dst = append(dst, indent...)
	dst = appendPropertyName(dst, name)
	if optional {
		dst = append(dst, '?')
	}
	dst = append(dst, ':')
	if variants != nil {
		return w.variants(dst, variants, indent, depth)
	}
	dst = append(dst, ' ')
	dst = w.value(dst, schema, indent+"    ", depth)
	dst = append(dst, ',')
	if fallback != "" {
		dst = append(append(dst, " // "...), fallback...)
	}
	return append(dst, '\n')
}

// variants appends the types of a union, one on each line, with its description as a comment.
func (w *typeWriter) variants(dst []byte, variants [][]byte, indent string, depth int) []byte {
	dst = append(dst, '\n')
	for _, v := range variants {
		v = w.resolve(v)
		dst = append(append(dst, indent...), " | "...)
		dst = w.value(dst, v, indent+"    ", depth+1)
		var comment []string
		if text := member(v, "description"); text != "" && member(v, "type") != "object" {
			comment = append(comment, strings.Join(strings.Fields(cleanHarmony(text)), " "))
		}
		if fallback := defaultOf(v); fallback != "" {
			comment = append(comment, fallback)
		}
		if len(comment) > 0 {
			dst = append(append(dst, " // "...), strings.Join(comment, " ")...)
		}
		dst = append(dst, '\n')
	}
	return append(append(dst, indent...), ",\n"...)
}

// resolve returns the schema to which schema refers, or schema itself if it has no reference into the document; nil if there are too many
// references.
func (w *typeWriter) resolve(schema []byte) []byte {
	for range maxTypeDepth {
		ref, _ := rawjson.Get(schema, "$ref")
		if !strings.HasPrefix(rawjson.Text(ref), "#/") {
			return schema
		}
		schema = resolve(w.root, ref)
	}
	return nil
}

// oneOf returns the variants of a union, or nil if schema is no union.
func oneOf(schema []byte) [][]byte {
	for _, key := range []string{"oneOf", "anyOf"} {
		if list, ok := rawjson.Get(schema, key); ok && list[0] == '[' {
			var out [][]byte
			for v := range rawjson.Elements(list) {
				out = append(out, v)
			}
			return out
		}
	}
	return nil
}

// defaultOf returns `default: …`, with the value of an enum unquoted; "" if there is no default.
func defaultOf(schema []byte) string {
	v, ok := rawjson.Get(schema, "default")
	if !ok {
		return ""
	}
	if _, isEnum := rawjson.Get(schema, "enum"); isEnum && v[0] == '"' {
		return "default: " + cleanHarmony(rawjson.Text(v))
	}
	return "default: " + string(appendLiteral(nil, v))
}

// appendLiteral appends a JSON value on one line.
func appendLiteral(dst, v []byte) []byte {
	return append(dst, replaceTokens(string(rawjson.AppendCompact(nil, v)), "< ")...)
}

func appendPropertyName(dst []byte, name string) []byte {
	for i := range len(name) {
		if !isNameByte(name[i]) || name[i] == '-' || name[i] == '.' || name[i] == ':' {
			return append(dst, cleanHarmony(string(rawjson.AppendQuote(nil, name)))...)
		}
	}
	return append(dst, name...)
}

// member returns the string member key; "" if none exists.
func member(schema []byte, key string) string {
	v, _ := rawjson.Get(schema, key)
	return rawjson.Text(v)
}
