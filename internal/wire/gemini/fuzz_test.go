package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"a/b","data":"AQI="}},{}]},{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"YQ=="},{"text":"","thoughtSignature":"Yg=="},{"functionCall":{"id":"1","name":"f.g","args":{"a":1}},"s":1}]},{"parts":[{"functionResponse":{"name":"f.g","response":{"output":"x"},"parts":[{"fileData":{"fileUri":"gs://a"}}]}}]}],"tools":[{"functionDeclarations":[{"name":"f.g","parameters":{"type":"OBJECT","nullable":true}}]},{"googleSearch":{}}]}`))
	f.Add([]byte(`{"system_instruction":{"parts":[{"text":"s"}]},"contents":[{"parts":[{"executable_code":{}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"},"x":1},"generationConfig":{"topK":1,"responseMimeType":"application/json","responseSchema":{"type":"STRING"},"thinkingConfig":{"thinkingBudget":1},"z":2}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Codec{}.ParseRequest(body)
		if err != nil {
			if e, ok := err.(*wire.APIError); !ok || e.Status != 400 || e.Message == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		req.Overrides = req.Unknown
		for _, h := range req.Hosted {
			req.HostedTools = append(req.HostedTools, h.JSON)
		}
		again, _ := Codec{}.AppendRequest(nil, &req.Request, nil)
		if !json.Valid(again) {
			t.Fatalf("not JSON: %s", again)
		}
		second, err := Codec{}.ParseRequest(again)
		if err != nil {
			if strings.Contains(err.(*wire.APIError).Code, "ambiguous") || len(req.Messages) == 1 && leading(req.Messages) == 0 || req.Foreign != nil {
				return
			}
			t.Fatalf("%v: %s\n%s", err, err.(*wire.APIError).Message, again)
		}
		if len(req.Messages) > 1 {
			same(t, "messages", spaceless(second.Messages), spaceless(req.Messages))
		}
		relayed := Codec{}.AppendRelayed(nil, body, &req.Request, &wire.EncodeOptions{})
		if !json.Valid(relayed) {
			t.Fatalf("not JSON: %s", relayed)
		}
		for _, feature := range []string{featureIDs, featureJSONSchema, featureThinking, featureUnsigned} {
			if b, _ := (Codec{}).AppendRequest(nil, &req.Request, &wire.EncodeOptions{Without: []string{feature}}); !json.Valid(b) {
				t.Fatalf("not JSON: %s", b)
			}
		}
	})
}

// spaceless returns messages without white space in raw values.
func spaceless(msgs []lathe.Message) []lathe.Message {
	clean := func(members []lathe.Member) {
		for i := range members {
			members[i].Value = compact(members[i].Value)
		}
	}
	for i := range msgs {
		m := &msgs[i]
		clean(m.Extra)
		for j, p := range m.Parts {
			switch p := p.(type) {
			case lathe.Text:
				clean(p.Extra)
			case lathe.ToolCall:
				clean(p.Extra)
			case lathe.ToolResult:
				clean(p.Extra)
				for k := range p.Blobs {
					p.Blobs[k].Raw = nil
				}
			case lathe.Blob:
				p.Raw = nil
				m.Parts[j] = p
			case lathe.Opaque:
				m.Parts[j] = lathe.Opaque{JSON: compact(p.JSON)}
			}
		}
	}
	return msgs
}

func FuzzAssembler(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a[0]","stringValue":"x"}]}},{"functionCall":{}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`), []byte(`{"promptFeedback":{"blockReason":"SAFETY"}}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"YQ=="},{"thought":true,"text":"t"},{"new":1},{"inlineData":{"data":"AQ=="}}]}}]}`), []byte(`{"error":{"code":503}}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a := Codec{}.NewAssembler(&wire.AssemblerOptions{MaxBytes: 1 << 16, MaxCalls: 8})
		w := Codec{}.NewWriter(head)
		var deltas []lathe.Delta
		var err error
		for _, data := range [][]byte{one, two} {
			if deltas, err = a.Append(deltas, "", data); err != nil {
				break
			}
		}
		fin, finErr := a.Finish(true)
		if err != nil && finErr != err {
			t.Fatalf("Finish %v after %v", finErr, err)
		}
		out := write(w, deltas)
		if finErr != nil {
			checkStream(t, w.AppendError(out, &wire.APIError{Message: "x"}))
			return
		}
		text, args := "", map[int]string{}
		for _, d := range deltas {
			switch d.Kind {
			case lathe.DeltaText:
				text += d.Text
			case lathe.DeltaCallArgs:
				args[d.Index] += d.Text
			}
		}
		if got := fin.Message.Text(); got != text {
			t.Fatalf("the deltas have the text %q, the answer %q", text, got)
		}
		for i, c := range fin.Message.Calls() {
			if c.Arguments != args[i] || c.ID == "" {
				t.Fatalf("call %d: %+v, deltas %q", i, c, args[i])
			}
		}
		checkStream(t, w.AppendFinish(out, fin, nil))
		if whole := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: fin}); !json.Valid(whole) {
			t.Fatalf("not JSON: %s", whole)
		}
		if body, _ := (Codec{}).AppendRequest(nil, &lathe.Request{Messages: []lathe.Message{fin.Message}}, nil); !json.Valid(body) {
			t.Fatalf("not JSON: %s", body)
		}
	})
}

