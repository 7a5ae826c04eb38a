package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// deltaTypes are the deltas that a block of a type may have.
var deltaTypes = map[string]string{
	"text": "text_delta citations_delta", "thinking": "thinking_delta signature_delta", "tool_use": "input_json_delta",
	"redacted_thinking": "", "mcp_tool_use": "", "mcp_tool_result": "", "server_tool_use": "input_json_delta",
}

// checkStream checks that a stream is what the wire allows: the order of events, dense indexes, one block at a time, the
// members of each event, inputs that are objects unless the answer was cut, and exactly one end.
func checkStream(t testing.TB, stream []byte) {
	t.Helper()
	fail := func(format string, args ...any) { t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), stream) }
	next, open, input, calls := 0, "", "", 0
	started, stopped, ended := false, "", false
	for _, e := range events(t, stream) {
		if ended {
			fail("%s after the end", e.typ)
		}
		if rawjson.Check(e.data, rawjson.Limits{}) != nil || text(e.data, "type") != e.typ {
			fail("%s does not have data of its type: %s", e.typ, e.data)
		}
		if !started && e.typ != "message_start" && e.typ != "error" {
			fail("%s before message_start", e.typ)
		}
		index := string(get(e.data, "index"))
		switch e.typ {
		case "message_start":
			if started || text(get(e.data, "message"), "role") != "assistant" {
				fail("second or wrong message_start")
			}
			started = true
		case "content_block_start":
			if open != "" || index != fmt.Sprint(next) || stopped != "" {
				fail("block %s of type %q opens; open is %q, next %d, stopped %q", index, text(get(e.data, "content_block"), "type"), open, next, stopped)
			}
			open, input = text(get(e.data, "content_block"), "type"), ""
			if _, known := deltaTypes[open]; !known {
				fail("block of type %q", open)
			}
			if open == "tool_use" {
				calls++
			}
		case "content_block_delta":
			typ := text(get(e.data, "delta"), "type")
			if open == "" || index != fmt.Sprint(next) || typ == "" || !strings.Contains(deltaTypes[open], typ) {
				fail("delta %q in block %s of type %q, open is %d", typ, index, open, next)
			}
			input += text(get(e.data, "delta"), "partial_json")
		case "content_block_stop":
			if open == "" || index != fmt.Sprint(next) {
				fail("block %s closes, open is %d %q", index, next, open)
			}
			open = ""
			next++
		case "message_delta":
			stopped = text(get(e.data, "delta"), "stop_reason")
			if stopped == "" || rawjson.Kind(get(e.data, "usage")) != '{' || open != "" {
				fail("message_delta without reason or usage, or within a block")
			}
			if (stopped == "tool_use") != (calls > 0) && stopped != "max_tokens" && stopped != "refusal" && stopped != "model_context_window_exceeded" {
				fail("stop_reason %q with %d calls", stopped, calls)
			}
		case "message_stop":
			if stopped == "" {
				fail("message_stop without message_delta")
			}
			ended = true
		case "error":
			ended = true
		case "ping":
		default:
			fail("event %s", e.typ)
		}
	}
	if !ended {
		fail("no end")
	}
}

