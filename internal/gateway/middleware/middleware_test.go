package middleware

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
)

func request(header ...string) *http.Request {
	r := httptest.NewRequest("POST", "http://lathe.example.com/v1", strings.NewReader("{}"))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func TestTokensFindsEachTokenUnderAnySpellingOfTheScheme(t *testing.T) {
	t.Parallel()
	var tokens Tokens
	for _, name := range []string{"ann", "bob"} {
		if err := tokens.Add("key", name, secret.New("0123456789abcdef-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	for header, want := range map[string]struct {
		index int
		shown bool
	}{
		"Bearer 0123456789abcdef-ann":  {0, true},
		"bearer 0123456789abcdef-bob":  {1, true},
		"BEARER  0123456789abcdef-bob": {1, true},
		"Bearer 0123456789abcdef":      {-1, true},
		"Bearer ":                      {-1, true},
		"Bearer":                       {-1, false},
		"Basic 0123456789abcdef-ann":   {-1, false},
		"0123456789abcdef-ann":         {-1, false},
	} {
		if index, shown := tokens.Find(request("Authorization", header)); index != want.index || shown != want.shown {
			t.Errorf("%q: %d, %t, want %+v", header, index, shown, want)
		}
	}
	twice := request("Authorization", "Bearer 0123456789abcdef-ann", "Authorization", "Bearer 0123456789abcdef-ann")
	if index, shown := tokens.Find(twice); index != -1 || shown {
		t.Errorf("two headers: %d, %t", index, shown)
	}
	var none Tokens
	none.AddUnchecked("", secret.Secret{})
	if index, _ := none.Find(request("Authorization", "Bearer ")); index != -1 {
		t.Error("an empty token matches an empty secret")
	}
}

// The hash of a short text is that of an empty variable or of a token that can be guessed.
func TestTokensFindsNoShortTokenByItsHash(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]int{"": -1, "\n": -1, "0123456789abcde": -1, "0123456789abcdef": 0} {
		var tokens Tokens
		if err := tokens.AddHash("key", "ann", sha256.Sum256([]byte(token))); err != nil {
			t.Fatal(err)
		}
		if got := tokens.FindToken(token); got != want {
			t.Errorf("%q: %d, want %d", token, got, want)
		}
	}
	var chosen Tokens
	chosen.AddUnchecked("", secret.Secret{})
	chosen.AddUnchecked("ann", secret.New("short"))
	if empty, short := chosen.FindToken(""), chosen.FindToken("short"); empty != -1 || short != 1 {
		t.Errorf("unchecked tokens: %d for an empty one, %d for a short one", empty, short)
	}
}

// Each of many tokens has the index of its place, the first one where two are equal.
func TestTokensFindsEachOfMany(t *testing.T) {
	t.Parallel()
	var tokens Tokens
	token := func(i int) string { return fmt.Sprintf("token-of-holder-%d", i) }
	const many = 1000
	for i := range many {
		tokens.AddUnchecked(token(i), secret.New(token(i)))
	}
	tokens.AddUnchecked("again", secret.New(token(7)))
	for i := range many {
		if got := tokens.FindToken(token(i)); got != i {
			t.Fatalf("%d: found as %d", i, got)
		}
	}
	if got := tokens.FindToken(token(many)); got != -1 {
		t.Errorf("an unknown token: %d", got)
	}
}

func TestTokensRefusesWeakAndEqualTokens(t *testing.T) {
	t.Parallel()
	var tokens Tokens
	if err := tokens.Add("key", "ann", secret.New("0123456789abcdef")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, token, want string }{
		{"", "0123456789abcdefg", "has no name"},
		{"ann", "0123456789abcdefg", "two keys are named ann"},
		{"bob", "0123456789abcde", "shorter than 16"},
		{"bob", "0123456789abcdef", "the same as another"},
	} {
		if err := tokens.Add("key", c.name, secret.New(c.token)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "0123") {
			t.Errorf("%q: %v, want %q and no token", c.name, err, c.want)
		}
	}
}

func TestIsAddressTakesAddressesAlone(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "203.0.113.9": true,
		"localhost": false, "127.0.0.1.evil.test": false, "127.9.9.9:80": false, "": false} {
		if got := IsAddress(host); got != want {
			t.Errorf("%q: got %t, want %t", host, got, want)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header []string
		want   bool
	}{
		{nil, true},
		{[]string{"Sec-Fetch-Site", "cross-site"}, false},
		{[]string{"Origin", "https://lathe.example.com"}, true},
		{[]string{"Origin", "https://chat.example.com", "Sec-Fetch-Site", "cross-site"}, true},
		{[]string{"Origin", "https://evil.test"}, false},
		{[]string{"Origin", "null"}, false},
		{[]string{"Origin", "https://chat.example.com", "Origin", "https://chat.example.com"}, false},
		{[]string{"Origin", "http://localhost:3000"}, false},
	} {
		if got := SameOrigin(request(c.header...), []string{"https://chat.example.com"}); got != c.want {
			t.Errorf("%v: %t", c.header, got)
		}
	}
}
