package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

// wrote returns the stream of an answer.
func wrote(f *lathe.Finish, deltas ...lathe.Delta) []byte {
	w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m"})
	var stream []byte
	for _, d := range deltas {
		stream = w.AppendDelta(stream, d)
	}
	return w.AppendFinish(stream, f, nil)
}

func callFinish(calls ...lathe.ToolCall) *lathe.Finish {
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Role: lathe.RoleAssistant}}
	for _, c := range calls {
		f.Message.Parts = append(f.Message.Parts, c)
	}
	return f
}

// TestW1_ArgumentsArriveAsDeltas: arguments of a call are those that the model wrote, for each way to cut them.
func TestW1_ArgumentsArriveAsDeltas(t *testing.T) {
	args := `{"city":"Zürich \"1\"","n":12345678901234567890.10,"k":{"b":1,"a":2}}`
	for n := 1; n <= len(args); n++ {
		deltas := []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "toolu_1", Name: "f"}}
		for rest := []rune(args); len(rest) > 0; rest = rest[min(n, len(rest)):] {
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallArgs, Text: string(rest[:min(n, len(rest))])})
		}
		deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallEnd})
		stream := wrote(callFinish(lathe.ToolCall{ID: "toolu_1", Name: "f", Arguments: args}), deltas...)
		checkStream(t, stream)
		_, f, err := accumulate(t, stream)
		if err != nil || f.Message.Calls()[0].Arguments != args {
			t.Fatalf("pieces of %d: %v %+v", n, err, f)
		}
		if !strings.Contains(string(stream), `"input":{}}`) {
			t.Fatalf("the input stands in content_block_start:\n%s", stream)
		}
	}
}

// TestW2_IndexesAreDense: the blocks of any answer have the indexes 0, 1, 2 …, also those that this server adds.
func TestW2_IndexesAreDense(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		f, deltas := randomAnswer(r)
		w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1"})
		stream := w.AppendCarrier(nil, "seal")
		for _, d := range deltas {
			stream = w.AppendServerCall(stream, &wire.ServerCall{ID: "a", Name: "n", Server: "lathe"})
			stream = w.AppendDelta(stream, d)
		}
		stream = w.AppendFinish(stream, f, nil)
		checkStream(t, stream)
		a := Codec{}.NewAssembler(nil)
		for _, e := range events(t, stream) {
			if _, err := a.Append(nil, e.typ, e.data); err != nil {
				t.Fatal(err)
			}
		}
		if !a.Sound() {
			t.Fatalf("not sound:\n%s", stream)
		}
	}
}

// TestW5_StreamedAndWholeAreEqual: see checkWritten.
func TestW5_StreamedAndWholeAreEqual(t *testing.T) {
	f, deltas := randomAnswer(rand.New(rand.NewPCG(5, 5)))
	checkWritten(t, deltas, f)
}

// TestW6_ReasonFitsContent: tool_use is the reason if and only if there is a call, whatever the upstream says.
func TestW6_ReasonFitsContent(t *testing.T) {
	for _, reason := range []lathe.FinishReason{lathe.FinishStop, lathe.FinishToolCalls, lathe.FinishUnknown, ""} {
		f := callFinish(lathe.ToolCall{ID: "a", Name: "f"})
		f.Reason = reason
		checkStream(t, wrote(f))
		checkStream(t, wrote(&lathe.Finish{Reason: reason}))
	}
}

