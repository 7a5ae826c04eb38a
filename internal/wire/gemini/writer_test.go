package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

var head = &wire.AnswerHead{RunID: "run_1", Model: "m"}

func write(w wire.Writer, deltas []lathe.Delta) []byte {
	var out []byte
	for _, d := range deltas {
		out = w.AppendDelta(out, d)
	}
	return out
}

// answer is one with a part of each kind, and its deltas.
func answer() (*lathe.Finish, []lathe.Delta) {
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, RawReason: "STOP", Model: "m", ResponseID: "1",
		Usage: lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 184, CachedTokens: 100, ReasoningTokens: 20},
		Message: lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireGemini, Parts: []lathe.Part{
			lathe.Reasoning{Text: "Think.", Field: "thought", Data: "dA=="},
			lathe.Reasoning{Text: "More.", Field: "thought"},
			lathe.Text{Text: "Hello\n\"world\""},
			lathe.Reasoning{Field: "thoughtSignature", Data: "c2ln"},
			lathe.ToolCall{ID: "a", Name: "f", Arguments: `{"big":12345678901234567890,"b":[1]}`},
			lathe.ToolCall{ID: "b", Name: "g", Arguments: `{}`},
		}}}
	deltas := []lathe.Delta{
		{Kind: lathe.DeltaReasoning, Text: "Th"}, {Kind: lathe.DeltaReasoning, Text: "ink."}, {Kind: lathe.DeltaReasoningData, Name: "thought", Text: "dA=="},
		{Kind: lathe.DeltaReasoning, Text: "More."},
		{Kind: lathe.DeltaText, Text: "Hello\n"}, {Kind: lathe.DeltaText, Text: "\"world\""},
		{Kind: lathe.DeltaReasoningData, Name: "thoughtSignature", Text: "c2ln"},
		{Kind: lathe.DeltaCallStart, ID: "a", Name: "f"}, {Kind: lathe.DeltaCallArgs, Text: `{"big":12345678901234567890,`}, {Kind: lathe.DeltaCallArgs, Text: `"b":[1]}`}, {Kind: lathe.DeltaCallEnd},
		{Kind: lathe.DeltaCallStart, Index: 1, ID: "b", Name: "g"}, {Kind: lathe.DeltaCallEnd, Index: 1},
	}
	return f, deltas
}

func TestWriterAndAssemblerAgree(t *testing.T) {
	t.Parallel()
	want, deltas := answer()
	w := Codec{}.NewWriter(head)
	stream := w.AppendFinish(write(w, deltas), want, nil)
	_, got := mustAssemble(t, events(t, string(stream)))
	same(t, "stream", []lathe.Message{got.Message}, []lathe.Message{want.Message})
	same(t, "stream", got, want)

	whole := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: want})
	_, got, err := Codec{}.NewAssembler(nil).Complete(nil, whole)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "whole", []lathe.Message{got.Message}, []lathe.Message{want.Message})
	same(t, "whole", got, want)

	array := Codec{Array: true}.NewWriter(head)
	list := array.AppendFinish(write(array, deltas), want, nil)
	if _, got, err = (Codec{}).NewAssembler(nil).Complete(nil, list); err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	same(t, "array", []lathe.Message{got.Message}, []lathe.Message{want.Message})
	same(t, "array", got, want)
}

func TestWriterEndsOnce(t *testing.T) {
	t.Parallel()
	f, deltas := answer()
	for _, array := range []bool{false, true} {
		for cut := range len(deltas) + 1 {
			for _, end := range []string{"finish", "error"} {
				w := Codec{Array: array}.NewWriter(head)
				out := w.AppendKeepAlive(w.AppendStart(nil))
				out = append(out, write(w, deltas[:cut])...)
				out = w.AppendKeepAlive(out)
				for range 2 {
					if end == "finish" {
						out = w.AppendFinish(out, f, []lathe.Member{{Name: "lathe", Value: json.RawMessage("{\n}")}})
					} else {
						out = w.AppendError(out, &wire.APIError{Status: 503, Message: "gone"})
					}
					out = w.AppendKeepAlive(w.AppendCarrier(w.AppendError(out, &wire.APIError{}), "x"))
					out = append(out, write(w, deltas)...)
				}
				checkEnd(t, string(out), array, end)
			}
		}
	}
}

