package lathe_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reflecttest"
	"github.com/lathe-run/lathe/internal/testdata"
)

func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	full := lathe.Message{}
	reflecttest.Fill(reflect.ValueOf(&full).Elem(), "a <b> \\ \u2029 é \x00")
	tests := map[string]lathe.Message{
		"every field":        full,
		"empty":              {},
		"empty parts":        {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{}, lathe.ToolCall{}, lathe.ToolResult{}, lathe.Blob{}, lathe.Reasoning{}, lathe.Refusal{}}},
		"one text":           lathe.User("hi"),
		"arguments verbatim": {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "1", Name: "f", Arguments: " {\"n\": 1.00, \"big\":12345678901234567890}\n"}}},
		"arguments no JSON":  {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "1", Name: "f", Arguments: `{"a":`, Incomplete: true}}},
	}
	for name, m := range tests {
		b, err := m.MarshalJSON()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var back lathe.Message
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(m, back); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The tables of the tests above know every kind of part.
func TestPartsAreComplete(t *testing.T) {
	t.Parallel()
	var got []string
	for _, p := range reflecttest.Parts {
		got = append(got, reflect.TypeOf(p).Name())
	}
	if diff := cmp.Diff(reflecttest.Receivers(t, "message.go", "part"), got); diff != "" {
		t.Errorf("parts of message.go (-declared +tested):\n%s", diff)
	}
}

func TestMessageErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{`{"role":"user","parts":[{"type":"hologram","text":"x"}]}`, `lathe: unknown part type "hologram"`},
		{`{"role":"user","parts":[{}]}`, `lathe: unknown part type ""`},
		{`"hello"`, `lathe: reading a message: `},
		{`{"role":1}`, `lathe: reading a message: `},
	}
	for _, tt := range tests {
		m := lathe.User("before")
		err := json.Unmarshal([]byte(tt.in), &m)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s…", tt.in, err, tt.want)
		}
		if m.Text() != "before" {
			t.Errorf("%s: a failed read changed the message to %v", tt.in, m)
		}
	}
	if _, err := json.Marshal(lathe.Message{Parts: []lathe.Part{nil}}); err == nil {
		t.Error("a nil part was written")
	}
}

func TestMessageText(t *testing.T) {
	t.Parallel()
	m := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
		lathe.Reasoning{Text: "hm"}, lathe.Text{Text: "let me see ", Commentary: true}, lathe.Text{Text: "a"},
		lathe.ToolCall{ID: "1", Name: "f"}, lathe.Text{Text: "b"}, lathe.ToolCall{ID: "2", Name: "g"}, lathe.Text{Text: "c"},
	}}
	if got := m.Text(); got != "abc" {
		t.Errorf("Text: got %q, want abc", got)
	}
	if got := m.Calls(); len(got) != 2 || got[0].ID != "1" || got[1].ID != "2" {
		t.Errorf("Calls: got %v", got)
	}
	for _, m := range []lathe.Message{lathe.System("x"), lathe.User("x"), lathe.Assistant("x")} {
		if m.Text() != "x" || m.Calls() != nil {
			t.Errorf("%s: got %q, %v", m.Role, m.Text(), m.Calls())
		}
	}
}

// Not parallel: it counts allocations.
func TestMessageTextOfOnePartDoesNotAllocate(t *testing.T) {
	testdata.CountsAllocations(t)
	m := lathe.User("hello")
	if n := testing.AllocsPerRun(10, func() { _ = m.Text() }); n != 0 {
		t.Errorf("Text allocates %v times", n)
	}
}

// Size counts every text, so that a caller can bound its memory by it.
func TestSizeCountsEveryText(t *testing.T) {
	t.Parallel()
	const n = 1_000
	text := strings.Repeat("x", n)
	blob := lathe.Blob{URL: text, Data: []byte(text), Raw: []byte(text)}
	for part, texts := range map[string]struct {
		part lathe.Part
		n    int
	}{
		"text": {lathe.Text{Text: text}, 1}, "reasoning": {lathe.Reasoning{Text: text}, 1}, "refusal": {lathe.Refusal{Text: text}, 1}, "blob": {blob, 3},
		"call":   {lathe.ToolCall{ID: text, Name: text, Arguments: text}, 3},
		"result": {lathe.ToolResult{CallID: text, Content: text, Blobs: []lathe.Blob{blob}}, 5},
	} {
		m := lathe.Message{Parts: []lathe.Part{texts.part}}
		if got, want := m.Size(), texts.n*n; got < want || got > want+n {
			t.Errorf("%s: %d, want %d and a little", part, got, want)
		}
	}
}

// Raw.Clone shares no memory with the original, which is reused.
func TestRawCloneMayBeKept(t *testing.T) {
	t.Parallel()
	raw := &lathe.Raw{Bytes: []byte("data: 1"), Deltas: []lathe.Delta{{Text: "1"}}}
	kept := raw.Clone()
	copy(raw.Bytes, "xxxxxxx")
	raw.Deltas[0].Text = "x"
	if string(kept.Bytes) != "data: 1" || kept.Deltas[0].Text != "1" {
		t.Errorf("the clone is now %q, %q", kept.Bytes, kept.Deltas[0].Text)
	}
}
