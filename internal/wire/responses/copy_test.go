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

// A copy that has the bytes of the one before is not decoded again. One that differs in a byte is found, wherever it stands.
func TestEachCopyIsCompared(t *testing.T) {
	t.Parallel()
	const same = `a \"b\" \u00e9`
	for _, call := range []bool{false, true} {
		for differs := -1; differs < 3; differs++ {
			copies := [3]string{same, same, same}
			if differs >= 0 {
				copies[differs] = `a \"c\" \u00e9`
			}
			item := func(text string) string {
				if call {
					return `{"id":"i_1","type":"function_call","call_id":"c_1","name":"f","status":"completed","arguments":"` + text + `"}`
				}
				return `{"id":"i_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}`
			}
			delta, done, member := "output_text.delta", "output_text.done", "text"
			if call {
				delta, done, member = "function_call_arguments.delta", "function_call_arguments.done", "arguments"
			}
			a := Codec{}.NewAssembler(nil)
			for _, e := range []string{
				`{"type":"response.created","response":{"id":"r_1","model":"m"}}`,
				`{"type":"response.output_item.added","output_index":0,"item":` + item("") + `}`,
				`{"type":"response.content_part.added","item_id":"i_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}`,
				fmt.Sprintf(`{"type":"response.%s","item_id":"i_1","output_index":0,"content_index":0,"delta":"%s"}`, delta, same),
				fmt.Sprintf(`{"type":"response.%s","item_id":"i_1","output_index":0,"content_index":0,"%s":"%s"}`, done, member, copies[0]),
				`{"type":"response.output_item.done","output_index":0,"item":` + item(copies[1]) + `}`,
				`{"type":"response.completed","response":{"id":"r_1","model":"m","status":"completed","output":[` + item(copies[2]) + `]}}`,
			} {
				if call && e[:len(`{"type":"response.content`)] == `{"type":"response.content` {
					continue
				}
				if _, err := a.Append(nil, "", []byte(e)); err != nil {
					t.Fatal(err)
				}
			}
			f, err := a.Finish(true)
			if err != nil {
				t.Fatal(err)
			}
			kind := FaultTextDiffers
			if call {
				kind = FaultArgsDiffer
			}
			found := slices.ContainsFunc(f.Faults, func(fault lathe.Fault) bool { return fault.Kind == kind })
			// The copy of a text in the response object is not read.
			if want := differs >= 0 && (call || differs < 2); found != want {
				t.Errorf("call %v, copy %d differs: faults %+v", call, differs, f.Faults)
			}
			if !call && f.Message.Text() != `a "b" é` {
				t.Errorf("copy %d differs: text %q", differs, f.Message.Text())
			}
		}
	}
}

// assembleCopies returns the deltas and the answer of events. Without copies the assembler does not join the literals of the pieces.
func assembleCopies(t *testing.T, events []string, copies bool) (deltas []lathe.Delta, f *lathe.Finish, sound bool) {
	t.Helper()
	a := Codec{}.NewAssembler(nil).(*Assembler)
	for _, data := range events {
		var err error
		if deltas, err = a.Append(deltas, "", []byte(data)); err != nil {
			t.Fatal(err)
		}
		if !copies && strings.Contains(data, `.delta"`) {
			a.copied = copied{}
		}
	}
	f, err := a.Finish(true)
	if err != nil {
		t.Fatal(err)
	}
	return deltas, f, a.Sound()
}