// TestW7_DeltasFitTheirBlock: interleaved pieces never reach the block of another type.
func TestW7_DeltasFitTheirBlock(t *testing.T) {
	f := callFinish(lathe.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}, lathe.ToolCall{ID: "b", Name: "g", Arguments: `{"y":2}`})
	stream := wrote(f,
		lathe.Delta{Kind: lathe.DeltaCallStart, Index: 0, ID: "a", Name: "f"}, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: 0, Text: `{"x"`},
		lathe.Delta{Kind: lathe.DeltaText, Text: "between"}, lathe.Delta{Kind: lathe.DeltaReasoning, Text: "hm"},
		lathe.Delta{Kind: lathe.DeltaCallStart, Index: 1, ID: "b", Name: "g"}, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: 1, Text: `{"y":2}`},
		lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldThinking, Text: "sig"},
		lathe.Delta{Kind: lathe.DeltaCallArgs, Index: 0, Text: `:1}`}, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: 0})
	checkStream(t, stream)
	_, got, err := accumulate(t, stream)
	if err != nil || got.Message.Calls()[0].Arguments != `{"x":1}` || got.Message.Calls()[1].Arguments != `{"y":2}` || got.Message.Text() != "between" {
		t.Errorf("%v %+v", err, got)
	}
}

// TestW8_BrokenStreamHasNoEnd: see TestAssemblerRefusesBrokenStream and TestWriterEndsOnce; a stream cut within the frames of
// the writer is no answer either.
func TestW8_BrokenStreamHasNoEnd(t *testing.T) {
	stream := wrote(callFinish(lathe.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}))
	for n := range len(stream) {
		if _, _, err := accumulate(t, stream[:n]); err == nil {
			t.Fatalf("%d of %d bytes are an answer", n, len(stream))
		}
	}
}

// TestW9_UsageIsComplete: each count is a number in each place, also when the upstream says none.
func TestW9_UsageIsComplete(t *testing.T) {
	f := &lathe.Finish{Reason: lathe.FinishStop}
	for _, b := range [][]byte{wrote(f), wire.AppendAnswer(nil, Codec{}, &wire.Answer{Finish: f})} {
		if !strings.Contains(string(b), `"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"output_tokens_details":{"thinking_tokens":0}}`) {
			t.Errorf("usage is not complete:\n%s", b)
		}
	}
}

// TestW10_CachedTokensCountOnce: input_tokens is without the cache on the wire and with it inside, both ways.
func TestW10_CachedTokensCountOnce(t *testing.T) {
	f := &lathe.Finish{Reason: lathe.FinishStop, Usage: lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 184, CachedTokens: 100, CacheWriteTokens: 5, ReasoningTokens: 20}}
	stream := wrote(f)
	if !strings.Contains(string(stream), `"input_tokens":15,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,`) {
		t.Error(string(stream))
	}
	if _, got, err := accumulate(t, stream); err != nil || got.Usage != f.Usage {
		t.Errorf("%v %+v", err, got)
	}
}

// TestW11_ResultWithImage: text and image of a result arrive as blocks, never as the text of a list.
func TestW11_ResultWithImage(t *testing.T) {
	body, _ := write(t, &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f"}}},
		{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "a", Content: "t", Blobs: []lathe.Blob{{MediaType: "image/png", Data: []byte("x")}}}}}}}, nil)
	r := parseRequest(t, []byte(body))
	if res := r.Messages[2].Parts[0].(lathe.ToolResult); res.Content != "t" || len(res.Blobs) != 1 || string(res.Blobs[0].Data) != "x" {
		t.Errorf("%+v", res)
	}
}

