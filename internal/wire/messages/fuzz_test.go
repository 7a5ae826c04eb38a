package messages

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// FuzzParseRequest: a request that is read is the same after it was written twice, and what is written is JSON.
func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(said(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{"a":1}}]}`,
		`{"role":"user","content":[{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"tool_reference","tool_name":"g"}]}]}`)))
	f.Add([]byte(with(`"system":[{"type":"text","text":"s"}],"tools":[{"name":"a b","input_schema":{"oneOf":[{}]},"strict":true},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}`)))
	f.Add([]byte(with(`"thinking":{"type":"enabled","budget_tokens":5000},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","minProperties":1}}},"top_k":5,"temperature":2,"stop_sequences":[" ","a"]`)))
	f.Add([]byte(said(`{"role":"system","content":"a"}`, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"x"}}],"x":1}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Codec{}.ParseRequest(body)
		if err != nil {
			return
		}
		for _, opts := range []*wire.EncodeOptions{nil, {Entry: "e", Without: []string{featureFormat, featureHistory, featureAdaptive}}} {
			b, dropped := Codec{}.AppendRequest(nil, &r.Request, opts)
			if err := rawjson.Check(b, rawjson.Limits{MaxDepth: 600}); err != nil || len(dropped) > wire.MaxDropped {
				t.Fatalf("%v, %d dropped\n%s", err, len(dropped), b)
			}
		}
		relayed := Codec{}.AppendRelayed(nil, body, &r.Request, &wire.EncodeOptions{Stream: r.Stream})
		if rawjson.Check(relayed, rawjson.Limits{}) != nil {
			t.Fatalf("relayed: %s", relayed)
		}
		second, ok := rewrite(t, r)
		if !ok {
			return
		}
		third, ok := rewrite(t, second)
		if !ok {
			t.Fatal("what was written once cannot be written twice")
		}
		if d := cmp.Diff(second.Request, third.Request); d != "" {
			t.Fatalf("(-once +twice):\n%s", d)
		}
	})
}

// rewrite writes a request and reads it. It is false if what the wire can express is no request: one whose messages have
// nothing that can be sent, or whose tool choice names a tool by a name that had to be changed.
func rewrite(t *testing.T, r *wire.ClientRequest) (*wire.ClientRequest, bool) {
	in := r.Request
	for _, h := range r.Hosted {
		in.HostedTools = append(in.HostedTools, h.JSON)
	}
	body, _ := Codec{}.AppendRequest(nil, &in, &wire.EncodeOptions{})
	out, err := Codec{}.ParseRequest(body)
	if err != nil {
		t.Logf("%v: %s", err, body)
		return nil, false
	}
	return out, true
}

