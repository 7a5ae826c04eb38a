package sim_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/sim"
)

const strict = "sim/fault-strict-signatures"

// signing are the wires that have signatures.
func signing(t *testing.T, test func(t *testing.T, c client, stream bool)) {
	eachWire(t, func(t *testing.T, c client, stream bool) {
		if c.Wire() != lathe.WireOpenAIChat {
			test(t, c, stream)
		}
	})
}

// signatureOf returns where the signature of a message is, -1 if none exists.
func signatureOf(m *lathe.Message) int {
	return slices.IndexFunc(m.Parts, func(p lathe.Part) bool {
		r, ok := p.(lathe.Reasoning)
		return ok && r.Data != ""
	})
}

func TestReasoningIsSignedOnWiresWithSignatures(t *testing.T) {
	t.Parallel()
	signing(t, func(t *testing.T, c client, stream bool) {
		ask := func(model string) *lathe.Message {
			fin, err := c.ask(t, sim.New(nil).Transport(), &lathe.Request{Model: model, Messages: []lathe.Message{lathe.User(twoTools)}, Tools: tools,
				Sampling: lathe.Sampling{ReasoningSummary: "auto"}}, stream)
			if err != nil {
				t.Fatal(err)
			}
			return &fin.Message
		}
		data := func(m *lathe.Message) string {
			i := signatureOf(m)
			if i < 0 {
				return ""
			}
			return m.Parts[i].(lathe.Reasoning).Data
		}
		first, again, other := data(ask("sim/thinking")), data(ask("sim/thinking")), data(ask("sim/thinking+native"))
		if first == "" || first != again || first == other {
			t.Errorf("signatures %q, %q, of another model %q", first, again, other)
		}
		if unsigned := ask("sim/fault-signature-missing"); data(unsigned) != "" {
			t.Errorf("%+v", unsigned)
		}
		hidden := ask("sim/fault-reasoning-hidden")
		if i := signatureOf(hidden); i < 0 || hidden.Parts[i].(lathe.Reasoning).Text != "" {
			t.Errorf("%+v", hidden)
		}
	})
}

func TestStrictModelRefusesSignaturesThatAreNotItsOwn(t *testing.T) {
	t.Parallel()
	signing(t, func(t *testing.T, c client, stream bool) {
		rt := sim.New(nil).Transport()
		_, history, err := c.run(t, rt, strict, twoTools, stream)
		if err != nil {
			t.Fatal(err)
		}
		_, foreign, err := c.run(t, rt, "sim/thinking", twoTools, stream)
		if err != nil {
			t.Fatal(err)
		}
		_, other, err := c.run(t, rt, strict, "What is 1 + 1?", stream)
		if err != nil {
			t.Fatal(err)
		}
		at := signatureOf(&history[1])
		if at < 0 || len(history[1].Calls()) != 2 {
			t.Fatalf("%+v", history[1])
		}
		// with replaces the signature of the first turn.
		with := func(change func(parts []lathe.Part, r lathe.Reasoning) []lathe.Part) []lathe.Message {
			out := slices.Clone(history[:len(history)-1])
			r := out[1].Parts[at].(lathe.Reasoning)
			out[1].Parts = change(slices.Clone(out[1].Parts), r)
			return out
		}
		for name, k := range map[string]struct {
			history []lathe.Message
			want    string
		}{
			"as it came": {with(func(p []lathe.Part, _ lathe.Reasoning) []lathe.Part { return p }), ""},
			"missing": {with(func(p []lathe.Part, _ lathe.Reasoning) []lathe.Part { return slices.Delete(p, at, at+1) }),
				"without the signature"},
			"changed": {with(func(p []lathe.Part, r lathe.Reasoning) []lathe.Part {
				r.Data = strings.ToUpper(r.Data)
				p[at] = r
				return p
			}), "is invalid"},
			"of another model": {with(func(p []lathe.Part, r lathe.Reasoning) []lathe.Part {
				r.Data = foreign[1].Parts[signatureOf(&foreign[1])].(lathe.Reasoning).Data
				p[at] = r
				return p
			}), "of another model"},
			"of another turn": {with(func(p []lathe.Part, r lathe.Reasoning) []lathe.Part {
				r.Data = other[1].Parts[signatureOf(&other[1])].(lathe.Reasoning).Data
				p[at] = r
				return p
			}), "out of place"},
			"after its call": {with(func(p []lathe.Part, r lathe.Reasoning) []lathe.Part {
				first := slices.IndexFunc(p, func(p lathe.Part) bool { _, ok := p.(lathe.ToolCall); return ok })
				p = slices.Insert(p, first+1, lathe.Part(r))
				return slices.Delete(p, at, at+1)
			}), "signature"},
			"of the calls of another model": {foreign[:len(foreign)-1], "of another model"},
			"none on calls of another model": {func() []lathe.Message {
				out := slices.Clone(foreign[:len(foreign)-1])
				out[1].Parts = slices.DeleteFunc(slices.Clone(out[1].Parts), func(p lathe.Part) bool { _, ok := p.(lathe.Reasoning); return ok })
				return out
			}(), ""},
			"missing in an earlier turn": {append(with(func(p []lathe.Part, _ lathe.Reasoning) []lathe.Part { return slices.Delete(p, at, at+1) }),
				lathe.Assistant("42."), lathe.User("Thanks.")), ""},
		} {
			_, err := c.ask(t, rt, &lathe.Request{Model: strict, Messages: k.history, Tools: tools}, stream)
			var e *wire.APIError
			switch {
			case k.want == "" && err != nil:
				t.Errorf("%s: %v %+v", name, err, err)
			case k.want != "" && (!errors.As(err, &e) || e.Status != 400 || !strings.Contains(e.Message, k.want)):
				t.Errorf("%s: %v %+v, want 400 with %q", name, err, e, k.want)
			}
		}
	})
}
