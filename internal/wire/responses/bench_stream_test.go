package responses

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// BenchmarkStream reads and writes a whole streamed answer of 512 pieces: of text, and of the arguments of a call.
func BenchmarkStream(b *testing.B) {
	const pieces = 512
	type stream struct {
		name   string
		deltas []lathe.Delta
		part   lathe.Part
	}
	text, args := strings.Repeat("a word or ", pieces), `{"text":"`+strings.Repeat(`package main\n\tx`, pieces)+`"}`
	words, call := stream{name: "text", part: lathe.Text{Text: text}}, stream{name: "arguments", part: lathe.ToolCall{ID: "call_1", Name: "write", Arguments: args}}
	for rest := text; rest != ""; rest = rest[min(10, len(rest)):] {
		words.deltas = append(words.deltas, lathe.Delta{Kind: lathe.DeltaText, Text: rest[:min(10, len(rest))]})
	}
	call.deltas = append(call.deltas, lathe.Delta{Kind: lathe.DeltaCallStart, ID: "call_1", Name: "write"})
	for rest := args; rest != ""; rest = rest[min(16, len(rest)):] {
		call.deltas = append(call.deltas, lathe.Delta{Kind: lathe.DeltaCallArgs, Text: rest[:min(16, len(rest))]})
	}
	call.deltas = append(call.deltas, lathe.Delta{Kind: lathe.DeltaCallEnd})
	for _, s := range []stream{words, call} {
		head := testHead(b, `{"model":"m","input":"x"}`)
		f := &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{s.part}}, Reason: lathe.FinishStop}
		var whole []byte
		var data [][]byte
		w := Codec{}.NewWriter(head)
		for _, d := range s.deltas {
			whole = w.AppendDelta(whole, d)
		}
		for line := range bytes.Lines(w.AppendFinish(whole, f, nil)) {
			if event, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				data = append(data, bytes.Clone(bytes.TrimRight(event, "\n")))
			}
		}
		b.Run(s.name+"/write", func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				w := Codec{}.NewWriter(head)
				for _, d := range s.deltas {
					dst = w.AppendDelta(dst[:0], d)
				}
				dst = w.AppendFinish(dst[:0], f, nil)
			}
		})
		b.Run(s.name+"/read", func(b *testing.B) {
			var deltas []lathe.Delta
			b.ReportAllocs()
			for b.Loop() {
				a := Codec{}.NewAssembler(nil)
				for _, event := range data {
					var err error
					if deltas, err = a.Append(deltas[:0], "", event); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := a.Finish(true); err != nil || !a.Sound() {
					b.Fatal(err, a.Sound())
				}
			}
		})
	}
}