// checkStream checks that a stream can be read, and has one end.
func checkStream(t *testing.T, out []byte) {
	t.Helper()
	ends := 0
	data := events(t, string(out))
	for _, d := range data {
		var c struct {
			Candidates     []struct{ FinishReason string }
			PromptFeedback any
			Error          any
		}
		if err := json.Unmarshal([]byte(d), &c); err != nil {
			t.Fatal(err)
		}
		if c.PromptFeedback != nil || c.Error != nil || len(c.Candidates) == 1 && c.Candidates[0].FinishReason != "" {
			ends++
		}
	}
	if ends != 1 {
		t.Fatalf("%d ends\n%s", ends, out)
	}
}

// FuzzWriter calls the methods of a Writer in any order.
func FuzzWriter(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, "text")
	f.Add([]byte{3, 19, 4, 20, 0, 5, 21, 6, 11}, `{"a":1}`)
	f.Fuzz(func(t *testing.T, ops []byte, text string) {
		for _, array := range []bool{false, true} {
			w := Codec{Array: array}.NewWriter(head)
			var out []byte
			for _, op := range ops {
				index := int(op>>4) & 3
				switch op & 15 {
				case 0:
					out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaText, Text: text})
				case 1:
					out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaReasoning, Text: text})
				case 2:
					out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: []string{fieldThought, fieldSignature, "x", ""}[index], Text: text})
				case 3:
					out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: index, ID: "i", Name: text})
				case 4:
					out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: index, Text: text})
				case 5:
					out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: index, Incomplete: op&128 != 0})
				case 6:
					out = w.AppendCarrier(out, text)
				case 7:
					out = w.AppendKeepAlive(out)
				case 8:
					out = w.AppendStart(out)
				case 9:
					out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaRefusal, Text: text})
				case 10:
					out = w.AppendServerCall(out, &wire.ServerCall{Name: text})
				case 11:
					out = w.AppendFinish(out, &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Parts: []lathe.Part{lathe.Text{Text: text}, lathe.ToolCall{ID: "1", Name: "f", Arguments: text}}}}, nil)
				case 12:
					out = w.AppendError(out, &wire.APIError{Message: text})
				}
			}
			out = w.AppendFinish(out, &lathe.Finish{Reason: lathe.FinishLength}, []lathe.Member{{Name: "lathe", Value: json.RawMessage("{\n}")}})
			if !array {
				checkStream(t, out)
				continue
			}
			var list []json.RawMessage
			if err := json.Unmarshal(out, &list); err != nil || len(list) == 0 {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	})
}
