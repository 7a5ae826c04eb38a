package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// ReducedSchema depends on the wire and on the choice of strict, and makes no request.
func TestReducedSchema(t *testing.T) {
	t.Parallel()
	spec := &lathe.ToolSpec{Name: "find", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string","pattern":"^a"}},"required":["n","s"],"additionalProperties":false}`)}
	open := &lathe.ToolSpec{Name: "any", Schema: json.RawMessage(`{"type":"object","additionalProperties":true}`)}
	for _, c := range []struct {
		wire       lathe.Wire
		strict     provider.StrictTools
		find, open string
	}{
		{lathe.WireOpenAIChat, provider.StrictOff, "", ""},
		{lathe.WireOpenAIChat, provider.StrictSubset, "", "tools[0].strict"},
		{lathe.WireMessages, provider.StrictOff, "", ""},
		{lathe.WireMessages, provider.StrictSubset, "tools[0].schema.properties.n.minimum tools[0].schema.properties.s.pattern", "tools[0].strict"},
		{lathe.WireGemini, provider.StrictOff, "tools[0].schema.properties.s.pattern", ""},
	} {
		m, err := provider.New(c.wire, "m", &provider.Options{Server: provider.Server{Strict: c.strict}, BaseURL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		if find, open := strings.Join(m.ReducedSchema(spec), " "), strings.Join(m.ReducedSchema(open), " "); find != c.find || open != c.open {
			t.Errorf("%s, strict %q: %q and %q, want %q and %q", c.wire, c.strict, find, open, c.find, c.open)
		}
	}
}
