package gemini

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// someAnswer makes an answer and its deltas. Signatures stand before calls and before texts of one delta.
func someAnswer(r *rand.Rand) (*lathe.Finish, []lathe.Delta) {
	f := &lathe.Finish{Reason: lathe.FinishStop, RawReason: "STOP", Model: "m", ResponseID: "1", Message: lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireGemini}}
	f.Usage = lathe.Usage{InputTokens: r.Int64N(100), OutputTokens: 50, ReasoningTokens: r.Int64N(50), CachedTokens: r.Int64N(9)}
	f.Usage.TotalTokens = f.Usage.InputTokens + f.Usage.OutputTokens
	var deltas []lathe.Delta
	words := []string{"a", "\n\n", "\"}", "ø\u2028", "data: x\r\n", "</s>", "\\"}
	var last string
	calls := 0
	for range r.IntN(8) {
		kind := []string{"text", "thought", "signed thought", "signed text", "call", "signed call"}[r.IntN(6)]
		if kind == last && (kind == "text" || kind == "thought") || kind == "signed thought" && last == "thought" {
			continue // they would be one part
		}
		last = kind
		signature := fmt.Sprintf("c2ln%04d", r.IntN(10000))
		switch kind {
		case "text", "thought", "signed thought":
			text := ""
			of, field := lathe.DeltaText, ""
			if kind != "text" {
				of, field = lathe.DeltaReasoning, fieldThought
			}
			n := 1 + r.IntN(3)
			if kind == "signed thought" {
				n = 1
			}
			for range n {
				w := words[r.IntN(len(words))]
				text += w
				deltas = append(deltas, lathe.Delta{Kind: of, Text: w})
			}
			switch kind {
			case "text":
				f.Message.Parts = append(f.Message.Parts, lathe.Text{Text: text})
			case "thought":
				f.Message.Parts = append(f.Message.Parts, lathe.Reasoning{Text: text, Field: field})
			default:
				f.Message.Parts = append(f.Message.Parts, lathe.Reasoning{Text: text, Field: field, Data: signature})
				deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldThought, Text: signature})
			}
			continue
		}
		if strings.HasPrefix(kind, "signed") {
			f.Message.Parts = append(f.Message.Parts, lathe.Reasoning{Field: fieldSignature, Data: signature})
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldSignature, Text: signature})
		}
		if kind == "signed text" {
			f.Message.Parts = append(f.Message.Parts, lathe.Text{Text: "signed"})
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaText, Text: "signed"})
			continue
		}
		c := lathe.ToolCall{ID: fmt.Sprint("c", calls), Name: "f", Arguments: []string{`{}`, `{"a":1.50}`, `{"b":"x\u0000\n","c":[12345678901234567890]}`}[r.IntN(3)]}
		f.Message.Parts = append(f.Message.Parts, c)
		deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallStart, Index: calls, ID: c.ID, Name: c.Name})
		cut := r.IntN(len(c.Arguments))
		deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: calls, Text: c.Arguments[:cut]}, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: calls, Text: c.Arguments[cut:]},
			lathe.Delta{Kind: lathe.DeltaCallEnd, Index: calls})
		calls++
		f.Reason = lathe.FinishToolCalls
	}
	return f, deltas
}