// An answer is generated from random numbers: its parts and the deltas of them.
func randomAnswer(r *rand.Rand) (*lathe.Finish, []lathe.Delta) {
	f := &lathe.Finish{Reason: lathe.FinishStop, RawReason: "end_turn", Model: "m", Usage: lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 184, CachedTokens: 90, CacheWriteTokens: 10, ReasoningTokens: 20}}
	f.Message = lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireMessages}
	word := func() string {
		return []string{"a", "Grüße ", "\n", "\"q\"\\", "😀", strings.Repeat("x", 40)}[r.IntN(6)]
	}
	var deltas []lathe.Delta
	calls, lastText := 0, false
	for range r.IntN(7) {
		switch k := r.IntN(5); {
		case k == 0 && !lastText:
			s := ""
			for range 1 + r.IntN(3) {
				w := word()
				s += w
				deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaText, Text: w})
			}
			f.Message.Parts = append(f.Message.Parts, lathe.Text{Text: s})
			lastText = true
			continue
		case k == 1:
			p := lathe.Reasoning{Text: word(), Field: fieldThinking, Data: "EqQB" + word()}
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaReasoning, Text: p.Text}, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldThinking, Text: p.Data})
			f.Message.Parts = append(f.Message.Parts, p)
		case k == 2:
			p := lathe.Reasoning{Field: fieldRedacted, Data: "data" + word()}
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldRedacted, Text: p.Data})
			f.Message.Parts = append(f.Message.Parts, p)
		default:
			c := lathe.ToolCall{ID: fmt.Sprint("toolu_", calls), Name: "get_weather", Arguments: `{"city":"Oslo","n":12345678901234567890.10}`}
			if r.IntN(3) == 0 {
				c.Arguments = "{}"
			}
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallStart, Index: calls, ID: c.ID, Name: c.Name})
			for rest := c.Arguments; rest != ""; {
				n := 1 + r.IntN(len(rest))
				deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: calls, Text: rest[:n]})
				rest = rest[n:]
			}
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: calls})
			f.Message.Parts = append(f.Message.Parts, c)
			calls++
		}
		lastText = false
	}
	if calls > 0 {
		f.Reason, f.RawReason = lathe.FinishToolCalls, "tool_use"
	}
	return f, deltas
}

// TestWriterIsReadBack: any answer is the same after it was written, as a stream and whole (W1, W5, W22).
func TestWriterIsReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		f, deltas := randomAnswer(r)
		if f.Message.Parts == nil {
			f.Message.Parts = []lathe.Part{}
		}
		checkWritten(t, deltas, f)
		w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1"})
		var stream []byte
		for _, d := range deltas {
			stream = w.AppendDelta(stream, d)
		}
		checkStream(t, w.AppendFinish(stream, f, nil))
	}
}

// TestWriterOrdersAnyDeltas: whatever the order of its methods, the stream is one that the wire allows, and each call has its
// arguments (W2, W7, W22).
func TestWriterOrdersAnyDeltas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		f, deltas := randomAnswer(r)
		// Pieces of one call stay in their order; all else is shuffled.
		var queues [][]lathe.Delta
		at := map[int]int{}
		for _, d := range deltas {
			switch d.Kind {
			case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
				k, ok := at[d.Index]
				if !ok {
					k = len(queues)
					at[d.Index] = k
					queues = append(queues, nil)
				}
				queues[k] = append(queues[k], d)
			default:
				queues = append(queues, []lathe.Delta{d})
			}
		}
		w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1"})
		var stream []byte
		for len(queues) > 0 {
			k := r.IntN(len(queues))
			d := queues[k][0]
			isCall := d.Kind == lathe.DeltaCallStart || d.Kind == lathe.DeltaCallArgs || d.Kind == lathe.DeltaCallEnd
			switch {
			case isCall && r.IntN(15) == 0:
				queues[k] = queues[k][:1] // what is missing of a call is in the finish
			case d.Kind == lathe.DeltaCallStart && r.IntN(10) == 0:
			default:
				stream = w.AppendDelta(stream, d)
			}
			if queues[k] = queues[k][1:]; len(queues[k]) == 0 {
				queues = append(queues[:k], queues[k+1:]...)
			}
			switch r.IntN(12) {
			case 0:
				stream = w.AppendServerCall(stream, &wire.ServerCall{ID: "c1", Name: "n", Server: "lathe", Arguments: `{"a":1}`, Output: "o"})
			case 1:
				stream = w.AppendCarrier(stream, "seal")
			case 2:
				stream = w.AppendStart(stream)
				stream = w.AppendKeepAlive(stream)
			}
		}
		stream = w.AppendFinish(stream, f, nil)
		checkStream(t, stream)
		_, got, err := accumulate(t, stream)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, c := range f.Message.Calls() {
			want[c.ID] = c.Arguments
		}
		have := map[string]string{}
		for _, c := range got.Message.Calls() {
			have[c.ID] = c.Arguments
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Fatalf("calls (-sent +read):\n%s\n%s", d, stream)
		}
		if extra := w.AppendError(w.AppendFinish(w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaText, Text: "x"}), f, nil), &wire.APIError{}); len(extra) > 0 {
			t.Fatalf("after the end: %s", extra)
		}
	}
}

