package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

// A gen makes random answers.
type gen struct{ *rand.Rand }

var scraps = []string{"a", "Zwölf", "\"", "\\", "\n", "\r\n", "data: ", "\u2028", "😀", "{", "}", " ", "\x00", "event: error\n\n"}

func (g gen) text() string {
	var b strings.Builder
	for range 1 + g.IntN(5) {
		b.WriteString(scraps[g.IntN(len(scraps))])
	}
	return b.String()
}

// pieces cuts a text between characters.
func (g gen) pieces(s string) (out []string) {
	runes := []rune(s)
	for len(runes) > 0 {
		n := 1 + g.IntN(len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}

// answer makes a message, of which neighbours differ in kind, and its deltas: each call's pieces in any order among those
// of the others.
func (g gen) answer() (lathe.Message, []lathe.Delta) {
	m := lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireResponses}
	var deltas, late []lathe.Delta
	last, call := -1, 0
	for range g.IntN(6) {
		kind := g.IntN(5)
		if kind == last && kind != 4 {
			continue
		}
		last = kind
		s := g.text()
		add := func(k lathe.DeltaKind) {
			for _, piece := range g.pieces(s) {
				deltas = append(deltas, lathe.Delta{Kind: k, Text: piece})
			}
		}
		switch kind {
		case 0:
			m.Parts = append(m.Parts, lathe.Text{Text: s})
			add(lathe.DeltaText)
		case 1:
			m.Parts = append(m.Parts, lathe.Text{Text: s, Commentary: true})
			add(lathe.DeltaCommentary)
		case 2:
			m.Parts = append(m.Parts, lathe.Refusal{Text: s})
			add(lathe.DeltaRefusal)
		case 3:
			r := lathe.Reasoning{Text: s, Field: fieldEncrypted, Data: g.text()}
			m.Parts = append(m.Parts, r)
			add(lathe.DeltaReasoning)
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldEncrypted, Text: r.Data})
		case 4:
			c := lathe.ToolCall{ID: fmt.Sprint("call_", call), Name: fmt.Sprint("f", g.IntN(3)), Arguments: string(rawjson.AppendQuote([]byte(`{"v":`), s)) + "}"}
			m.Parts = append(m.Parts, c)
			start := lathe.Delta{Kind: lathe.DeltaCallStart, Index: call, ID: c.ID, Name: c.Name}
			rest := []lathe.Delta{}
			for _, piece := range g.pieces(c.Arguments) {
				rest = append(rest, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: call, Text: piece})
			}
			rest = append(rest, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: call})
			deltas = append(deltas, start)
			if g.IntN(2) == 0 {
				late = g.shuffle(late, rest)
			} else {
				deltas = append(deltas, rest...)
			}
			call++
		}
	}
	return m, append(deltas, late...)
}

// shuffle merges two lists, keeping the order of each.
func (g gen) shuffle(a, b []lathe.Delta) (out []lathe.Delta) {
	for len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && g.IntN(2) == 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

func reasonOf(m *lathe.Message) lathe.FinishReason {
	if len(m.Calls()) > 0 {
		return lathe.FinishToolCalls
	}
	return lathe.FinishStop
}

// withoutIDs are messages without the ids of reasoning.
func withoutIDs(m lathe.Message) lathe.Message {
	parts := make([]lathe.Part, len(m.Parts))
	for i, p := range m.Parts {
		if r, ok := p.(lathe.Reasoning); ok {
			r.ID = ""
			p = r
		}
		parts[i] = p
	}
	m.Parts = parts
	if len(parts) == 0 {
		m.Parts = nil
	}
	return m
}

// TestW22_WrittenAnswersAreReadAsTheyWere: whatever the order of the pieces of parallel calls.
func TestW22_WrittenAnswersAreReadAsTheyWere(t *testing.T) {
	for seed := range uint64(2000) {
		g := gen{rand.New(rand.NewPCG(seed, 1))}
		m, deltas := g.answer()
		head := testHead(t, `{"model":"m","input":"x"}`)
		w := Codec{}.NewWriter(head)
		var stream []byte
		for _, d := range deltas {
			stream = w.AppendDelta(stream, d)
		}
		f := &lathe.Finish{Message: m, Reason: reasonOf(&m), Usage: lathe.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7, CachedTokens: 2, CacheWriteTokens: 1, ReasoningTokens: 1}}
		stream = w.AppendFinish(stream, f, nil)
		last := checkStreamRules(t, stream)
		if whole := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: f}); !bytes.Equal(last, whole) {
			t.Fatalf("seed %d\nstream %s\nwhole  %s", seed, last, whole)
		}
		got, g2, sound, err := assemble(events(stream))
		if err != nil || !sound {
			t.Fatalf("seed %d: %v, sound %v\n%s", seed, err, sound, stream)
		}
		checkDeltas(t, got, g2)
		if d := cmp.Diff(withoutIDs(m), withoutIDs(g2.Message)); d != "" || g2.Reason != f.Reason || g2.Usage != f.Usage || len(g2.Faults) > 0 {
			t.Fatalf("seed %d: %v %v\n%s", seed, g2.Reason, g2.Faults, d)
		}
	}
}

