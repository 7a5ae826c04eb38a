package schema

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

func TestPatternAgreesWithExpression(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(5, 6))
	for _, tc := range []struct {
		expr   string
		simple bool
	}{
		{`^a+b?$`, true}, {`^a*ab$`, true}, {`^[a-c]{2,3}`, true}, {`^\d{2}-\d\d$`, true}, {`^(ab)c$`, true}, {`^[^a]+$`, true},
		{`^.{1,2}$`, true}, {`^$`, true}, {`^`, true}, {`^é?a$`, true}, {`^a??b$`, true}, {`^\x{e9}$`, true}, {`^a\z`, true},
		{`a`, false}, {`^a|b$`, false}, {`(?i)^ab$`, false}, {`^(ab)+$`, false}, {`(?m)^a$`, false}, {`(?s)^.$`, false}, {`^\ba`, false},
	} {
		p, err := newPattern(tc.expr)
		if err != nil {
			t.Fatal(err)
		}
		if p.simple != tc.simple {
			t.Errorf("%s: simple is %v, want %v", tc.expr, p.simple, tc.simple)
		}
		re := regexp.MustCompile(tc.expr)
		for range 2_000 {
			var text []byte
			for range g.IntN(6) {
				text = append(text, []string{"a", "b", "c", "A", "1", "-", "é", "\n", " "}[g.IntN(9)]...)
			}
			want := re.Match(text)
			if p.simple && p.take(text) && !want {
				t.Fatalf("%s: the steps match %q, the expression does not", tc.expr, text)
			}
			if got := p.match(text); got != want {
				t.Fatalf("%s of %q: got %v, want %v", tc.expr, text, got, want)
			}
		}
	}
}