// TestWriterEndsOnce: an answer that breaks off at any point ends with one error event, and no client takes it for whole (W8, W29).
func TestWriterEndsOnce(t *testing.T) {
	f, deltas := randomAnswer(rand.New(rand.NewPCG(9, 9)))
	for n := range len(deltas) + 1 {
		w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1"})
		var stream []byte
		for _, d := range deltas[:n] {
			stream = w.AppendDelta(stream, d)
		}
		stream = w.AppendError(stream, &wire.APIError{Status: 529, Message: "busy", RequestID: "req_1"})
		stream = w.AppendFinish(w.AppendError(stream, &wire.APIError{}), f, nil)
		stream = w.AppendKeepAlive(stream)
		checkStream(t, stream)
		_, _, err := accumulate(t, stream)
		if e, ok := err.(*wire.APIError); !ok || e.Type != "overloaded_error" || e.Message != "busy" || e.RequestID != "req_1" {
			t.Errorf("after %d deltas: %v", n, err)
		}
	}
}

// TestWriterShowsServerCalls: a call of this server is a pair of whole blocks, and comes back as one (W31, W33).
func TestWriterShowsServerCalls(t *testing.T) {
	call := wire.ServerCall{ID: "call_1", Name: "files.read", Server: "files", Arguments: `{"path":"a"}`, Output: "no such file", Failed: true}
	long := wire.ServerCall{ID: strings.Repeat("x", 100), Name: "n", Server: "lathe", Arguments: "", Output: ""}
	write := func(head wire.AnswerHead) []byte {
		w := Codec{}.NewWriter(&head)
		out := w.AppendServerCall(w.AppendStart(nil), &call)
		out = w.AppendServerCall(out, &long)
		out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaText, Text: "It is not there."})
		return w.AppendFinish(out, &lathe.Finish{Reason: lathe.FinishStop}, nil)
	}
	stream := write(wire.AnswerHead{ID: "1"})
	checkStream(t, stream)
	if bytes.Contains(stream, []byte("input_json_delta")) || !bytes.Contains(stream, []byte(`"stop_reason":"end_turn"`)) {
		t.Errorf("a server's call has a delta or is left to the client:\n%s", stream)
	}
	_, f, err := accumulate(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	whole := write(wire.AnswerHead{ID: "1", Whole: true})
	_, f2, err := Codec{}.NewAssembler(nil).Complete(nil, whole)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f.Message, f2.Message); d != "" {
		t.Errorf("streamed and whole differ:\n%s", d)
	}
	content, _ := rawjson.Get(whole, "content")
	body := fmt.Sprintf(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":%s},{"role":"user","content":"b"}]}`, content)
	r := parseRequest(t, []byte(body))
	for i, p := range r.Messages[1].Parts {
		if o, ok := p.(lathe.Opaque); ok != (i < 4) || ok && !IsServerBlock(o.JSON) {
			t.Errorf("part %d: %+v", i, p)
		}
	}
	for _, c := range []wire.ServerCall{call, long} {
		if id := ServerCallID(c.ID); len(id) > maxID || !bytes.Contains(content, []byte(id)) || OriginalCallID(id) != c.ID && len(c.ID) < maxID {
			t.Errorf("the id %q is shown as %q", c.ID, id)
		}
	}
	sent, dropped := Codec{}.AppendRequest(nil, &r.Request, nil)
	if bytes.Contains(sent, []byte("mcp_tool")) || len(dropped) > 0 {
		t.Errorf("the model's server gets the calls of this one, or they are listed: %v\n%s", dropped, sent)
	}
}

// TestWriterKeepsFramesWhole: JSON with line ends does not end the data of an event.
func TestWriterKeepsFramesWhole(t *testing.T) {
	w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1"})
	stream := w.AppendServerCall(nil, &wire.ServerCall{ID: "a", Name: "n\n", Server: "s", Arguments: "{\n\n \"a\": 1\r}", Output: "1\n\n2"})
	part := lathe.Opaque{JSON: []byte("{\n\n\"type\":\"server_tool_use\",\n\"input\":{}}")}
	stream = w.AppendDelta(stream, lathe.Delta{Kind: lathe.DeltaPart, Name: string(lathe.WireMessages), Part: part})
	stream = w.AppendFinish(stream, &lathe.Finish{Reason: lathe.FinishStop}, []lathe.Member{{Name: "lathe", Value: []byte("{\n\n}")}})
	checkStream(t, stream)
	_, got, err := accumulate(t, stream)
	if err != nil || len(got.Message.Parts) != 3 {
		t.Errorf("%v %+v", err, got)
	}
}