func TestW5_StreamAndWholeAreEqual(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		f, deltas := someAnswer(rand.New(rand.NewPCG(seed, 1)))
		w := Codec{}.NewWriter(head)
		data := events(t, string(w.AppendFinish(write(w, deltas), f, nil)))
		_, streamed := mustAssemble(t, data)
		_, whole, err := Codec{}.NewAssembler(nil).Complete(nil, wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: f}))
		if err != nil {
			t.Fatal(err)
		}
		// The chunks in one object are the same answer.
		joined := joinChunks(t, data)
		_, one, err := Codec{}.NewAssembler(nil).Complete(nil, joined)
		if err != nil {
			t.Fatalf("%v\n%s", err, joined)
		}
		for name, got := range map[string]*lathe.Finish{"streamed": streamed, "whole": whole, "joined": one} {
			same(t, name, []lathe.Message{got.Message}, []lathe.Message{f.Message})
			same(t, name, got, f)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// joinChunks puts the parts of all chunks into the last one.
func joinChunks(t *testing.T, data []string) []byte {
	t.Helper()
	parts := ""
	for i, d := range data {
		_, rest, _ := strings.Cut(d, `"parts":[`)
		end := strings.LastIndex(rest, `]},"index":0}]`)
		if i == len(data)-1 {
			end = strings.LastIndex(rest, `]},"finishReason"`)
		}
		if i > 0 {
			parts += ","
		}
		parts += rest[:end]
	}
	last := data[len(data)-1]
	first, rest, _ := strings.Cut(last, `"parts":[`)
	return []byte(first + `"parts":[` + parts + rest[strings.LastIndex(rest, `]},"finishReason"`):])
}

func TestW6_ReasonIsThatOfTheContent(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"STOP", "OTHER", "MAX_TOKENS", "SAFETY", "NEW"} {
		for _, part := range []string{`{"text":"a"}`, `{"functionCall":{"name":"f"}}`} {
			_, f := mustAssemble(t, []string{`{"candidates":[{"content":{"parts":[` + part + `]},"finishReason":"` + word + `"}]}`})
			calls := len(f.Message.Calls()) > 0
			if f.Reason == lathe.FinishToolCalls && !calls || calls && f.Reason != lathe.FinishToolCalls && f.Reason != lathe.FinishLength && f.Reason != lathe.FinishContentFilter {
				t.Errorf("%s with %s: %s", word, part, f.Reason)
			}
		}
	}
}

func TestW8_CutAtEachByte(t *testing.T) {
	t.Parallel()
	f, deltas := answer()
	w := Codec{}.NewWriter(head)
	stream := string(w.AppendFinish(write(w, deltas), f, nil))
	for cut := range len(stream) {
		a := Codec{}.NewAssembler(nil)
		out := Codec{}.NewWriter(head)
		var sent []byte
		whole := stream[:cut]
		if i := strings.LastIndex(whole, "\n\n"); i >= 0 {
			for _, d := range events(t, whole[:i]) {
				got, err := a.Append(nil, "", []byte(d))
				if err != nil {
					t.Fatal(err)
				}
				sent = append(sent, write(out, got)...)
			}
		}
		if got, err := a.Finish(false); got != nil || !errors.Is(err, wire.ErrIncomplete) {
			t.Fatalf("cut at %d: %v %v", cut, got, err)
		}
		sent = out.AppendError(sent, &wire.APIError{Status: 503})
		sent = out.AppendFinish(out.AppendError(sent, &wire.APIError{}), f, nil)
		checkEnd(t, string(sent), false, "error")
	}
}

