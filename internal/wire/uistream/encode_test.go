package uistream_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire/uistream"
)

var update = flag.Bool("update", false, "write the golden files again")

func encode(p uistream.Protocol, opts *uistream.Options, events []event.Event) []byte {
	e := uistream.NewEncoder(p, opts)
	var out []byte
	for i := range events {
		out = e.Append(out, &events[i])
	}
	return e.AppendEnd(out)
}

// A recorder stamps events as the engine does.
type recorder struct {
	events []event.Event
	turn   int
	id, n  int64
}

func (t *recorder) tell(datas ...event.Data) {
	for _, d := range datas {
		ev := event.Event{RunID: "run_1", RequestID: "req_1", Turn: t.turn, Data: d, Time: time.Unix(0, 0)}
		if event.IsDelta(d) {
			t.n++
			ev.After, ev.N = t.id, t.n
		} else {
			t.id++
			ev.ID = t.id
			if _, ok := d.(*event.ModelCallStarted); ok {
				t.n = 0
			}
		}
		t.events = append(t.events, ev)
	}
}

func (t *recorder) call(id, tool, args string, seq int) {
	t.tell(&event.ToolCallProposed{ToolCallID: id, ToolName: tool, RawName: tool, RawArgs: args, Seq: seq}, &event.ToolCallPlanned{ToolCallID: id, Tool: tool, Seq: seq})
}

func message(parts ...lathe.Part) *lathe.Message {
	return &lathe.Message{Role: lathe.RoleAssistant, Parts: parts}
}

