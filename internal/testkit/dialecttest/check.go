package dialecttest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testdata"
)

// TB is what [Parse] needs of a test; a [testing.TB] and a property test have it.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Parse feeds text to p in pieces that end at the cuts, which ascend, and returns the joined deltas.
func Parse(t TB, p dialect.Parser, text string, cuts ...int) []lathe.Delta {
	t.Helper()
	return Join(parse(t, p, text, cuts))
}

// parse is Parse without the join.
func parse(t TB, p dialect.Parser, text string, cuts []int) []lathe.Delta {
	t.Helper()
	var deltas []lathe.Delta
	from := 0
	for _, to := range append(cuts, len(text)) {
		deltas = p.Append(deltas, text[from:to])
		from = to
	}
	return flush(t, p, deltas, text, cuts)
}

// flush ends the text that p has read in pieces that end at the cuts. It returns deltas with those of the end.
func flush(t TB, p dialect.Parser, deltas []lathe.Delta, text string, cuts []int) []lathe.Delta {
	t.Helper()
	deltas, err := p.Flush(deltas)
	if err != nil && !errors.Is(err, dialect.ErrIncomplete) {
		t.Fatalf("Flush: %v, want nil or ErrIncomplete", err)
	}
	if err := Verify(deltas); err != nil {
		t.Fatalf("text %q cut at %v: %v\n%s", text, cuts, err, Format(deltas))
	}
	if cut := incomplete(deltas); cut != (err != nil) {
		t.Fatalf("text %q cut at %v: Flush says %v\n%s", text, cuts, err, Format(deltas))
	}
	return deltas
}

// readable returns the text of deltas without that of calls that could not be read.
func readable(deltas []lathe.Delta) string {
	var b strings.Builder
	for _, d := range deltas {
		if d.Kind == lathe.DeltaText && !d.Unreadable {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

// incomplete reports whether the last thing that the deltas say is a call that was cut off.
func incomplete(deltas []lathe.Delta) bool {
	if len(deltas) == 0 {
		return false
	}
	d := deltas[len(deltas)-1]
	if d.Kind == lathe.DeltaCallEnd && d.Incomplete && len(deltas) > 1 && deltas[len(deltas)-2].Kind == lathe.DeltaParseError {
		d = deltas[len(deltas)-2]
	}
	return d.Kind == lathe.DeltaCallEnd && d.Incomplete || d.Kind == lathe.DeltaParseError && d.Code == lathe.CodeIncompleteCall
}

// Check proves on one text what holds for every parser: the deltas do not depend on the cuts (every cut into two, byte by byte,
// 100 random ones; fewer unless every test runs); the text may end anywhere, and loses nothing; nothing is said that is not
// in the prefix and the text, in their order. It returns the deltas.
func Check(t testing.TB, newParser func() dialect.Parser, prefix, text string) []lathe.Delta {
	t.Helper()
	p := newParser()
	deltas := parse(t, p, text, nil)
	whole, shown := Join(deltas), readable(deltas)
	want := Format(whole)
	if rest := afterText(prefix+text, textOf(whole, p)); rest != "" {
		t.Errorf("text %q: the parser says what the text does not, from %q on\n%s", text, rest, want)
	}
	differs := func(deltas []lathe.Delta, cuts []int) bool {
		t.Helper()
		// Most are equal, and text is written only to compare those that are not.
		if joined := Join(deltas); !slices.Equal(joined, whole) && Format(joined) != want {
			t.Errorf("text %q cut at %v:\n got:\n%s\nwant, as for the whole:\n%s", text, cuts, Format(joined), want)
			return true
		}
		if got := readable(deltas); got != shown {
			t.Errorf("text %q cut at %v: users see %q, and of the whole %q", text, cuts, got, shown)
			return true
		}
		return false
	}
	end := ending{t: t, newParser: newParser, prefix: prefix, deltas: whole, swallowed: weight(prefix+text) - weight(textOf(whole, p)), failed: failed(whole)}
	step := 1
	if len(text) > 200 && !testdata.All() {
		step = 3
	}
	for i, same := 0, true; i < len(text); i += step {
		p := newParser()
		var deltas []lathe.Delta
		if i > 0 {
			deltas = p.Append(nil, text[:i])
		}
		end.check(text[:i], deltas)
		if same && i > 0 {
			same = !differs(flush(t, p, p.Append(deltas, text[i:]), text, []int{i}), []int{i})
		}
	}
	each := make([]int, 0, len(text))
	for i := 1; i < len(text); i++ {
		each = append(each, i)
	}
	differs(parse(t, newParser(), text, each), each)
	random := rand.New(rand.NewPCG(20261120, uint64(len(text))))
	for range testdata.Cases(100) {
		cuts := randomCuts(random, len(text))
		if differs(parse(t, newParser(), text, cuts), cuts) {
			break
		}
	}
	return whole
}

// An ending checks what a parser returns for a text that ends early.
type ending struct {
	t         testing.TB
	newParser func() dialect.Parser
	prefix    string
	deltas    []lathe.Delta // of the whole text
	swallowed int           // bytes of the whole text that are in none of its deltas
	failed    bool          // a call of the whole text could not be read
}

// check fails the test unless a text that ends early yields the deltas of the whole text, up to its last words, and loses no
// bytes. before are the deltas of a parser that has not read the end.
func (e *ending) check(text string, before []lathe.Delta) {
	t := e.t
	t.Helper()
	p := e.newParser()
	ended := textOf(Parse(t, p, text), p)
	if rest := afterText(e.prefix+text, ended); rest != "" {
		t.Errorf("text %q: the parser says what the text does not, from %q on", text, rest)
	}
	// What a text that is read without a fault swallows is markup, and its beginning has no more of it.
	if swallowed := weight(e.prefix+text) - weight(ended); swallowed > e.swallowed && !e.failed {
		t.Errorf("text %q: %d bytes are not said, want at most %d: %q", text, swallowed, e.swallowed, ended)
	}
	before = Join(before)
	for i, d := range before {
		switch {
		case i >= len(e.deltas):
		case pieced(d.Kind) && i == len(before)-1 && d.Kind == e.deltas[i].Kind && strings.HasPrefix(e.deltas[i].Text, d.Text):
			continue
		case d == e.deltas[i]:
			continue
		}
		t.Fatalf("text %q says too early:\n%s\nthe whole says:\n%s", text, Format(before), Format(e.deltas))
	}
}

// weight counts the bytes of s that cannot merely stand between two calls.
func weight(s string) int {
	n := len(s)
	for _, c := range []byte(s) {
		if strings.IndexByte(" \t\r\n;,", c) >= 0 {
			n--
		}
	}
	return n
}

// failed reports whether a call could not be read.
func failed(deltas []lathe.Delta) bool {
	return slices.ContainsFunc(deltas, func(d lathe.Delta) bool { return d.Kind == lathe.DeltaParseError })
}

// afterText returns what is left of said when its bytes are looked for in text, in order.
func afterText(text, emitted string) string {
	for i := 0; i < len(text) && emitted != ""; i++ {
		if text[i] == emitted[0] {
			emitted = emitted[1:]
		}
	}
	return emitted
}

func randomCuts(random *rand.Rand, n int) []int {
	var cuts []int
	for at := 0; ; {
		at += 1 + random.IntN(12)
		if at >= n {
			return cuts
		}
		cuts = append(cuts, at)
	}
}
