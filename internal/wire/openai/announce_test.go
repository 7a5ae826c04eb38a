package openai_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A server that gives each call index 0 and no id announces the next call by its name alone.
func TestCallsOfOneToolWithoutIDs(t *testing.T) {
	t.Parallel()
	piece := func(body string) string { return `{"choices":[{"index":0,"delta":{"tool_calls":[` + body + `]}}]}` }
	for name, tt := range map[string]struct {
		pieces []string
		want   []string
	}{
		"two calls": {[]string{
			`{"index":0,"function":{"name":"calc","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"a\":"}}`, `{"index":0,"function":{"arguments":"1}"}}`,
			`{"index":0,"function":{"name":"calc","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"a\":"}}`, `{"index":0,"function":{"arguments":"2}"}}`,
		}, []string{`{"a":1}`, `{"a":2}`}},
		"three, without pieces of their own": {[]string{
			`{"index":0,"function":{"name":"calc","arguments":"{}"}}`, `{"index":0,"function":{"name":"calc","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"a\":2}"}}`,
			`{"index":0,"function":{"name":"calc"}}`, `{"index":0,"function":{"arguments":"{\"a\":3}"}}`,
		}, []string{`{}`, `{"a":2}`, `{"a":3}`}},
		"one, whose name is said each time": {[]string{
			`{"index":0,"function":{"name":"calc","arguments":"{\"a\""}}`, `{"index":0,"function":{"name":"calc","arguments":":1}"}}`, `{"index":0,"function":{"name":"calc","arguments":""}}`,
		}, []string{`{"a":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := openai.NewAssembler(nil)
			for _, p := range tt.pieces {
				if _, err := a.Append(nil, []byte(piece(p))); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := a.Append(nil, []byte(`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)); err != nil {
				t.Fatal(err)
			}
			f, err := a.Finish(true)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range f.Message.Parts {
				if c, ok := p.(lathe.ToolCall); ok && c.Name == "calc" {
					got = append(got, c.Arguments)
				}
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
}
