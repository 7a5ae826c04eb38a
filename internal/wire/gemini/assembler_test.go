package gemini

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func TestAssemblerReadsTheExample(t *testing.T) {
	t.Parallel()
	deltas, f := mustAssemble(t, events(t, string(readShared(t, "examples", "gemini.sse"))))
	same(t, "message", []lathe.Message{f.Message}, []lathe.Message{{Role: lathe.RoleAssistant, Wire: lathe.WireGemini, Parts: []lathe.Part{
		lathe.Reasoning{Text: "Need two cities.", Field: "thought"},
		lathe.Text{Text: "I look both up."},
		lathe.Reasoning{Field: "thoughtSignature", Data: "EqQB"},
		lathe.ToolCall{ID: "call_A", Name: "get_weather", Arguments: `{"city":"Oslo"}`},
		lathe.ToolCall{ID: "call_B", Name: "get_weather", Arguments: `{"city":"Rome"}`},
	}}})
	if f.Reason != lathe.FinishToolCalls || f.RawReason != "STOP" || f.Model != "m" || f.ResponseID != "r1" || len(f.Faults) != 0 {
		t.Errorf("%+v", f)
	}
	if want := (lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 184, CachedTokens: 100, ReasoningTokens: 20}); f.Usage != want {
		t.Errorf("usage %+v, want %+v", f.Usage, want)
	}
	var kinds []lathe.DeltaKind
	for _, d := range deltas {
		kinds = append(kinds, d.Kind)
	}
	call := []lathe.DeltaKind{lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd}
	same(t, "deltas", kinds, append(append([]lathe.DeltaKind{lathe.DeltaReasoning, lathe.DeltaText, lathe.DeltaReasoningData}, call...), call...))
}

func TestAssemblerReadsPieces(t *testing.T) {
	t.Parallel()
	chunk := func(part, rest string) string {
		return `{"candidates":[{"content":{"parts":[` + part + `]},"index":0` + rest + `}],"responseId":"r"}`
	}
	data := []string{
		chunk(`{"functionCall":{"name":"light","willContinue":true},"thoughtSignature":"c2ln"}`, ""),
		chunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.level","numberValue":50},{"jsonPath":"$['a b'].list[0].on","boolValue":true}],"willContinue":true}}`, ""),
		chunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.color","stringValue":"wa\"","willContinue":true}],"willContinue":true}}`, ""),
		chunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.color","stringValue":"rm","willContinue":false},{"jsonPath":"$.n","nullValue":"NULL_VALUE"}],"willContinue":true}}`, ""),
		chunk(`{"functionCall":{}}`, ""),
		chunk(`{"text":""}`, `,"finishReason":"STOP"`),
	}
	deltas, f := mustAssemble(t, data)
	calls := f.Message.Calls()
	if len(calls) != 1 || calls[0].Arguments != `{"level":50,"a b":{"list":[{"on":true}]},"color":"wa\"rm","n":null}` || calls[0].Incomplete || calls[0].ID == "" {
		t.Errorf("%+v", calls)
	}
	if d := deltas[len(deltas)-2]; d.Kind != lathe.DeltaCallArgs || d.Text != calls[0].Arguments {
		t.Errorf("%+v", deltas)
	}
	// The stream ends within the call: no client can take its arguments for whole.
	for _, c := range []struct {
		reason string
		want   lathe.FinishReason
	}{{"MAX_TOKENS", lathe.FinishLength}, {"STOP", lathe.FinishToolCalls}} {
		_, f := mustAssemble(t, append(data[:4:4], chunk("", `,"finishReason":"`+c.reason+`"`)))
		if call := f.Message.Calls()[0]; !call.Incomplete || f.Reason != c.want || json.Valid([]byte(call.Arguments)) || !json.Valid([]byte(call.Arguments+"}")) {
			t.Errorf("%s: %+v %s", c.reason, call, f.Reason)
		}
	}
	// Pieces that do not fit together are no arguments.
	for _, piece := range []string{`{"jsonPath":"$.level.x","numberValue":1}`, `{"jsonPath":"$.l[7]","numberValue":1}`, `{"jsonPath":"level","numberValue":1}`,
		`{"jsonPath":"$","numberValue":1}`, `{"jsonPath":"$` + strings.Repeat(".a", 65) + `","numberValue":1}`, `{"jsonPath":"$['a","boolValue":true}`} {
		bad := append(data[:2:2], chunk(`{"functionCall":{"partialArgs":[`+piece+`]}}`, `,"finishReason":"STOP"`))
		if _, f := mustAssemble(t, bad); !f.Message.Calls()[0].Incomplete || len(f.Faults) == 0 {
			t.Errorf("%s: %+v", piece, f)
		}
	}
}

