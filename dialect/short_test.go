package dialect

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// longWay returns a function that reads a piece without the short ways of Append.
func longWay(t *testing.T, p Parser) func(dst []lathe.Delta, text string) []lathe.Delta {
	t.Helper()
	var r *reader
	var run func()
	switch p := p.(type) {
	case *harmony:
		r, run = &p.reader, p.run
	case *tags:
		r, run = &p.reader, p.run
	case *jsonParser:
		r, run = &p.reader, p.run
	case *tagged:
		r, run = &p.reader, p.run
	case *gemma:
		r, run = &p.reader, p.run
	case *pythonic:
		r, run = &p.reader, p.run
	case *autoParser:
		r, run = &p.reader, p.run
	default:
		t.Fatalf("no way around the short ways of %T", p)
	}
	return func(dst []lathe.Delta, text string) []lathe.Delta { return r.feed(dst, text, run) }
}

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

// Append reads most pieces a short way. What it returns is what the long way returns, wherever the pieces are cut: also between the bytes
// of a mark, of a token that ends the turn, and of a rune.
func TestShortWaysReadAsTheLong(t *testing.T) {
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
			short, long := d.parser(o), d.parser(o)
			way := longWay(t, long)
			var got, want []lathe.Delta
			for at := 0; at < len(text); {
				n := min(len(text)-at, random.IntN(most+1))
				got, want = short.Append(got, text[at:at+n]), way(want, text[at:at+n])
				at += n
			}
			got, gotErr := short.Flush(got)
			want, wantErr := long.Flush(want)
			got, want = joinedDeltas(got), joinedDeltas(want)
			same := len(got) == len(want) && gotErr == wantErr
			for i := 0; same && i < len(got); i++ {
				same = got[i] == want[i]
			}
			if !same {
				t.Fatalf("%s: %q in pieces of up to %d bytes:\n%+v %v, the long way\n%+v %v", d.name, text, most, got, gotErr, want, wantErr)
			}
		}
	}
}

func TestIndexEither(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		b := make([]byte, random.IntN(40))
		for i := range b {
			b[i] = "<[;\xbc=a\x00\xff"[random.IntN(8)]
		}
		s, from := string(b), random.IntN(len(b)+1)
		want := strings.IndexAny(s[from:], "<[")
		if want += from; want < from {
			want = len(s)
		}
		if got := indexEither(s, from, '<', '['); got != want {
			t.Fatalf("%q from %d: %d, want %d", s, from, got, want)
		}
		if got, want := isASCII(s), strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0; got != want {
			t.Fatalf("%q: ASCII %v", s, got)
		}
	}
}
