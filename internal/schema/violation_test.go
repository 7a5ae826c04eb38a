package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each case holds secret in every place where a value's text could slip into a message.
const secret = "s3cr3t"

func TestViolations(t *testing.T) {
	t.Parallel()
	const (
		draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
		long   = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	)
	for _, tc := range []struct {
		schema, value string
		want          []Violation
	}{
		{`false`, `"s3cr3t"`, []Violation{{"", "false", "no value is allowed here"}}},
		{`{"type":"integer"}`, `"s3cr3t"`, []Violation{{"", "type", "must be integer, not string"}}},
		{`{"type":["object","null"]}`, `"s3cr3t"`, []Violation{{"", "type", "must be null or object, not string"}}},
		{`{"enum":["a",2.50,null,{"k":[true]}]}`, `"s3cr3t"`, []Violation{{"", "enum", `must be one of "a", 2.50, null, {"k":[true]}`}}},
		{`{"const":"<a>"}`, `"s3cr3t"`, []Violation{{"", "const", `must be "<a>"`}}},
		{`{"type":"string","enum":["a"]}`, `77`, []Violation{{"", "enum", `must be one of "a"`}, {"", "type", "must be string, not number"}}},
		{`{"type":"integer","minimum":5,"multipleOf":2}`, `3.5`, []Violation{
			{"", "minimum", "must be at least 5"}, {"", "multipleOf", "must be a multiple of 2"}, {"", "type", "must be integer, not number"}}},
		{`{"maximum":1.5}`, `7`, []Violation{{"", "maximum", "must be at most 1.5"}}},
		{`{"exclusiveMinimum":7,"exclusiveMaximum":7}`, `7`, []Violation{
			{"", "exclusiveMaximum", "must be below 7"}, {"", "exclusiveMinimum", "must be above 7"}}},
		{`{"minLength":9}`, `"s3cr3t"`, []Violation{{"", "minLength", "must have at least 9 characters, has 6"}}},
		{`{"maxLength":1}`, `"s3cr3t"`, []Violation{{"", "maxLength", "must have at most 1 character, has 6"}}},
		{`{"pattern":"^a$"}`, `"s3cr3t"`, []Violation{{"", "pattern", "must match the pattern ^a$"}}},
		{`{"minItems":2}`, `["s3cr3t"]`, []Violation{{"", "minItems", "must have at least 2 items, has 1"}}},
		{`{"maxItems":0}`, `["s3cr3t"]`, []Violation{{"", "maxItems", "must have at most 0 items, has 1"}}},
		{`{"uniqueItems":true}`, `["s3cr3t",1,"s3cr3t"]`, []Violation{{"", "uniqueItems", "items 0 and 2 are equal"}}},
		{`{"contains":{"type":"null"}}`, `["s3cr3t"]`, []Violation{{"", "contains", "no item is as the schema under contains asks"}}},
		{`{"contains":{"type":"string"},"minContains":2}`, `["s3cr3t"]`, []Violation{
			{"", "minContains", "1 items match the schema under contains, at least 2 must"}}},
		{`{"contains":{"type":"string"},"maxContains":1}`, `["s3cr3t","s3cr3t"]`, []Violation{
			{"", "maxContains", "2 items match the schema under contains, at most 1 may"}}},
		{`{"prefixItems":[{}],"items":false}`, `[1,"s3cr3t"]`, []Violation{{"/1", "false", "no value is allowed here"}}},
		{`{` + draft7 + `"items":[{}],"additionalItems":false}`, `[1,"s3cr3t"]`, []Violation{{"", "additionalItems", "1 item too many at the end"}}},
		{`{"required":["a","b"]}`, `{"s3cr3t":1}`, []Violation{{"", "required", `missing "a", "b"`}}},
		{`{"minProperties":2}`, `{"s3cr3t":1}`, []Violation{{"", "minProperties", "must have at least 2 members, has 1"}}},
		{`{"maxProperties":0}`, `{"s3cr3t":1}`, []Violation{{"", "maxProperties", "must have at most 0 members, has 1"}}},
		{`{"properties":{"b":{},"a":{}},"additionalProperties":false}`, `{"s3cr3t":1}`, []Violation{
			{"", "additionalProperties", `1 member too many; allowed are "a", "b"`}}},
		{`{"additionalProperties":false}`, `{"s3cr3t":1}`, []Violation{
			{"", "additionalProperties", "1 member too many; only what the schema names is allowed"}}},
		{`{"properties":{"o":{"properties":{"p":{"propertyNames":{"maxLength":1}},"q":{}}},"z":{"properties":{"y":{}}}}}`,
			`{"o":{"p":{"s3cr3t":1},"q":{"r":1}},"z":{"y":{"x":1}}}`, []Violation{{"/o/p", "propertyNames", "has members whose names are not allowed"}}},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":"s3cr3t"}`, []Violation{{"", "dependentRequired", `with "a", "b" must be there too`}}},
		{`{` + draft7 + `"dependencies":{"a":["b"]}}`, `{"a":"s3cr3t"}`, []Violation{{"", "dependencies", `with "a", "b" must be there too`}}},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"a":1,"x":"s3cr3t"}`, []Violation{{"/x", "false", "no value is allowed here"}}},
		{`{"not":{"type":"string"}}`, `"s3cr3t"`, []Violation{{"", "not", "must not match the schema under not"}}},
		{`{"allOf":[{"minLength":9},{"allOf":[{"minLength":9}]}]}`, `"s3cr3t"`, []Violation{{"", "minLength", "must have at least 9 characters, has 6"}}},
		{`{"$ref":"#/$defs/d","$defs":{"d":{"properties":{"a/b":{"properties":{"c~d":{"type":"null"}}}}}}}`, `{"a/b":{"c~d":"s3cr3t"}}`,
			[]Violation{{"/a~1b/c~0d", "type", "must be null, not string"}}},
		{`{"if":{"type":"string"},"then":{"const":1}}`, `"s3cr3t"`, []Violation{{"", "const", "must be 1"}}},
		{`{"anyOf":[{"type":"null"},{"properties":{"k":{"const":1}},"additionalProperties":{"type":"null"}}]}`, `{"k":"s3cr3t","s3cr3t":"s3cr3t"}`,
			[]Violation{{"", "anyOf", "matches none of 2 forms; form 1: must be null, not object; form 2: at /* must be null, not string, at /k must be 1"}}},
		{`{"oneOf":[{"type":"null"}]}`, `"s3cr3t"`, []Violation{{"", "oneOf", "matches none of 1 form; form 1: must be null, not string"}}},
		{`{"oneOf":[{"type":"string"},{},false,{}]}`, `"s3cr3t"`, []Violation{{"", "oneOf", "must match exactly one form, but matches forms 1 and 2"}}},
		{`{"items":{"type":"null"}}`, `["s3cr3t",null,"s3cr3t"]`, []Violation{{"/0", "type", "must be null, not string"}, {"/2", "type", "must be null, not string"}}},
		{`{"pattern":"^` + strings.Repeat(long, 10) + `é"}`, `"s3cr3t"`, []Violation{
			{"", "pattern", ("must match the pattern ^" + strings.Repeat(long, 10))[:MaxMessage-len("…")] + "…"}}},
	} {
		got := mustCompile(t, tc.schema).Validate([]byte(tc.value))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tc.schema, tc.value, diff)
		}
		for _, v := range got {
			if strings.Contains(v.Message, secret) {
				t.Errorf("%s: the message holds the value's text: %s", tc.schema, v.Message)
			}
			if len(v.Message) > MaxMessage {
				t.Errorf("%s: message of %d bytes", tc.schema, len(v.Message))
			}
		}
	}
}
