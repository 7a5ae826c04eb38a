package event_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var update = flag.Bool("update", false, "write the schemas of events in server/openapi.json, and the types of the console")

const (
	openAPI = "../server/openapi.json"
	console = "../internal/gateway/console/web/events.d.ts"
)

// The schemas of events in the API's description and the types of the console are made of the Go types. Not parallel: other
// tests read the files that it writes.
func TestSchemasAreWritten(t *testing.T) {
	before, schemas, after := cutSchemas(t)
	for file, text := range map[string]string{openAPI: before + eventSchemas(t) + after, console: consoleTypes(t)} {
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(file); err != nil || string(have) != text {
			t.Errorf("%s is not what the types of events give (%v): run make gen", strings.TrimPrefix(file, "../"), err)
		}
	}
	if !json.Valid([]byte("{" + strings.TrimSuffix(strings.TrimSpace(schemas), ",") + "}")) {
		t.Error("what was found in openapi.json is not a list of schemas")
	}
}

// cutSchemas returns what of openapi.json is before, in and after the schemas of events. Those stand together: Event, and one
// for the data of each type.
func cutSchemas(t testing.TB) (before, schemas, after string) {
	t.Helper()
	b, err := os.ReadFile(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.Index(b, []byte("\n      \"Event\": {\n")) + 1
	if first == 0 {
		t.Fatal("openapi.json has no schema Event")
	}
	for _, m := range regexp.MustCompile(`(?m)^      "(\w+)": \{`).FindAllSubmatchIndex(b[first:], -1) {
		if name := string(b[first+m[2] : first+m[3]]); name != "Event" && name != "EventMessage" && !slices.Contains(event.Types(), name) {
			return string(b[:first]), string(b[first : first+m[0]]), string(b[first+m[0]:])
		}
	}
	t.Fatal("openapi.json has no schema after those of events")
	return "", "", ""
}

// envelopeSchemas has the members of an event besides its type, data and content.
var envelopeSchemas = []struct{ member, schema string }{
	{"event_id", `{"type": "integer", "description": "Dense from 1 within the run; deltas have none.", "minimum": 1}`},
	{"after", `{"type": "integer", "description": "Of a delta: the event before it."}`},
	{"n", `{"type": "integer", "description": "Of a delta: numbers them within the model call."}`},
	{"time", `{"type": "string", "format": "date-time"}`},
	{"run_id", `{"type": "string"}`},
	{"request_id", `{"type": "string"}`},
	{"session_id", `{"type": "string"}`},
	{"turn", `{"type": "integer", "minimum": 0}`},
	{"removed_bytes", `{"type": "integer", "description": "How much content the store has removed from the event.", "minimum": 1}`},
	{"type", ""},
	{"data", `{"type": "object", "description": "What has happened, without texts, arguments and outputs."}`},
	{"content", `{"type": "object", "description": "Texts, arguments and outputs."}`},
}

func TestEnvelopeHasASchema(t *testing.T) {
	t.Parallel()
	var want, got []string
	for i := range event.Envelope.NumField() {
		name, _ := memberOf(event.Envelope.Field(i))
		want = append(want, name)
	}
	for _, m := range envelopeSchemas {
		got = append(got, m.member)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the schema of an event has %q, its form %q: change envelopeSchemas", got, want)
	}
}

// The schema that answers share with events has the members of the Go type.
func TestUsageHasASchema(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(objectSchema(nested(reflect.TypeFor[lathe.Usage]()))), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc.Components.Schemas["Usage"], &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the schema Usage in openapi.json is %v (%v), the type %v", got, err, want)
	}
}

func eventSchemas(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`      "Event": {
        "type": "object",
        "description": "An event of a run, as docs/events.md says: type says what data and content hold. ` + "`make gen`" + ` writes this schema and those of the data.",
        "properties": {
`)
	for i, m := range envelopeSchemas {
		if m.member == "type" {
			m.schema = fmt.Sprintf("{\n            \"type\": \"string\",\n            \"enum\": [\n              \"%s\"\n            ]\n          }", strings.Join(event.Types(), "\",\n              \""))
		}
		fmt.Fprintf(&b, "          %q: %s%s\n", m.member, m.schema, comma(i, len(envelopeSchemas)))
	}
	b.WriteString("        },\n        \"required\": [\"time\", \"run_id\", \"request_id\", \"turn\", \"type\", \"data\"],\n        \"oneOf\": [\n")
	for i, name := range event.Types() {
		content := ""
		if fields := membersIn(fieldsOf(t, name), "content"); len(fields) > 0 {
			content = `, "content": ` + objectSchema(fields)
		}
		fmt.Fprintf(&b, "          {\"properties\": {\"type\": {\"const\": %q}, \"data\": {\"$ref\": \"#/components/schemas/%s\"}%s}, \"additionalProperties\": true}%s\n",
			name, name, content, comma(i, len(event.Types())))
	}
	b.WriteString("        ]\n      },\n")
	for _, name := range event.Types() {
		b.WriteString(component(name, membersIn(fieldsOf(t, name), "data")))
	}
	b.WriteString(`      "EventMessage": {
        "type": "object",
        "description": "A message in the content of an event.",
        "properties": {
          "role": {"type": "string", "enum": ["system", "developer", "user", "assistant", "tool"]},
          "parts": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"], "additionalProperties": true}
          }
        },
        "required": ["role", "parts"],
        "additionalProperties": true
      },
`)
	return b.String()
}