// scenes are runs that every protocol tells in a golden file.
func scenes() map[string][]event.Event {
	out := map[string][]event.Event{}
	add := func(name string, f func(t *recorder)) {
		t := &recorder{}
		t.tell(&event.RunStarted{Model: "sim/demo"})
		f(t)
		out[name] = t.events
	}
	finish := func(r lathe.Reason) *event.RunFinished {
		return &event.RunFinished{Reason: r, Status: r.Status(), Turns: 2, ToolCalls: 1, Usage: lathe.Usage{InputTokens: 30, OutputTokens: 12, TotalTokens: 42}}
	}
	toolTurn := func(t *recorder) {
		t.turn = 1
		t.tell(&event.ModelCallStarted{Attempt: 1}, &event.ReasoningDelta{Text: "hm"}, &event.CommentaryDelta{Text: "I look it up."},
			&event.ToolCallDelta{ToolCallID: "call_1", Tool: "weather"}, &event.ToolCallDelta{ToolCallID: "call_1", Tool: "weather", Text: `{"city":`},
			&event.ToolCallDelta{ToolCallID: "call_1", Tool: "weather", Text: `"Oslo"}`},
			&event.ModelCallFinished{Attempt: 1, Status: "success", FinishReason: lathe.FinishToolCalls, Usage: lathe.Usage{InputTokens: 10, OutputTokens: 5},
				Message: message(lathe.Reasoning{Text: "hm"}, lathe.Text{Text: "I look it up.", Commentary: true},
					lathe.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Oslo"}`})})
		t.call("call_1", "weather", `{"city":"Oslo"}`, 0)
	}
	answer := func(t *recorder) {
		t.turn = 2
		t.tell(&event.ModelCallStarted{Attempt: 1}, &event.TextDelta{Text: "It is "}, &event.TextDelta{Text: "20 °C.\n"},
			&event.ModelCallFinished{Attempt: 1, Status: "success", FinishReason: lathe.FinishStop, Usage: lathe.Usage{InputTokens: 20, OutputTokens: 7},
				Message: message(lathe.Text{Text: "It is 20 °C.\n"})})
	}
	add("tool", func(t *recorder) {
		toolTurn(t)
		t.tell(&event.ToolCallProgress{ToolCallID: "call_1", Tool: "weather", Done: 1, Total: 4, Message: "step 1"}, &event.ToolCallProgress{ToolCallID: "call_1", Tool: "weather", Done: 2.5})
		t.tell(&event.ToolCallExecuted{ToolCallID: "call_1", LatencyMS: 12}, &event.ToolCallResult{ToolCallID: "call_1", Tool: "weather", Status: "ok", Result: `{"t":20}`,
			Blobs: []lathe.Blob{{MediaType: "image/png", Data: []byte("png")}}})
		answer(t)
		t.tell(finish(lathe.ReasonAnswered))
	})
	add("tool-fails", func(t *recorder) {
		toolTurn(t)
		t.tell(&event.ToolCallResult{ToolCallID: "call_1", Tool: "weather", Status: "error", ErrorType: lathe.CodeTimeout, Message: "The tool took too long.",
			Result: `{"ok":false,"error":{"code":"timeout","message":"The tool took too long."}}`})
		answer(t)
		t.tell(finish(lathe.ReasonMaxIterations))
	})
	add("approval", func(t *recorder) {
		toolTurn(t)
		t.tell(&event.ApprovalRequested{ToolCallID: "call_1", Tool: "weather", ArgsDigest: "d1", ExpiresAt: time.Unix(3600, 0), Arguments: []byte(`{"city":"Oslo"}`)},
			&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"call_1"}})
	})
	add("client", func(t *recorder) {
		toolTurn(t)
		t.tell(finish(lathe.ReasonClientToolCalls))
	})
	add("upstream-error", func(t *recorder) {
		t.turn = 1
		t.tell(&event.ModelCallStarted{Attempt: 1}, &event.TextDelta{Text: "It"}, &event.ToolCallDelta{ToolCallID: "call_1", Tool: "weather", Text: "{"},
			&event.ModelCallFinished{Attempt: 1, Status: "error", ErrorCode: "upstream_5xx"})
		f := finish(lathe.ReasonUpstreamError)
		f.ErrorCode = "upstream_5xx"
		t.tell(f)
	})
	add("cancelled", func(t *recorder) {
		toolTurn(t)
		t.tell(finish(lathe.ReasonCancelled))
	})
	add("unreadable", func(t *recorder) {
		t.turn = 1
		t.tell(&event.ModelCallStarted{Attempt: 1}, &event.ToolCallParseError{Error: lathe.CodePayloadParseError},
			&event.ModelCallFinished{Attempt: 1, Status: "success", FinishReason: lathe.FinishToolCalls, Message: message(lathe.ToolCall{ID: "call_1", ParseError: lathe.CodePayloadParseError})},
			&event.ToolCallPlanned{ToolCallID: "call_1", Tool: "unknown"},
			&event.ToolCallResult{ToolCallID: "call_1", Tool: "unknown", Status: "error", ErrorType: lathe.CodePayloadParseError, Message: "It cannot be read.", Result: `{"ok":false,"error":{"code":"tool_payload_parse_error","message":"It cannot be read.","position":3}}`})
		answer(t)
		t.tell(finish(lathe.ReasonAnswered))
	})
	return out
}

func TestEncodeGolden(t *testing.T) {
	t.Parallel()
	for name, events := range scenes() {
		for _, p := range uistream.Protocols() {
			got := encode(p, nil, events)
			if err := check(p, got); err != nil {
				t.Errorf("%s as %s: %v\n%s", name, p, err, got)
			}
			file := filepath.Join("testdata", name+"."+string(p))
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
			}
		}
	}
}

// A log has no deltas: its stream differs only in how the text is divided.
func TestEncodeFromLogTellsTheSameText(t *testing.T) {
	t.Parallel()
	for name, events := range scenes() {
		var stored []event.Event
		for _, ev := range events {
			if ev.ID > 0 {
				stored = append(stored, ev)
			}
		}
		if strings.HasPrefix(name, "upstream") {
			continue // what a broken attempt said is in no log
		}
		for _, p := range uistream.Protocols() {
			got := encode(p, nil, stored)
			if err := check(p, got); err != nil {
				t.Errorf("%s as %s: %v\n%s", name, p, err, got)
			}
			if a, b := joined(p, got), joined(p, encode(p, nil, events)); a != b {
				t.Errorf("%s as %s: from the log\n%s\nlive\n%s", name, p, a, b)
			}
		}
	}
}

