package gemini

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestToJSONSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true},"enum":{"type":"STRING","enum":["STRING","NULL"],"nullable":true},"nullable":{"type":"BOOLEAN"}},"required":["type"],"propertyOrdering":["type"]}`,
			`{"type":"object","properties":{"type":{"type":["string","null"]},"enum":{"type":["string","null"],"enum":["STRING","NULL",null]},"nullable":{"type":"boolean"}},"required":["type"],"propertyOrdering":["type"]}`},
		{`{"type":"ARRAY","items":{"any_of":[{"type":"INTEGER","minimum":1.0},{"type":"STRING","min_length":"2"}],"nullable":true},"minItems":"3","default":{"type":"STRING"}}`,
			`{"type":"array","items":{"anyOf":[{"type":"integer","minimum":1.0},{"type":"string","minLength":2},{"type":"null"}]},"minItems":3,"default":{"type":"STRING"}}`},
		{`{"type":"TYPE_UNSPECIFIED","description":"d","x":{"type":"STRING"}}`, `{"description":"d","x":{"type":"STRING"}}`},
		{`{"type":"STRING","minLength":"1,\"x\":2","maxLength":""}`, `{"type":"string","minLength":"1,\"x\":2","maxLength":""}`},
		{`{"type":["string","null"],"additionalProperties":{"type":"NUMBER"}}`, `{"type":["string","null"],"additionalProperties":{"type":"number"}}`},
	} {
		if got := string(toJSONSchema([]byte(c.in))); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

func TestAppendSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, jsonSchema, openAPI string
		dropped, droppedOpenAPI string
	}{
		{in: `{"type":"object","properties":{"pattern":{"type":"string","pattern":"^a"},"const":{"const":"STRING"},"$ref":{"type":"boolean"}},"required":["const"],"additionalProperties":false}`,
			jsonSchema: `{"type":"object","properties":{"pattern":{"type":"string"},"const":{"enum":["STRING"]},"$ref":{"type":"boolean"}},"required":["const"],"additionalProperties":false}`,
			dropped:    "s.properties.pattern.pattern s.properties.const.const",
			openAPI:    `{"type":"OBJECT","properties":{"pattern":{"type":"STRING","pattern":"^a"},"const":{"enum":["STRING"],"type":"STRING"},"$ref":{"type":"BOOLEAN"}},"required":["const"]}`, droppedOpenAPI: "s.properties.const.const s.additionalProperties"},
		{in: `{"$schema":"x","type":"object","properties":{"a":{"$ref":"#/definitions/T","title":"A"}},"definitions":{"T":{"type":["integer","null"],"enum":[1,2,null]}}}`,
			jsonSchema: `{"type":"object","properties":{"a":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":["integer","null"],"enum":[1,2]}}}`,
			dropped:    "s.properties.a.title s.definitions.T.enum",
			openAPI:    `{"type":"OBJECT","properties":{"a":{"type":"INTEGER","nullable":true}}}`, droppedOpenAPI: "s.properties.a.title s.properties.a.enum"},
		{in: `{"anyOf":[{"type":"string"},{"type":"null"}],"allOf":[{"minLength":1}],"enum":[true]}`,
			jsonSchema: `{"anyOf":[{"type":"string"},{"type":"null"}]}`, dropped: "s.allOf s.enum",
			openAPI: `{"anyOf":[{"type":"STRING"}],"nullable":true}`, droppedOpenAPI: "s.allOf s.enum"},
		{in: `{"type":"object","properties":{"next":{"$ref":"#"}}}`,
			jsonSchema:     `{"type":"object","properties":{"next":{"$ref":"#"}}}`,
			openAPI:        strings.Repeat(`{"type":"OBJECT","properties":{"next":`, maxRefDepth+1) + `{"type":"OBJECT"}` + strings.Repeat("}}", maxRefDepth+1),
			droppedOpenAPI: "s" + strings.Repeat(".properties.next", maxRefDepth+1) + ".$ref"},
		{in: `{"items":[{"type":"string"},true],"type":["string","number"],"default":{"pattern":"x"}}`,
			jsonSchema: `{"prefixItems":[{"type":"string"},true],"type":["string","number"]}`, dropped: "s.default",
			openAPI: `{"type":"STRING","default":{"pattern":"x"}}`, droppedOpenAPI: "s.items s.type"},
	} {
		for _, form := range []schemaForm{jsonSchema, openAPISchema} {
			want, wantDropped := c.jsonSchema, c.dropped
			if form == openAPISchema {
				want, wantDropped = c.openAPI, c.droppedOpenAPI
			}
			var d dropped
			got := string(appendSchema(nil, []byte(c.in), "s", form, &d))
			if !json.Valid([]byte(got)) || got != want || strings.Join(d.paths, " ") != wantDropped {
				t.Errorf("%s\n%s\nwant\n%s\ndropped %q, want %q", c.in, got, want, d.paths, wantDropped)
			}
		}
	}
}

func TestSchemaReferencesAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a","$defs":{`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		name := string(rune('a' + i))
		next := string(rune('a' + i + 1))
		b.WriteString(`"` + name + `":{"properties":{`)
		for j := range 30 {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + string(rune('a'+j)) + `":{"$ref":"#/$defs/` + next + `"}`)
		}
		b.WriteString(`}}`)
	}
	b.WriteString(`}}`)
	var d dropped
	if got := appendSchema(nil, []byte(b.String()), "s", openAPISchema, &d); len(got) > 1<<20 || !json.Valid(got) {
		t.Errorf("%d bytes", len(got))
	}
}