func TestW9_W10_Usage(t *testing.T) {
	t.Parallel()
	u := lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 184, CachedTokens: 100, ReasoningTokens: 20}
	want := `{"promptTokenCount":120,"cachedContentTokenCount":100,"candidatesTokenCount":44,"thoughtsTokenCount":20,"totalTokenCount":184}`
	if got := string(appendUsage(nil, &u)); got != want {
		t.Errorf("%s", got)
	}
	for body, want := range map[string]lathe.Usage{
		want: u,
		`{"promptTokenCount":10,"toolUsePromptTokenCount":5,"candidatesTokenCount":"2"}`: {InputTokens: 15, OutputTokens: 2, TotalTokens: 17},
		`{"promptTokenCount":-1,"candidatesTokenCount":null}`:                            {},
	} {
		_, f := mustAssemble(t, []string{`{"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":7}}`, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":` + body + `}`})
		if f.Usage != want {
			t.Errorf("%s: %+v", body, f.Usage)
		}
	}
	if got := string(appendUsage(nil, &lathe.Usage{})); got != `{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}` {
		t.Error(got)
	}
}

func TestW11_ResultWithImage(t *testing.T) {
	t.Parallel()
	msgs := []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "1", Name: "f"}}},
		{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "1", Content: "text", Blobs: []lathe.Blob{{MediaType: "image/png", Data: []byte{1}}}}}}}
	inside, _ := encode(t, &lathe.Request{Model: "gemini-3-pro", Messages: msgs}, nil)
	after, _ := encode(t, &lathe.Request{Model: "gemini-2.5-pro", Messages: msgs}, nil)
	if !strings.Contains(inside, `"response":{"output":"text"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AQ=="}}]}}]}`) {
		t.Error(inside)
	}
	if !strings.Contains(after, `"response":{"output":"text"}}},{"inlineData":{"mimeType":"image/png","data":"AQ=="}}]}`) {
		t.Error(after)
	}
	if r := mustParse(t, inside).Messages[2].Parts[0].(lathe.ToolResult); r.Content != "text" || len(r.Blobs) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestW12_ReplayKeepsTheForm(t *testing.T) {
	t.Parallel()
	roundTrip(t, "three turns", `{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]},
		{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"YQ=="},{"text":"","thoughtSignature":"Yg=="},{"text":"x"},{"functionCall":{"id":"1","name":"f","args":{"n":12345678901234567890}},"thoughtSignature":"Yw=="},{"functionCall":{"id":"2","name":"g","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"o"}}},{"functionResponse":{"id":"2","name":"g","response":{"error":"e"}}}]},
		{"role":"model","parts":[{"text":"Hel"},{"text":"lo","thoughtSignature":"ZA=="},{"executableCode":{"code":"1"}},{"text":"","thoughtSignature":"ZQ=="}]},
		{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AQI="}}]}],
		"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}},{"name":"g","behavior":"BLOCKING"}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`)
}

func TestW15_OddIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"1", strings.Repeat("x", 300), "a b/ü\"\\\n", "call_A|signature=="} {
		w := Codec{}.NewWriter(head)
		f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{lathe.ToolCall{ID: id, Name: "f", Arguments: "{}"}}}}
		_, got := mustAssemble(t, events(t, string(w.AppendFinish(nil, f, nil))))
		if got.Message.Calls()[0].ID != id {
			t.Errorf("%q became %q", id, got.Message.Calls()[0].ID)
		}
	}
	// An id that comes twice is made different, in the call and in its result.
	step := `{"role":"model","parts":[{"functionCall":{"id":"x","name":"f"}},{"functionCall":{"id":"x","name":"f"}}]},{"parts":[{"functionResponse":{"id":"x","name":"f","response":{"output":"1"}}},{"functionResponse":{"id":"x","name":"f","response":{"output":"2"}}}]}`
	req := mustParse(t, `{"contents":[`+step+`,`+step+`]}`)
	var got []string
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				got = append(got, p.ID)
			case lathe.ToolResult:
				got = append(got, p.CallID+"="+p.Content)
			}
		}
	}
	if s := strings.Join(got, " "); s != "x x_2 x=1 x_2=2 x_3 x_4 x_3=1 x_4=2" {
		t.Error(s)
	}
	_, f := mustAssemble(t, []string{`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"x","name":"f"}},{"functionCall":{"id":"x","name":"f"}}]},"finishReason":"STOP"}]}`})
	if c := f.Message.Calls(); c[0].ID == c[1].ID || len(f.Faults) != 1 {
		t.Errorf("%+v %v", c, f.Faults)
	}
}

