package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// answerBody is an answer of n bytes of text and a call with as many bytes of arguments.
func answerBody(i, n int) string {
	word := strings.Repeat(string(rune('a'+i%26)), n)
	return fmt.Sprintf(`{"id":"r%d","model":"m%d","choices":[{"message":{"role":"assistant","content":"t%s","reasoning":"r%[3]s",`+
		`"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"f%[1]d","arguments":"{\"k\":\"%[3]s\"}"}},`+
		`{"id":"d%[1]d","type":"function","function":{"name":"g","arguments":""}}]},"finish_reason":"tool_calls"}]}`, i, i, word)
}

func TestAssemblerKeepsWhatItReturnedBefore(t *testing.T) {
	t.Parallel()
	a := NewAssembler(nil)
	var got, want []*lathe.Finish
	var texts []string
	for i := range 60 {
		body := []byte(answerBody(i, i*i%700))
		deltas, f, err := a.Complete(nil, body)
		if err != nil {
			t.Fatal(err)
		}
		clear(body)
		fresh, err := ParseCompletion([]byte(answerBody(i, i*i%700)), nil)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, d := range deltas {
			fmt.Fprintf(&text, "%d %d %s %s %s\n", d.Kind, d.Index, d.ID, d.Name, d.Text)
		}
		texts = append(texts, text.String())
		got, want = append(got, f), append(want, fresh)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answers of one Assembler and of fresh ones (-fresh +one):\n%s", d)
	}
	const first = "2 0   r\n1 0   t\n5 0 c0 f0 \n6 0   {\"k\":\"\"}\n7 0   \n5 1 d0 g \n7 1   \n"
	if texts[0] != first {
		t.Errorf("deltas:\n%s\nwant:\n%s", texts[0], first)
	}
}

func TestCompleteAllocatesForTheAnswerAlone(t *testing.T) {
	testdata.CountsAllocations(t)
	a := NewAssembler(nil)
	body := []byte(answerBody(1, 40))
	var deltas []lathe.Delta
	n := testing.AllocsPerRun(200, func() {
		var err error
		if deltas, _, err = a.Complete(deltas[:0], body); err != nil {
			t.Fatal(err)
		}
	})
	// The Finish and its four parts; now and then the memory that several answers share.
	if n > 6 {
		t.Errorf("%v allocations for an answer, want at most 6", n)
	}
}