// TestW8_CutStreams: a stream that is cut at any byte has no answer, and its writer can still end it properly.
func TestW8_CutStreams(t *testing.T) {
	stream := read(t, testdata.Dir(t, "wires", "examples", "responses.sse"))
	whole := bytes.Index(stream, []byte("event: response.completed"))
	for n := range whole {
		if _, _, _, err := assemble(events(stream[:n])); !errors.Is(err, wire.ErrIncomplete) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	list := events(stream)
	for n := range list {
		// The events up to n are passed on, then the server goes on by itself, or fails.
		for _, fails := range []bool{false, true} {
			w := Codec{}.NewWriter(testHead(t, `{"model":"m","input":"x"}`))
			a := Codec{}.NewAssembler(nil)
			var out []byte
			for _, e := range list[:n] {
				deltas, err := a.Append(nil, e.typ, e.data)
				if err != nil {
					t.Fatal(err)
				}
				raw := fmt.Appendf(nil, ": x\nevent: %s\ndata: %s\n\n", e.typ, e.data)
				id, model := a.Names()
				w.Pass(&lathe.Raw{Bytes: raw, Sound: a.Sound(), ID: id, Model: model, Finished: a.Finished(), Deltas: deltas})
				out = append(out, raw...)
			}
			if fails {
				out = w.AppendError(out, &wire.APIError{Message: "broke", Code: "upstream"})
			} else {
				for _, e := range list[n:] {
					deltas, err := a.Append(nil, e.typ, e.data)
					if err != nil {
						t.Fatal(err)
					}
					for _, d := range deltas {
						out = w.AppendDelta(out, d)
					}
				}
				f, err := a.Finish(true)
				if err != nil {
					t.Fatal(err)
				}
				out = w.AppendFinish(out, f, nil)
			}
			if n == len(list) {
				continue
			}
			last := checkStreamRules(t, out)
			if fails {
				continue
			}
			_, f, _, err := assemble(events(out))
			if err != nil {
				t.Fatalf("passed %d: %v\n%s", n, err, out)
			}
			_, g, err := Codec{}.NewAssembler(nil).Complete(nil, last)
			if err != nil {
				t.Fatal(err)
			}
			_, want, err := Codec{}.NewAssembler(nil).Complete(nil, terminal(list))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []lathe.Message{f.Message, g.Message} {
				if d := cmp.Diff(withoutIDs(want.Message), withoutIDs(m)); d != "" {
					t.Fatalf("passed %d\n%s\n%s", n, d, out)
				}
			}
		}
	}
}

// TestW8_FailureAtAnyDelta: exactly one end.
func TestW8_FailureAtAnyDelta(t *testing.T) {
	for seed := range uint64(100) {
		g := gen{rand.New(rand.NewPCG(seed, 2))}
		_, deltas := g.answer()
		for n := range len(deltas) + 1 {
			w := Codec{}.NewWriter(testHead(t, `{"model":"m","input":"x"}`))
			var out []byte
			for _, d := range deltas[:n] {
				out = w.AppendDelta(out, d)
			}
			out = w.AppendError(out, &wire.APIError{Message: "broke"})
			for _, d := range deltas[n:] {
				out = w.AppendDelta(out, d)
			}
			out = w.AppendError(w.AppendFinish(out, &lathe.Finish{}, nil), &wire.APIError{})
			if got := text(checkStreamRules(t, out), "status"); got != "failed" {
				t.Fatalf("seed %d: %s", seed, got)
			}
		}
	}
}

// TestW23_CutCallIsNeverWhole: neither as the server of this wire nor as its client.
func TestW23_CutCallIsNeverWhole(t *testing.T) {
	w := Codec{}.NewWriter(testHead(t, `{"model":"m","input":"x"}`))
	out := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaCallStart, ID: "c", Name: "f"})
	out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallArgs, Text: `{"a":"Par`})
	out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallEnd, Incomplete: true})
	out = w.AppendFinish(out, &lathe.Finish{Reason: lathe.FinishLength, Message: lathe.Message{Parts: []lathe.Part{lathe.ToolCall{ID: "c", Name: "f", Arguments: `{"a":"Par`, Incomplete: true}}}}, nil)
	last := checkStreamRules(t, out)
	if !strings.Contains(string(last), `"arguments":"{\"a\":\"Par","status":"incomplete"`) || !strings.Contains(string(last), `"incomplete_details":{"reason":"max_output_tokens"}`) {
		t.Errorf("%s", last)
	}
	_, f, _, err := assemble(events(out))
	if err != nil || f.Reason != lathe.FinishLength || !f.Message.Calls()[0].Incomplete {
		t.Errorf("%+v %v", f, err)
	}
	open := strings.Replace(string(out), "event: response.output_item.done", "event: response.lost", 1)
	open = strings.Replace(open, `"type":"response.output_item.done"`, `"type":"response.lost"`, 1)
	open = strings.Replace(open, `"output":[{`, `"output":[],"x":[{`, 1)
	if _, f, _, err := assemble(events([]byte(open))); err != nil || f.Reason != lathe.FinishLength || !f.Message.Calls()[0].Incomplete {
		t.Errorf("%+v %v", f, err)
	}
}

