package responses

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A stream repeats each text. A copy that differs in a byte is found, wherever it stands.
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
			kind := faultTextDiffers
			if call {
				kind = faultArgsDiffer
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

// Texts that are equal, and of different lengths, are read each for itself.
func TestEqualTextsAreReadAfterOthers(t *testing.T) {
	t.Parallel()
	text := func(letter string, n int) string { return strings.Repeat(letter, n*256) + "]}" }
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