// joined returns the text of a stream without its cuts.
func joined(p uistream.Protocol, stream []byte) string {
	var b strings.Builder
	if p == uistream.DataStream {
		for l := range strings.Lines(string(stream)) {
			switch l[0] {
			case '0', 'g':
				b.WriteString(strings.TrimSuffix(l[3:], "\"\n"))
			}
		}
		return b.String()
	}
	all, _, _ := frames(stream)
	for _, f := range all {
		for _, key := range []string{"delta", "textDelta", "inputTextDelta"} {
			b.WriteString(f.s(key))
		}
	}
	return b.String()
}

// Whatever a run does, and wherever the stream begins, has holes or breaks off, each protocol's
// lifecycle is whole.
func TestEncodeHoldsForAnythingThatHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		events := drawRun(rt)
		cut := rapid.IntRange(0, len(events)).Draw(rt, "cut")
		if rapid.Bool().Draw(rt, "whole") {
			cut = len(events)
		}
		var heard []event.Event
		lose := rapid.SampledFrom([]int{0, 0, 3, 1}).Draw(rt, "lose")
		for _, ev := range events[:cut] {
			if event.IsDelta(ev.Data) && lose > 0 && rapid.IntRange(1, lose).Draw(rt, "lost") == 1 {
				continue
			}
			heard = append(heard, ev)
		}
		opts := uistream.Options{Approvals: rapid.Bool().Draw(rt, "approvals")}
		if rapid.IntRange(0, 3).Draw(rt, "later") == 0 { // the stream continues an earlier one
			opts.Open = []uistream.OpenCall{{ToolCall: lathe.ToolCall{ID: "a", Name: "echo", Arguments: "{}"}, Approval: "da"}}
			for _, p := range uistream.Protocols() {
				if err := check(p, encode(p, &opts, heard), knownTo(p, "a")...); err != nil {
					rt.Fatalf("%s: %v\n%s", p, err, encode(p, &opts, heard))
				}
			}
			return
		}
		for _, p := range uistream.Protocols() {
			if err := check(p, encode(p, &opts, heard)); err != nil {
				rt.Fatalf("%s: %v\n%s", p, err, encode(p, &opts, heard))
			}
		}
	})
}

// knownTo returns the calls that need not be sent again.
func knownTo(p uistream.Protocol, id string) []string {
	switch p {
	case uistream.UIMessages, uistream.UIMessagesV5, uistream.AGUI:
		return []string{id}
	default: // whose clients make a message of each stream
		return nil
	}
}