// TestW12_ReplayKeepsAnswer: what a client sends back of an answer is the answer, over three turns.
func TestW12_ReplayKeepsAnswer(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	for range 50 {
		turns := []string{`{"role":"user","content":"a"}`}
		want := []lathe.Message{{Role: lathe.RoleUser, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.Text{Text: "a"}}}}
		for turn := range 3 {
			f, _ := randomAnswer(r)
			for i, p := range f.Message.Parts {
				if c, ok := p.(lathe.ToolCall); ok {
					c.ID += fmt.Sprint("_", turn)
					f.Message.Parts[i] = c
				}
			}
			if len(f.Message.Parts) == 0 {
				continue
			}
			content, _ := rawjson.Get(wire.AppendAnswer(nil, Codec{}, &wire.Answer{Finish: f}), "content")
			turns = append(turns, fmt.Sprintf(`{"role":"assistant","content":%s}`, content))
			want = append(want, f.Message)
			var results []string
			for _, c := range f.Message.Calls() {
				results = append([]string{fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"r"}`, c.ID)}, results...)
				want = append(want, lathe.Message{Role: lathe.RoleTool, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: "r"}}})
			}
			results = append(results, `{"type":"text","text":"next"}`)
			turns = append(turns, `{"role":"user","content":[`+strings.Join(results, ",")+`]}`)
			want = append(want, lathe.Message{Role: lathe.RoleUser, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.Text{Text: "next"}}})
		}
		if d := cmp.Diff(want, parseRequest(t, []byte(said(turns...))).Messages); d != "" {
			t.Fatalf("(-answered +replayed):\n%s", d)
		}
	}
}

// claudeCode returns a request of Claude Code.
func claudeCode(t *testing.T, name string) []byte {
	t.Helper()
	var record struct{ Body json.RawMessage }
	if err := json.Unmarshal(read(t, testdata.Dir(t, "wires", "agents", name)), &record); err != nil {
		t.Fatal(err)
	}
	return record.Body
}

// TestW13_EveryToolIsRead: each tool of an agent's request is a tool of ours or a hosted one.
func TestW13_EveryToolIsRead(t *testing.T) {
	body := claudeCode(t, "claude-code-2.1.197-turn1.json")
	var sent struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	if r := parseRequest(t, body); len(sent.Tools) != 24 || len(r.Tools)+len(r.Hosted) != len(sent.Tools) {
		t.Errorf("%d tools were sent, %d and %d read", len(sent.Tools), len(r.Tools), len(r.Hosted))
	}
}

// TestW15_OddIDsComeBack: a call's id of any form reaches client and server as one that the wire allows, the same for the
// call and its result, and two ids stay two.
func TestW15_OddIDsComeBack(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"call_1", "toolu_1", strings.Repeat("a", 64), strings.Repeat("a", 65), "a:b", "a b", "ü", "call_1|signature==", "x\n", "functions.f:0", "functions.f:1"} {
		short := CallID(id)
		if len(short) > 64 || !wire.PlainName(short) || short != CallID(short) || seen[short] != "" {
			t.Errorf("%q: %q, which is also that of %q", id, short, seen[short])
		}
		seen[short] = id
		if wire.PlainName(id) && len(id) <= 64 && short != id {
			t.Errorf("%q changed to %q", id, short)
		}
		stream := wrote(callFinish(lathe.ToolCall{ID: id, Name: "f"}))
		if !strings.Contains(string(stream), `"id":"`+short+`"`) {
			t.Errorf("%q: the client gets another id than the server:\n%s", id, stream)
		}
	}
}

// TestW16_MadeUpIDsAreStable: a call without an id has the same one in each stream and whole answer of its run.
func TestW16_MadeUpIDsAreStable(t *testing.T) {
	f := callFinish(lathe.ToolCall{Name: "f"}, lathe.ToolCall{Name: "f"})
	if a, b := wrote(f), wrote(f); string(a) != string(b) {
		t.Error("two streams of one answer differ")
	}
	_, streamed, err := accumulate(t, wrote(f))
	if err != nil {
		t.Fatal(err)
	}
	_, whole, err := Codec{}.NewAssembler(nil).Complete(nil, wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: wire.AnswerHead{ID: "1"}, Finish: f}))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(streamed.Message, whole.Message); d != "" || streamed.Message.Calls()[0].ID == streamed.Message.Calls()[1].ID {
		t.Errorf("(-streamed +whole):\n%s", d)
	}
}

// TestW17_ResultsStandFirst, W18, W27 and W36: see TestParseRequestOrder and TestAppendRequestTurns. Here with an agent's
// request, whose parallel results came out of order behind a system message.
func TestW17_ResultsStandFirst(t *testing.T) {
	r := parseRequest(t, claudeCode(t, "claude-code-2.1.197-turn2-parallel.json"))
	takes := destination.For(lathe.WireMessages, "", "", "")
	conversation := takes.NewConversation()
	r.Messages, _ = conversation.Roles(r.Messages, nil, nil)
	r.Messages, _ = conversation.Join(r.Messages, nil)
	body, _ := write(t, &r.Request, nil)
	var sent struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type string
				ID   string `json:"tool_use_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatal(err)
	}
	for i, m := range sent.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			t.Errorf("turn %d is of %s", i, m.Role)
		}
	}
	lastTurn := sent.Messages[len(sent.Messages)-1].Content
	if len(lastTurn) != 2 || lastTurn[0].ID != "toolu_01" || lastTurn[1].ID != "toolu_02" {
		t.Errorf("results: %+v", lastTurn)
	}
}

