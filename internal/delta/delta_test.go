package delta

import (
	"reflect"
	"testing"

	"github.com/lathe-run/lathe"
)

// A list whose memory is used again has nothing of the deltas that were there.
func TestAppendLeavesNothingOfFormerDeltas(t *testing.T) {
	t.Parallel()
	former := lathe.Delta{Kind: lathe.DeltaCallArgs, Index: 7, Text: "former", ID: "call_1", Name: "tool"}
	list := append(make([]lathe.Delta, 0, 2), former, former)[:0]
	for i, text := range []string{"a", "b", "c"} { // the third makes the list grow
		list = Append(list, lathe.DeltaText, i, text)
	}
	want := []lathe.Delta{{Kind: lathe.DeltaText, Text: "a"}, {Kind: lathe.DeltaText, Index: 1, Text: "b"}, {Kind: lathe.DeltaText, Index: 2, Text: "c"}}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("got %+v", list)
	}
}
