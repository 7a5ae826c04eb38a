package search

import (
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A writer adds tools to the postings, one after another.
type writer struct {
	postings map[string][]posting
	tool     int32
	length   int // sum of the weights of this tool's terms so far
	bytes    int // number of bytes of this tool that may still be indexed
}

// add indexes one tool and returns its length: the sum of the weights of its terms.
func (w *writer) add(tool int32, spec *lathe.ToolSpec) int {
	w.tool, w.length, w.bytes = tool, 0, maxToolBytes
	w.index(spec.Name, nameWeight)
	w.index(spec.Description, descriptionWeight)
	w.schema(spec.Schema, 1)
	return w.length
}

// index adds the terms of a text.
func (w *writer) index(text string, weight int32) {
	text = text[:min(len(text), w.bytes)]
	w.bytes -= len(text)
	for _, term := range termsOf(text) {
		w.length += int(weight)
		p := w.postings[term]
		if last := len(p) - 1; last >= 0 && p[last].tool == w.tool {
			p[last].weight += weight
		} else {
			w.postings[term] = append(p, posting{w.tool, weight})
		}
	}
}

// schema adds the descriptions and property names of a schema and of the schemas inside it. It does not follow references: their targets
// are indexed where they are defined.
func (w *writer) schema(raw json.RawMessage, depth int) {
	if depth > maxSchemaDepth {
		return
	}
	for key, value := range rawjson.Members(raw) {
		if w.bytes == 0 {
			return
		}
		if len(key) < 2 {
			continue
		}
		switch string(key[1 : len(key)-1]) { // a keyword with escapes is ignored
		case "description":
			w.index(rawjson.Text(value), parameterDescriptionWeight)
		case "properties":
			for name, property := range rawjson.Members(value) {
				w.index(rawjson.Text(name), parameterWeight)
				w.schema(property, depth+1)
			}
		case "patternProperties", "dependentSchemas", "$defs", "definitions":
			for _, s := range rawjson.Members(value) {
				w.schema(s, depth+1)
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			for s := range rawjson.Elements(value) {
				w.schema(s, depth+1)
			}
		case "items", "additionalProperties", "contains", "if", "then", "else":
			w.schema(value, depth+1)
			for s := range rawjson.Elements(value) { // in draft 7, items may be a list
				w.schema(s, depth+1)
			}
		}
	}
}
