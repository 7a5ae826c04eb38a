package messages

import (
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
)

// TestTextDeltaAllocatesLittle: a text that grows costs few allocations for an event.
func TestTextDeltaAllocatesLittle(t *testing.T) {
	testdata.CountsAllocations(t)
	a := (Codec{}).NewAssembler(nil).(*assembler)
	ds, _ := a.Append(nil, "", []byte(start))
	ds, _ = a.Append(ds, "", []byte(opens(0, `{"type":"text","text":""}`)))
	data := []byte(piece(0, `{"type":"text_delta","text":"some words"}`))
	ds, _ = a.Append(ds, "", data)
	a.blocks[0].text.Grow(1 << 20)
	if n := testing.AllocsPerRun(1000, func() { ds, _ = a.Append(ds[:0], "", data) }); n > 2 || len(ds) != 1 {
		t.Errorf("%v allocations, %d deltas", n, len(ds))
	}
}