func TestW16_MadeIDsAreTheSameEachTime(t *testing.T) {
	t.Parallel()
	turn1 := `{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}`
	turn2 := turn1 + `,{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"3"}}}]}`
	a, _ := encode(t, &mustParse(t, `{"contents":[`+turn1+`]}`).Request, nil)
	b, _ := encode(t, &mustParse(t, `{"contents":[`+turn1+`]}`).Request, nil)
	long, _ := encode(t, &mustParse(t, `{"contents":[`+turn2+`]}`).Request, nil)
	if a != b || !strings.HasPrefix(long, strings.TrimSuffix(a, "]}")) {
		t.Errorf("%s\n%s\n%s", a, b, long)
	}
	ids := map[string]bool{}
	for _, m := range mustParse(t, `{"contents":[`+turn2+`]}`).Messages {
		for _, c := range m.Calls() {
			ids[c.ID] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("ids %v", ids)
	}
	data := []string{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}],"responseId":"r"}`}
	_, f := mustAssemble(t, data)
	_, g := mustAssemble(t, data)
	if c, d := f.Message.Calls(), g.Message.Calls(); c[0].ID != d[0].ID || c[1].ID != d[1].ID || c[0].ID == c[1].ID {
		t.Errorf("%v %v", c, d)
	}
}

func TestW17_W18_W36_ResultsAreFirstInCallOrder(t *testing.T) {
	t.Parallel()
	call := `{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"f"}},{"functionCall":{"id":"2","name":"g"}},{"functionCall":{"name":"h"}}]}`
	results := []string{`{"functionResponse":{"id":"1","name":"f","response":{"output":"1"}}}`, `{"functionResponse":{"id":"2","name":"g","response":{"output":"2"}}}`, `{"functionResponse":{"name":"h","response":{"output":"3"}}}`}
	var want string
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		for _, apart := range []string{",", `]},{"role":"function","parts":[`} {
			var parts []string
			for _, i := range order {
				parts = append(parts, results[i])
			}
			req := mustParse(t, `{"contents":[`+call+`,{"role":"user","parts":[{"text":"first"},`+strings.Join(parts, apart)+`]}]}`)
			got, _ := encode(t, &req.Request, nil)
			if want == "" {
				want = got
				if strings.Count(got, `"role":"user"`) != 3 || strings.Index(got, `"3"`) > strings.Index(got, "first") || strings.Index(got, `"1"}}`) > strings.Index(got, `"2"}}`) {
					t.Errorf("%s", got)
				}
			} else if got != want {
				t.Errorf("%v %q:\n%s\nwant\n%s", order, apart, got, want)
			}
		}
	}
}

func TestW19_NoChoiceWithoutTools(t *testing.T) {
	t.Parallel()
	on := false
	got, dropped := encode(t, &lathe.Request{Messages: []lathe.Message{lathe.User("a")}, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, ParallelToolCalls: &on}, nil)
	if strings.Contains(got, "tool") || len(dropped) > 0 {
		t.Errorf("%s %v", got, dropped)
	}
	// A result without a call keeps its place and is for the caller to refuse.
	req := mustParse(t, `{"contents":[{"parts":[{"functionResponse":{"id":"1","name":"f","response":{}}}]}]}`)
	if len(req.Messages) != 1 || req.Messages[0].Role != lathe.RoleTool {
		t.Errorf("%+v", req.Messages)
	}
}

func TestW21_EmptyArguments(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "null", `""`, "{}", " {} "} {
		got, dropped := encode(t, &lathe.Request{Messages: []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "1", Name: "f", Arguments: args}}}}}, nil)
		if !strings.Contains(got, `"args":{}`) || len(dropped) > 0 {
			t.Errorf("%q: %s %v", args, got, dropped)
		}
		w := Codec{}.NewWriter(head)
		out := write(w, []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "1", Name: "f"}, {Kind: lathe.DeltaCallArgs, Text: args}, {Kind: lathe.DeltaCallEnd}})
		if !strings.Contains(string(out), `"args":{}`) {
			t.Errorf("%q: %s", args, out)
		}
	}
	for _, args := range []string{`,"args":null`, "", `,"args":{}`} {
		if c := mustParse(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"`+args+`}}]}]}`).Messages[0].Calls()[0]; c.Arguments != "{}" {
			t.Errorf("%q: %q", args, c.Arguments)
		}
		_, f := mustAssemble(t, []string{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"` + args + `}}]},"finishReason":"STOP"}]}`})
		if c := f.Message.Calls()[0]; c.Arguments != "{}" {
			t.Errorf("%q: %q", args, c.Arguments)
		}
	}
}