// TestW18_ResultsAreOneTurn: the results of a step are one turn, and a second result of a call is refused.
func TestW18_ResultsAreOneTurn(t *testing.T) {
	var calls, results []lathe.Part
	msgs := []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant}}
	for i := range 8 {
		calls = append(calls, lathe.ToolCall{ID: fmt.Sprint(i), Name: "f"})
		results = append(results, lathe.ToolResult{CallID: fmt.Sprint(i), Content: "r"})
		msgs = append(msgs, lathe.Message{Role: lathe.RoleTool, Parts: results[i:]})
	}
	msgs[1].Parts = calls
	body, _ := write(t, &lathe.Request{Messages: msgs}, nil)
	if n := strings.Count(body, `"role":"user"`); n != 2 || strings.Contains(body, `"tool"`) {
		t.Errorf("%d turns of the user:\n%s", n, body)
	}
}

// TestW21_NoArgumentsAreAnObject: "", null and absent arguments are {} in each place.
func TestW21_NoArgumentsAreAnObject(t *testing.T) {
	for _, args := range []string{"", " ", "null", `""`, `"{}"`, "{}"} {
		got, _, exact := wire.SentArguments(args)
		if string(got) != "{}" || !exact {
			t.Errorf("%q: %s %v", args, got, exact)
		}
	}
	for _, input := range []string{``, `,"input":null`, `,"input":""`, `,"input":{}`} {
		r := parseRequest(t, []byte(said(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f"`+input+`}]}`)))
		if got := r.Messages[0].Calls()[0].Arguments; got != "{}" {
			t.Errorf("%s: %q", input, got)
		}
	}
}

// TestW22_ParallelCallsStayApart: two to eight calls with interleaved pieces keep their ids, names and arguments.
func TestW22_ParallelCallsStayApart(t *testing.T) {
	for n := 2; n <= 8; n++ {
		var calls []lathe.ToolCall
		var deltas []lathe.Delta
		for i := range n {
			calls = append(calls, lathe.ToolCall{ID: fmt.Sprint("id", i), Name: fmt.Sprint("f", i), Arguments: fmt.Sprintf(`{"i":%d}`, i)})
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallStart, Index: i, ID: calls[i].ID, Name: calls[i].Name})
		}
		for k := range 7 {
			for i := range n {
				deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: i, Text: calls[i].Arguments[k : k+1]})
			}
		}
		stream := wrote(callFinish(calls...), deltas...)
		checkStream(t, stream)
		_, f, err := accumulate(t, stream)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(calls, f.Message.Calls()); d != "" {
			t.Errorf("(-sent +read):\n%s", d)
		}
	}
}

// TestW23_TruncatedCallStaysTruncated: a call that the limit cut off is incomplete for the next reader too. Without any of its
// arguments it is not written: a reader would take it for a call without arguments.
func TestW23_TruncatedCallStaysTruncated(t *testing.T) {
	for args, n := range map[string]int{"": 0, `{"x":`: 1} {
		f := callFinish(lathe.ToolCall{ID: "a", Name: "f", Arguments: args, Incomplete: true})
		f.Reason = lathe.FinishLength
		_, got, err := accumulate(t, wrote(f))
		if err != nil || got.Reason != lathe.FinishLength || len(got.Message.Calls()) != n || n > 0 && !got.Message.Calls()[0].Incomplete {
			t.Errorf("%q: %v %+v", args, err, got)
		}
	}
}

