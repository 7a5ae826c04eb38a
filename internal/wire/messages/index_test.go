package messages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// Servers leave out the indexes of blocks, write them as texts, begin a block twice or send all events twice: the answer has each block once.
func TestBlocksAreMatchedWithoutIndexes(t *testing.T) {
	t.Parallel()
	events := []string{
		`{"type":"message_start","message":{"id":"m_1","model":"m","content":[]}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t_1","name":"pay","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}`,
		`{"type":"message_stop"}`,
	}
	index := regexp.MustCompile(`"index":(\d),`)
	each := func(replacement string) (out []string) {
		for _, e := range events {
			out = append(out, index.ReplaceAllString(strings.Replace(e, `"index":0}`, `"index":0,"x":1}`, 1), replacement))
		}
		return out
	}
	var twice []string
	for _, e := range events {
		twice = append(twice, e)
		if strings.Contains(e, `"tool_use","id"`) {
			twice = append(twice, e)
		}
	}
	for name, sent := range map[string][]string{
		"as they are":      events,
		"no index":         each(""),
		"null":             each(`"index":null,`),
		"a text":           each(`"index":"$1",`),
		"a fraction":       each(`"index":$1.0,`),
		"a call twice":     twice,
		"all events twice": slices.Concat(events[:7], events),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Codec{}.NewAssembler(nil)
			var text string
			starts := 0
			for _, e := range sent {
				ds, err := a.Append(nil, "", []byte(e))
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
