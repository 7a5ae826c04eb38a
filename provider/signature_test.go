package provider_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
)

// The simulated model refuses signatures that it has not made, and calls of its own that come without. So a conversation that
// goes from one entry to another and back succeeds only if each signature returns to its own entry, and to no other.
func TestSignaturesReturnToTheirEntryAlone(t *testing.T) {
	t.Parallel()
	tools := []*lathe.ToolSpec{{Name: "calculator", Description: "Calculates an arithmetic expression.",
		Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)}}
	for _, wire := range []lathe.Wire{lathe.WireResponses, lathe.WireMessages, lathe.WireGemini} {
		t.Run(string(wire), func(t *testing.T) {
			t.Parallel()
			entry := func(name, model string) lathe.Model {
				m, err := provider.New(wire, model, &provider.Options{BaseURL: "http://sim.invalid", Transport: sim.New(nil).Transport(), Entry: name})
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			a := entry("a", "sim/fault-strict-signatures")
			b := entry("b", "sim/fault-strict-signatures+native")
			ask := func(m lathe.Model, history []lathe.Message) (*lathe.Finish, error) {
				var fin *lathe.Finish
				for d, err := range m.Generate(t.Context(), &lathe.Request{Messages: history, Tools: tools}) {
					if err != nil {
						return nil, err
					}
					if d.Kind == lathe.DeltaFinish {
						fin = d.Finish
					}
				}
				return fin, nil
			}
			// turn appends the model's answer to the history, and the results of its calls.
			turn := func(m lathe.Model, history []lathe.Message) []lathe.Message {
				t.Helper()
				fin, err := ask(m, history)
				if err != nil {
					t.Fatalf("after %d messages: %v", len(history), err)
				}
				history = append(history[:len(history):len(history)], fin.Message)
				for _, c := range fin.Message.Calls() {
					history = append(history, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: `{"result":42}`}}})
				}
				return history
			}
			asked := turn(a, []lathe.Message{lathe.User("What is 7 + 35?")})
			if len(asked) != 3 {
				t.Fatalf("%+v", asked)
			}
			turn(a, asked) // its signature came back
			history := turn(b, asked)
			history = turn(a, append(history, lathe.User("What is 1 + 1?")))
			turn(b, turn(a, history))

			// If a signature reaches another entry, or is lost, the model says so.
			change := func(f func(parts []lathe.Part, r lathe.Reasoning) []lathe.Part) []lathe.Message {
				m := asked[1]
				m.Parts = nil
				for _, p := range asked[1].Parts {
					if r, ok := p.(lathe.Reasoning); ok {
						m.Parts = f(m.Parts, r)
					} else {
						m.Parts = append(m.Parts, p)
					}
				}
				return []lathe.Message{asked[0], m, asked[2]}
			}
			for _, c := range []struct {
				model   lathe.Model
				history []lathe.Message
				want    string
			}{
				{b, change(func(parts []lathe.Part, r lathe.Reasoning) []lathe.Part { r.Entry = "b"; return append(parts, r) }), "of another model"},
				{a, change(func(parts []lathe.Part, _ lathe.Reasoning) []lathe.Part { return parts }), "without the signature"},
			} {
				_, err := ask(c.model, c.history)
				var up *lathe.UpstreamError
				if !errors.As(err, &up) || up.Status != 400 || !strings.Contains(up.Message, c.want) {
					t.Errorf("%v, want 400 with %q", err, c.want)
				}
			}
		})
	}
}