// TestUnreadableCallIsNeverAnEmptyOne: a call whose arguments are not an object has the model's text in a stream. A whole answer has
// no form for it, leaves it out, and ends as one that is not complete. So does a stream if the call was cut off.
func TestUnreadableCallIsNeverAnEmptyOne(t *testing.T) {
	for _, args := range []string{`{"path":"/a","dry`, `{"a":1}{"a":2}`, "{\"a\":\"1\n2\"}", `{"a":"\d"}`, `{"a":NaN}`, `[1]`, `"text"`, `7`} {
		f := callFinish(lathe.ToolCall{ID: "a", Name: "f", Arguments: args}, lathe.ToolCall{ID: "b", Name: "g", Arguments: `{"b":1}`})
		stream := wrote(f)
		checkStream(t, stream)
		whole := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: wire.AnswerHead{ID: "1"}, Finish: f})
		stop := `"stop_reason":"tool_use"`
		if args == `{"path":"/a","dry` {
			stop = `"stop_reason":"max_tokens"`
		}
		if !bytes.Contains(stream, rawjson.AppendQuote(nil, args)) || !bytes.Contains(stream, []byte(stop)) {
			t.Errorf("%s:\n%s", args, stream)
		}
		content, _ := rawjson.Get(whole, "content")
		if text(whole, "stop_reason") != "max_tokens" || string(content) != `[{"type":"tool_use","id":"b","name":"g","input":{"b":1}}]` {
			t.Errorf("%s: %s", args, whole)
		}
	}
	twice := `{"a":1,"a":"\ud800"}` // which parsers of JSON read
	f := callFinish(lathe.ToolCall{ID: "a", Name: "f", Arguments: twice})
	if whole := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: wire.AnswerHead{ID: "1"}, Finish: f}); !bytes.Contains(whole, []byte(`"input":`+twice)) {
		t.Errorf("%s", whole)
	}
}

// TestW24_RefusalIsNotAnEnd: a refusal and a full context keep their names; see TestStopReasons.
func TestW24_RefusalIsNotAnEnd(t *testing.T) {
	for raw, want := range map[string]lathe.FinishReason{"refusal": lathe.FinishContentFilter, "model_context_window_exceeded": lathe.FinishLength} {
		_, f, err := accumulate(t, lines(start, stops(raw), last))
		if err != nil || f.Reason != want {
			t.Fatalf("%s: %v %+v", raw, err, f)
		}
		if !strings.Contains(string(wrote(f)), `"stop_reason":"`+raw+`"`) {
			t.Errorf("%s is lost", raw)
		}
	}
}

// TestW26_SignatureSurvives: a signature of any bytes is the same after an answer and a replay.
func TestW26_SignatureSurvives(t *testing.T) {
	sig := "Ab+/=\u00e9\"\\\n" + strings.Repeat("z", 5000)
	f := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.Reasoning{Field: fieldThinking, Data: sig}}}}
	_, got, err := accumulate(t, wrote(f, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldThinking, Text: sig}))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f.Message, got.Message); d != "" {
		t.Errorf("(-sent +read):\n%s", d)
	}
	// The data of another wire does not reach a client in clear: it would send it to any model.
	stream := wrote(&lathe.Finish{Reason: lathe.FinishStop}, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: "encrypted_content", Text: "gAAA"})
	if strings.Contains(string(stream), "gAAA") {
		t.Error(string(stream))
	}
}

