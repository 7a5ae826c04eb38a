package schema

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func randomNumber(g *rand.Rand) string {
	var b strings.Builder
	if g.IntN(3) == 0 {
		b.WriteByte('-')
	}
	if whole := g.Int64N(1 << g.IntN(60)); true {
		b.WriteString(strconv.FormatInt(whole, 10))
	}
	if g.IntN(2) == 0 {
		b.WriteByte('.')
		for range 1 + g.IntN(8) {
			b.WriteByte("0059"[g.IntN(4)])
		}
	}
	if g.IntN(4) == 0 {
		b.WriteString([]string{"e", "E+", "e-"}[g.IntN(3)] + strconv.Itoa(g.IntN(20)))
	}
	return b.String()
}

func TestDecimalIsExact(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(3, 4))
	exact := 0
	for range 20_000 {
		a, b := randomNumber(g), randomNumber(g)
		x, end, ok := readNumber([]byte(a), 0)
		y, _, _ := readNumber([]byte(b), 0)
		if !ok || end != len(a) {
			t.Fatalf("%s: read %d bytes, %v", a, end, ok)
		}
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		if x.whole && !p.IsInt() {
			t.Fatalf("%s is not whole", a)
		}
		if d, ok := decimalOf(p); x.exact && (!ok || d != x.decimal) {
			t.Fatalf("%s: read as %+v, as a rational %+v %v", a, x.decimal, d, ok)
		}
		if !x.exact || !y.exact {
			continue
		}
		exact++
		if (x.scale == 0) != p.IsInt() {
			t.Fatalf("%s: scale %d", a, x.scale)
		}
		if got, want := x.compare(y.decimal), p.Cmp(q); got != want {
			t.Fatalf("compare %s with %s: got %d, want %d", a, b, got, want)
		}
		if q.Sign() > 0 {
			if got, want := x.multipleOf(y.decimal), new(big.Rat).Quo(p, q).IsInt(); got != want {
				t.Fatalf("%s a multiple of %s: got %v, want %v", a, b, got, want)
			}
		}
	}
	if exact < 10_000 {
		t.Errorf("%d pairs compared, want more", exact)
	}
}

func TestReadNumberRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "-", "+1", ".5", "1.", "1.e1", "01", "-01", "1e", "1e+", "1e1101", "x"} {
		if _, end, ok := readNumber([]byte(bad), 0); ok && end == len(bad) {
			t.Errorf("%q is read as a number", bad)
		}
	}
}
