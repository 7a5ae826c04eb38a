package workers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

func TestFramesComeBack(t *testing.T) {
	t.Parallel()
	for _, f := range []*Frame{
		{Type: Hello, Worker: "w-1", SDK: "lathe", Credits: 4, Held: []Ref{{"k", 2}}, Offers: []remote.Tool{{Name: "act", Schema: json.RawMessage(`{"type":"object"}`), Allowlist: []string{"*"}}}},
		{Type: Welcome, LeaseMS: 10_000, AtMS: 1, Refused: map[string]string{"act": "taken"}},
		{Type: Call, Ref: Ref{"k", 1}, AtMS: 5, Invoke: &Invoke{Tool: "act", Arguments: json.RawMessage(`{"n":1.50}`), RunID: "r", CallID: "c", DeadlineMS: 9}},
		{Type: Result, Ref: Ref{"k", 1}, Output: &remote.Result{Data: json.RawMessage(`1`)}},
		{Type: Error, Ref: Ref{"k", 1}, Code: lathe.CodeTimeout, Detail: "x", NotRun: true},
		{Type: Ack, Ref: Ref{"k", 1}, Taken: true},
	} {
		b, err := Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("%s came back changed:\n%s", f.Type, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	many := make([]Ref, MaxHeld+1)
	tools := make([]remote.Tool, MaxTools+1)
	for name, f := range map[string]*Frame{"held": {Type: Beat, Held: many}, "offers": {Type: Hello, Offers: tools}, "no type": {}} {
		b, err := Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(b); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	const secret = "canary"
	if _, err := Decode([]byte(`{"type":"` + secret)); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
	if f, err := Decode([]byte(`{"type":"later","new":{"a":[]}}`)); err != nil || f.Type != "later" {
		t.Errorf("what a later version says: %v", err)
	}
	big := &Frame{Type: Result, Output: &remote.Result{Data: json.RawMessage(`"` + strings.Repeat("x", MaxFrame) + `"`)}}
	if _, err := Encode(big); err == nil {
		t.Error("a frame above the limit was made")
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"": false, "a": true, "host-1.local_2": true, "a/b": false, "ä": false, "a b": false,
		strings.Repeat("a", MaxName): true, strings.Repeat("a", MaxName+1): false} {
		if got := ValidName(s); got != want {
			t.Errorf("%q: %t, want %t", s, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"hello","worker":"w","offers":[{"name":"act","allowlist":["*"]}],"held":[{"key":"k","attempt":1}]}`))
	f.Add([]byte(`{"type":"result","key":"k","attempt":1,"output":{"data":{"a":1},"blobs":[{"type":"blob","data":"AAE="}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Encode(got)
		if err != nil {
			t.Skip() // larger than it came
		}
		if _, err := Decode(again); err != nil {
			t.Errorf("%v: %s", err, again)
		}
	})
}
