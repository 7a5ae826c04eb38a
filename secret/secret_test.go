package secret_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
)

// canary is put together here, so that no scanner takes the file for a leak.
var canary = "sk-" + strings.Repeat("c4n4ry", 4)

type wrapper struct {
	Name string
	Key  secret.Secret
	Ptr  *secret.Secret
	M    map[string]secret.Secret
}

type hidden struct {
	name string
	key  secret.Secret
}

func TestSecretDoesNotPrint(t *testing.T) {
	t.Parallel()
	s := secret.New(canary)
	values := map[string]any{
		"value": s, "pointer": &s, "slice": []secret.Secret{s}, "any": any(s),
		"struct":                      wrapper{"n", s, &s, map[string]secret.Secret{"k": s}},
		"pointer to struct":           &wrapper{"n", s, &s, nil},
		"unexported field":            hidden{"n", s},
		"pointer to unexported field": &hidden{"n", s},
		"error":                       fmt.Errorf("with %v: %w", s, fmt.Errorf("inner %s", s)),
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%p", "%10.3s", "%U", "%c"} {
			if got := fmt.Sprintf(verb, v); leaks(got) {
				t.Errorf("%s under %s prints %q", name, verb, got)
			}
		}
		if b, err := json.Marshal(v); err == nil && leaks(string(b)) {
			t.Errorf("%s in JSON is %s", name, b)
		}
		if b, err := xml.Marshal(v); err == nil && leaks(string(b)) {
			t.Errorf("%s in XML is %s", name, b)
		}
		var text, js bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&js, nil)).Info("m", "v", v)
		if leaks(text.String()) || leaks(js.String()) {
			t.Errorf("%s in slog is %s %s", name, text.String(), js.String())
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s %q %d", s, s, s, s, s, s); got != strings.TrimSpace(strings.Repeat(secret.Redacted+" ", 6)) {
		t.Errorf("got %q", got)
	}
	if b, _ := json.Marshal(s); string(b) != `"[redacted]"` {
		t.Errorf("got %s", b)
	}
}

func leaks(s string) bool {
	hex := fmt.Sprintf("%x", canary)
	return strings.Contains(s, "c4n4ry") || strings.Contains(strings.ToLower(s), hex[6:18])
}

func TestSecretMatches(t *testing.T) {
	t.Parallel()
	s, zero := secret.New(canary), secret.New("")
	if s.Reveal() != canary || s.IsZero() {
		t.Error("a secret does not hold its text")
	}
	if zero.Reveal() != "" || !zero.IsZero() || zero.String() != "" {
		t.Error("the zero secret is not empty")
	}
	if !s.Equal(secret.New(canary)) || s.Equal(zero) || s.Equal(secret.New(canary+"x")) || !zero.Equal(secret.Secret{}) {
		t.Error("Equal is wrong")
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	key := secret.New("correct horse battery")
	jwt := "ey" + "J" + strings.Repeat("hbGciOi", 5) + "." + strings.Repeat("a1", 10)
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "model not found", "model not found"},
		{"empty", "", ""},
		{"known", "key correct horse battery is wrong, correct horse battery!", "key [redacted] is wrong, [redacted]!"},
		{"prefix", "Incorrect API key provided: sk-" + "abc****************wxyz. See", "Incorrect API key provided: [redacted] See"},
		{"bearer", "got header 'Authorization: Bearer abcdef.0123' from you", "got header 'Authorization: Bearer [redacted]' from you"},
		{"lower case bearer", "bearer  0123456789", "bearer  [redacted]"},
		{"basic", "Basic dXNlcjpwYXNz", "Basic [redacted]"},
		{"json web token", `{"token":"` + jwt + `"}`, `{"token":"[redacted]"}`},
		{"short words after bearer stay", "bearer of news", "bearer of news"},
		{"model name", "no model gpt-4o-mini-2024-07-18 for req-0123456789abcdef", "no model gpt-4o-mini-2024-07-18 for req-0123456789abcdef"},
		{"scrubbed before", "Bearer " + secret.Redacted, "Bearer " + secret.Redacted},
		{"cut", "this text ends in correct hor", "this text ends in [redacted]"},
		{"at the ends", canary + " " + canary, "[redacted] [redacted]"},
	} {
		if got := secret.Scrub(c.in, key, secret.Secret{}, secret.New("x")); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func FuzzScrub(f *testing.F) {
	f.Add("Bearer abcdefgh", "abcd")
	f.Add("sk-sk-sk-sk-sk-", "sk-s")
	f.Fuzz(func(t *testing.T, text, key string) {
		got := secret.Scrub(text, secret.New(key))
		if len(key) >= 4 && !strings.Contains(secret.Redacted, key) && strings.Contains(got, key) && !strings.Contains(key, "[") && !strings.Contains(key, "]") {
			t.Errorf("Scrub(%q) keeps %q: %q", text, key, got)
		}
	})
}
