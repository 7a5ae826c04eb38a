package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
)

// The members of a client's tool that Lathe has no field for reach a server of the same wire as they came, also where strict is set
// on the server's own tools.
func TestMembersOfToolsPassOnEveryWire(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		served wire.Served
		body   string
	}{
		{openai.Served{}, `{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","cache_control":{"type":"ephemeral"},"x_new":[1],"function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":true,"x_inner":{"b":1.50}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":false}}]}`},
		{responses.Codec{}, `{"model":"m","input":"a","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":true,"cache_control":{"type":"ephemeral"},"x_new":[1]},{"type":"function","name":"g","parameters":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":false}]}`},
		{messages.Codec{}, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":true,"cache_control":{"type":"ephemeral"},"x_new":[1]},{"name":"g","input_schema":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":false}]}`},
	} {
		w := tt.served.Wire()
		r, err := tt.served.ParseRequest([]byte(tt.body))
		if err != nil {
			t.Errorf("%s: %v", w, err)
			continue
		}
		for _, strict := range []wire.Strict{wire.StrictOff, wire.StrictSubset, wire.StrictWhole} {
			sent, dropped := upstreams.Of(w).AppendRequest(nil, &lathe.Request{Model: r.Model, Messages: r.Messages, Tools: r.Tools}, &wire.EncodeOptions{Strict: strict})
			if d := cmp.Diff(toolsOf(t, []byte(tt.body)), toolsOf(t, sent)); d != "" || len(dropped) > 0 {
				t.Errorf("%s, strict %d, dropped %q: %s", w, strict, dropped, d)
			}
		}
	}
}

func toolsOf(t *testing.T, body []byte) (tools []any) {
	t.Helper()
	var r struct{ Tools []any }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return r.Tools
}

// strict is set on the server's own tools where the vendor takes the schema, reduced to what the vendor takes. Each keyword that was
// left out is listed, and so is a tool that cannot be strict.
func TestStrictIsSetOnOwnTools(t *testing.T) {
	t.Parallel()
	tool := func(name, schema string) *lathe.ToolSpec { return &lathe.ToolSpec{Name: name, Schema: []byte(schema)} }
	tools := []*lathe.ToolSpec{
		tool("exact", `{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}`),
		tool("reduced", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"uniqueItems":true}},"required":["a"]}`),
		tool("optional", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`),
		tool("map", `{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}},"required":["a"],"additionalProperties":false}`),
		tool("any", `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`),
		{Name: "none"},
		{Name: "clients", Owner: lathe.OwnerClient, Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`)},
	}
	for _, tt := range []struct {
		wire    lathe.Wire
		strict  wire.Strict
		set     []string
		dropped []string
	}{
		{lathe.WireOpenAIChat, wire.StrictOff, nil, nil},
		{lathe.WireOpenAIChat, wire.StrictSubset, []string{"exact", "reduced", "none"},
			[]string{"tools[1].schema.properties.a.uniqueItems", "tools[1].schema.additionalProperties", "tools[2].strict", "tools[3].strict", "tools[4].strict", "tools[5].schema.additionalProperties"}},
		{lathe.WireOpenAIChat, wire.StrictWhole, []string{"exact", "reduced", "optional", "map", "any", "none"}, nil},
		{lathe.WireResponses, wire.StrictSubset, []string{"exact", "reduced", "none"},
			[]string{"tools[1].schema.properties.a.uniqueItems", "tools[1].schema.additionalProperties", "tools[2].strict", "tools[3].strict", "tools[4].strict", "tools[5].schema.additionalProperties"}},
		{lathe.WireMessages, wire.StrictSubset, []string{"exact", "reduced", "optional", "none"},
			[]string{"tools[1].schema.properties.a.uniqueItems", "tools[1].schema.additionalProperties", "tools[3].strict", "tools[4].strict", "tools[5].schema.additionalProperties"}},
		{lathe.WireGemini, wire.StrictSubset, nil, nil},
	} {
		body, dropped := upstreams.Of(tt.wire).AppendRequest(nil, &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a")}, Tools: tools}, &wire.EncodeOptions{Strict: tt.strict})
		if d := cmp.Diff(tt.dropped, dropped); d != "" && tt.wire != lathe.WireGemini { // which has no such member

			t.Errorf("%s, strict %d: %s", tt.wire, tt.strict, d)
		}
		var set []string
		for i, sent := range toolsOf(t, body) {
			object, _ := sent.(map[string]any)
			if fn, ok := object["function"].(map[string]any); ok {
				object = fn
			}
			if object["strict"] == true {
				set = append(set, tools[i].Name)
			}
		}
		if d := cmp.Diff(tt.set, set); d != "" {
			t.Errorf("%s, strict %d: %s\n%s", tt.wire, tt.strict, d, body)
		}
	}
}