func TestW22_ParallelCalls(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 2 + r.IntN(7)
		f := &lathe.Finish{Reason: lathe.FinishToolCalls}
		var pieces [][]lathe.Delta
		for i := range n {
			c := lathe.ToolCall{ID: fmt.Sprint("c", i), Name: fmt.Sprint("f", i), Arguments: fmt.Sprintf(`{"i":%d}`, i)}
			f.Message.Parts = append(f.Message.Parts, c)
			d := []lathe.Delta{{Kind: lathe.DeltaCallStart, Index: i, ID: c.ID, Name: c.Name}}
			for _, b := range []byte(c.Arguments) {
				d = append(d, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: i, Text: string(b)})
			}
			pieces = append(pieces, append(d, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: i}))
		}
		w := Codec{}.NewWriter(head)
		var out []byte
		for len(pieces) > 0 {
			i := r.IntN(len(pieces))
			out = w.AppendDelta(out, pieces[i][0])
			if pieces[i] = pieces[i][1:]; len(pieces[i]) == 0 {
				pieces = slices.Delete(pieces, i, i+1)
			}
		}
		_, got := mustAssemble(t, events(t, string(w.AppendFinish(out, f, nil))))
		same(t, "calls", got.Message.Calls(), f.Message.Calls())
	}
}

func TestW23_TruncatedCallIsNotWhole(t *testing.T) {
	t.Parallel()
	_, f := mustAssemble(t, []string{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}]}}]},"finishReason":"MAX_TOKENS"}]}`})
	if c := f.Message.Calls()[0]; !c.Incomplete || f.Reason != lathe.FinishLength {
		t.Errorf("%+v %s", c, f.Reason)
	}
	// A malformed call is an error that may be retried, never a stop.
	if _, _, err := assemble(t, []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MALFORMED_FUNCTION_CALL"}]}`}); err == nil {
		t.Error("no error")
	}
}

func TestW24_RefusalIsNoStop(t *testing.T) {
	t.Parallel()
	f := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Parts: []lathe.Part{lathe.Refusal{Text: "no"}}}}
	w := Codec{}.NewWriter(head)
	for _, out := range []string{string(w.AppendFinish(write(w, []lathe.Delta{{Kind: lathe.DeltaRefusal, Text: "no"}}), f, nil)), string(wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: f}))} {
		if !strings.Contains(out, `"text":"no"`) || !strings.Contains(out, `"finishReason":"SAFETY"`) {
			t.Error(out)
		}
	}
	for _, word := range []string{"SAFETY", "RECITATION", "SPII", "IMAGE_SAFETY"} {
		_, got := mustAssemble(t, []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"` + word + `"}]}`})
		w := Codec{}.NewWriter(head)
		if out := string(w.AppendFinish(nil, got, nil)); got.Reason != lathe.FinishContentFilter || !strings.Contains(out, `"finishReason":"`+word+`"`) {
			t.Errorf("%s: %s", word, out)
		}
	}
}

func TestW25_OwnSchemasAreUntouched(t *testing.T) {
	t.Parallel()
	req := mustParse(t, agentRequest(t, "gemini-cli-0.61.0-turn1.json"))
	got, dropped := encode(t, &req.Request, nil)
	if len(dropped) > 0 {
		t.Errorf("dropped %v", dropped)
	}
	for _, tool := range req.Tools {
		if !strings.Contains(got, `"parametersJsonSchema":`+string(compact(tool.Schema))) {
			t.Errorf("the schema of %s was changed", tool.Name)
		}
	}
}

func TestW26_SignaturesReachTheirEntryAlone(t *testing.T) {
	t.Parallel()
	history := func(wire lathe.Wire, entry string) *lathe.Request {
		return &lathe.Request{Model: "gemini-2.5-pro", Messages: []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Wire: wire, Parts: []lathe.Part{
			lathe.Reasoning{Text: "think", Field: "thought", Data: "U0VDUkVU", Entry: entry},
			lathe.Reasoning{Field: "thoughtSignature", Data: "U0VDUkVU", Entry: entry}, lathe.ToolCall{ID: "1", Name: "f"}}}}}
	}
	for _, c := range []struct {
		wire        lathe.Wire
		entry, sent string
		reaches     bool
	}{
		{lathe.WireGemini, "a", "a", true}, {lathe.WireGemini, "", "a", true}, {lathe.WireGemini, "", "", true},
		{lathe.WireGemini, "a", "b", false}, {lathe.WireGemini, "a", "", false}, {lathe.WireMessages, "a", "a", false}, {lathe.WireMessages, "", "", false}, {"", "", "", false},
	} {
		got, dropped := encode(t, history(c.wire, c.entry), &wire.EncodeOptions{Entry: c.sent})
		if strings.Count(got, "U0VDUkVU") != map[bool]int{true: 2}[c.reaches] || strings.Contains(got, "think") != c.reaches || (len(dropped) == 0) != c.reaches {
			t.Errorf("%+v: %s %v", c, got, dropped)
		}
	}
	// A call that has no signature gets the placeholder for a model that demands one, and only the first of a step.
	r := history(lathe.WireMessages, "")
	r.Model = "gemini-3-pro"
	r.Messages[1].Parts = append(r.Messages[1].Parts, lathe.ToolCall{ID: "2", Name: "f"})
	if got, _ := encode(t, r, nil); strings.Count(got, noSignature) != 1 || !strings.Contains(got, `"args":{}},"thoughtSignature":"`+noSignature+`"},{`) {
		t.Error(got)
	}
	// A client's own placeholder is forwarded to this wire as it is.
	req := mustParse(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"`+noSignature+`"}]}]}`)
	if got, _ := encode(t, &req.Request, nil); strings.Count(got, noSignature) != 1 {
		t.Error(got)
	}
}