// The bytes of the pieces, joined, are compared with the copies of the text at the end. Nothing but the time depends on it: not if a character is cut
// in two, if a copy is encoded in another way, ends early or has more, if the members beside it are damaged, and if two items take turns.
func TestCopiesChangeNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	fill := strings.Repeat("fill ", minKnown/5+1) // from this length on copies are looked for
	parts := []string{"a", "word ", `\"q\"`, `\\`, `\u0041`, `\ud83d`, `\ude00`, "é", "\xc3", "\xa9", `\n\t`, "", `{\"k\":`, "}", ",", `\/`}
	for range testdata.Cases(4000) {
		call := random.IntN(2) == 0
		items := 1 + random.IntN(2)
		delta, done, member := "output_text.delta", "output_text.done", "text"
		if call {
			delta, done, member = "function_call_arguments.delta", "function_call_arguments.done", "arguments"
		}
		item := func(i int, text string) string {
			more := []string{"", `,"x":{"y":"` + text + `"}`, `,"x":"\ud800"`, `,"x":1,"x":2`, `,"z":"` + text + `"`}[max(0, random.IntN(12)-7)]
			first := []string{"", `"a":"` + text + `",`, `"a":"\"` + text + `",`}[max(0, random.IntN(9)-6)]
			if call {
				return fmt.Sprintf(`{%s"id":"i_%d","type":"function_call","call_id":"c_%[2]d","name":"f","arguments":"%s","status":"completed"%s}`, first, i, text, more)
			}
			return fmt.Sprintf(`{%s"id":"i_%d","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"%s","annotations":[]%s}]}`, first, i, text, more)
		}
		events := []string{`{"type":"response.created","response":{"id":"r_1","model":"m"}}`}
		whole := make([]string, items)
		for i := range items {
			empty := `{"id":"i_%d","type":"message"}`
			if call {
				empty = `{"id":"i_%d","type":"function_call","call_id":"c_%[1]d","name":"f"}`
			}
			events = append(events, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, fmt.Sprintf(empty, i)))
			if !call {
				events = append(events, fmt.Sprintf(`{"type":"response.content_part.added","output_index":%d,"content_index":0,"part":{"type":"output_text","text":""}}`, i))
			}
		}
		for n := range 2 + random.IntN(8) {
			i, piece := random.IntN(items), parts[random.IntN(len(parts))]
			if n < items {
				i = n // so that none is empty
			}
			if n < 2*items && random.IntN(3) > 0 {
				piece = fill
			}
			whole[i] += piece
			events = append(events, fmt.Sprintf(`{"type":"response.%s","sequence_number":%d,"item_id":"i_%d","output_index":%[3]d,"content_index":0,"delta":"%s"}`, delta, n, i, piece))
		}
		text := func(i int) string {
			switch random.IntN(12) {
			case 0:
				return strings.ReplaceAll(whole[i], "f", `\u0066`)
			case 1:
				return whole[i] + "more"
			case 2:
				return strings.TrimSuffix(whole[i], "fill ")
			case 3:
				return strings.Replace(whole[i], "fill", "full", 1)
			case 4:
				return whole[items-1-i]
			}
			return whole[i]
		}
		for i := range items {
			events = append(events, fmt.Sprintf(`{"type":"response.%s","item_id":"i_%d","output_index":%[2]d,"content_index":0,"%s":"%s"}`, done, i, member, text(i)),
				fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item(i, text(i))))
		}
		output := make([]string, items)
		for i := range items {
			output[i] = item(i, text(i))
		}
		events = append(events, `{"type":"response.completed","response":{"id":"r_1","model":"m","status":"completed","output":[`+strings.Join(output, ",")+`]}}`)
		d1, f1, s1 := assembleCopies(t, events, true)
		d2, f2, s2 := assembleCopies(t, events, false)
		if diff := cmp.Diff(d2, d1) + cmp.Diff(f2, f1, cmpopts.EquateEmpty()); diff != "" || s1 != s2 {
			t.Fatalf("sound %v %v\n%s\n%s", s1, s2, diff, strings.Join(events, "\n"))
		}
	}
}

// While the parts of an answer are read, the literal that they are compared with changes. What is read of the parts does not.
func TestEqualTextsAreReadAfterOthers(t *testing.T) {
	t.Parallel()
	text := func(letter string, n int) string { return strings.Repeat(letter, n*minKnown) + "]}" }
	message := func(texts ...string) string {
		for i, s := range texts {
			texts[i] = `{"type":"output_text","text":"` + s + `","annotations":[]}`
		}
		return `{"type":"message","role":"assistant","status":"completed","content":[` + strings.Join(texts, ",") + `]}`
	}
	call := func(text string) string {
		return `{"type":"function_call","call_id":"c_` + text[:1] + `","name":"f","status":"completed","arguments":"[\"` + text + `\"]"}`
	}
	long, short, twice := text("c", 8), text("b", 2), text("a", 4)
	event := `{"type":"response.output_item.done","output_index":%d,"item":%s}`
	for name, output := range map[string][]string{
		"parts": {message(long), message(short), message(twice, twice)},
		"items": {message(long), message(short), message(twice), message(twice)},
		"calls": {call(long), call(short), call(twice), call(twice)},
	} {
		body := `{"id":"r_1","model":"m","status":"completed","output":[` + strings.Join(output, ",") + `]}`
		whole, streamed := Codec{}.NewAssembler(nil), Codec{}.NewAssembler(nil)
		_, answer, err := whole.Complete(nil, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		// The items after the second are in the last event only.
		for _, e := range []string{fmt.Sprintf(event, 0, output[0]), fmt.Sprintf(event, 1, output[1]), `{"type":"response.completed","response":` + body + `}`} {
			if _, err := streamed.Append(nil, "", []byte(e)); err != nil {
				t.Fatal(err)
			}
		}
		end, err := streamed.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range []*lathe.Finish{answer, end} {
			got := f.Message.Text()
			for _, c := range f.Message.Calls() {
				got += c.Arguments[2 : len(c.Arguments)-2] // without brackets and quotes
			}
			if want := long + short + twice + twice; got != want {
				t.Errorf("%s, %d: read %d bytes, want %d", name, i, len(got), len(want))
			}
		}
	}
}