// TestWriterKeepsCallsWithOneID: two calls with the same id are two blocks, whether they were streamed or not.
func TestWriterKeepsCallsWithOneID(t *testing.T) {
	f := callFinish(lathe.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}, lathe.ToolCall{ID: "a", Name: "g", Arguments: `{"x":2}`})
	deltas := []lathe.Delta{{Kind: lathe.DeltaCallStart, Index: 0, ID: "a", Name: "f"}, {Kind: lathe.DeltaCallStart, Index: 1, ID: "a", Name: "g"}}
	for n := range 3 {
		stream := wrote(f, deltas[:n]...)
		checkStream(t, stream)
		_, got, err := accumulate(t, stream)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(f.Message.Calls(), got.Message.Calls()); d != "" {
			t.Errorf("%d streamed (-sent +read):\n%s", n, d)
		}
	}
}

// TestCarrierComesBack: a carrier is read from the next request exactly as it was, in its place.
func TestCarrierComesBack(t *testing.T) {
	seal := "v1." + strings.Repeat("A-_/+=", 100)
	write := func(head wire.AnswerHead) []byte {
		w := Codec{}.NewWriter(&head)
		out := w.AppendDelta(w.AppendStart(nil), lathe.Delta{Kind: lathe.DeltaReasoning, Text: "hm"})
		out = w.AppendCarrier(out, seal)
		out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaText, Text: "x"})
		return w.AppendFinish(out, &lathe.Finish{Reason: lathe.FinishStop}, nil)
	}
	stream := write(wire.AnswerHead{ID: "1"})
	checkStream(t, stream)
	whole := write(wire.AnswerHead{ID: "1", Whole: true})
	_, f, err := Codec{}.NewAssembler(nil).Complete(nil, whole)
	if err != nil {
		t.Fatal(err)
	}
	_, f2, err := accumulate(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f.Message, f2.Message); d != "" {
		t.Errorf("streamed and whole differ:\n%s", d)
	}
	content, _ := rawjson.Get(whole, "content")
	r := parseRequest(t, fmt.Appendf(nil, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":%s}]}`, content))
	want := []lathe.Part{lathe.Reasoning{Text: "hm", Field: fieldThinking}, lathe.Reasoning{Field: fieldRedacted, Data: seal}, lathe.Text{Text: "x"}}
	if d := cmp.Diff(want, r.Messages[1].Parts); d != "" {
		t.Errorf("parts (-want +got):\n%s", d)
	}
}

// TestWriterContinuesRelayedStream: after events that were sent as they came, at any point, the writer continues with the block
// and the index that are next.
func TestWriterContinuesRelayedStream(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	for range 100 {
		f, deltas := randomAnswer(r)
		checkContinued(t, f, deltas)
	}
}

func checkContinued(t *testing.T, f *lathe.Finish, deltas []lathe.Delta) {
	t.Helper()
	src := Codec{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m"})
	var stream []byte
	for _, d := range deltas {
		stream = src.AppendDelta(stream, d)
	}
	stream = src.AppendFinish(stream, f, nil)
	list := events(t, stream)
	for n := 1; n <= len(list); n++ {
		a := Codec{}.NewAssembler(nil)
		w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m"})
		broken := Codec{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m"})
		var out, cut []byte
		for i, e := range list {
			ds, err := a.Append(nil, e.typ, e.data)
			if err != nil {
				t.Fatal(err)
			}
			raw := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", e.typ, e.data)
			if i < n {
				out, cut = append(out, raw...), append(cut, raw...)
				w.Pass(&lathe.Raw{Bytes: raw, Deltas: ds})
				broken.Pass(&lathe.Raw{Bytes: raw, Deltas: ds})
				continue
			}
			for _, d := range ds {
				out = w.AppendDelta(out, d)
			}
		}
		got, err := a.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		out = w.AppendFinish(out, got, nil)
		checkStream(t, out)
		_, again, err := accumulate(t, out)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(got, again); d != "" {
			t.Fatalf("after %d events (-sent +read):\n%s\n%s", n, d, out)
		}
		checkStream(t, broken.AppendError(cut, &wire.APIError{Status: 500, Message: "x"}))
	}
}

// TestWriterEndsRelayedCallOnce: arguments that follow the relayed end of their block are not written, and no other call gets them.
func TestWriterEndsRelayedCallOnce(t *testing.T) {
	w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m"})
	begin := "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}}\n\n"
	w.Pass(&lathe.Raw{Bytes: []byte(begin), Deltas: []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "c", Name: "f"}}})
	w.Pass(&lathe.Raw{Bytes: []byte("data: {\"type\":\"content_block_stop\",\"index\":0}\n\n")})
	if out := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaCallArgs, Text: "{}"}); len(out) > 0 {
		t.Errorf("writes %s after the end of the block", out)
	}
}