func TestW37_EmptyPart(t *testing.T) {
	t.Parallel()
	req := mustParse(t, `{"contents":[{"role":"user","parts":[{"text":"a"},{}]},{"role":"model","parts":[{},{"text":"b"},{"thought":true}]},{"role":"model","parts":[]},{"parts":[{"text":"c"}]}]}`)
	members := mustParse(t, `{"systemInstruction":{"parts":[{"text":"s"}],"x":1},"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}},{"thought":true,"text":"t","z":1}],"w":1},{"parts":[{"functionResponse":{"name":"f","response":{}}}],"y":1}]}`)
	if got := strings.Join(members.Dropped, " "); got != "systemInstruction.x contents[0].parts[1].z contents[1].y" {
		t.Errorf("dropped %s", got)
	}
	if len(req.Messages) != 3 || strings.Join(req.Dropped, " ") != "contents[0].parts[1] contents[1].parts[0] contents[1].parts[2] contents[2]" {
		t.Errorf("%d messages, dropped %v", len(req.Messages), req.Dropped)
	}
}

func TestW40_SealsOfOthersAreTextOrSignatures(t *testing.T) {
	t.Parallel()
	for signature, want := range map[string]string{sealed("lathe1.abc"): "lathe1.abc", "c2ln": "c2ln", noSignature: noSignature, "not base64!": "not base64!"} {
		req := mustParse(t, `{"contents":[{"role":"model","parts":[{"text":"a","thoughtSignature":"`+signature+`"}]}]}`)
		if r := req.Messages[0].Parts[0].(lathe.Reasoning); r.Data != want || r.Field != fieldSignature {
			t.Errorf("%s: %+v", signature, r)
		}
	}
}

