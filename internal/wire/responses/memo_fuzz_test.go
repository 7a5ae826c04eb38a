package responses

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzMemo assembles events, one a line, with what the assembler remembers of former events and without it. The deltas, the answer and the
// errors are equal.
func FuzzMemo(f *testing.F) {
	text := memoEvents("content_index", "output_text", `{"id":"i_1","type":"message"}`, `"a"`, `"b\n"`, `"\ud83d"`, `"\ude00"`, `"c"`)
	end := len(text) - 1
	f.Add(strings.Join(text, "\n"))
	f.Add(strings.Join(append(append([]string(nil), text[:end]...), "[DONE]", text[end-1], text[end]), "\n"))
	for _, e := range [][]string{
		memoEvents("", "function_call_arguments", `{"id":"i_1","type":"function_call","call_id":"c","name":"f"}`, `"{\"n\":"`, `"12"`, `"3"`, `"}"`),
		memoEvents("", "custom_tool_call_input", `{"id":"i_1","type":"custom_tool_call","call_id":"c","name":"f"}`, `"a"`, `"\"b"`, `"c"`),
		memoEvents("summary_index", "reasoning_summary_text", `{"id":"i_1","type":"reasoning"}`, `"a"`, `"b"`),
	} {
		f.Add(strings.Join(e, "\n"))
	}
	long := `"` + strings.Repeat("x", minKnown) + `"`
	call := `{"id":"i_1","type":"function_call","call_id":"c","name":"f","arguments":` + long + `,"x":` + long + `}`
	f.Add(strings.Join(append(memoEvents("", "function_call_arguments", `{"id":"i_1","type":"function_call","call_id":"c","name":"f"}`, long)[:3],
		`{"type":"response.output_item.done","output_index":0,"item":`+call+`}`,
		`{"type":"response.completed","response":{"status":"completed","output":[`+call+`]}}`), "\n"))
	f.Fuzz(func(t *testing.T, stream string) {
		a, plain := Codec{}.NewAssembler(nil).(*Assembler), Codec{}.NewAssembler(nil).(*Assembler)
		for line := range strings.SplitSeq(stream, "\n") {
			plain.memo.kind, plain.copied = itemOpaque, copied{}
			got, err1 := a.Append(nil, "", []byte(line))
			want, err2 := plain.Append(nil, "", []byte(line))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: %v and %v\n%s", line, err1, err2, diff)
			}
		}
		got, err1 := a.Finish(true)
		want, err2 := plain.Finish(true)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || (err1 == nil) != (err2 == nil) || a.Sound() != plain.Sound() {
			t.Fatalf("sound %v %v, %v and %v\n%s", a.Sound(), plain.Sound(), err1, err2, diff)
		}
	})
}