// TestStopReasons: the reason follows from the content and not from the word (W6, W23, W24).
func TestStopReasons(t *testing.T) {
	call := lathe.ToolCall{ID: "toolu_1", Name: "f", Arguments: "{}"}
	for _, tt := range []struct {
		reason lathe.FinishReason
		raw    string
		parts  []lathe.Part
		stop   []string
		want   string
	}{
		{lathe.FinishStop, "stop", []lathe.Part{lathe.Text{Text: "a"}}, nil, `"end_turn","stop_sequence":null`},
		{lathe.FinishToolCalls, "tool_calls", []lathe.Part{call}, nil, `"tool_use","stop_sequence":null`},
		{lathe.FinishStop, "stop", []lathe.Part{call}, nil, `"tool_use","stop_sequence":null`},
		{lathe.FinishToolCalls, "tool_calls", []lathe.Part{lathe.Text{Text: "a"}}, nil, `"end_turn","stop_sequence":null`},
		{lathe.FinishLength, "length", []lathe.Part{call}, nil, `"max_tokens","stop_sequence":null`},
		{lathe.FinishLength, "model_context_window_exceeded", nil, nil, `"model_context_window_exceeded","stop_sequence":null`},
		{lathe.FinishContentFilter, "content_filter", nil, nil, `"refusal","stop_sequence":null`},
		{lathe.FinishStop, "stop", []lathe.Part{lathe.Refusal{Text: "no"}}, nil, `"refusal","stop_sequence":null`},
		{lathe.FinishStop, "pause_turn", []lathe.Part{lathe.Text{Text: "a"}}, nil, `"end_turn","stop_sequence":null`},
		{lathe.FinishStop, "stop_sequence", []lathe.Part{lathe.Text{Text: "a"}}, []string{"END"}, `"stop_sequence","stop_sequence":"END"`},
		{lathe.FinishUnknown, "x", []lathe.Part{lathe.Text{Text: "a"}}, nil, `"end_turn","stop_sequence":null`},
	} {
		f := &lathe.Finish{Reason: tt.reason, RawReason: tt.raw, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: tt.parts}}
		request := &wire.ClientRequest{}
		request.Sampling.Stop = tt.stop
		head := wire.AnswerHead{ID: "1", Request: request}
		w := Codec{}.NewWriter(&head)
		var stream []byte
		for d := range wire.Deltas(&f.Message) {
			stream = w.AppendDelta(stream, d)
		}
		stream = w.AppendFinish(stream, f, []lathe.Member{{Name: "lathe", Value: json.RawMessage(`{"run_id":"run_1"}`)}})
		checkStream(t, stream)
		for _, b := range [][]byte{stream, wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: head, Finish: f})} {
			if !bytes.Contains(b, []byte(`"stop_reason":`+tt.want)) {
				t.Errorf("%s %q: want %s in\n%s", tt.reason, tt.raw, tt.want, b)
			}
		}
		if !bytes.Contains(stream, []byte(`,"lathe":{"run_id":"run_1"}}`)) {
			t.Errorf("further members are missing:\n%s", stream)
		}
	}
}
