package eval

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

func TestValueAt(t *testing.T) {
	t.Parallel()
	const doc = ` { "a" : [ 1 , { "b/c~" : null } , "x" ] , "" : true } `
	for pointer, want := range map[string]string{
		"/a/0": "1", "/a/1/b~1c~0": "null", "/a/2": `"x"`, "/": "true", "/a/1": `{ "b/c~" : null }`,
		"/a/3": "", "/a/00": "", "/a/-": "", "/a/0/x": "", "/b": "", "/a/2/0": "",
	} {
		got, ok := valueAt([]byte(doc), pointer)
		if ok != (want != "") || string(got) != want {
			t.Errorf("%s: %q, %v", pointer, got, ok)
		}
	}
	for _, text := range []string{"", "{", "nonsense", `{"a":1,"a":2}`, "{} {}"} {
		if _, ok := valueAt([]byte(text), "/a"); ok {
			t.Errorf("%q has a value", text)
		}
	}
}

func FuzzValueAt(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":2}]}`), "/a/1/b")
	f.Fuzz(func(t *testing.T, doc []byte, pointer string) {
		if checkPointer(pointer) != nil {
			t.Skip()
		}
		if raw, ok := valueAt(doc, pointer); ok && !json.Valid(raw) {
			t.Errorf("%q", raw)
		}
	})
}

// Each assert must hold, and not hold, for the right reason.
func TestAsserts(t *testing.T) {
	t.Parallel()
	state := func(p string) (json.RawMessage, error) {
		if raw, ok := valueAt([]byte(`{"draft":{"n":1.0,"o":{"a":1,"b":[]}}}`), p); ok {
			return raw, nil
		}
		return json.RawMessage("null"), errors.New("nothing there")
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	calls := []asked{
		{turn: 1, name: "get", args: `{"id":7}`},
		{turn: 2, name: "get", args: `{}`, failed: true, code: lathe.CodeTimeout},
		{turn: 2, name: "put", args: `{"ops":[{"path":"/a"}]}`},
		{turn: 3, name: "put", args: `broken`, failed: true, code: lathe.CodeInvalidJSON},
		{turn: 4, name: " hid.den ", args: `{}`, failed: true, code: lathe.CodeUnknownTool},
	}
	ran := []executed{{"put", raw(`{"to":"bob"}`)}, {"put", raw(`{}`)}}
	none := 0
	two := 2
	for _, c := range []struct {
		a  Assert
		ok bool
	}{
		{Assert{Kind: AssertState, Pointer: "/draft/n", Equals: raw("1")}, true},
		{Assert{Kind: AssertState, Pointer: "/draft/o", Equals: raw(`{"b":[],"a":1}`)}, true},
		{Assert{Kind: AssertState, Pointer: "/draft/n", Equals: raw(`"1"`)}, false},
		{Assert{Kind: AssertState, Pointer: "/draft/x", Equals: raw("null")}, false},
		{Assert{Kind: AssertCalled, Tool: "get", AtLeast: 2}, true},
		{Assert{Kind: AssertCalled, Tool: "get", AtLeast: 3}, false},
		{Assert{Kind: AssertCalled, Tool: "put", AtMost: &two}, true},
		{Assert{Kind: AssertCalled, Tool: "*", AtMost: &two}, false},
		{Assert{Kind: AssertCalled, Tool: "other", AtMost: &none}, true},
		{Assert{Kind: AssertOrder, Tools: []string{"get", "put"}}, true},
		{Assert{Kind: AssertOrder, Tools: []string{"put", "get"}}, false},
		{Assert{Kind: AssertOrder, Tools: []string{"get", "other"}}, false},
		{Assert{Kind: AssertOrder, Tools: []string{"other", "get"}}, false},
		{Assert{Kind: AssertArguments, Tool: "put", Pointer: "/ops/0/path", Equals: raw(`"/a"`)}, true},
		{Assert{Kind: AssertArguments, Tool: "put", Pointer: "/ops/0/path", Equals: raw(`"/b"`)}, false},
		{Assert{Kind: AssertArguments, Tool: "put", Pointer: "/id", Missing: true}, true},
		{Assert{Kind: AssertArguments, Tool: "get", Pointer: "/id", Missing: true}, false},
		{Assert{Kind: AssertGuard, Code: lathe.CodeTimeout}, true},
		{Assert{Kind: AssertGuard, Code: lathe.CodeMaxDepth}, false},
		{Assert{Kind: AssertFailed, Tool: "put"}, true},
		{Assert{Kind: AssertFailed, Tool: "put", Code: lathe.CodeTimeout}, false},
		{Assert{Kind: AssertNotAsked, Tool: "other"}, true},
		{Assert{Kind: AssertNotAsked, Tool: "put"}, false},
		{Assert{Kind: AssertTogether, Tools: []string{"put ok", "get failed"}}, true},
		{Assert{Kind: AssertTogether, Tools: []string{"put failed", "get failed"}}, false},
		{Assert{Kind: AssertTogether, Tools: []string{"get", "get"}}, false},
		{Assert{Kind: AssertNotAsked, Tool: "hid_den"}, false}, // asked for with a dot and blanks
		{Assert{Kind: AssertExecuted, Tool: "put", AtLeast: 2}, true},
		{Assert{Kind: AssertExecuted, Tool: "put", AtMost: &none}, false},
		{Assert{Kind: AssertExecuted, Tool: "put", AtMost: &none, Pointer: "/to", Equals: raw(`"eve"`)}, true},
		{Assert{Kind: AssertExecuted, Tool: "put", AtMost: &none, Pointer: "/to", Equals: raw(`"bob"`)}, false},
		{Assert{Kind: AssertExecuted, Tool: "get", AtMost: &none}, true}, // called, and never reached
		{Assert{Kind: AssertExecuted, Tool: "*", AtMost: &two}, true},
		{Assert{Kind: AssertRefused, Tool: "hid_den"}, true},
		{Assert{Kind: AssertRefused, Tool: "hid_den", Code: lathe.CodeUnknownTool}, true},
		{Assert{Kind: AssertRefused, Tool: "hid_den", Code: lathe.CodePolicyDenied}, false},
		{Assert{Kind: AssertRefused, Tool: "put"}, false}, // one of two worked
		{Assert{Kind: AssertRefused, Tool: "other"}, true},
		{Assert{Kind: AssertUntold, Text: "secret"}, false},
		{Assert{Kind: AssertUntold, Text: "other secret"}, true},
		{Assert{Kind: AssertText, Text: "Done."}, false},
		{Assert{Kind: AssertText, Text: "**done!**"}, true},
		{Assert{Kind: AssertText, Text: "Done.", Tolerant: true}, true},
		{Assert{Kind: AssertText, Text: "Done now.", Tolerant: true}, false},
	} {
		got := c.a.check(&outcome{state: state, calls: calls, text: " **done!**\n", executed: ran, reported: map[string]bool{"secret": true}})
		if got.OK != c.ok || got.Assert == "" || got.OK != (got.Got == "") {
			t.Errorf("%+v: %+v", c.a, got)
		}
	}
}

func TestChecksQuoteLittle(t *testing.T) {
	t.Parallel()
	a := Assert{Kind: AssertText, Text: "x"}
	if got := a.check(&outcome{text: strings.Repeat("é", 1000)}); len(got.Got) > maxGot+len("…") {
		t.Errorf("%d bytes", len(got.Got))
	}
}
