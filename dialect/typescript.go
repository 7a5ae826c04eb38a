package dialect

import (
	"slices"
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

// namespace returns tools in harmony's form: a section with one TypeScript type for each tool.
func namespace(tools []*lathe.ToolSpec) string {
	var b strings.Builder
	b.WriteString("# Tools\n\n## functions\n\nnamespace functions {\n\n")
	for _, t := range tools {
		schema, arguments := rawjson.AppendCompact(nil, t.Schema), ""
		if properties := string(rawjson.At(schema, "properties")); properties != "" && properties != "{}" {
			w := typeWriter{root: schema}
			arguments = "_: " + w.value(schema, "", 0)
		}
		b.WriteString(comment("", t.Description) + "type " + safeName(t.Name) + " = (" + arguments + ") => any;\n\n")
	}
	return b.String() + "} // namespace functions"
}

// comment returns each line of text as a TypeScript comment, or "" if text is blank.
func comment(indent, text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.SplitSeq(cleanHarmony(text), "\n") {
		b.WriteString(indent + strings.TrimRight("// "+line, " \r") + "\n")
	}
	return b.String()
}

// A typeWriter writes one schema as TypeScript types. It omits keywords that it does not support; the runner validates arguments by the
// schema itself.
type typeWriter struct {
	root  []byte // the whole schema, compact, for references
	types int    // number of types written so far
}

// value returns the type of schema.
func (w *typeWriter) value(schema []byte, indent string, depth int) string {
	schema = w.resolve(schema)
	w.types++
	if depth > maxTypeDepth || w.types > maxTypes || rawjson.Kind(schema) != '{' {
		return "any"
	}
	var types []string
	for _, v := range oneOf(schema) {
		types = append(types, w.value(v, indent, depth+1))
	}
	if types != nil {
		return union(types)
	}
	if c := rawjson.At(schema, "const"); c != nil {
		return literalText(c)
	}
	for v := range rawjson.Elements(rawjson.At(schema, "enum")) {
		types = append(types, literalText(v))
	}
	names := rawjson.At(schema, "type")
	if types == nil && rawjson.Kind(names) == '[' {
		for name := range rawjson.Elements(names) {
			types = append(types, w.named(schema, rawjson.Text(name), indent, depth))
		}
		return union(types)
	}
	if types == nil {
		types = []string{w.named(schema, rawjson.Text(names), indent, depth)}
	}
	text := union(types)
	if string(rawjson.At(schema, "nullable")) == "true" && !strings.Contains(text, "null") {
		text += " | null"
	}
	return text
}

func union(types []string) string { return strings.Join(types, " | ") }

// named returns the type with the JSON Schema name name.
func (w *typeWriter) named(schema []byte, name, indent string, depth int) string {
	switch name {
	case "object":
		return w.object(schema, indent, depth)
	case "array":
		items := rawjson.At(schema, "items")
		if items == nil {
			return "any[]"
		}
		item := w.value(items, indent, depth+1)
		if strings.Contains(item, " | ") && !strings.HasSuffix(item, "}") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "integer", "number":
		return "number"
	case "string", "boolean", "null":
		return name
	default:
		if has(schema, "properties") {
			return w.object(schema, indent, depth)
		}
		return "any"
	}
}

// object returns the type of an object with its properties.
func (w *typeWriter) object(schema []byte, indent string, depth int) string {
	properties := rawjson.At(schema, "properties")
	if rawjson.Kind(properties) != '{' {
		return "object"
	}
	required := map[string]bool{}
	for name := range rawjson.Elements(rawjson.At(schema, "required")) {
		required[rawjson.Text(name)] = true
	}
	var b strings.Builder
	b.WriteString(comment(indent, rawjson.TextAt(schema, "description")) + "{\n")
	for key, value := range rawjson.Members(properties) {
		name := rawjson.Text(key)
		b.WriteString(w.property(name, value, !required[name], indent, depth+1))
	}
	return b.String() + indent + "}"
}

// property returns one property of an object, with its description, examples and default as comments.
func (w *typeWriter) property(name string, schema []byte, optional bool, indent string, depth int) string {
	schema = w.resolve(schema)
	var b strings.Builder
	if title := rawjson.TextAt(schema, "title"); title != "" {
		b.WriteString(comment(indent, title) + indent + "//\n")
	}
	if !isObjectType(schema) { // w.object writes the description of an object
		b.WriteString(comment(indent, rawjson.TextAt(schema, "description")))
	}
	if list := rawjson.At(schema, "examples"); rawjson.Kind(list) == '[' {
		b.WriteString(indent + "// Examples:\n")
		for v := range rawjson.Elements(list) {
			b.WriteString(comment(indent, "- "+literalText(v)))
		}
	}
	fallback := defaultOf(schema)
	variants := oneOf(schema)
	if variants != nil {
		b.WriteString(comment(indent, fallback))
	}
	b.WriteString(indent + propertyName(name))
	if optional {
		b.WriteString("?")
	}
	if variants != nil {
		return b.String() + ":" + w.variants(variants, indent, depth)
	}
	b.WriteString(": " + w.value(schema, indent+"    ", depth) + ",")
	if fallback != "" {
		b.WriteString(" // " + fallback)
	}
	return b.String() + "\n"
}

// variants returns the types of a union, one on each line, with its description as a comment.
func (w *typeWriter) variants(variants [][]byte, indent string, depth int) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, v := range variants {
		v = w.resolve(v)
		b.WriteString(indent + " | " + w.value(v, indent+"    ", depth+1))
		description, fallback := rawjson.TextAt(v, "description"), defaultOf(v)
		if isObjectType(v) {
			description = ""
		}
		if words := strings.TrimSpace(strings.Join(strings.Fields(cleanHarmony(description)), " ") + " " + fallback); words != "" {
			b.WriteString(" // " + words)
		}
		b.WriteString("\n")
	}
	return b.String() + indent + ",\n"
}

func isObjectType(schema []byte) bool { return rawjson.TextAt(schema, "type") == "object" }

// resolve returns the schema to which schema refers, or schema itself if it has no reference into the document; nil if there are too many
// references.
func (w *typeWriter) resolve(schema []byte) []byte {
	for range maxTypeDepth {
		ref := rawjson.At(schema, "$ref")
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
		if list := rawjson.At(schema, key); rawjson.Kind(list) == '[' {
			return slices.Collect(rawjson.Elements(list))
		}
	}
	return nil
}

// defaultOf returns `default: …`, with the value of an enum unquoted; "" if there is no default.
func defaultOf(schema []byte) string {
	v := rawjson.At(schema, "default")
	switch {
	case v == nil:
		return ""
	case has(schema, "enum") && v[0] == '"':
		return "default: " + cleanHarmony(rawjson.Text(v))
	}
	return "default: " + literalText(v)
}

// literalText returns a JSON value on one line.
func literalText(v []byte) string { return cleanHarmony(rawjson.CompactText(v)) }

func propertyName(name string) string {
	for i := range len(name) {
		if !isNameByte(name[i]) || name[i] == '-' || name[i] == '.' || name[i] == ':' {
			return cleanHarmony(quoteJSON(name))
		}
	}
	return name
}
