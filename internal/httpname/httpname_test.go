package httpname_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/httpname"
)

func TestOriginTreatsOneServerAlike(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://example.com":         "http://example.com:80",
		"HTTP://EXAMPLE.com:80/path": "http://example.com:80",
		"https://example.com/a?b":    "https://example.com:443",
		"https://example.com:8443":   "https://example.com:8443",
		"https://[2001:DB8::1]/":     "https://[2001:db8::1]:443",
		"ws://example.com":           "ws://example.com:",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := httpname.Origin(u); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestIsLoopbackKnowsNamesAndAddressesOfThisMachine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"localhost": true, "LocalHost:80": true, "127.0.0.1": true, "127.9.8.7:1": true, "::1": true, "[::1]:80": true, "[::1]": true,
		"::ffff:127.0.0.1": true, "[::ffff:127.0.0.1]:80": true,
		"127.0.0.1.evil.test": false, "LOCALHOST.:80": true, "": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "localhost.": true, "localhost.example": false, "a.localhost": false,
		"127.0.0.1.example": false, "127.1": false, "0x7f000001": false, "203.0.113.9": false, "::ffff:203.0.113.9": false,
	} {
		if got := httpname.IsLoopback(address); got != want {
			t.Errorf("%q: got %v, want %v", address, got, want)
		}
	}
}

func TestIsTokenTakesTheCharactersOfRFC9110(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		// RFC 9110: any visible ASCII character except delimiters.
		want := c > ' ' && c < 0x7f && !strings.ContainsRune(`(),/:;<=>?@[\]{}"`, rune(c))
		if got := httpname.IsToken("a" + string([]byte{byte(c)})); got != want {
			t.Errorf("%#x: got %v, want %v", c, got, want)
		}
	}
	if httpname.IsToken("") || httpname.IsToken("é") {
		t.Error("an empty or non-ASCII text is taken as a token")
	}
}
