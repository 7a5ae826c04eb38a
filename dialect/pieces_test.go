package dialect

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// joinedDeltas returns deltas with neighbouring pieces of one kind joined.
func joinedDeltas(list []lathe.Delta) (joined []lathe.Delta) {
	for _, d := range list {
		if n := len(joined); n > 0 && d.ID == "" && d.Name == "" && d.Code == "" && joined[n-1].Kind == d.Kind && joined[n-1].Index == d.Index &&
			joined[n-1].Unreadable == d.Unreadable && d.Kind != lathe.DeltaCallStart && d.Kind != lathe.DeltaCallEnd && d.Kind != lathe.DeltaParseError {
			joined[n-1].Text += d.Text
			continue
		}
		joined = append(joined, d)
	}
	return joined
}

// What Append returns for pieces is what it returns for single bytes, wherever the pieces are cut: also between the bytes
// of a mark, of a token that ends the turn, and of a rune.
func TestPiecesReadAsBytes(t *testing.T) {
	t.Parallel()
	bits := []string{"<", "</", "</s>", "<|im_end|>", "<|im_e", "<eos", " t", " to=", "[", "[e~[", "\n", "\r\n", "\"", "\\\"", "\\", "'", "é", "\xff", "<｜", "｜>", "</p>", "f",
		"a < b", "`", "```\n", "<|call|>", "<|", "|>", "{", "}", ">", " the tool", "<|\"|>", "</parameter>", "<tool_call>", "<think>", "</think>", "\x00"}
	o := Options{MaxPayloadBytes: 400, Tools: []*lathe.ToolSpec{{Name: "write", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}`)}}}
	for _, d := range append([]*Dialect{auto}, table...) {
		random := rand.New(rand.NewPCG(1, 2))
		for range testdata.Cases(150) {
			var b strings.Builder
			mix := func() {
				for range random.IntN(6) {
					b.WriteString(bits[random.IntN(len(bits))])
					b.WriteString([]string{"", "some words ", "x"}[random.IntN(3)])
				}
			}
			mix()
			call := string(d.AppendCall(nil, lathe.ToolCall{Name: "write", Arguments: `{"path":"a b","text":"<p class=\"x\">a é < b that it's ` + strings.Repeat("written, ", random.IntN(60)) + `</p>\n"}`}))
			cut := random.IntN(len(call))
			b.WriteString(call[:cut])
			mix()
			b.WriteString(call[cut:])
			mix()
			text, most := b.String(), 1+random.IntN(16)
			pieces, bytes := d.parser(o), d.parser(o)
			var got, want []lathe.Delta
			for at := 0; at < len(text); {
				n := min(len(text)-at, random.IntN(most+1))
				got = pieces.Append(got, text[at:at+n])
				at += n
			}
			for i := range len(text) {
				want = bytes.Append(want, text[i:i+1])
			}
			got, gotErr := pieces.Flush(got)
			want, wantErr := bytes.Flush(want)
			got, want = joinedDeltas(got), joinedDeltas(want)
			same := len(got) == len(want) && gotErr == wantErr
			for i := 0; same && i < len(got); i++ {
				same = got[i] == want[i]
			}
			if !same {
				t.Fatalf("%s: %q in pieces of up to %d bytes:\n%+v %v, in single bytes\n%+v %v", d.name, text, most, got, gotErr, want, wantErr)
			}
		}
	}
}