func checkEnd(t *testing.T, out string, array bool, end string) {
	t.Helper()
	var chunks []json.RawMessage
	if array {
		if err := json.Unmarshal([]byte(out), &chunks); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	} else {
		for _, e := range events(t, out) {
			chunks = append(chunks, json.RawMessage(e))
		}
	}
	for i, c := range chunks {
		var chunk struct {
			Candidates []struct {
				Content      struct{ Parts []map[string]any }
				FinishReason string
			}
			UsageMetadata *struct{}
			Error         *struct{ Code int }
		}
		if err := json.Unmarshal(c, &chunk); err != nil {
			t.Fatal(err)
		}
		last := i == len(chunks)-1
		switch {
		case end == "error" && last:
			if chunk.Error == nil || chunk.Error.Code != 503 {
				t.Fatalf("last: %s", c)
			}
			continue
		case chunk.Error != nil, len(chunk.Candidates) != 1, len(chunk.Candidates[0].Content.Parts) == 0:
			t.Fatalf("chunk: %s", c)
		}
		for _, p := range chunk.Candidates[0].Content.Parts {
			if len(p) == 0 {
				t.Fatalf("an empty part: %s", c)
			}
		}
		if got := chunk.Candidates[0].FinishReason != ""; got != (last && end == "finish") || (chunk.UsageMetadata != nil) != got {
			t.Fatalf("finish reason and usage of chunk %d of %d: %s", i, len(chunks), c)
		}
	}
	if end == "finish" && !strings.Contains(string(chunks[len(chunks)-1]), `"lathe":{}`) {
		t.Fatalf("extra: %s", chunks[len(chunks)-1])
	}
}

func TestWriterBuffersCalls(t *testing.T) {
	t.Parallel()
	w := Codec{}.NewWriter(head)
	out := write(w, []lathe.Delta{
		{Kind: lathe.DeltaCallStart}, {Kind: lathe.DeltaCallStart, Index: 1, ID: "b", Name: "g"}, {Kind: lathe.DeltaCallArgs, Index: 1, Text: `{"x":`},
		{Kind: lathe.DeltaText, Text: "t"}, {Kind: lathe.DeltaCallArgs, Index: 1, Text: `1}`}, {Kind: lathe.DeltaCallEnd, Index: 1}, {Kind: lathe.DeltaCallArgs, Text: `{}`},
	})
	if n := len(events(t, string(out))); n != 1 {
		t.Errorf("%d events before a call can be written", n)
	}
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{
		lathe.Text{Text: "t"}, lathe.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, lathe.ToolCall{ID: "b", Name: "g", Arguments: `{"x":1}`}}}}
	_, got := mustAssemble(t, events(t, string(w.AppendFinish(out, f, nil))))
	same(t, "calls", got.Message.Calls(), f.Message.Calls())
}

func TestWriterGivesNoBrokenCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		cut    bool
		reason lathe.FinishReason
		want   string
	}{{`{"a":`, true, lathe.FinishLength, "MAX_TOKENS"}, {`{"a":`, false, lathe.FinishToolCalls, "MALFORMED_FUNCTION_CALL"}, {`[1]`, false, lathe.FinishToolCalls, "MALFORMED_FUNCTION_CALL"}} {
		f := &lathe.Finish{Reason: c.reason, Message: lathe.Message{Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f", Arguments: c.args, Incomplete: c.cut}}}}
		w := Codec{}.NewWriter(head)
		out := write(w, []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "a", Name: "f"}, {Kind: lathe.DeltaCallArgs, Text: c.args}, {Kind: lathe.DeltaCallEnd, Incomplete: c.cut}})
		for _, got := range []string{string(w.AppendFinish(out, f, nil)), string(wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: f}))} {
			if strings.Contains(got, "functionCall\"") || !strings.Contains(got, `"finishReason":"`+c.want+`"`) {
				t.Errorf("%s: %s", c.args, got)
			}
		}
	}
}

