package server

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire"
)

// A request that follows a run gets the deltas of a model call up to the first one that is missing, whether it subscribed late,
// the process that owns the run was reached late, or some were dropped on the way; what was written is then a beginning of the
// text in the next stored event, which has the rest.
func TestFollowerTakesTheBeginningOfATurn(t *testing.T) {
	t.Parallel()
	pieces := []string{"The ", "tools ", "said: ", "42"}
	for name, c := range map[string]struct {
		got  []int64 // the deltas that arrive
		want string
	}{
		"all":                {[]int64{1, 2, 3, 4}, "The tools said: 42"},
		"from the middle":    {[]int64{3, 4}, ""},
		"without the second": {[]int64{1, 3, 4}, "The "},
		"without the last":   {[]int64{1, 2, 3}, "The tools said: "},
		"twice":              {[]int64{1, 2, 1, 2, 3}, "The tools said: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			x := &watch{sink: func(e *event.Event) {
				if d, ok := e.Data.(*event.TextDelta); ok {
					got += d.Text
				}
			}}
			live := func(e event.Event) {
				if err := x.onLive(t.Context(), &e); err != nil {
					t.Fatal(err)
				}
			}
			for turn := range 2 { // the second one begins anew
				first := int64(2*turn + 1)
				got = ""
				live(event.Event{ID: first, Turn: turn + 1, Data: &event.ModelCallStarted{}})
				for _, n := range c.got {
					live(event.Event{After: first, N: n, Turn: turn + 1, Data: &event.TextDelta{Text: pieces[n-1]}})
				}
				if got != c.want {
					t.Errorf("turn %d: %q, want %q", turn+1, got, c.want)
				}
				m := lathe.Assistant("The tools said: 42")
				live(event.Event{ID: first + 1, Turn: turn + 1, Data: &event.ModelCallFinished{Message: &m}})
			}
		})
	}
}

// deltaEvent is the event of a delta, as the bus of this process has it, or as another process gets it.
func deltaEvent(t *testing.T, d lathe.Delta, crosses bool) event.Data {
	t.Helper()
	var data event.Data
	switch d.Kind {
	case lathe.DeltaText:
		data = &event.TextDelta{Text: d.Text}
	case lathe.DeltaCommentary:
		data = &event.CommentaryDelta{Text: d.Text}
	case lathe.DeltaReasoning:
		data = &event.ReasoningDelta{Text: d.Text}
	case lathe.DeltaReasoningData:
		data = &event.TextDelta{Delta: &d}
	case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		data = &event.ToolCallDelta{Text: d.Text}
	default:
		data = &event.TextDelta{Text: d.Text, Delta: &d}
	}
	if !crosses {
		return data
	}
	line, err := (&event.Event{RunID: "run_1", N: 1, Data: data}).AppendWithContent(nil)
	var e event.Event
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e.Data
}

// joined is what deltas write: kinds with their text, where pieces of one kind count as one.
func joined(deltas []lathe.Delta, of func(lathe.DeltaKind) bool) string {
	out, last := "", lathe.DeltaKind(0)
	for _, d := range deltas {
		isText := d.Kind == lathe.DeltaText || d.Kind == lathe.DeltaCommentary || d.Kind == lathe.DeltaReasoning || d.Kind == lathe.DeltaRefusal
		if !of(d.Kind) || isText && d.Text == "" {
			continue
		}
		if !isText || d.Kind != last {
			out += fmt.Sprintf("\n%d ", d.Kind)
		}
		out, last = out+d.Text, d.Kind
	}
	return out
}

// What a follower writes as it comes and at the end of the turn is the stream of the turn, whichever deltas it got: of this process, or without
// what does not cross to another one. Where the client does not get the data of the reasoning, text of another process is not delayed.
func TestFollowerHasTheWholeTurn(t *testing.T) {
	t.Parallel()
	cited := lathe.Text{Text: "three four", Extra: []lathe.Member{{Name: "citations", Value: json.RawMessage(`[{"type":"char_location"}]`)}}}
	call := lathe.ToolCall{ID: "c1", Name: "weather", Arguments: "{}"}
	for name, c := range map[string]struct {
		parts   []lathe.Part
		refuses bool // a refusal crosses as text
	}{
		"thinking and text":     {parts: []lathe.Part{lathe.Reasoning{Field: "thinking", Text: "I think.", Data: "signed"}, lathe.Text{Text: "one two"}}},
		"redacted and parts":    {parts: []lathe.Part{lathe.Reasoning{Field: "redacted_thinking", Data: "hidden"}, lathe.Opaque{JSON: []byte(`{"type":"web_search_tool_result"}`)}, lathe.Text{Text: "one two"}, cited}},
		"commentary":            {parts: []lathe.Part{lathe.Text{Text: "First this.", Commentary: true}, lathe.Reasoning{Field: "thinking", Text: "Hm.", Data: "signed"}, lathe.Text{Text: "one"}, lathe.Text{Text: "two"}}},
		"thinking of two parts": {parts: []lathe.Part{lathe.Reasoning{Field: "thinking", Text: "One.", Data: "a"}, lathe.Reasoning{Field: "thinking", Text: "Two.", Data: "b"}, cited}},
		"a call":                {parts: []lathe.Part{lathe.Reasoning{Field: "thinking", Text: "I call.", Data: "signed"}, lathe.Text{Text: "one"}, call}},
		"a refusal":             {parts: []lathe.Part{lathe.Reasoning{Text: "No."}, lathe.Refusal{Text: "I cannot do this."}}, refuses: true},
	} {
		m := lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: c.parts}
		var live []lathe.Delta
		for d := range wire.Deltas(&m) {
			if n := len(d.Text) / 2; n > 0 && d.Kind != lathe.DeltaReasoningData {
				first := d
				first.Text, d.Text = d.Text[:n], d.Text[n:]
				live = append(live, first)
			}
			live = append(live, d)
		}
		for _, crosses := range []bool{false, true} {
			for _, ordered := range []bool{true, false} {
				if crosses && c.refuses {
					continue
				}
				for n := range len(live) + 1 {
					var f followed
					var got []lathe.Delta
					for _, d := range live[:n] {
						e := deltaEvent(t, d, crosses)
						if td, is := e.(*event.TextDelta); f.note(e, ordered) && (!is || td.Text != "" || td.Delta != nil) {
							got = append(got, d)
						} else if is && td.Text != "" && !ordered {
							t.Errorf("%s: text is delayed", name)
						}
					}
					got = append(got, f.missing(&m)...)
					counts := func(k lathe.DeltaKind) bool {
						switch k {
						case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
							return false
						case lathe.DeltaText, lathe.DeltaCommentary, lathe.DeltaReasoning:
							return true
						default:
							return ordered || !crosses
						}
					}
					if a, b := joined(got, counts), joined(live, counts); a != b {
						t.Errorf("%s, crosses %v, ordered %v, %d of %d deltas: it has%s\nwant%s", name, crosses, ordered, n, len(live), a, b)
					}
				}
			}
		}
	}
	var f followed
	f.note(&event.TextDelta{Text: "another text"}, true)
	if m := lathe.Assistant("one two"); len(f.missing(&m)) != 0 {
		t.Error("the rest of a text that is another one is written")
	}
}
