package messages

import (
	"testing"

	"github.com/lathe-run/lathe"
)

// BenchmarkTextDelta measures what one event of text costs.
func BenchmarkTextDelta(b *testing.B) {
	a := Codec{}.NewAssembler(nil)
	_, _ = a.Append(nil, "", []byte(start))
	_, _ = a.Append(nil, "", []byte(opens(0, `{"type":"text","text":""}`)))
	data := []byte(piece(0, `{"type":"text_delta","text":" anything I can help"}`))
	var deltas []lathe.Delta
	n := 0
	for b.Loop() {
		var err error
		if deltas, err = a.Append(deltas[:0], "content_block_delta", data); err != nil {
			b.Fatal(err)
		}
		if n++; n == 100_000 {
			n = 0
			b.StopTimer()
			a = Codec{}.NewAssembler(nil)
			_, _ = a.Append(nil, "", []byte(start))
			_, _ = a.Append(nil, "", []byte(opens(0, `{"type":"text","text":""}`)))
			b.StartTimer()
		}
	}
}
