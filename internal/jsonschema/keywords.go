package jsonschema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// with returns a schema with one more keyword.
func with(s map[string]any, name string, value any) map[string]any {
	s = maps.Clone(s)
	s[name] = value
	return s
}

func typed(name string) map[string]any { return map[string]any{"type": name} }

func arrayOf(items any) map[string]any { return with(typed("array"), "items", items) }

func distinct(items any) map[string]any { return with(arrayOf(items), "uniqueItems", true) }

func notEmpty(array map[string]any) map[string]any { return with(array, "minItems", json.Number("1")) }

func objectOf(values any) map[string]any {
	return with(typed("object"), "additionalProperties", values)
}

func anyOf(a, b any) map[string]any { return map[string]any{"anyOf": []any{a, b}} }

// A form holds keywords, with spaces between them, and the schema of their values.
type form struct {
	names string
	value map[string]any
}

// forms holds the keywords of both drafts by vocabulary of draft 2020-12, and under "draft7" and "former" those that the
// vocabularies do not have: of draft 7, and those of former drafts that draft 2020-12 still checks. Where draft 7 has another
// form than a vocabulary, its form counts for draft 7. Sources: sections 8 to 11 of the core specification and 6 to 9 of the
// validation specification of draft 2020-12; sections 6 to 10 of the validation specification of draft 7.
//
// self is a reference to the schema that the schemas in values must conform to. definitions are the parts of the schemas of
// the drafts that references may name.
func forms(self map[string]any) (byVocabulary map[string][]form, definitions map[string]any) {
	var (
		text     = typed("string")
		flag     = typed("boolean")
		number   = typed("number")
		natural  = with(typed("integer"), "minimum", json.Number("0"))
		positive = with(number, "exclusiveMinimum", json.Number("0"))
		uri      = with(text, "format", "uri")
		relative = with(text, "format", "uri-reference")
		anchor   = with(text, "pattern", "^[A-Za-z_][-A-Za-z0-9._]*$")
		names    = distinct(text)
		typeName = map[string]any{"enum": []any{"array", "boolean", "integer", "null", "number", "object", "string"}}
		schemas  = notEmpty(arrayOf(self))
		anything = map[string]any{}
	)
	byVocabulary = map[string][]form{
		"core": {
			{"$id", with(relative, "pattern", "^[^#]*#?$")},
			{"$schema", uri},
			{"$ref $dynamicRef", relative},
			{"$anchor $dynamicAnchor", anchor},
			{"$vocabulary", with(objectOf(flag), "propertyNames", uri)},
			{"$comment", text},
			{"$defs", objectOf(self)},
		},
		"applicator": {
			{"items additionalProperties contains propertyNames if then else not", self},
			{"prefixItems allOf anyOf oneOf", schemas},
			{"properties dependentSchemas", objectOf(self)},
			{"patternProperties", with(objectOf(self), "propertyNames", map[string]any{"format": "regex"})},
		},
		"unevaluated": {{"unevaluatedItems unevaluatedProperties", self}},
		"validation": {
			{"type", anyOf(typeName, notEmpty(distinct(typeName)))},
			{"const", anything},
			{"enum", typed("array")},
			{"multipleOf", positive},
			{"maximum exclusiveMaximum minimum exclusiveMinimum", number},
			{"maxLength minLength maxItems minItems maxProperties minProperties maxContains minContains", natural},
			{"pattern", with(text, "format", "regex")},
			{"uniqueItems", flag},
			{"required", names},
			{"dependentRequired", objectOf(names)},
		},
		"meta-data": {
			{"title description", text},
			{"deprecated readOnly writeOnly", flag},
			{"examples", typed("array")},
		},
		"format-annotation": {{"format", text}},
		"format-assertion":  {{"format", text}},
		"content": {
			{"contentEncoding contentMediaType", text},
			{"contentSchema", self},
		},
		"former": {
			{"definitions", objectOf(self)},
			{"dependencies", objectOf(anyOf(self, names))},
			{"$recursiveAnchor", anchor},
			{"$recursiveRef", relative},
		},
		"draft7": {
			{"$id $ref", relative},
			{"additionalItems", self},
			{"items", anyOf(self, schemas)},
			{"enum", notEmpty(distinct(anything))},
			{"definitions", objectOf(self)},
			{"dependencies", objectOf(anyOf(self, names))},
		},
	}
	return byVocabulary, map[string]any{
		"schemaArray": schemas, "nonNegativeInteger": natural, "nonNegativeIntegerDefault0": natural, "simpleTypes": typeName,
		"stringArray": names, "anchorString": anchor, "uriString": uri, "uriReferenceString": relative,
	}
}

// properties returns the keywords of some vocabularies, of which the later decide, without those that are left out.
func properties(byVocabulary map[string][]form, leftOut string, vocabularies ...string) map[string]any {
	all := map[string]any{}
	for _, v := range vocabularies {
		for _, f := range byVocabulary[v] {
			for name := range strings.FieldsSeq(f.names) {
				if !slices.Contains(strings.Fields(leftOut), name) {
					all[name] = f.value
				}
			}
		}
	}
	return all
}

// schemaOfDraft7 returns the schema to which all schemas of draft 7 conform.
func schemaOfDraft7() map[string]any {
	const (
		id    = "http://json-schema.org/draft-07/schema#"
		newer = "$dynamicRef $anchor $dynamicAnchor $vocabulary $defs prefixItems dependentSchemas maxContains minContains dependentRequired deprecated contentSchema"
	)
	byVocabulary, definitions := forms(map[string]any{"$ref": "#"})
	return map[string]any{
		"$schema": id, "$id": id, "type": []any{"object", "boolean"}, "definitions": definitions,
		"properties": properties(byVocabulary, newer, "core", "applicator", "validation", "meta-data", "format-annotation", "content", "draft7"),
	}
}

// schemaOfDraft2020 returns the schema to which all schemas of draft 2020-12 conform, "schema", or that of one of its
// vocabularies, "meta/NAME"; nil if there is none with the name.
func schemaOfDraft2020(name string) map[string]any {
	const base = "https://json-schema.org/draft/2020-12/"
	byVocabulary, definitions := forms(map[string]any{"$dynamicRef": "#meta"})
	s := map[string]any{"$schema": base + "schema", "$id": base + name, "$dynamicAnchor": "meta", "type": []any{"object", "boolean"}}
	if name == "schema" {
		in, all := map[string]any{}, []any{}
		for _, v := range []string{"core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content"} {
			in[vocabularyPrefix+v] = true
			all = append(all, map[string]any{"$ref": "meta/" + v})
		}
		s["$vocabulary"], s["allOf"], s["properties"] = in, all, properties(byVocabulary, "", "former")
		return s
	}
	vocabulary, ok := strings.CutPrefix(name, "meta/")
	if !ok || !slices.Contains(vocabularies, vocabulary) {
		return nil
	}
	s["$vocabulary"] = map[string]any{vocabularyPrefix + vocabulary: true}
	s["properties"], s["$defs"] = properties(byVocabulary, "", vocabulary), definitions
	return s
}