// drawRun draws events in the order in which a loop tells them.
func drawRun(t *rapid.T) []event.Event {
	r := &recorder{}
	seq := 0
	r.tell(&event.RunStarted{Model: "m"})
	var waiting []string
	for range rapid.IntRange(0, 4).Draw(t, "turns") {
		r.turn++
		var ids []string
		for attempt := 1; ; attempt++ {
			r.tell(&event.ModelCallStarted{Attempt: attempt})
			ids = ids[:0]
			for range rapid.IntRange(0, 6).Draw(t, "deltas") {
				text := rapid.SampledFrom([]string{"", "a", "\n", "\u2028", "\xff", `"`}).Draw(t, "text")
				switch rapid.IntRange(0, 4).Draw(t, "kind") {
				case 0:
					r.tell(&event.TextDelta{Text: text})
				case 1:
					r.tell(&event.ReasoningDelta{Text: text})
				case 2:
					r.tell(&event.CommentaryDelta{Text: text})
				default:
					r.tell(&event.ToolCallDelta{ToolCallID: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "id"), Tool: rapid.SampledFrom([]string{"echo", "unknown"}).Draw(t, "tool"), Text: text})
				}
			}
			kind := rapid.IntRange(0, 5).Draw(t, "outcome")
			if kind == 0 {
				r.tell(&event.ModelCallFinished{Attempt: attempt, Status: "error"})
			} else {
				r.tell(&event.ModelCallFinished{Attempt: attempt, Status: "success", FinishReason: lathe.FinishToolCalls, Message: message(
					lathe.Reasoning{Text: "aa"}, lathe.Text{Text: "bb"}, lathe.Blob{Data: []byte{1}}, lathe.Text{Text: "c", Commentary: true})})
			}
			if kind > 1 || attempt > 2 {
				break
			}
		}
		ids = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e__2", "\"\n"}), 0, 4, rapid.ID).Draw(t, "calls")
		for _, id := range ids {
			if rapid.IntRange(0, 5).Draw(t, "readable") > 0 {
				r.tell(&event.ToolCallProposed{ToolCallID: id, ToolName: "echo", RawArgs: rapid.SampledFrom([]string{"", "{}", "{", `"x"`, "\xff", `{"a" : 1}`}).Draw(t, "args"), Seq: seq})
			}
			r.tell(&event.ToolCallPlanned{ToolCallID: id, Tool: "echo", Seq: seq})
			seq++
		}
		waiting = waiting[:0]
		for _, id := range rapid.Permutation(ids).Draw(t, "order") {
			if rapid.IntRange(0, 3).Draw(t, "asked") == 0 {
				r.tell(&event.ApprovalRequested{ToolCallID: id, Tool: "echo", ArgsDigest: "d" + id, Arguments: []byte("{}")})
				if rapid.Bool().Draw(t, "parked") {
					waiting = append(waiting, id)
					continue
				}
				r.tell(&event.ApprovalResolved{ToolCallID: id, Decision: rapid.SampledFrom([]string{"approved", "denied", "expired"}).Draw(t, "decision")})
			}
			r.tell(drawResult(t, id))
		}
		if len(waiting) > 0 {
			r.tell(&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: waiting})
			if rapid.Bool().Draw(t, "stays") {
				return r.events
			}
			r.tell(&event.RunResumed{Reason: lathe.ReasonAwaitingApproval, Pending: waiting})
			for _, id := range waiting {
				r.tell(drawResult(t, id))
			}
		}
	}
	reason := rapid.SampledFrom([]lathe.Reason{lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonInternal, lathe.ReasonCancelled,
		lathe.ReasonLength, lathe.ReasonToolLoop, lathe.ReasonContentFilter, lathe.ReasonInterrupted}).Draw(t, "reason")
	r.tell(&event.RunFinished{Reason: reason, Status: reason.Status(), Turns: r.turn})
	return r.events
}

func drawResult(t *rapid.T, id string) *event.ToolCallResult {
	d := &event.ToolCallResult{ToolCallID: id, Tool: "echo", Status: "ok", Result: rapid.SampledFrom([]string{"", "{}", "text", "1e999", `"s"`, "\xff"}).Draw(t, "result")}
	if rapid.Bool().Draw(t, "failed") {
		d.Status, d.ErrorType, d.Message = "error", rapid.SampledFrom([]lathe.Code{lathe.CodeTimeout, lathe.CodeApprovalDenied}).Draw(t, "code"), "fixed"
	}
	return d
}

