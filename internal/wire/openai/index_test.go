package openai

import (
	"encoding/json"
	"os"
	"testing"
)

// Servers change the index within a call, and begin a call before they say its name.
func TestPieceUnderAnotherIndexContinuesItsCall(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/indexes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string            `json:"name"`
		Deltas []json.RawMessage `json:"deltas"`
		Want   []string          `json:"want"`
		Fault  string            `json:"fault"`
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		a := NewAssembler(nil)
		for _, d := range c.Deltas {
			if _, err := a.Append(nil, []byte(`{"id":"r","choices":[{"index":0,"delta":`+string(d)+`}]}`)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Append(nil, []byte(`{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)); err != nil {
			t.Fatal(err)
		}
		f, err := a.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, call := range f.Message.Calls() {
			got = append(got, call.Name+" "+call.Arguments)
		}
		fault := ""
		for _, x := range f.Faults {
			if x.Kind == FaultIndexChanged {
				fault = x.Kind
			}
		}
		if have, want := jsonOf(t, got), jsonOf(t, c.Want); have != want || fault != c.Fault {
			t.Errorf("%s: %s, fault %q; want %s, %q", c.Name, have, fault, want, c.Fault)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
