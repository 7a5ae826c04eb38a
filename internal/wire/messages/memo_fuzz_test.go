package messages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzMemo assembles events, one a line, with what the assembler remembers of the last event and without it. The deltas, the answer and the
// errors are equal.
func FuzzMemo(f *testing.F) {
	text, input := `{"type":"text","text":""}`, `{"type":"tool_use","id":"a","name":"f","input":{}}`
	f.Add(strings.Join([]string{start, opens(0, text), piece(0, `{"type":"text_delta","text":"a"}`), piece(0, `{"type":"text_delta","text":"\"b\n"}`), closes(0),
		piece(0, `{"type":"text_delta","text":"c"}`), stops("end_turn"), last, piece(0, `{"type":"text_delta","text":"d"}`)}, "\n"))
	f.Add(strings.Join([]string{start, opens(0, input), piece(0, `{"type":"input_json_delta","partial_json":"{\"a\":"}`), piece(0, `{"type":"input_json_delta","partial_json":"1}"}`),
		closes(0), piece(0, `{"type":"input_json_delta","partial_json":"2"}`), stops("tool_use"), last}, "\n"))
	f.Fuzz(func(t *testing.T, stream string) {
		a, plain := Codec{}.NewAssembler(nil).(*assembler), Codec{}.NewAssembler(nil).(*assembler)
		for line := range strings.SplitSeq(stream, "\n") {
			plain.memo.b = nil
			got, err1 := a.Append(nil, "", []byte(line))
			want, err2 := plain.Append(nil, "", []byte(line))
			if diff := cmp.Diff(want, got); diff != "" || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: %v and %v\n%s", line, err1, err2, diff)
			}
		}
		got, err1 := a.Finish(true)
		want, err2 := plain.Finish(true)
		if diff := cmp.Diff(want, got); diff != "" || (err1 == nil) != (err2 == nil) || a.Sound() != plain.Sound() {
			t.Fatalf("sound %v %v, %v and %v\n%s", a.Sound(), plain.Sound(), err1, err2, diff)
		}
	})
}