// Frames of a stored event carry its id, and a client that resumes after an id receives nothing twice.
func TestEncodeBearsEventIDs(t *testing.T) {
	t.Parallel()
	out := string(encode(uistream.UIMessages, nil, scenes()["tool"]))
	for _, want := range []string{"id: 1\ndata: {\"type\":\"start\"", "id: 2\ndata: {\"type\":\"start-step\"}"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	e := uistream.NewEncoder(uistream.UIMessages, nil)
	events := scenes()["tool"]
	var once, twice []byte
	for i := range events {
		once = e.Append(once, &events[i])
		if again := e.Append(nil, &events[i]); events[i].ID > 0 && len(again) > 0 {
			twice = append(twice, again...)
		}
	}
	if len(twice) > 0 {
		t.Errorf("told twice: %s", twice)
	}
}

// Pages continue a message once every call in it has a result: a call behind a pending approval is
// not streamed before it, and is streamed once it has its result.
func TestCallsBehindAnApprovalAreToldLater(t *testing.T) {
	t.Parallel()
	r := &recorder{turn: 1}
	r.tell(&event.RunStarted{}, &event.ModelCallStarted{}, &event.ToolCallDelta{ToolCallID: "a", Tool: "x"}, &event.ToolCallDelta{ToolCallID: "b", Tool: "y"},
		&event.ModelCallFinished{Status: "success"})
	r.call("a", "x", "{}", 0)
	r.tell(&event.ApprovalRequested{ToolCallID: "a", Tool: "x", ArgsDigest: "d"})
	r.call("b", "y", `{"n":1}`, 1)
	r.tell(&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"a", "b"}})
	asked := encode(uistream.UIMessages, &uistream.Options{Approvals: true}, r.events)
	if err := check(uistream.UIMessages, asked); err != nil || strings.Contains(string(asked), `"b"`) {
		t.Errorf("%v\n%s", err, asked)
	}
	later := &recorder{turn: 1}
	later.tell(&event.RunResumed{}, &event.ToolCallResult{ToolCallID: "a", Tool: "x", Status: "ok", Result: "1"}, &event.ToolCallResult{ToolCallID: "b", Tool: "y", Status: "ok", Result: "2"})
	rest := string(encode(uistream.UIMessages, &uistream.Options{Approvals: true, Open: []uistream.OpenCall{
		{ToolCall: lathe.ToolCall{ID: "a", Name: "x"}, Approval: "d"}, {ToolCall: lathe.ToolCall{ID: "b", Name: "y", Arguments: `{"n":1}`}, Unsent: true}}}, later.events))
	for _, want := range []string{`"tool-output-available","toolCallId":"a"`, `{"type":"tool-input-available","toolCallId":"b","toolName":"y","input":{"n":1}}`, `"tool-output-available","toolCallId":"b"`} {
		if !strings.Contains(rest, want) {
			t.Errorf("no %s in\n%s", want, rest)
		}
	}
	if strings.Contains(rest, `"tool-input-start","toolCallId":"a"`) {
		t.Errorf("told twice:\n%s", rest)
	}
}

func TestFailureEndsTheStream(t *testing.T) {
	t.Parallel()
	for _, p := range uistream.Protocols() {
		for n := range len(scenes()["tool"]) {
			e := uistream.NewEncoder(p, nil)
			var out []byte
			for i, ev := range scenes()["tool"][:n] {
				_ = i
				out = e.Append(out, &ev)
			}
			out = e.AppendFailure(out, lathe.CodeUnavailable, "the server stops")
			if err := check(p, out); err != nil {
				t.Errorf("%s after %d events: %v\n%s", p, n, err, out)
			}
			if !e.HasEnded() || len(e.AppendEnd(nil)) > 0 || len(e.AppendFailure(nil, "x", "y")) > 0 {
				t.Errorf("%s: something follows the end", p)
			}
		}
	}
}

