package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// looseSchemaOf returns a schema that args are valid for and that leaves types open: no type, a type or null, a type
// or a string, an alternative, a property that is not declared. It is nil at times.
func looseSchemaOf(t *rapid.T, args string) []byte {
	if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
		return nil
	}
	v, err := valueOf(args)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]any{}
	for k, v := range v.(map[string]any) {
		name := map[string]string{"string": "string", "json.Number": "number", "bool": "boolean", "[]interface {}": "array", "map[string]interface {}": "object", "<nil>": "null"}[fmt.Sprintf("%T", v)]
		only := map[string]any{"type": name}
		switch rapid.IntRange(0, 6).Draw(t, "shape") {
		case 0:
			types[k] = only
		case 1:
			types[k] = map[string]any{}
		case 2:
			types[k] = map[string]any{"type": []any{name, "null"}}
		case 3:
			types[k] = map[string]any{"type": []any{"string", name}}
		case 4:
			types[k] = map[string]any{"anyOf": []any{only, map[string]any{"type": "string"}, map[string]any{"type": "null"}}}
		case 5:
			types[k] = map[string]any{"type": []any{name, "integer", "boolean"}}
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": types})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// readSame parses text as the call of f with args, and fails if it is read as anything else.
func readSame(t *rapid.T, d *dialect.Dialect, schema []byte, text, args string) {
	opts := &dialect.Options{Tools: []*lathe.ToolSpec{{Name: "f", Schema: schema}}, MaxPayloadBytes: 1 << 20}
	if d.Name() == "glimmer" {
		opts.Prefix = " to=f<|message|>"
	}
	deltas := dialecttest.Parse(t, d.NewParser(opts), text)
	var c dialect.Collector
	c.AddAll(deltas)
	m := c.Message()
	calls := m.Calls()
	if len(calls) != 1 || calls[0].ParseError != "" || calls[0].Incomplete || calls[0].Name != "f" || strings.TrimSpace(m.Text()) != "" {
		t.Fatalf("%s of %s\nis read as %s", text, args, dialecttest.Format(deltas))
	}
	got, err := valueOf(calls[0].Arguments)
	want, _ := valueOf(args)
	if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Fatalf("%s of %s\nwith schema %s is read as %s (%v)", text, args, schema, calls[0].Arguments, err)
	}
}

// A call of the history is written so that it is read as the same value, whatever its schema leaves open.
func TestHistoryIsReadAsTheSameValue(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names() {
		if name == "auto" || name == "harmony" { // harmony's servers write the history
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := lookup(t, name)
			rapid.Check(t, func(rt *rapid.T) {
				args := genObject(2).Draw(rt, "args")
				schema := looseSchemaOf(rt, args)
				req := d.Rewrite(&lathe.Request{Tools: []*lathe.ToolSpec{{Name: "f", Schema: schema}}, Messages: []lathe.Message{
					{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "call00001", Name: "f", Arguments: args}}}}})
				readSame(rt, d, schema, req.Messages[len(req.Messages)-1].Text(), args)
			})
		})
	}
}
