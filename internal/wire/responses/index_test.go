package responses

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// Servers leave out the indexes of items, count them wrong, write them as texts, give an item a new id in the response object, or announce an
// item twice: the answer has each item once.
func TestItemsAreMatchedWithoutIndexes(t *testing.T) {
	t.Parallel()
	events := []string{
		`{"type":"response.created","response":{"id":"r_1","model":"m"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m_1","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","output_index":0,"item_id":"m_1","content_index":0,"part":{"type":"output_text","text":""}}`,
		`{"type":"response.output_text.delta","output_index":0,"item_id":"m_1","content_index":0,"delta":"Hi"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m_1","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f_1","call_id":"c_1","name":"pay","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"f_1","delta":"{\"n\":1}"}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f_1","call_id":"c_1","name":"pay","arguments":"{\"n\":1}"}}`,
		`{"type":"response.completed","response":{"id":"r_1","model":"m","status":"completed","output":[` +
			`{"type":"message","id":"m_1","role":"assistant","content":[{"type":"output_text","text":"Hi"}]},` +
			`{"type":"function_call","id":"f_1","call_id":"c_1","name":"pay","arguments":"{\"n\":1}"}]}}`,
	}
	index := regexp.MustCompile(`"output_index":(\d),`)
	last := len(events) - 1
	newIDs := strings.NewReplacer(`"m_1"`, `"m_2"`, `"f_1"`, `"f_2"`)
	otherCall := strings.NewReplacer(`"m_1"`, `"m_2"`, `"f_1"`, `"f_2"`, `"c_1"`, `"c_2"`)
	for name, edit := range map[string]func(i int, e string) []string{
		"as it is": func(_ int, e string) []string { return []string{e} },
		"no index": func(_ int, e string) []string { return []string{index.ReplaceAllString(e, "")} },
		"no index, no id": func(_ int, e string) []string {
			return []string{regexp.MustCompile(`"item_id":"..."?,`).ReplaceAllString(index.ReplaceAllString(e, ""), "")}
		},
		"null":       func(_ int, e string) []string { return []string{index.ReplaceAllString(e, `"output_index":null,`)} },
		"a text":     func(_ int, e string) []string { return []string{index.ReplaceAllString(e, `"output_index":"$1",`)} },
		"a fraction": func(_ int, e string) []string { return []string{index.ReplaceAllString(e, `"output_index":$1.0,`)} },
		"from one": func(_ int, e string) []string {
			return []string{strings.NewReplacer(`output_index":0`, `output_index":1`, `output_index":1`, `output_index":2`).Replace(e)}
		},
		"all zero":             func(_ int, e string) []string { return []string{index.ReplaceAllString(e, `"output_index":0,`)} },
		"each announced twice": func(_ int, e string) []string { return []string{e, e}[:1+strings.Count(e, "item.added")] },
		"no index, announced too": func(_ int, e string) []string {
			e = index.ReplaceAllString(e, "")
			return []string{e, e}[:1+strings.Count(e, "item.added")]
		},
		"all zero, new ids at the end": func(i int, e string) []string {
			if i == last {
				return []string{newIDs.Replace(e)}
			}
			return []string{index.ReplaceAllString(e, `"output_index":0,`)}
		},
		"another call id at the end": func(i int, e string) []string {
			if i == last {
				e = otherCall.Replace(e)
			}
			return []string{e}
		},
		"another call id at another place of the end": func(i int, e string) []string {
			if i == last {
				e = regexp.MustCompile(`\[\{"type":"message".*?\]\},`).ReplaceAllString(otherCall.Replace(e), "[")
			}
			return []string{e}
		},
		"no index, new ids at the end": func(i int, e string) []string {
			if i == last {
				return []string{newIDs.Replace(e)}
			}
			return []string{index.ReplaceAllString(e, "")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Codec{}.NewAssembler(nil)
			var text string
			starts := 0
			for i, e := range events {
				for _, edited := range edit(i, e) {
					ds, err := a.Append(nil, "", []byte(edited))
					if err != nil {
						t.Fatal(err)
					}
					for _, d := range ds {
						if d.Kind == lathe.DeltaText {
							text += d.Text
						}
						if d.Kind == lathe.DeltaCallStart {
							starts++
						}
					}
				}
			}
			f, err := a.Finish(true)
			if err != nil {
				t.Fatal(err)
			}
			calls := f.Message.Calls()
			if got := fmt.Sprint(f.Message.Text(), " ", text, " ", starts, len(calls)); got != "Hi Hi 1 1" || calls[0].Arguments != `{"n":1}` || calls[0].Incomplete {
				t.Errorf("text, text of deltas, starts and number of calls are %q, calls %+v, faults %+v", got, calls, f.Faults)
			}
		})
	}
}

// Items that have one id and no index are distinct: calls by their call ids, and messages because the first has ended.
func TestItemsWithOneIDAreDistinct(t *testing.T) {
	t.Parallel()
	message := func(text string) []string {
		return []string{
			`{"type":"response.output_item.added","item":{"type":"message","id":"x","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"x","content_index":0,"delta":"` + text + `"}`,
			`{"type":"response.output_item.done","item":{"type":"message","id":"x","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}}`,
		}
	}
	call := func(id string) []string {
		return []string{
			`{"type":"response.output_item.added","item":{"type":"function_call","id":"y","call_id":"` + id + `","name":"pay","arguments":""}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","id":"y","call_id":"` + id + `","name":"pay","arguments":"{\"id\":\"` + id + `\"}"}}`,
		}
	}
	a := Codec{}.NewAssembler(nil)
	events := slices.Concat([]string{`{"type":"response.created","response":{"id":"r_1","model":"m"}}`}, message("A"), message("B"), call("c_1"), call("c_2"),
		[]string{`{"type":"response.completed","response":{"id":"r_1","model":"m","status":"completed","output":[]}}`})
	for _, e := range events {
		if _, err := a.Append(nil, "", []byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := a.Finish(true)
	if err != nil {
		t.Fatal(err)
	}
	calls := f.Message.Calls()
	if f.Message.Text() != "AB" || len(calls) != 2 || calls[0].Arguments != `{"id":"c_1"}` || calls[1].Arguments != `{"id":"c_2"}` {
		t.Errorf("text %q, calls %+v, faults %+v", f.Message.Text(), calls, f.Faults)
	}
}