// A piece of text or of arguments costs few allocations: as many as the protocol has nested values.
func TestDeltasCostLittleMemory(t *testing.T) {
	testdata.CountsAllocations(t)
	for _, p := range uistream.Protocols() {
		e := uistream.NewEncoder(p, nil)
		buf := e.Append(make([]byte, 0, 1<<12), &event.Event{Turn: 1, Data: &event.ModelCallStarted{}})
		for name, d := range map[string]event.Data{"text": &event.TextDelta{Text: "some text"}, "arguments": &event.ToolCallDelta{ToolCallID: "a", Tool: "t", Text: `{"a"`}} {
			ev := &event.Event{Turn: 1, Data: d}
			buf = e.Append(buf[:0], ev)
			if n := testing.AllocsPerRun(100, func() { buf = e.Append(buf[:0], ev) }); n > 4 {
				t.Errorf("%s: a piece of %s costs %v allocations", p, name, n)
			}
		}
	}
}

func BenchmarkTextDelta(b *testing.B) {
	for _, p := range uistream.Protocols() {
		b.Run(string(p), func(b *testing.B) {
			e := uistream.NewEncoder(p, nil)
			buf := e.Append(make([]byte, 0, 1<<12), &event.Event{Turn: 1, Data: &event.ModelCallStarted{}})
			ev := &event.Event{Turn: 1, Data: &event.TextDelta{Text: "some text of a model "}}
			b.ReportAllocs()
			for b.Loop() {
				buf = e.Append(buf[:0], ev)
			}
		})
	}
}

func FuzzEncode(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnop"), "text")
	f.Fuzz(func(t *testing.T, order []byte, s string) {
		if len(order) > 200 {
			return
		}
		r := &recorder{}
		for _, b := range order {
			id := string('a' + rune(b)%3)
			r.turn += int(b) / 128
			r.tell([]event.Data{
				&event.RunStarted{Model: s}, &event.ModelCallStarted{}, &event.TextDelta{Text: s}, &event.ReasoningDelta{Text: s}, &event.CommentaryDelta{Text: s},
				&event.ToolCallDelta{ToolCallID: id, Tool: "t", Text: s}, &event.ModelCallFinished{Status: "success", Message: message(lathe.Text{Text: s})},
				&event.ModelCallFinished{Status: "error"}, &event.ToolCallProposed{ToolCallID: id, ToolName: "unknown", RawName: s, RawArgs: s},
				&event.ToolCallPlanned{ToolCallID: id, Tool: "t"}, &event.ApprovalRequested{ToolCallID: id, Tool: "t", ArgsDigest: s, Arguments: []byte(s)},
				&event.ApprovalResolved{ToolCallID: id, Decision: "denied"}, &event.ToolCallResult{ToolCallID: id, Tool: "t", Status: "ok", Result: s},
				&event.ToolCallResult{ToolCallID: id, Tool: "t", Status: "error", ErrorType: lathe.CodeApprovalDenied, Result: s},
				&event.RunPaused{Reason: lathe.ReasonAwaitingApproval}, &event.RunResumed{}, &event.RunFinished{Reason: lathe.ReasonAnswered},
			}[int(b)%17])
		}
		for _, p := range uistream.Protocols() {
			if err := check(p, encode(p, nil, r.events)); err != nil {
				t.Fatalf("%s: %v\n%s", p, err, encode(p, nil, r.events))
			}
		}
	})
}

func ExampleNewEncoder() {
	e := uistream.NewEncoder(uistream.DataStream, nil)
	var out []byte
	for _, ev := range []event.Event{
		{Turn: 1, Data: &event.ModelCallStarted{Attempt: 1}},
		{Turn: 1, Data: &event.TextDelta{Text: "Hello"}},
		{Turn: 1, Data: &event.ModelCallFinished{Status: "success", FinishReason: lathe.FinishStop}},
		{Turn: 1, Data: &event.RunFinished{Reason: lathe.ReasonAnswered}},
	} {
		out = e.Append(out, &ev)
	}
	fmt.Print(string(out))
	// Output:
	// f:{"messageId":"step-1"}
	// 0:"Hello"
	// e:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0,"inputTokens":0,"outputTokens":0},"isContinued":false}
	// d:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0,"inputTokens":0,"outputTokens":0}}
}