// TestW28_HelperToolIsHidden: where the server does not take a response format, the answer is text all the same, and a real
// call stays one.
func TestW28_HelperToolIsHidden(t *testing.T) {
	req := &lathe.Request{Model: "m", Tools: []*lathe.ToolSpec{{Name: "f"}}, Messages: []lathe.Message{lathe.User("a")},
		Sampling: lathe.Sampling{ResponseFormat: json.RawMessage(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","minProperties":1}}}`)}}
	body, _ := write(t, req, &wire.EncodeOptions{Without: []string{featureFormat}})
	if !strings.Contains(body, `{"name":"`+helperTool+`","description":"`+helperDescription+`","input_schema":{"type":"object","minProperties":1}}],"tool_choice":{"type":"any"}`) {
		t.Error(body)
	}
	helper := func(i int) []string {
		return []string{opens(i, `{"type":"tool_use","id":"toolu_h","name":"`+helperTool+`","input":{}}`),
			piece(i, `{"type":"input_json_delta","partial_json":"{\"a\""}`), piece(i, `{"type":"input_json_delta","partial_json":":1}"}`), closes(i)}
	}
	deltas, f, err := accumulate(t, lines(append(append([]string{start}, helper(0)...), stops("tool_use"), last)...))
	if err != nil || f.Reason != lathe.FinishStop || f.Message.Text() != `{"a":1}` || len(f.Message.Calls()) != 0 || len(f.Faults) > 0 || len(deltas) != 2 {
		t.Errorf("%v %+v", err, f)
	}
	_, whole, err := Codec{}.NewAssembler(nil).Complete(nil, []byte(`{"type":"message","content":[{"type":"tool_use","id":"toolu_h","name":"`+helperTool+`","input":{"a":1}}],"stop_reason":"tool_use"}`))
	if err != nil || whole.Message.Text() != `{"a":1}` || whole.Reason != lathe.FinishStop {
		t.Errorf("whole: %v %+v", err, whole)
	}
	_, f, err = accumulate(t, lines(append(append([]string{start, opens(0, `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`), closes(0)}, helper(1)...), stops("tool_use"), last)...))
	if err != nil || f.Reason != lathe.FinishToolCalls || len(f.Message.Calls()) != 1 || f.Message.Calls()[0].Name != "f" {
		t.Errorf("with a real call: %v %+v", err, f)
	}
}

// TestW30_NoOptionIsLost: each option of a request changes the body or is listed.
func TestW30_NoOptionIsLost(t *testing.T) {
	values := map[string]any{"Temperature": ptr(0.5), "TopP": ptr(0.5), "MaxTokens": ptr(5), "Seed": ptr(int64(5)), "Stop": []string{"a"}, "ReasoningEffort": "low",
		"ReasoningBudget": ptr(2000), "ReasoningSummary": "auto", "TopK": ptr(5), "PresencePenalty": ptr(0.5), "FrequencyPenalty": ptr(0.5), "ResponseFormat": json.RawMessage(`{"type":"json_object"}`)}
	plain, _ := write(t, &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a")}}, nil)
	typ := reflect.TypeFor[lathe.Sampling]()
	for i := range typ.NumField() {
		v, ok := values[typ.Field(i).Name]
		if !ok {
			t.Fatalf("the test has no value for %s", typ.Field(i).Name)
		}
		req := &lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a")}}
		reflect.ValueOf(&req.Sampling).Elem().Field(i).Set(reflect.ValueOf(v))
		if body, dropped := write(t, req, nil); body == plain && len(dropped) == 0 {
			t.Errorf("%s is lost", typ.Field(i).Name)
		}
	}
}

// TestW39_NoEventsOfOurOwn: no method of the writer makes an event that the wire does not have.
func TestW39_NoEventsOfOurOwn(t *testing.T) {
	w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1"})
	stream := w.AppendKeepAlive(nil)
	stream = w.AppendApproval(stream, &wire.Approval{ID: "a"})
	stream = w.AppendDelta(stream, lathe.Delta{Kind: lathe.DeltaParseError, Text: "x"})
	stream = w.AppendDelta(stream, lathe.Delta{Kind: lathe.DeltaRetry})
	stream = w.AppendKeepAlive(w.AppendStart(stream))
	checkStream(t, w.AppendFinish(stream, &lathe.Finish{Reason: lathe.FinishStop}, []lathe.Member{{Name: "lathe", Value: []byte(`{}`)}}))
}