func TestArgumentsThatDifferAreNotExecuted(t *testing.T) {
	const head = `{"type":"response.created","response":{"id":"r","model":"m"}}
{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}}
{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc","delta":"{\"a\":1}"}
`
	for _, rest := range []string{
		`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":2}"}` + "\n" + `{"type":"response.completed","response":{"output":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":2}"}}` + "\n" + `{"type":"response.completed","response":{}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":1}"}}` + "\n" + `{"type":"response.completed","response":{"output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":2}"}]}}`,
	} {
		var list []event
		for line := range strings.Lines(head + rest) {
			list = append(list, event{"", []byte(line)})
		}
		_, f, sound, err := assemble(list)
		if err != nil || sound || !f.Message.Calls()[0].Incomplete || len(f.Faults) == 0 || f.Faults[0].Kind != faultArgsDiffer {
			t.Errorf("%+v %v %v", f, sound, err)
		}
	}
}

// TestArgumentsWrittenAnewAreTheSame: the pieces count, as the model wrote them.
func TestArgumentsWrittenAnewAreTheSame(t *testing.T) {
	_, f, _, err := assemble([]event{
		{"", []byte(`{"type":"response.created","response":{}}`)},
		{"", []byte(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","name":"f"}}`)},
		{"", []byte(`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"b\": 1, \"a\":12345678901234567890}"}`)},
		{"", []byte(`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","name":"f","arguments":"{\"a\":12345678901234567890,\"b\":1}"}}`)},
		{"", []byte(`{"type":"response.completed","response":{"output":[{"type":"function_call","id":"fc_1","name":"f","arguments":"{ }"}]}}`)},
	})
	if err != nil || !f.Message.Calls()[0].Incomplete { // the whole says something else
		t.Errorf("%+v %v", f, err)
	}
	_, f, sound, err := assemble([]event{
		{"", []byte(`{"type":"response.created","response":{}}`)},
		{"", []byte(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","name":"f"}}`)},
		{"", []byte(`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"b\": 1, \"a\":12345678901234567890}"}`)},
		{"", []byte(`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","name":"f","arguments":"{\"a\":12345678901234567890,\"b\":1}"}}`)},
		{"", []byte(`{"type":"response.completed","response":{"output":[]}}`)},
	})
	want := lathe.ToolCall{ID: "fc_1", Name: "f", Arguments: `{"b": 1, "a":12345678901234567890}`}
	if err != nil || !sound || cmp.Diff(want, f.Message.Calls()[0]) != "" {
		t.Errorf("%+v %v %v", f, sound, err)
	}
}

func TestAssemblerBoundsAnswers(t *testing.T) {
	added := func(i int, typ string) []byte {
		return fmt.Appendf(nil, `{"type":"response.output_item.added","output_index":%d,"item":{"type":%q,"id":"i%d","call_id":"c%d","name":"f"}}`, i, typ, i, i)
	}
	a := Codec{}.NewAssembler(&wire.AssemblerOptions{MaxCalls: 3, MaxBytes: 1000})
	var err error
	for i := 0; err == nil; i++ {
		_, err = a.Append(nil, "", added(i, "function_call"))
	}
	if !errors.Is(err, wire.ErrTooManyCalls) {
		t.Error(err)
	}
	if _, err := a.Finish(true); !errors.Is(err, wire.ErrTooManyCalls) {
		t.Error(err)
	}
	for _, event := range []string{
		`{"type":"response.output_text.delta","output_index":0,"content_index":%d,"delta":"xxxxxxxxxx"}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":%d,"delta":"xxxxxxxxxx"}`,
		`{"type":"response.output_item.added","output_index":%d,"item":{"type":"message"}}`,
		`{"type":"response.output_item.done","output_index":%d,"item":{"type":"web_search_call"}}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"n":%d,"delta":"xxxxxxxxxx"}`,
		`{"type":"response.custom_tool_call_input.delta","output_index":0,"n":%d,"delta":"xxxxxxxxxx"}`,
	} {
		a = Codec{}.NewAssembler(&wire.AssemblerOptions{MaxBytes: 1000})
		err = nil
		for i := 0; err == nil && i < 1000; i++ {
			_, err = a.Append(nil, "", fmt.Appendf(nil, event, i))
		}
		if !errors.Is(err, wire.ErrTooManyBytes) {
			t.Errorf("%s: %v", event, err)
		}
	}
	if _, _, err := (Codec{}).NewAssembler(&wire.AssemblerOptions{MaxBytes: 1000}).Complete(nil, []byte(`{"output":[{"type":"message","content":[{"type":"output_text","text":"`+strings.Repeat("x", 2000)+`"}]}]}`)); !errors.Is(err, wire.ErrTooLarge) {
		t.Error(err)
	}
}

func TestCompleteRefusesWhatIsNoAnswer(t *testing.T) {
	for body, want := range map[string]error{"": wire.ErrNoAnswer, "<html>": wire.ErrNoAnswer, "{}": wire.ErrNoAnswer, "[1]": wire.ErrNoAnswer, `{"output":[]} x`: wire.ErrNoAnswer,
		`{"output":[],"status":"in_progress"}`: wire.ErrIncomplete, `{"output":[],"status":"cancelled"}`: wire.ErrIncomplete} {
		if _, _, err := (Codec{}).NewAssembler(nil).Complete(nil, []byte(body)); !errors.Is(err, want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{`{"error":{"message":"m","code":"c"}}`, `{"status":"failed","output":[],"error":{"message":"m","code":"c"}}`} {
		_, _, err := Codec{}.NewAssembler(nil).Complete(nil, []byte(body))
		var e *wire.APIError
		if !errors.As(err, &e) || e.Message != "m" || e.Code != "c" {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestPaddedEventsHaveOneSize(t *testing.T) {
	sizes := map[int]bool{}
	for _, s := range []string{"a", strings.Repeat("b", 30), strings.Repeat("c", 62)} {
		w := Codec{}.NewWriter(testHead(t, `{"model":"m","input":"x","stream_options":{"include_obfuscation":true}}`))
		w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaText, Text: "x"})
		out := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaText, Text: s})
		sizes[len(out)] = true
		if err := rawjson.Check(events(out)[0].data, rawjson.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(sizes) != 1 {
		t.Errorf("sizes %v", sizes)
	}
}

// TestHistoryOfAnAnswerIsKept: what a client sends back of an answer is what was in it.
func TestW12_HistoryOfAnAnswerIsKept(t *testing.T) {
	for seed := range uint64(500) {
		g := gen{rand.New(rand.NewPCG(seed, 3))}
		m, _ := g.answer()
		r := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *testHead(t, `{"model":"m","input":"x"}`), Finish: &lathe.Finish{Message: m, Reason: reasonOf(&m)}})
		input := bytes.TrimSuffix(bytes.TrimPrefix(get(r, "output"), []byte("[")), []byte("]"))
		body := fmt.Appendf(nil, `{"model":"m","input":[{"role":"user","content":"x"}%s%s]}`, strings.Repeat(",", min(len(input), 1)), input)
		req := parseRequest(t, body)
		if len(m.Parts) == 0 {
			continue
		}
		if d := cmp.Diff(withoutIDs(m), withoutIDs(req.Messages[1])); d != "" {
			t.Fatalf("seed %d\n%s\n%s", seed, d, body)
		}
		checkRoundTrip(t, body)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call_output","call_id":"c","output":"x"}],"tools":[{"type":"custom","name":"f"}]}`))
	f.Add([]byte(`{"model":"m","input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]},{"type":"web_search"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Codec{}.ParseRequest(body)
		if err != nil {
			if e, ok := err.(*wire.APIError); !ok || e.Status != 400 || e.Message == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		out, _ := written(t, r, nil)
		if _, err := (Codec{}).ParseRequest(out); err != nil && r.PreviousID == "" && !bytes.Contains(body, []byte("item_reference")) {
			t.Fatalf("%v\n%s\n%s", err, body, out)
		}
		checkResource(t, wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: wire.AnswerHead{ID: "1", Model: "m", Request: r}}))
	})
}

func FuzzAssembler(f *testing.F) {
	f.Add([]byte(`{"type":"response.created","response":{}}
{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","call_id":"c","name":"f"}}
{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"x"}
{"type":"response.completed","response":{"output":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"xy"}]}}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		a := Codec{}.NewAssembler(&wire.AssemblerOptions{MaxBytes: 1 << 16, MaxCalls: 8})
		var deltas []lathe.Delta
		for line := range bytes.Lines(stream) {
			deltas, _ = a.Append(deltas, "", line)
		}
		fin, err := a.Finish(true)
		if err != nil {
			return
		}
		_, calls := said(deltas)
		for i, c := range fin.Message.Calls() {
			if calls[i].Arguments != c.Arguments || calls[i].ID != c.ID && calls[i].ID != "" {
				t.Fatalf("call %d: %+v and %+v", i, calls[i], c)
			}
		}
		if (fin.Reason == lathe.FinishToolCalls) && len(fin.Message.Calls()) == 0 {
			t.Fatal("no calls")
		}
		b, _ := Codec{}.AppendRequest(nil, &lathe.Request{Messages: []lathe.Message{fin.Message}}, nil)
		if !json.Valid(b) {
			t.Fatalf("%s", b)
		}
	})
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte{1, 5, 6, 1, 7, 2, 3, 4, 9, 8}, "text")
	f.Add([]byte("0101"), "\xb0\xca") // a character in two pieces
	f.Fuzz(func(t *testing.T, ops []byte, s string) {
		head := &wire.AnswerHead{ID: s, Model: s}
		w := Codec{}.NewWriter(head)
		var out []byte
		for _, o := range ops[:min(len(ops), 200)] {
			index := int(o>>4) & 3
			switch o & 15 {
			case 1, 2, 3, 4:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaKind(o & 15), Text: s})
			case 5:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: index, ID: "c" + s, Name: s})
			case 6:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: index, Text: s})
			case 7:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: index, Incomplete: o > 200})
			case 8:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldEncrypted, Text: s})
			case 9:
				out = w.AppendCarrier(out, s)
			case 10:
				out = w.AppendServerCall(out, &wire.ServerCall{Name: s, Output: s, Failed: o > 128})
			case 11:
				out = w.AppendApproval(out, &wire.Approval{ID: "a" + fmt.Sprint(len(out)), Name: s})
			}
		}
		if len(ops)%2 == 0 {
			out = w.AppendFinish(out, &lathe.Finish{}, nil)
		} else {
			out = w.AppendError(out, &wire.APIError{Message: s})
		}
		checkStreamRules(t, out)
		if _, _, sound, err := assemble(events(out)); len(ops)%2 == 0 && (err != nil || !sound) {
			t.Fatalf("%v %v\n%s", sound, err, out)
		}
	})
}

func TestEventsThatAreNoObjects(t *testing.T) {
	for _, data := range []string{`{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":01}`, `{"a":1}}`, `{"a":1} x`, `[]`, `1`, `{"a":"\q"}`, `{a:1}`, `{,}`, `{"a"1}`, `{"a":}`} {
		var e streamEvent
		if e.read([]byte(data)) {
			t.Errorf("%s was read", data)
		}
	}
	for _, data := range []string{`{}`, ` { } `, `{"a":1}`, "{\n\"type\" : \"x\" ,\"delta\":[{}]\t}\n"} {
		var e streamEvent
		if !e.read([]byte(data)) {
			t.Errorf("%s was not read", data)
		}
	}
}
