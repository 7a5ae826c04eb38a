package responses

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// assembleEvents returns the deltas and the answer of events, with or without the memo, and how many events it matched.
func assembleEvents(events []string, memo bool) (deltas []lathe.Delta, f *lathe.Finish, sound bool, hits int, err error) {
	a := Codec{}.NewAssembler(nil).(*Assembler)
	for _, data := range events {
		if !memo {
			a.memo.kind = itemOpaque
		} else {
			m := a.memo // whose head the match changes
			m.head = slices.Clone(m.head)
			if _, _, _, ok := m.match(nil, []byte(data)); ok && m.kind != itemOpaque {
				hits++
			}
		}
		if deltas, err = a.Append(deltas, "", []byte(data)); err != nil {
			return deltas, nil, false, hits, err
		}
	}
	f, err = a.Finish(true)
	return deltas, f, a.Sound(), hits, err
}

func memoEvents(member, kind, item string, pieces ...string) []string {
	events := []string{`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m"}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":` + item + `}`}
	if member == "content_index" {
		events = append(events, `{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text"}}`)
	}
	for i, piece := range pieces {
		at := ""
		if member != "" {
			at = fmt.Sprintf(`"%s":0,`, member)
		}
		events = append(events, fmt.Sprintf(`{"type":"response.%s.delta","sequence_number":%d,"item_id":"i_1","output_index":0,%s"delta":%s,"obfuscation":"%s"}`,
			kind, i+8, at, piece, strings.Repeat("x", i%5)))
	}
	return append(events, `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`)
}

// The memo changes nothing but the time: for texts, reasoning and arguments, and for events that are damaged at any place, the
// result is that of parsing each event.
func TestMemoChangesNothing(t *testing.T) {
	t.Parallel()
	pieces := []string{`"a"`, `"word "`, `"\"q\" \\u00e9 \ud83d\ude00"`, `"a \"b\"\n"`, `"\\ é \t"`, `"é"`, `""`, `"{\"n\":"`, `"1}"`, `"end"`}
	random := rand.New(rand.NewPCG(1, 2))
	for name, events := range map[string][]string{
		"text":      memoEvents("content_index", "output_text", `{"id":"i_1","type":"message"}`, pieces...),
		"reasoning": memoEvents("summary_index", "reasoning_summary_text", `{"id":"i_1","type":"reasoning"}`, pieces...),
		"arguments": memoEvents("", "function_call_arguments", `{"id":"i_1","type":"function_call","call_id":"c","name":"f"}`, `"{\"n\":"`, `"12"`, `"3"`, `"}"`),
		"custom":    memoEvents("", "custom_tool_call_input", `{"id":"i_1","type":"custom_tool_call","call_id":"c","name":"f"}`, pieces...),
	} {
		same := func(events []string) (hits int) {
			t.Helper()
			d1, f1, s1, hits, err1 := assembleEvents(events, true)
			d2, f2, s2, _, err2 := assembleEvents(events, false)
			if diff := cmp.Diff(d2, d1) + cmp.Diff(f2, f1, cmpopts.EquateEmpty()); diff != "" || s1 != s2 || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: sound %v %v, %v %v\n%s\n%s", name, s1, s2, err1, err2, diff, strings.Join(events, "\n"))
			}
			return hits
		}
		if hits := same(events); hits < 3 {
			t.Errorf("%s: %d events matched", name, hits)
		}
		first := len(events) - 3
		for range testdata.Cases(3000) {
			damaged := append([]string(nil), events...)
			i := first + random.IntN(2)
			b := []byte(damaged[i])
			at := random.IntN(len(b))
			switch random.IntN(5) {
			case 4:
				b = []byte(strings.Replace(string(b), `"obfuscation":"`, `"obfuscation":"`+[]string{`\n`, `\u0041`, `\"`, "\xff"}[random.IntN(4)], 1))
			case 0:
				b[at] = byte(random.IntN(256))
			case 1:
				b = append(b[:at], b[at+1:]...)
			case 2:
				b = append(b[:at], append([]byte{`0"\ {},:`[random.IntN(8)]}, b[at:]...)...)
			case 3:
				b = []byte(strings.Replace(string(b), `"sequence_number":`, `"sequence_number":`+[]string{"0", "-", "1.", `"x"`}[random.IntN(4)], 1))
			}
			damaged[i] = string(b)
			same(damaged)
		}
	}
}

// The number of the next event is expected to be one more. Any other is read from the event: those with one more digit, the same again, and none of JSON.
func TestMemoReadsOtherNumbers(t *testing.T) {
	t.Parallel()
	event := func(number, piece string) string {
		return `{"type":"response.output_text.delta","sequence_number":` + number + `,"item_id":"i_1","output_index":0,"content_index":0,"delta":"` + piece + `"}`
	}
	start := memoEvents("content_index", "output_text", `{"id":"i_1","type":"message"}`)
	end := start[len(start)-1]
	start = start[:len(start)-1]
	for _, tt := range []struct {
		numbers []string
		hits    int // of the events after the first
	}{
		{[]string{"8", "9", "10", "11", "98", "99", "100", "101", "101", "7", "0", "1", "1000", "1001"}, 13},
		{[]string{"8", "9", "-9", "00"}, 1}, // each of the last two is parsed, and the second is no JSON
		{[]string{"98", "99", "00", "01", "001", "100"}, 1},
		{[]string{"9", "9x", "0", "01", "1"}, 1},
	} {
		events := slices.Clone(start)
		for i, n := range tt.numbers {
			events = append(events, event(n, fmt.Sprint("piece ", i)))
		}
		events = append(events, end)
		d1, f1, s1, hits, err1 := assembleEvents(events, true)
		d2, f2, s2, _, err2 := assembleEvents(events, false)
		if diff := cmp.Diff(d2, d1) + cmp.Diff(f2, f1, cmpopts.EquateEmpty()); diff != "" || s1 != s2 || err1 != nil || err2 != nil {
			t.Errorf("%v: sound %v %v, %v %v\n%s", tt.numbers, s1, s2, err1, err2, diff)
		}
		if hits < tt.hits {
			t.Errorf("%v: %d events matched, want %d", tt.numbers, hits, tt.hits)
		}
	}
}
