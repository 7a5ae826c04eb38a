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
	endsIncomplete := d.Kind == lathe.DeltaCallEnd && d.Incomplete
	if endsIncomplete && len(deltas) > 1 && deltas[len(deltas)-2].Kind == lathe.DeltaParseError { // the end belongs to the error
		d = deltas[len(deltas)-2]
		endsIncomplete = false
	}
	return endsIncomplete || d.Kind == lathe.DeltaParseError && d.Code == lathe.CodeIncompleteCall
}

// Check proves on one text what holds for every parser: the deltas do not depend on the cuts (every cut into two, byte by byte,
// 100 random ones; fewer unless every test runs); the text may end anywhere, and loses nothing; the parser emits no text that is not
// in the prefix and the text, in their order. It returns the deltas.
func Check(t testing.TB, newParser func() dialect.Parser, prefix, text string) []lathe.Delta {
	t.Helper()
	p := newParser()
	deltas := parse(t, p, text, nil)
	s := &subject{t: t, newParser: newParser, prefix: prefix, text: text, deltas: Join(deltas), readable: readable(deltas)}
	emitted := textOf(s.deltas, p)
	if rest := afterText(prefix+text, emitted); rest != "" {
		t.Errorf("text %q: the parser says what the text does not, from %q on\n%s", text, rest, Format(s.deltas))
	}
	s.markup = weight(prefix+text) - weight(emitted)
	s.checkPrefixes()
	everyByte := make([]int, 0, len(text))
	for i := 1; i < len(text); i++ {
		everyByte = append(everyByte, i)
	}
	s.checkCuts(everyByte)
	random := rand.New(rand.NewPCG(20261120, uint64(len(text))))
	for range testdata.Cases(100) {
		if !s.checkCuts(randomCuts(random, len(text))) {
			break
		}
	}
	return s.deltas
}

// A subject is a text that Check checks, with what a parser returns for the whole of it.
type subject struct {
	t            testing.TB
	newParser    func() dialect.Parser
	prefix, text string
	deltas       []lathe.Delta // joined
	readable     string
	markup       int // number of bytes that are in none of the deltas
}

// checkCuts parses the text in pieces that end at the cuts, and reports whether the deltas are those of the whole.
func (s *subject) checkCuts(cuts []int) bool {
	s.t.Helper()
	return s.equals(parse(s.t, s.newParser(), s.text, cuts), cuts)
}

// equals reports whether the deltas of the text in pieces are those of the whole, and fails the test if not.
func (s *subject) equals(deltas []lathe.Delta, cuts []int) bool {
	s.t.Helper()
	// Most are equal, and text is written only to compare those that are not.
	if joined := Join(deltas); !slices.Equal(joined, s.deltas) && Format(joined) != Format(s.deltas) {
		s.t.Errorf("text %q cut at %v:\n got:\n%s\nwant, as for the whole:\n%s", s.text, cuts, Format(joined), Format(s.deltas))
		return false
	}
	if got := readable(deltas); got != s.readable {
		s.t.Errorf("text %q cut at %v: users see %q, and of the whole %q", s.text, cuts, got, s.readable)
		return false
	}
	return true
}

// checkPrefixes checks each prefix of the text as a text that ends early, and the text cut after the prefix.
func (s *subject) checkPrefixes() {
	s.t.Helper()
	step := 1
	if len(s.text) > 200 && !testdata.All() {
		step = 3
	}
	equal := true // after the first difference no more are reported
	for i := 0; i < len(s.text); i += step {
		p := s.newParser()
		var deltas []lathe.Delta
		if i > 0 {
			deltas = p.Append(nil, s.text[:i])
		}
		s.checkEnd(s.text[:i], deltas)
		if equal && i > 0 {
			cuts := []int{i}
			equal = s.equals(flush(s.t, p, p.Append(deltas, s.text[i:]), s.text, cuts), cuts)
		}
	}
}

// checkEnd fails the test unless a text that ends early yields the deltas of the whole text, up to its last words, and loses no
// bytes. before are the deltas of a parser that has not read the end.
func (s *subject) checkEnd(text string, before []lathe.Delta) {
	t := s.t
	t.Helper()
	p := s.newParser()
	ended := textOf(Parse(t, p, text), p)
	if rest := afterText(s.prefix+text, ended); rest != "" {
		t.Errorf("text %q: the parser says what the text does not, from %q on", text, rest)
	}
	// In a text that is read without a fault, the bytes in no delta are markup, and a prefix has no more of it.
	if lost := weight(s.prefix+text) - weight(ended); lost > s.markup && !failed(s.deltas) {
		t.Errorf("text %q: %d bytes are not said, want at most %d: %q", text, lost, s.markup, ended)
	}
	before = Join(before)
	for i, d := range before {
		isLast := i == len(before)-1
		if i < len(s.deltas) && (d == s.deltas[i] || isLast && begins(d, s.deltas[i])) {
			continue
		}
		t.Fatalf("text %q says too early:\n%s\nthe whole says:\n%s", text, Format(before), Format(s.deltas))
	}
}

// begins reports whether d is the beginning of the text of a longer delta.
func begins(d, longer lathe.Delta) bool {
	return pieced(d.Kind) && d.Kind == longer.Kind && strings.HasPrefix(longer.Text, d.Text)
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

// afterText returns what is left of emitted when its bytes are looked for in text, in order.
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
