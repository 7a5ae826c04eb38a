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
		a  assert
		ok bool
	}{
		{assert{Kind: assertState, Pointer: "/draft/n", Equals: raw("1")}, true},
		{assert{Kind: assertState, Pointer: "/draft/o", Equals: raw(`{"b":[],"a":1}`)}, true},
		{assert{Kind: assertState, Pointer: "/draft/n", Equals: raw(`"1"`)}, false},
		{assert{Kind: assertState, Pointer: "/draft/x", Equals: raw("null")}, false},
		{assert{Kind: assertCalled, Tool: "get", AtLeast: 2}, true},
		{assert{Kind: assertCalled, Tool: "get", AtLeast: 3}, false},
		{assert{Kind: assertCalled, Tool: "put", AtMost: &two}, true},
		{assert{Kind: assertCalled, Tool: "*", AtMost: &two}, false},
		{assert{Kind: assertCalled, Tool: "other", AtMost: &none}, true},
		{assert{Kind: assertOrder, Tools: []string{"get", "put"}}, true},
		{assert{Kind: assertOrder, Tools: []string{"put", "get"}}, false},
		{assert{Kind: assertOrder, Tools: []string{"get", "other"}}, false},
		{assert{Kind: assertOrder, Tools: []string{"other", "get"}}, false},
		{assert{Kind: assertArguments, Tool: "put", Pointer: "/ops/0/path", Equals: raw(`"/a"`)}, true},
		{assert{Kind: assertArguments, Tool: "put", Pointer: "/ops/0/path", Equals: raw(`"/b"`)}, false},
		{assert{Kind: assertArguments, Tool: "put", Pointer: "/id", Missing: true}, true},
		{assert{Kind: assertArguments, Tool: "get", Pointer: "/id", Missing: true}, false},
		{assert{Kind: assertGuard, Code: lathe.CodeTimeout}, true},
		{assert{Kind: assertGuard, Code: lathe.CodeMaxDepth}, false},
		{assert{Kind: assertFailed, Tool: "put"}, true},
		{assert{Kind: assertFailed, Tool: "put", Code: lathe.CodeTimeout}, false},
		{assert{Kind: assertNotAsked, Tool: "other"}, true},
		{assert{Kind: assertNotAsked, Tool: "put"}, false},
		{assert{Kind: assertTogether, Tools: []string{"put ok", "get failed"}}, true},
		{assert{Kind: assertTogether, Tools: []string{"put failed", "get failed"}}, false},
		{assert{Kind: assertTogether, Tools: []string{"get", "get"}}, false},
		{assert{Kind: assertNotAsked, Tool: "hid_den"}, false}, // asked for with a dot and blanks
		{assert{Kind: assertExecuted, Tool: "put", AtLeast: 2}, true},
		{assert{Kind: assertExecuted, Tool: "put", AtMost: &none}, false},
		{assert{Kind: assertExecuted, Tool: "put", AtMost: &none, Pointer: "/to", Equals: raw(`"eve"`)}, true},
		{assert{Kind: assertExecuted, Tool: "put", AtMost: &none, Pointer: "/to", Equals: raw(`"bob"`)}, false},
		{assert{Kind: assertExecuted, Tool: "get", AtMost: &none}, true}, // called, and never reached
		{assert{Kind: assertExecuted, Tool: "*", AtMost: &two}, true},
		{assert{Kind: assertRefused, Tool: "hid_den"}, true},
		{assert{Kind: assertRefused, Tool: "hid_den", Code: lathe.CodeUnknownTool}, true},
		{assert{Kind: assertRefused, Tool: "hid_den", Code: lathe.CodePolicyDenied}, false},
		{assert{Kind: assertRefused, Tool: "put"}, false}, // one of two worked
		{assert{Kind: assertRefused, Tool: "other"}, true},
		{assert{Kind: assertUntold, Text: "secret"}, false},
		{assert{Kind: assertUntold, Text: "other secret"}, true},
		{assert{Kind: assertText, Text: "Done."}, false},
		{assert{Kind: assertText, Text: "**done!**"}, true},
		{assert{Kind: assertText, Text: "Done.", Tolerant: true}, true},
		{assert{Kind: assertText, Text: "Done now.", Tolerant: true}, false},
	} {
		got := c.a.check(&outcome{state: state, calls: calls, text: " **done!**\n", executed: ran, reported: map[string]bool{"secret": true}})
		if got.OK != c.ok || got.Assert == "" || got.OK != (got.Got == "") {
			t.Errorf("%+v: %+v", c.a, got)
		}
	}
}

func TestChecksQuoteLittle(t *testing.T) {
	t.Parallel()
	a := assert{Kind: assertText, Text: "x"}
	if got := a.check(&outcome{text: strings.Repeat("é", 1000)}); len(got.Got) > maxGot+len("…") {
		t.Errorf("%d bytes", len(got.Got))
	}
}