func TestAssemblerFinishReasons(t *testing.T) {
	t.Parallel()
	call := `{"functionCall":{"name":"f","args":{}}}`
	for _, c := range []struct {
		word, part string
		want       lathe.FinishReason
	}{
		{"STOP", `{"text":"a"}`, lathe.FinishStop}, {"STOP", call, lathe.FinishToolCalls}, {"OTHER", call, lathe.FinishToolCalls},
		{"MAX_TOKENS", `{"text":"a"}`, lathe.FinishLength}, {"MAX_TOKENS", call, lathe.FinishLength},
		{"SAFETY", `{"text":"a"}`, lathe.FinishContentFilter}, {"RECITATION", "", lathe.FinishContentFilter}, {"IMAGE_NEW", "", lathe.FinishContentFilter},
		{"OTHER", "", lathe.FinishUnknown}, {"NEW_WORD", "", lathe.FinishUnknown},
	} {
		_, f := mustAssemble(t, []string{`{"candidates":[{"finishReason":"` + c.word + `","content":{"parts":[` + c.part + `]}}]}`})
		if f.Reason != c.want || f.RawReason != c.word || (len(f.Faults) > 0) != (c.word == "NEW_WORD" || c.part == call) {
			t.Errorf("%s with %s: %s, want %s; %v", c.word, c.part, f.Reason, c.want, f.Faults)
		}
	}
	for _, word := range []string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"} {
		_, f, err := assemble(t, []string{`{"candidates":[{"finishReason":"` + word + `","finishMessage":"bad","content":{}}]}`})
		var e *wire.APIError
		if f != nil || !errors.As(err, &e) || e.Status != 502 || e.Code != "bad_call" || e.Message != "bad" {
			t.Errorf("%s: %v %+v", word, f, err)
		}
	}
	_, f := mustAssemble(t, []string{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`})
	if f.Reason != lathe.FinishContentFilter || f.RawReason != "PROHIBITED_CONTENT" || f.Usage.InputTokens != 3 || len(f.Message.Parts) != 0 {
		t.Errorf("blocked: %+v", f)
	}
}

func TestAssemblerKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	_, f := mustAssemble(t, []string{`{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"},"thoughtSignature":"YQ=="},{"new": 1},{"inlineData":{"mimeType":"image/png","data":"AQI="}},
		{"text":"a","partMetadata":{"k":1}},{"thought":true,"inlineData":{"mimeType":"image/png","data":"AQI="}},{"functionCall":{"id":"1","name":"f","args":{},"n":1},"s":2}]},"finishReason":"STOP"},{"index":1}]}`})
	same(t, "parts", []lathe.Message{f.Message}, []lathe.Message{{Role: lathe.RoleAssistant, Wire: lathe.WireGemini, Parts: []lathe.Part{
		lathe.Reasoning{Field: "thoughtSignature", Data: "YQ=="},
		lathe.Opaque{JSON: json.RawMessage(`{"executableCode":{"code":"1"}}`)},
		lathe.Opaque{JSON: json.RawMessage(`{"new":1}`)},
		lathe.Blob{MediaType: "image/png", Data: []byte{1, 2}},
		lathe.Text{Text: "a", Extra: []lathe.Member{{Name: "partMetadata", Value: json.RawMessage(`{"k":1}`)}}},
		lathe.Opaque{JSON: json.RawMessage(`{"thought":true,"inlineData":{"mimeType":"image/png","data":"AQI="}}`)},
		lathe.ToolCall{ID: "1", Name: "f", Arguments: "{}", Extra: []lathe.Member{{Name: "s", Value: json.RawMessage("2")}, {Name: "functionCall", Value: json.RawMessage(`{"n":1}`)}}},
	}}})
	if len(f.Faults) != 1 || f.Faults[0].Kind != "extra_choice" {
		t.Errorf("faults %v", f.Faults)
	}
}

// The text of a part counts even if other members of it are not what they should be.
func TestAssemblerReadsTextOfInvalidParts(t *testing.T) {
	t.Parallel()
	for _, part := range []string{`{"text":"Hi","thought":"true"}`, `{"text":"Ho","text":"Hi"}`, `{"text":"Hi","thoughtSignature":1}`,
		`{"text":"Hi","thoughtSignature":"s","thought_signature":"s"}`} {
		_, f := mustAssemble(t, []string{`{"candidates":[{"content":{"parts":[` + part + `]},"finishReason":"STOP"}]}`})
		if got := f.Message.Text(); got != "Hi" || len(f.Faults) == 0 {
			t.Errorf("%s: %q, faults %v", part, got, f.Faults)
		}
	}
}

func TestAssemblerIsBounded(t *testing.T) {
	t.Parallel()
	feed := func(part string, n int) (err error) {
		a := Codec{}.NewAssembler(&wire.AssemblerOptions{MaxBytes: 100, MaxCalls: 2})
		for range n {
			if _, err = a.Append(nil, "", []byte(`{"candidates":[{"content":{"parts":[`+part+`]}}]}`)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, part := range []string{`{"text":"aaaaaaaaaa"}`, `{"new":"aaaaaaaaaa"}`, `{"thoughtSignature":"aaaa"}`, `{"functionCall":{"name":"f","args":{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":1}}}`} {
		if err := feed(part, 20); !errors.Is(err, wire.ErrTooManyBytes) {
			t.Errorf("%s: %v", part, err)
		}
	}
	if err := feed(`{"functionCall":{"name":"f"}}`, 3); !errors.Is(err, wire.ErrTooManyCalls) {
		t.Errorf("calls: %v", err)
	}
	if err := feed(`{"text":"a"}`, 2); err != nil {
		t.Error(err)
	}
}

func TestAssemblerErrors(t *testing.T) {
	t.Parallel()
	_, _, err := assemble(t, []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`})
	var e *wire.APIError
	if !errors.As(err, &e) || e.Status != 503 || e.Type != "UNAVAILABLE" || e.Message != "overloaded" {
		t.Errorf("%+v", err)
	}
	whole := `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`
	if _, _, err := assemble(t, []string{whole, `{"cut`}); !errors.Is(err, wire.ErrIncomplete) {
		t.Errorf("an event that is not JSON: %v", err)
	}
	for _, body := range []string{"", "<html>", "{}", "[]", `"x"`, `{"cut`, `[{"cut`} {
		if _, f, err := (Codec{}).NewAssembler(nil).Complete(nil, []byte(body)); f != nil || !errors.Is(err, wire.ErrNoAnswer) {
			t.Errorf("%q: %v", body, err)
		}
	}
	if _, f, err := (Codec{}).NewAssembler(nil).Complete(nil, []byte(strings.Replace(whole, `,"finishReason":"STOP"`, "", 1))); f != nil || !errors.Is(err, wire.ErrIncomplete) {
		t.Errorf("a whole answer without a reason: %v", err)
	}
	if _, f, err := (Codec{}).NewAssembler(nil).Complete(nil, []byte(`[`+whole+`]`)); err != nil || f.Message.Text() != "a" {
		t.Errorf("the form of an array: %v", err)
	}
}

func TestAssemblerSound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data  string
		sound bool
	}{
		{`{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}],"new":1}`, true},
		{`{"candidates":[{"content":{"parts":[{"new":1}]},"finishReason":"STOP"},{"index":1}]}`, true},
		{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":"{}"}}]},"finishReason":"STOP"}]}`, false},
		{`{"candidates":[{"content":{"parts":[1]},"finishReason":"STOP"}]}`, false},
		{`{"candidates":[{"content":{"parts":[{"text":"\ud800"}]},"finishReason":"STOP"}]}`, false},
		{`{"candidates":[{"finishReason":"NEW"}]}`, false},
		{`[DONE]`, false},
	} {
		a := Codec{}.NewAssembler(nil)
		if _, err := a.Append(nil, "", []byte(c.data)); err != nil || a.Sound() != c.sound || a.Finished() != strings.Contains(c.data, "finishReason") || a.Done() {
			t.Errorf("%s: sound %v, want %v; %v", c.data, a.Sound(), c.sound, err)
		}
	}
}