func TestCarrierComesBack(t *testing.T) {
	t.Parallel()
	const seal = "lathe1.abc_-DEF"
	f := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "a"}, lathe.ToolCall{ID: "1", Name: "f", Arguments: "{}"}}}}
	whole := *head
	whole.Whole = true
	say := func(head *wire.AnswerHead) []byte {
		w := Codec{}.NewWriter(head)
		out := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaText, Text: "a"})
		out = w.AppendCarrier(out, seal)
		for _, d := range []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "1", Name: "f"}, {Kind: lathe.DeltaCallEnd}} {
			out = w.AppendDelta(out, d)
		}
		return w.AppendFinish(out, f, nil)
	}
	out := say(head)
	var history []string
	for _, e := range events(t, string(out)) {
		var chunk struct {
			Candidates []struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal([]byte(e), &chunk); err != nil {
			t.Fatal(err)
		}
		history = append(history, string(chunk.Candidates[0].Content))
	}
	var answer struct {
		Candidates []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(say(&whole), &answer); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{strings.Join(history, ","), string(answer.Candidates[0].Content)} {
		req := mustParse(t, `{"contents":[{"parts":[{"text":"q"}]},`+h+`]}`)
		same(t, "history", req.Messages[1:], []lathe.Message{{Role: lathe.RoleAssistant, Wire: lathe.WireGemini, Parts: []lathe.Part{
			lathe.Text{Text: "a"}, lathe.Reasoning{Field: "thoughtSignature", Data: seal}, lathe.ToolCall{ID: "1", Name: "f", Arguments: "{}"}}}})
	}
}

func TestWriterShowsThoughtsOnRequest(t *testing.T) {
	t.Parallel()
	f, deltas := answer()
	for _, c := range []struct {
		config string
		want   bool
	}{{`{}`, false}, {`{"thinkingConfig":{"includeThoughts":true}}`, true}} {
		h := *head
		h.Request = mustParse(t, `{"contents":[{"parts":[{"text":"q"}]}],"generationConfig":`+c.config+`}`)
		w := Codec{}.NewWriter(&h)
		for _, out := range []string{string(w.AppendFinish(write(w, deltas), f, nil)), string(wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: h, Finish: f}))} {
			if got := strings.Contains(out, "Think.") || strings.Contains(out, `"Th"`); got != c.want || !strings.Contains(out, "c2ln") {
				t.Errorf("%s: %s", c.config, out)
			}
		}
	}
}

func TestWriterContinuesAfterRelayedEvents(t *testing.T) {
	t.Parallel()
	w := Codec{}.NewWriter(head)
	w.Pass(&lathe.Raw{ID: "r9", Model: "gemini-x", Deltas: []lathe.Delta{{Kind: lathe.DeltaText, Text: "a"}, {Kind: lathe.DeltaCallStart, ID: "1", Name: "f"}, {Kind: lathe.DeltaCallArgs, Text: "{}"}, {Kind: lathe.DeltaCallEnd}}})
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{lathe.Text{Text: "a"}, lathe.ToolCall{ID: "1", Name: "f"}, lathe.ToolCall{ID: "2", Name: "g"}}}}
	out := string(w.AppendFinish(nil, f, nil))
	if strings.Contains(out, `"id":"1"`) || !strings.Contains(out, `"id":"2"`) || !strings.Contains(out, `"responseId":"r9"`) || !strings.Contains(out, "STOP") {
		t.Error(out)
	}
	w = Codec{}.NewWriter(head)
	w.Pass(&lathe.Raw{Finished: true})
	if out := w.AppendError(w.AppendFinish(nil, f, nil), &wire.APIError{}); len(out) > 0 {
		t.Errorf("a second end: %s", out)
	}
}

func TestBlockedPrompt(t *testing.T) {
	t.Parallel()
	f := &lathe.Finish{Reason: lathe.FinishContentFilter, RawReason: "PROHIBITED_CONTENT", Message: lathe.Message{Role: lathe.RoleAssistant}}
	w := Codec{}.NewWriter(head)
	for _, out := range []string{events(t, string(w.AppendFinish(nil, f, nil)))[0], string(wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: f}))} {
		if !strings.HasPrefix(out, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":`) {
			t.Error(out)
		}
		if _, got, err := (Codec{}).NewAssembler(nil).Complete(nil, []byte(out)); err != nil || got.Reason != f.Reason || got.RawReason != f.RawReason {
			t.Errorf("%v %+v", err, got)
		}
	}
}
