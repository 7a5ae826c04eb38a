package messages

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
)

// TestMemoChangesNothing: events that are remembered give what the same events give when each is taken apart, whatever their
// text and padding.
func TestMemoChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	words := []string{`a`, `text`, `delta`, `\n`, `\u00e4`, `\ud83d\ude00`, `\ud83d`, `😀`, `\"`, `}`, `"}}`, ``, ` `, "\x80", "\x01", `{\"a\":`, `1`, `index`, `\\`}
	tails := []string{`"}}`, `"} }`, `"}}   `, `"}  }  `, `","x":1}}`, `"},"y":"a"}`, `"}`, `"}}}`}
	heads := []string{`"text_delta","text":"`, `"text_delta", "text":"`, `"text_delta","text":"a","text":"`, `"thinking_delta","thinking":"`, `"input_json_delta","partial_json":"`}
	blocks := []string{`{"type":"text","text":""}`, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"tool_use","id":"a","name":"f","input":{}}`}
	for range 300 {
		list := []string{start, opens(0, blocks[r.IntN(len(blocks))])}
		head, tail := heads[r.IntN(len(heads))], tails[r.IntN(len(tails))]
		for range 12 {
			switch r.IntN(8) {
			case 0:
				head = heads[r.IntN(len(heads))]
			case 1:
				tail = tails[r.IntN(len(tails))]
			case 2:
				list = append(list, `{"type":"ping"}`)
			}
			list = append(list, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":%s%s%s`, head, words[r.IntN(len(words))]+words[r.IntN(len(words))], tail))
		}
		list = append(list, closes(0), stops("end_turn"), last)
		with, without := (Codec{}).NewAssembler(nil).(*assembler), (Codec{}).NewAssembler(nil).(*assembler)
		var a, b []lathe.Delta
		for _, e := range list {
			a, _ = with.Append(a, "", []byte(e))
			without.memo.b = nil
			b, _ = without.Append(b, "", []byte(e))
		}
		fa, errA := with.Finish(true)
		fb, errB := without.Finish(true)
		if d := cmp.Diff(fb, fa) + cmp.Diff(b, a); d != "" || errA != errB {
			t.Fatalf("(-taken apart +remembered):\n%s\n%s", d, strings.Join(list, "\n"))
		}
	}
}

// TestTextDeltaDoesNotAllocate: a text that grows costs no allocation for an event.
func TestTextDeltaDoesNotAllocate(t *testing.T) {
	a := (Codec{}).NewAssembler(nil).(*assembler)
	ds, _ := a.Append(nil, "", []byte(start))
	ds, _ = a.Append(ds, "", []byte(opens(0, `{"type":"text","text":""}`)))
	data := []byte(piece(0, `{"type":"text_delta","text":"some words"}`))
	ds, _ = a.Append(ds, "", data)
	a.blocks[0].text.Grow(1 << 20)
	if n := testing.AllocsPerRun(1000, func() { ds, _ = a.Append(ds[:0], "", data) }); n != 0 || len(ds) != 1 {
		t.Errorf("%v allocations, %d deltas", n, len(ds))
	}
}
