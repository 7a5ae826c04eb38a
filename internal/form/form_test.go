package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const everything = `{"type":"object","properties":{
"name":{"type":"string","title":"Name","description":"Who","default":"John","minLength":2,"maxLength":5},
"age":{"type":"integer","default":30,"minimum":0,"maximum":150},
"score":{"type":"number","default":95.5},
"status":{"type":"string","enum":["active","idle"],"enumNames":["Active","Idle"],"default":"active"},
"level":{"type":"string","oneOf":[{"const":"l","title":"Low"},{"const":"h"}]},
"tags":{"type":"array","items":{"enum":["a","b","c"]},"minItems":1,"maxItems":2,"default":["a"]},
"more":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}},
"sure":{"type":"boolean","default":true},
"mail":{"type":"string","format":"email"},
"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},"site":{"type":"string","format":"uri"}},
"required":["mail","name"]}`

func read(t *testing.T, schema string) *Form {
	t.Helper()
	f, err := Read([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRead(t *testing.T) {
	t.Parallel()
	f := read(t, everything)
	var names []string
	for _, field := range f.Fields {
		names = append(names, field.Name)
		if field.Required != slices.Contains([]string{"mail", "name"}, field.Name) {
			t.Errorf("%s: required %v", field.Name, field.Required)
		}
	}
	if got := strings.Join(names, " "); got != "name age score status level tags more sure mail day at site" {
		t.Errorf("fields %s", got)
	}
	if c := f.Fields[3].Choices; fmt.Sprint(c) != "[{active Active} {idle Idle}]" {
		t.Errorf("choices %v", c)
	}
	if c := f.Fields[4].Choices; fmt.Sprint(c) != "[{l Low} {h }]" {
		t.Errorf("choices %v", c)
	}
}

func TestForeignSchemasAreRefused(t *testing.T) {
	t.Parallel()
	property := func(s string) string { return `{"properties":{"x":` + s + `}}` }
	many := make([]string, maxFields+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"f%d":{"type":"boolean"}`, i)
	}
	for _, s := range []string{
		``, `[]`, `{"properties":[]}`, `{"required":["x"]}`, property(`1`), property(`{}`), property(`{"type":"object"}`), property(`{"type":["string","null"]}`),
		property(`{"type":"array"}`), property(`{"type":"array","items":{"type":"string"}}`), property(`{"type":"integer","enum":["1"]}`),
		property(`{"type":"string","enum":[1]}`), property(`{"type":"string","enum":["a"],"oneOf":[{"const":"a"}]}`), property(`{"type":"string","oneOf":["a"]}`),
		property(`{"type":"integer","default":"x"}`), property(`{"type":"integer","default":1.5}`), property(`{"type":"integer","default":5,"maximum":4}`),
		property(`{"type":"string","enum":["a"],"default":"b"}`), `{"properties":{"` + strings.Repeat("x", maxTextBytes+1) + `":{"type":"boolean"}}}`,
		`{"properties":{"":{"type":"boolean"}}}`, `{"properties":{` + strings.Join(many, ",") + `}}`,
		property(`{"type":"string","enum":[` + strings.TrimSuffix(strings.Repeat(`"a",`, maxChoices+1), ",") + `]}`),
	} {
		if _, err := Read([]byte(s)); err == nil {
			t.Errorf("%.100s: it is taken", s)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	f := read(t, everything)
	for _, tc := range []struct{ answer, want, wrong string }{
		{`{"mail":"a@b.example"}`, `{"age":30,"mail":"a@b.example","name":"John","score":95.5,"status":"active","sure":true,"tags":["a"]}`, ""},
		{`{"mail":"a@b.example","age":1.0,"tags":["b","c"],"sure":false,"level":"h"}`,
			`{"age":1.0,"level":"h","mail":"a@b.example","name":"John","score":95.5,"status":"active","sure":false,"tags":["b","c"]}`, ""},
		{``, "", `"mail" is missing`},
		{`[]`, "", "object"},
		{`null`, "", "object"},
		{`{"mail":"x"}`, "", "format email"},
		{`{"mail":"Me <a@b.example>"}`, "", "format email"},
		{`{"mail":"a@b.example","age":1.5}`, "", "number of its kind"},
		{`{"mail":"a@b.example","age":151}`, "", "at most 150"},
		{`{"mail":"a@b.example","age":"1"}`, "", "number"},
		{`{"mail":"a@b.example","age":1e999999}`, "", "number"},
		{`{"mail":"a@b.example","name":"J"}`, "", "at least 2 characters"},
		{`{"mail":"a@b.example","name":"ÄÖÜÄÖÜ"}`, "", "at most 5 characters"},
		{`{"mail":"a@b.example","status":"x"}`, "", "not one of the choices"},
		{`{"mail":"a@b.example","tags":["x"]}`, "", "not one of the choices"},
		{`{"mail":"a@b.example","tags":[]}`, "", "at least 1 choices"},
		{`{"mail":"a@b.example","sure":1}`, "", "yes or no"},
		{`{"mail":"a@b.example","day":"1.1.2026"}`, "", "format date"},
		{`{"mail":"a@b.example","at":"2026-01-01"}`, "", "format date-time"},
		{`{"mail":"a@b.example","site":"example"}`, "", "format uri"},
		{`{"mail":"a@b.example","extra":1}`, "", "does not have"},
		{`{"mail":"a@b.example","mail":"a@b.example"}`, "", "object"},
	} {
		got, err := f.Fill(json.RawMessage(tc.answer))
		if tc.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: got %v, want %q", tc.answer, err, tc.wrong)
			}
			continue
		}
		b, marshalErr := json.Marshal(got)
		if err != nil || marshalErr != nil || string(b) != tc.want {
			t.Errorf("%s: got %s, %v", tc.answer, b, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	f := read(t, everything)
	for _, tc := range []struct{ field, line, want string }{
		{"name", " Jane \n", `"Jane"`}, {"name", "", ""}, {"age", "42", "42"}, {"age", "4x", ""}, {"age", "", ""}, {"score", "-1.25", "-1.25"},
		{"sure", "Y", "true"}, {"sure", "no", "false"}, {"sure", "maybe", ""}, {"status", "idle", `"idle"`}, {"status", "IDLE", ""},
		{"tags", "a, b,", `["a","b"]`}, {"tags", "a,b,c", ""}, {"more", "", "[]"}, {"day", "2026-02-29", ""}, {"day", "2028-02-29", `"2028-02-29"`},
	} {
		i := slices.IndexFunc(f.Fields, func(x Field) bool { return x.Name == tc.field })
		got, err := f.Fields[i].Parse(tc.line)
		if string(got) != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s %q: got %s, %v", tc.field, tc.line, got, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(everything, `{"mail":"a@b.example"}`)
	f.Fuzz(func(t *testing.T, schema, answer string) {
		form, err := Read([]byte(schema))
		if err != nil {
			return
		}
		got, err := form.Fill(json.RawMessage(answer))
		if err != nil {
			return
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := form.Fill(b); err != nil {
			t.Errorf("a filled form is not good: %v", err)
		}
	})
}