func TestW41_NamesAreMappedBack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 100)
	req := mustParse(t, `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"ns.tool:x"}}]},{"parts":[{"functionResponse":{"id":"1","name":"ns.tool:x","response":{}}}]}],
		"tools":[{"functionDeclarations":[{"name":"ns.tool:x"},{"name":"ns_tool_x"},{"name":"`+long+`"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ns.tool:x"]}}}`)
	seen := map[string]bool{}
	for _, tool := range req.Tools {
		if innerName(tool.Name) != tool.Name || seen[tool.Name] {
			t.Errorf("name %q", tool.Name)
		}
		seen[tool.Name] = true
	}
	name := req.Tools[0].Name
	if req.ToolChoice.Name != name || req.Messages[1].Calls()[0].Name != name || req.Messages[2].Parts[0].(lathe.ToolResult).Name != name || req.Tools[1].Name != "ns_tool_x" {
		t.Errorf("%s", dump(t, req))
	}
	h := *head
	h.Request = req
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{lathe.ToolCall{ID: "1", Name: name}, lathe.ToolCall{ID: "2", Name: req.Tools[2].Name}, lathe.ToolCall{ID: "3", Name: "ns_tool_x"}}}}
	w := Codec{}.NewWriter(&h)
	stream := write(w, []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "1", Name: name}, {Kind: lathe.DeltaCallEnd}})
	for _, out := range []string{string(w.AppendFinish(stream, f, nil)), string(wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: h, Finish: f}))} {
		if !strings.Contains(out, `"name":"ns.tool:x"`) || !strings.Contains(out, long) || !strings.Contains(out, `"name":"ns_tool_x"`) || strings.Contains(out, name) {
			t.Error(out)
		}
	}
}

func TestAllowedFunctionsAreTheTools(t *testing.T) {
	t.Parallel()
	const body = `{"contents":[{"parts":[{"text":"q"}]}],"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"},{"name":"h"}]}],"toolConfig":{"functionCallingConfig":{"mode":"MODE","allowedFunctionNames":["h","f"]}}}`
	for mode, want := range map[string]string{"ANY": "required f h", "AUTO": "auto f h", "VALIDATED": "auto f h", "NONE": "none f g h"} {
		req := mustParse(t, strings.Replace(body, "MODE", mode, 1))
		got := req.ToolChoice.Mode
		for _, tool := range req.Tools {
			if !tool.Disallowed {
				got += " " + tool.Name
			}
		}
		if got != want || len(req.Tools) != 3 || (len(req.Dropped) > 0) != (mode == "VALIDATED") {
			t.Errorf("%s: %s, want %s; dropped %v", mode, got, want, req.Dropped)
		}
	}
}

func TestW30_EachOptionIsSentOrListed(t *testing.T) {
	t.Parallel()
	values := map[string]any{"ResponseFormat": raw(`{"type":"json_object"}`), "ReasoningEffort": "low", "ReasoningSummary": "auto", "Stop": []string{"z"}}
	for _, model := range []string{"gemini-2.5-pro", "gemini-3-pro", "other"} {
		none, _ := encode(t, &lathe.Request{Model: model, Messages: []lathe.Message{lathe.User("a")}}, nil)
		for _, without := range []string{"", featureThinking, featureLevel, featureJSONSchema} {
			typ := reflect.TypeFor[lathe.Sampling]()
			for i := range typ.NumField() {
				req := &lathe.Request{Model: model, Messages: []lathe.Message{lathe.User("a")}}
				field := reflect.ValueOf(&req.Sampling).Elem().Field(i)
				if v, ok := values[typ.Field(i).Name]; ok {
					field.Set(reflect.ValueOf(v))
				} else if field.Kind() != reflect.Pointer {
					t.Fatalf("no value for %s", typ.Field(i).Name)
				} else {
					field.Set(reflect.New(field.Type().Elem()))
				}
				got, dropped := encode(t, req, &wire.EncodeOptions{Without: []string{without}})
				if (got == none) != (len(dropped) == 1) {
					t.Errorf("%s to %s without %q: %s, dropped %v", typ.Field(i).Name, model, without, got, dropped)
				}
			}
		}
	}
	for _, body := range []string{`{"seed":9007199254740993}`} { // above 32 bits
		req := mustParse(t, `{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":`+body+`}`)
		if got, dropped := encode(t, &req.Request, nil); strings.Contains(got, "seed") || len(dropped) != 1 {
			t.Errorf("%s: %s %v", body, got, dropped)
		}
	}
}