func comma(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// propertiesOf returns the schemas of members, each after its name, and the names of those that are always there.
func propertiesOf(fields []*field) (properties, required []string) {
	for _, f := range fields {
		s := schemaOf(f.typ)
		if f.part == "content" && f.typ.Kind() == reflect.Pointer {
			s = `{"anyOf": [` + s + `, {"type": "null"}]}`
		}
		properties = append(properties, fmt.Sprintf("%q: %s", f.member, s))
		if !f.optional {
			required = append(required, strconv.Quote(f.member))
		}
	}
	return properties, required
}

// objectSchema returns the schema of an object in one line.
func objectSchema(fields []*field) string {
	properties, required := propertiesOf(fields)
	s := `{"type": "object", "properties": {` + strings.Join(properties, ", ") + "}"
	if len(required) > 0 {
		s += `, "required": [` + strings.Join(required, ", ") + "]"
	}
	return s + "}"
}

// component returns a schema of openapi.json. Each event type has a member that is always there.
func component(name string, fields []*field) string {
	properties, required := propertiesOf(fields)
	return fmt.Sprintf("      %q: {\n        \"type\": \"object\",\n        \"properties\": {\n          %s\n        },\n        \"required\": [%s]\n      },\n",
		name, strings.Join(properties, ",\n          "), strings.Join(required, ", "))
}

// nested returns the members of a struct in the data of an event.
func nested(typ reflect.Type) (out []*field) {
	for i := range typ.NumField() {
		f := &field{event: typ.Name(), name: typ.Field(i).Name, part: "data", typ: typ.Field(i).Type}
		f.member, f.optional = memberOf(typ.Field(i))
		out = append(out, f)
	}
	return out
}

// schemaOf returns the JSON schema of a type that an event has.
func schemaOf(typ reflect.Type) string {
	switch typ {
	case reflect.TypeFor[time.Time]():
		return `{"type": "string", "format": "date-time"}`
	case reflect.TypeFor[json.RawMessage]():
		return `{}`
	case reflect.TypeFor[lathe.Usage]():
		return `{"$ref": "#/components/schemas/Usage"}`
	case reflect.TypeFor[lathe.Message]():
		return `{"$ref": "#/components/schemas/EventMessage"}`
	case reflect.TypeFor[lathe.Blob]():
		return `{"type": "object"}`
	case reflect.TypeFor[map[string]string]():
		return `{"$ref": "#/components/schemas/Labels"}`
	}
	switch typ.Kind() {
	case reflect.String:
		return `{"type": "string"}`
	case reflect.Bool:
		return `{"type": "boolean"}`
	case reflect.Int, reflect.Int64:
		return `{"type": "integer"}`
	case reflect.Float64:
		return `{"type": "number"}`
	case reflect.Pointer:
		return schemaOf(typ.Elem())
	case reflect.Slice:
		return `{"type": "array", "items": ` + schemaOf(typ.Elem()) + `}`
	case reflect.Struct:
		return objectSchema(nested(typ))
	default:
		panic("schemaOf does not know " + typ.String())
	}
}

// consoleTypes returns the declarations of events in TypeScript. A file of declarations has no code: the built files do not
// depend on it.
func consoleTypes(t testing.TB) string {
	t.Helper()
	w := &typeWriter{seen: map[reflect.Type]bool{}}
	var types, list strings.Builder
	for _, name := range event.Types() {
		fields := fieldsOf(t, name)
		fmt.Fprintf(&types, "\nexport interface %s %s\n", name, w.block(membersIn(fields, "data")))
		fmt.Fprintf(&list, "  %s: { data: %s; content: ", name, name)
		if content := membersIn(fields, "content"); len(content) > 0 {
			list.WriteString("{ " + strings.Join(w.members(content), "; ") + " }")
		} else {
			list.WriteString("Record<never, never>")
		}
		list.WriteString(" };\n")
	}
	return "// Events as the API has them. `make gen` writes this file: change the types of the Go package event.\n\n" +
		"import type { Message, Part } from \"./src/run/types\";\n" + w.structs.String() + types.String() +
		"\n// Events has the data and the content of each type of events.\nexport interface Events {\n" + list.String() + "}\n"
}

// A typeWriter writes types of TypeScript, and an interface for each struct that events have.
type typeWriter struct {
	seen    map[reflect.Type]bool
	structs strings.Builder
}

func (w *typeWriter) members(fields []*field) (out []string) {
	for _, f := range fields {
		name, typ := f.member, w.typeOf(f.typ)
		if f.optional {
			name += "?"
		}
		if f.part == "content" && f.typ.Kind() == reflect.Pointer {
			typ += " | null"
		}
		out = append(out, name+": "+typ)
	}
	return out
}

func (w *typeWriter) block(fields []*field) string {
	return "{\n  " + strings.Join(w.members(fields), ";\n  ") + ";\n}"
}

func (w *typeWriter) typeOf(typ reflect.Type) string {
	switch typ {
	case reflect.TypeFor[time.Time]():
		return "string"
	case reflect.TypeFor[json.RawMessage]():
		return "unknown"
	case reflect.TypeFor[lathe.Message]():
		return "Message"
	case reflect.TypeFor[lathe.Blob]():
		return "Part"
	case reflect.TypeFor[map[string]string]():
		return "Record<string, string>"
	}
	switch typ.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "number"
	case reflect.Pointer:
		return w.typeOf(typ.Elem())
	case reflect.Slice:
		return w.typeOf(typ.Elem()) + "[]"
	case reflect.Struct:
		if !w.seen[typ] {
			w.seen[typ] = true
			s := w.block(nested(typ))
			fmt.Fprintf(&w.structs, "\nexport interface %s %s\n", typ.Name(), s)
		}
		return typ.Name()
	default:
		panic("typeOf does not know " + typ.String())
	}
}
