package responses

import (
	"testing"

	"github.com/lathe-run/lathe"
)

// BenchmarkText reads and writes one piece of a text, as most events are.
func BenchmarkText(b *testing.B) {
	list := []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m"}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}`,
	}
	piece := []byte(`{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_04a97b4fce127879006949a87d97e081959020140d5b07b7b5","output_index":0,"content_index":0,"delta":" some words","logprobs":[],"obfuscation":"LFLSBWdBroW"}`)
	b.Run("read", func(b *testing.B) {
		a := Codec{}.NewAssembler(nil)
		begin := func() {
			a = Codec{}.NewAssembler(nil)
			for _, e := range list {
				if _, err := a.Append(nil, "", []byte(e)); err != nil {
					b.Fatal(err)
				}
			}
		}
		begin()
		var deltas []lathe.Delta
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%10_000 == 9999 {
				begin()
			}
			deltas, _ = a.Append(deltas[:0], "response.output_text.delta", piece)
			if len(deltas) != 1 {
				b.Fatal(deltas)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		w := Codec{}.NewWriter(testHead(b, `{"model":"m","input":"x"}`))
		var dst []byte
		b.ReportAllocs()
		for b.Loop() {
			dst = w.AppendDelta(dst[:0], lathe.Delta{Kind: lathe.DeltaText, Text: " some words"})
		}
	})
}