// FuzzAssembler: any events are read without a panic; the deltas say what the answer does, and the answer can be written and
// read again.
func FuzzAssembler(f *testing.F) {
	f.Add(strings.Join([]string{start, opens(0, `{"type":"text","text":"a"}`), piece(0, `{"type":"text_delta","text":"b"}`), closes(0),
		opens(1, `{"type":"tool_use","id":"a","name":"f","input":{}}`), piece(1, `{"type":"input_json_delta","partial_json":"{}"}`), closes(1), stops("tool_use"), last}, "\n"))
	f.Add(strings.Join([]string{start, opens(0, `{"type":"thinking","thinking":"","signature":"x"}`), piece(0, `{"type":"signature_delta","signature":"y"}`),
		opens(1, `{"type":"server_tool_use","input":{}}`), piece(1, `{"type":"input_json_delta","partial_json":"{}"}`), piece(1, `{"type":"x","a":"b"}`), stops("max_tokens"), last}, "\n"))
	f.Add(`{"type":"message","content":[{"type":"tool_use","id":"a","name":"` + helperTool + `","input":{"a":1}}],"stop_reason":"tool_use"}`)
	f.Fuzz(func(t *testing.T, events string) {
		opts := &wire.AssemblerOptions{MaxBytes: 1 << 16, MaxCalls: 8}
		_, _, _ = Codec{}.NewAssembler(opts).Complete(nil, []byte(events))
		a := Codec{}.NewAssembler(opts)
		var deltas []lathe.Delta
		for e := range strings.SplitSeq(events, "\n") {
			var err error
			if deltas, err = a.Append(deltas, "", []byte(e)); err != nil {
				return
			}
		}
		finish, err := a.Finish(true)
		if err != nil {
			return
		}
		var texts, reasoning, wantText, wantReasoning strings.Builder
		args := map[int]string{}
		for _, d := range deltas {
			switch d.Kind {
			case lathe.DeltaText:
				texts.WriteString(d.Text)
			case lathe.DeltaReasoning:
				reasoning.WriteString(d.Text)
			case lathe.DeltaCallArgs:
				args[d.Index] += d.Text
			}
		}
		calls := 0
		for _, p := range finish.Message.Parts {
			switch p := p.(type) {
			case lathe.Text:
				wantText.WriteString(p.Text)
			case lathe.Reasoning:
				wantReasoning.WriteString(p.Text)
			case lathe.ToolCall:
				if strings.Trim(p.Arguments, " \t\r\n") != "" && args[calls] != p.Arguments {
					t.Fatalf("call %d: the deltas say %q, the answer %q", calls, args[calls], p.Arguments)
				}
				calls++
			case lathe.Opaque:
				if len(p.JSON) > 0 && rawjson.Check(p.JSON, rawjson.Limits{MaxDepth: 1 << 20, MaxKeys: 1 << 20}) != nil {
					if _, err := rawjson.Scan(p.JSON, 0); err != nil {
						t.Fatalf("block: %s", p.JSON)
					}
				}
			}
		}
		// Blocks may come interleaved: the deltas are in the order of their arrival.
		if texts.Len() != wantText.Len() || reasoning.Len() != wantReasoning.Len() {
			t.Fatalf("the deltas say %q and %q, the answer %q and %q", texts.String(), reasoning.String(), wantText.String(), wantReasoning.String())
		}
	})
}

// FuzzWriter: whatever is called in whatever order, the stream is one that the wire allows.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x00\x11\x02\x23\x04\x05\x16"))
	f.Add([]byte("\x02\x03\x12\x13\x00\x04\x14\x06"))
	f.Add([]byte("\x01\x07\x08\x09\x0a\x05"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		w := Codec{}.NewWriter(&wire.AnswerHead{ID: "1", Model: "m"})
		var out []byte
		var calls []lathe.ToolCall
		for _, op := range ops {
			index := int(op>>4) % 5
			switch op & 15 {
			case 0:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaText, Text: "t"})
			case 1:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaReasoning, Text: "r"})
			case 2:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: index, ID: string(rune('a' + index)), Name: "f"})
			case 3:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: index, Text: "1"})
			case 4:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: index, Incomplete: op > 200})
			case 5:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldThinking, Text: "s"})
			case 6:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldRedacted, Text: "d"})
			case 7:
				out = w.AppendServerCall(out, &wire.ServerCall{ID: "x", Name: "n", Server: "lathe"})
			case 8:
				out = w.AppendCarrier(out, "seal")
			case 9:
				out = w.AppendKeepAlive(w.AppendStart(out))
			case 10:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaRefusal, Text: "no"})
			case 11:
				out = w.AppendDelta(out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: index})
			case 12:
				calls = append(calls, lathe.ToolCall{ID: string(rune('a' + index)), Name: "f", Arguments: "{}"})
			}
		}
		cut := w.AppendFinish(bytes.Clone(out), callFinish(calls...), nil)
		checkStream(t, cut)
		if more := w.AppendError(w.AppendFinish(nil, callFinish(), nil), &wire.APIError{}); len(more) > 0 {
			t.Fatalf("after the end: %s", more)
		}
	})
}
