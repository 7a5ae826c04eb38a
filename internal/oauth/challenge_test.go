package oauth

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestChallenges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fields []string
		want   challenge
	}{
		{nil, challenge{}},
		{[]string{`Bearer`}, challenge{scheme: bearer}},
		{[]string{`bearer realm="a, b=c", scope="x y", resource_metadata="https://a.example/\"m"`}, challenge{scheme: bearer, metadata: `https://a.example/"m`, scopes: []string{"x", "y"}}},
		{[]string{`Bearer error=insufficient_scope,scope=x`}, challenge{scheme: bearer, code: "insufficient_scope", scopes: []string{"x"}}},
		{[]string{`Basic realm="x"`, `Bearer error="invalid_token"`}, challenge{scheme: bearer, code: "invalid_token"}},
		{[]string{`Basic realm="x", Bearer error="invalid_token", Digest a=b`}, challenge{scheme: bearer, code: "invalid_token"}},
		{[]string{`Negotiate YWJj==, Bearer scope="x"`}, challenge{scheme: bearer, scopes: []string{"x"}}},
		{[]string{`Bearer Scope = "x", error="e"`}, challenge{scheme: bearer, code: "e", scopes: []string{"x"}}},
		{[]string{`Bearer scope="x", scope="y"`}, challenge{scheme: bearer, scopes: []string{"y"}}},
		{[]string{`Bearer scope="x" , error = "e"`, `Bearer scope="y"`}, challenge{scheme: bearer}}, // what the parser refuses
		{[]string{`Negotiate YWJj, Bearer scope="x"`}, challenge{scheme: bearer}},
		{[]string{`Negotiate YWJj`, `Bearer scope="x"`}, challenge{scheme: bearer, scopes: []string{"x"}}},
		{[]string{`DPoP algs="ES256"`}, challenge{scheme: dpop}},
		{[]string{`DPoP algs="ES256", Bearer scope="x"`}, challenge{scheme: bearer, scopes: []string{"x"}}},
		{[]string{`Bearer scope="x`}, challenge{scheme: bearer}},
		{[]string{`Basic realm="Bearer scope=x"`}, challenge{}},
		{[]string{"Bearer scope=\"a\x01b\""}, challenge{scheme: bearer}},
		{[]string{`Bearer scope="` + strings.Repeat("x ", 65) + `"`}, challenge{scheme: bearer}},
		{[]string{`Bearer scope="` + strings.Repeat("x", maxChallengeBytes) + `"`}, challenge{}},
		{[]string{`Basic realm="` + strings.Repeat("x", maxChallengeBytes) + `"`, `Bearer scope="x"`}, challenge{scheme: bearer, scopes: []string{"x"}}},
		{slices.Repeat([]string{`Basic realm="` + strings.Repeat("x", 1000) + `"`, `Bearer`}, 5)[1:], challenge{scheme: bearer}},
		{[]string{`,,=,Bearer`}, challenge{scheme: bearer}},
	} {
		got := readChallenge(http.Header{"Www-Authenticate": tc.fields})
		if got.scheme != tc.want.scheme || got.metadata != tc.want.metadata || got.code != tc.want.code || !slices.Equal(got.scopes, tc.want.scopes) {
			t.Errorf("%.80q: got %+v, want %+v", tc.fields, got, tc.want)
		}
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer a="b\"", c=d, Basic e`)
	f.Fuzz(func(t *testing.T, field string) {
		c := readChallenge(http.Header{"Www-Authenticate": {field}})
		if err := checkScopes(c.scopes); err != nil || c.scheme != bearer && (c.code != "" || c.metadata != "") {
			t.Errorf("%+v, %v", c, err)
		}
	})
}
