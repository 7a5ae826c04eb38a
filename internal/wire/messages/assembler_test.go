package messages

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

const start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":1,"output_tokens":1}}}`

// lines makes a stream of events, whose types their data say.
func lines(data ...string) (stream []byte) {
	for _, d := range data {
		stream = fmt.Appendf(stream, "event: %s\ndata: %s\n\n", text([]byte(d), "type"), d)
	}
	return stream
}

func opens(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func piece(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func closes(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func stops(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":9}}`, reason)
}

const last = `{"type":"message_stop"}`

func faults(f *lathe.Finish) string {
	var list []string
	for _, x := range f.Faults {
		list = append(list, fmt.Sprintf("%s %d", x.Kind, x.Count))
	}
	return strings.Join(list, ", ")
}

// TestAssemblerReadsExample: the example stream gives its parts in their order, the usage of the internal form, and the
// deltas of each.
func TestAssemblerReadsExample(t *testing.T) {
	deltas, f, err := accumulate(t, read(t, testdata.Dir(t, "wires", "examples", "messages.sse")))
	if err != nil {
		t.Fatal(err)
	}
	want := &lathe.Finish{
		Message: lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: []lathe.Part{
			lathe.Reasoning{Text: "Need two cities.", Field: "thinking", Data: "EqQB"},
			lathe.Text{Text: "I look both up."},
			lathe.ToolCall{ID: "toolu_A", Name: "get_weather", Arguments: `{"city":"Oslo"}`},
			lathe.ToolCall{ID: "toolu_B", Name: "get_weather", Arguments: `{"city":"Rome"}`},
		}},
		Reason: lathe.FinishToolCalls, RawReason: "tool_use", Model: "m", ResponseID: "msg_01",
		Usage: lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 184, CachedTokens: 100, ReasoningTokens: 20},
	}
	if d := cmp.Diff(want, f); d != "" {
		t.Errorf("answer (-want +got):\n%s", d)
	}
	var kinds []string
	for _, d := range deltas {
		kinds = append(kinds, fmt.Sprintf("%d:%d:%s%s%s", d.Kind, d.Index, d.ID, d.Name, d.Text))
	}
	wantKinds := []string{"2:0:Need two cities.", "11:0:thinkingEqQB", "1:0:I look both up.",
		"5:0:toolu_Aget_weather", `6:0:{"city":"`, `6:0:Oslo"}`, "7:0:", "5:1:toolu_Bget_weather", `6:1:{"city":"`, `6:1:Rome"}`, "7:1:"}
	if d := cmp.Diff(wantKinds, kinds); d != "" {
		t.Errorf("deltas (-want +got):\n%s", d)
	}
}

// TestAssemblerRefusesBrokenStream: a stream that ends anywhere before message_stop is no answer (W8).
func TestAssemblerRefusesBrokenStream(t *testing.T) {
	stream := read(t, testdata.Dir(t, "wires", "examples", "messages.sse"))
	list := events(t, stream)
	for n := range len(stream) {
		got := events(t, stream[:n])
		a := Codec{}.NewAssembler(nil)
		for _, e := range got {
			if _, err := a.Append(nil, e.typ, e.data); err != nil {
				t.Fatal(err)
			}
		}
		_, err := a.Finish(true)
		if whole := len(got) == len(list); whole != (err == nil) || !whole && !errors.Is(err, wire.ErrIncomplete) {
			t.Fatalf("%d bytes, %d of %d events: %v", n, len(got), len(list), err)
		}
	}
}

// TestAssemblerCalls: the arguments of a call are those that the model wrote, whichever form they come in, and a call that
// was cut off is never whole (W1, W21, W23).
func TestAssemblerCalls(t *testing.T) {
	call := func(i int) string {
		return opens(i, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"f","input":{}}`, i))
	}
	args := func(i int, s string) string {
		return piece(i, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, s))
	}
	for name, tt := range map[string]struct {
		events []string
		calls  []string // arguments, with a ! before those of an incomplete call
		reason lathe.FinishReason
		faults string
	}{
		"none":       {[]string{call(0), closes(0), stops("tool_use"), last}, []string{"{}"}, lathe.FinishToolCalls, ""},
		"empty":      {[]string{call(0), args(0, ""), closes(0), stops("tool_use"), last}, []string{"{}"}, lathe.FinishToolCalls, ""},
		"braces":     {[]string{call(0), args(0, "{}"), closes(0), stops("tool_use"), last}, []string{"{}"}, lathe.FinishToolCalls, ""},
		"blanks":     {[]string{call(0), args(0, " "), args(0, "\n"), closes(0), stops("tool_use"), last}, []string{"{}"}, lathe.FinishToolCalls, ""},
		"with blank": {[]string{call(0), args(0, " "), args(0, `{ "a": 1.50 }`), closes(0), stops("tool_use"), last}, []string{` { "a": 1.50 }`}, lathe.FinishToolCalls, ""},
		"at start": {[]string{opens(0, `{"type":"tool_use","id":"toolu_0","name":"f","input":{"a" : 12345678901234567890}}`), closes(0), stops("tool_use"), last},
			[]string{`{"a" : 12345678901234567890}`}, lathe.FinishToolCalls, ""},
		"two without": {[]string{call(0), closes(0), call(1), closes(1), stops("tool_use"), last}, []string{"{}", "{}"}, lathe.FinishToolCalls, ""},
		"other word":  {[]string{call(0), closes(0), stops("end_turn"), last}, []string{"{}"}, lathe.FinishToolCalls, faultStopMismatch + " 1"},
		"no call":     {[]string{stops("tool_use"), last}, nil, lathe.FinishStop, faultStopMismatch + " 1"},
		"cut":         {[]string{call(0), args(0, `{"a":`), closes(0), stops("max_tokens"), last}, []string{`!{"a":`}, lathe.FinishLength, ""},
		"cut at once": {[]string{call(0), closes(0), stops("max_tokens"), last}, []string{"!"}, lathe.FinishLength, ""},
		"cut in the second": {[]string{call(0), closes(0), call(1), args(1, "{"), closes(1), stops("model_context_window_exceeded"), last},
			[]string{"{}", "!{"}, lathe.FinishLength, ""},
		"whole and then cut": {[]string{call(0), args(0, "{}"), closes(0), opens(1, `{"type":"text","text":"a"}`), closes(1), stops("max_tokens"), last}, []string{"{}"}, lathe.FinishLength, ""},
		"refused within":     {[]string{call(0), args(0, `{"a"`), closes(0), stops("refusal"), last}, []string{`!{"a"`}, lathe.FinishContentFilter, ""},
		"not an object":      {[]string{call(0), args(0, `{"a"`), closes(0), stops("tool_use"), last}, []string{`{"a"`}, lathe.FinishToolCalls, faultArguments + " 1"},
		"block left open":    {[]string{call(0), args(0, `{}`), stops("tool_use"), last}, []string{`{}`}, lathe.FinishToolCalls, faultOrder + " 1"},
		"interleaved": {[]string{call(0), call(1), args(0, `{"a":`), args(1, `{"b":`), args(0, `1}`), args(1, `2}`), closes(0), closes(1), stops("tool_use"), last},
			[]string{`{"a":1}`, `{"b":2}`}, lathe.FinishToolCalls, faultOrder + " 3"},
	} {
		t.Run(name, func(t *testing.T) {
			deltas, f, err := accumulate(t, lines(append([]string{start}, tt.events...)...))
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, c := range f.Message.Calls() {
				s := c.Arguments
				if c.Incomplete {
					s = "!" + s
				}
				calls = append(calls, s)
			}
			if d := cmp.Diff(tt.calls, calls); d != "" || f.Reason != tt.reason || faults(f) != tt.faults {
				t.Errorf("got %q, %s, faults %q", calls, f.Reason, faults(f))
			}
			// The deltas say the same.
			began, said, ended := 0, make([]string, len(calls)), make([]int, len(calls))
			for _, d := range deltas {
				switch d.Kind {
				case lathe.DeltaCallStart:
					if d.Index != began {
						t.Errorf("call %d begins as %d", began, d.Index)
					}
					began++
				case lathe.DeltaCallArgs:
					said[d.Index] += d.Text
				case lathe.DeltaCallEnd:
					ended[d.Index]++
					if d.Incomplete {
						said[d.Index] = "!" + said[d.Index]
					}
				}
			}
			for i := range calls {
				if said[i] != calls[i] || ended[i] != 1 {
					t.Errorf("call %d: deltas say %q and end it %d times, the answer says %q", i, said[i], ended[i], calls[i])
				}
			}
		})
	}
}

// TestAssemblerFinishReasons: each stop_reason has its reason, and a pause is not taken for the end of the work (W24).
func TestAssemblerFinishReasons(t *testing.T) {
	for _, tt := range []struct {
		raw    string
		reason lathe.FinishReason
		faults string
	}{
		{"end_turn", lathe.FinishStop, ""},
		{"stop_sequence", lathe.FinishStop, ""},
		{"max_tokens", lathe.FinishLength, ""},
		{"model_context_window_exceeded", lathe.FinishLength, ""},
		{"refusal", lathe.FinishContentFilter, ""},
		{"pause_turn", lathe.FinishStop, faultPaused + " 1"},
		{"new_reason", lathe.FinishUnknown, faultStopReason + " 1"},
	} {
		_, f, err := accumulate(t, lines(start, opens(0, `{"type":"text","text":"a"}`), closes(0), stops(tt.raw), last))
		if err != nil {
			t.Fatal(err)
		}
		if f.Reason != tt.reason || f.RawReason != tt.raw || faults(f) != tt.faults {
			t.Errorf("%s: %s %q, faults %q", tt.raw, f.Reason, f.RawReason, faults(f))
		}
	}
}

// TestAssemblerUsage: input_tokens is without the tokens of the cache, counts are cumulative, and what is wrong is counted (W10).
func TestAssemblerUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		usage string
		want  lathe.Usage
		fault string
	}{
		"output only": {`{"output_tokens":9}`, lathe.Usage{InputTokens: 6, OutputTokens: 9, TotalTokens: 15, CachedTokens: 1, CacheWriteTokens: 2}, ""},
		"all": {`{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":40,"output_tokens_details":{"thinking_tokens":5}}`,
			lathe.Usage{InputTokens: 60, OutputTokens: 40, TotalTokens: 100, CachedTokens: 30, CacheWriteTokens: 20, ReasoningTokens: 5}, ""},
		"zeros":   {`{"input_tokens":0,"cache_read_input_tokens":null,"output_tokens":9}`, lathe.Usage{InputTokens: 6, OutputTokens: 9, TotalTokens: 15, CachedTokens: 1, CacheWriteTokens: 2}, ""},
		"invalid": {`{"output_tokens":-1,"input_tokens":"x"}`, lathe.Usage{InputTokens: 6, OutputTokens: 1, TotalTokens: 7, CachedTokens: 1, CacheWriteTokens: 2}, faultUsage + " 2"},
	} {
		_, f, err := accumulate(t, lines(start, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+tt.usage+`}`, last))
		if err != nil {
			t.Fatal(err)
		}
		if f.Usage != tt.want || faults(f) != tt.fault {
			t.Errorf("%s: %+v, faults %q", name, f.Usage, faults(f))
		}
	}
}

// TestAssemblerKeepsUnknownBlocks: blocks that Lathe does not know are kept with what their deltas add.
func TestAssemblerKeepsUnknownBlocks(t *testing.T) {
	_, f, err := accumulate(t, lines(start,
		opens(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`),
		piece(0, `{"type":"input_json_delta","partial_json":"{\"query\":"}`), piece(0, `{"type":"input_json_delta","partial_json":"\"a\"}"}`), closes(0),
		opens(1, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]}`), closes(1),
		opens(2, `{"type":"text","text":"","citations":[]}`),
		piece(2, `{"type":"text_delta","text":"cited"}`),
		piece(2, `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"u"}}`),
		piece(2, `{"type":"citations_delta","citation":{"type":"page"}}`), closes(2),
		opens(3, `{"type":"compaction","content":"a"}`), piece(3, `{"type":"compaction_delta","content":"b","n":1}`), piece(3, `{"type":"compaction_delta","content":"\u00e4","n":2}`), closes(3),
		`{"type":"new_event"}`, opens(4, `{"type":"text","text":""}`), piece(4, `{"type":"new_delta"}`), closes(4),
		stops("end_turn"), last))
	if err != nil {
		t.Fatal(err)
	}
	want := []lathe.Part{
		lathe.Opaque{JSON: []byte(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"a"}}`)},
		lathe.Opaque{JSON: []byte(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]}`)},
		lathe.Text{Text: "cited", Extra: []lathe.Member{{Name: "citations", Value: []byte(`[{"type":"web_search_result_location","url":"u"},{"type":"page"}]`)}}},
		lathe.Opaque{JSON: []byte(`{"type":"compaction","content":"ab\u00e4","n":2}`)},
	}
	if d := cmp.Diff(want, f.Message.Parts); d != "" || faults(f) != faultUnknownEvent+" 2" {
		t.Errorf("parts (-want +got), faults %q:\n%s", faults(f), d)
	}
}

// TestAssemblerReportsErrors: an error event ends the stream with what it says (W29).
func TestAssemblerReportsErrors(t *testing.T) {
	_, _, err := accumulate(t, lines(start, opens(0, `{"type":"text","text":"a"}`),
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`))
	var e *wire.APIError
	if !errors.As(err, &e) || *e != (wire.APIError{Type: "overloaded_error", Message: "Overloaded", RequestID: "req_1"}) {
		t.Errorf("%#v", err)
	}
	_, _, err = Codec{}.NewAssembler(nil).Complete(nil, []byte(`{"type":"error","error":{"type":"api_error","message":"x"}}`))
	if !errors.As(err, &e) || e.Type != "api_error" {
		t.Errorf("whole: %#v", err)
	}
	for _, body := range []string{"", "<html>", "[]", "{}", `{"id":"x","choices":[]}`} {
		if _, _, err := (Codec{}).NewAssembler(nil).Complete(nil, []byte(body)); !errors.Is(err, wire.ErrNoAnswer) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// TestAssemblerIsBounded: an answer above the limits is an error, and so is all that follows.
func TestAssemblerIsBounded(t *testing.T) {
	a := Codec{}.NewAssembler(&wire.AssemblerOptions{MaxBytes: 1000, MaxCalls: 2})
	_, err := a.Append(nil, "", []byte(opens(0, `{"type":"text","text":""}`)))
	for range 100 {
		if err == nil {
			_, err = a.Append(nil, "", []byte(piece(0, `{"type":"text_delta","text":"0123456789"}`)))
		}
	}
	if !errors.Is(err, wire.ErrTooManyBytes) {
		t.Errorf("bytes: %v", err)
	}
	if _, err := a.Finish(true); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("finish: %v", err)
	}
	a = Codec{}.NewAssembler(&wire.AssemblerOptions{MaxBytes: 1000, MaxCalls: 2})
	for i := range 3 {
		_, err = a.Append(nil, "", []byte(opens(i, `{"type":"tool_use","id":"a","name":"f","input":{}}`)))
	}
	if !errors.Is(err, wire.ErrTooManyCalls) {
		t.Errorf("calls: %v", err)
	}
	a = Codec{}.NewAssembler(&wire.AssemblerOptions{MaxBytes: 1000, MaxCalls: 2})
	for i := range 20 {
		_, err = a.Append(nil, "", []byte(opens(i, `{"type":"x"}`)))
	}
	if !errors.Is(err, wire.ErrTooManyBytes) {
		t.Errorf("blocks: %v", err)
	}
}

// TestAssemblerSound: a stream with damage is not passed on as it is.
func TestAssemblerSound(t *testing.T) {
	textBlock := opens(0, `{"type":"text","text":""}`)
	for name, tt := range map[string]struct {
		events []string
		sound  bool
	}{
		"whole":         {[]string{start, `{"type":"ping"}`, textBlock, closes(0), stops("end_turn"), last}, true},
		"unknown event": {[]string{start, `{"type":"new"}`, textBlock, closes(0), stops("end_turn"), last}, true},
		"no start":      {[]string{textBlock, closes(0), stops("end_turn"), last}, false},
		"gap":           {[]string{start, opens(1, `{"type":"text","text":""}`)}, false},
		"two open":      {[]string{start, textBlock, opens(1, `{"type":"text","text":""}`)}, false},
		"not open":      {[]string{start, closes(0)}, false},
		"bad json":      {[]string{start, `{"type":`}, false},
		"after the end": {[]string{start, stops("end_turn"), last, `{"type":"new"}`}, false},
	} {
		a := Codec{}.NewAssembler(nil)
		for _, e := range tt.events {
			if _, err := a.Append(nil, "", []byte(e)); err != nil {
				t.Fatal(err)
			}
		}
		if a.Sound() != tt.sound {
			t.Errorf("%s: sound is %v", name, a.Sound())
		}
	}
}
