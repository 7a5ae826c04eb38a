package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
)

func mark(dst []byte, name string, _ []byte) []byte {
	return append(append(append(dst, '<'), name...), '>')
}

func find(f *secret.Finder, s string) string { return string(f.Append(nil, []byte(s), mark)) }

func TestT21_FinderFindsEveryForm(t *testing.T) {
	t.Parallel()
	value := "p4ss w/+rd?=& é" + strings.Repeat("x", 80)
	f := secret.NewFinder(map[string]secret.Secret{"db": secret.New(value), "api": secret.New("k3y-of-api"), "short": secret.New("abc")}, false)
	for name, tt := range map[string]struct{ in, want string }{
		"as it is":     {"a " + value + " b", "a <db> b"},
		"twice":        {value + value, "<db><db>"},
		"query escape": {url.QueryEscape(value) + "!", "<db>!"},
		"path escape":  {url.PathEscape(value) + "!", "<db>!"},
		"hex":          {hex.EncodeToString([]byte(value)), "<db>"},
		"two":          {"k3y-of-api" + value, "<api><db>"},
		"cut off":      {value[:70], "<db>"},
		"short":        {"abc", "abc"},
		"near":         {"k3y-of-ap k3y-of-", "k3y-of-ap k3y-of-"},
		"overlapping":  {"k3y-k3y-of-api", "k3y-<api>"},
	} {
		if got := find(f, tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		for _, before := range []string{"", "u", "us", "user:"} {
			text := enc.EncodeToString([]byte(before + value + "tail"))
			if got := find(f, text); !strings.Contains(got, "<db>") || len(got) > len(text)-100 {
				t.Errorf("base64 after %q: got %q", before, got)
			}
		}
	}
	if secret.NewFinder(map[string]secret.Secret{"short": secret.New("abc")}, false) != nil {
		t.Error("a finder of nothing is not nil")
	}
}

func TestFinderFindsWhatLooksLikeAKey(t *testing.T) {
	t.Parallel()
	f := secret.NewFinder(nil, true)
	token := "ghp" + "_" + strings.Repeat("a1B2", 9)
	for in, want := range map[string]string{
		"use " + token + ", please":         "use <found>, please",
		"Bearer " + strings.Repeat("z", 30): "Bearer <found>",
		"bearer of news":                    "bearer of news",
		"sk-short":                          "sk-short",
		"plain text of some length":         "plain text of some length",
	} {
		if got := find(f, in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzFinder(f *testing.F) {
	f.Add("some text k3y-of-api", "k3y-of-api", "other-key")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		known := map[string]secret.Secret{"a": secret.New(a), "b": secret.New(b)}
		fi := secret.NewFinder(known, false)
		if fi == nil {
			return
		}
		got := string(fi.Append(nil, []byte(text), func(dst []byte, _ string, _ []byte) []byte { return append(dst, 0) }))
		for _, v := range []string{a, b} {
			if len(v) >= secret.MinFound && !strings.Contains(v, "\x00") && strings.Contains(got, v) {
				t.Errorf("%q is in %q still", v, got)
			}
		}
		if fi.Has([]byte(text)) != (got != text) && !strings.Contains(text, "\x00") {
			t.Errorf("Has says %v for %q", fi.Has([]byte(text)), text)
		}
	})
}

func BenchmarkFinder(b *testing.B) {
	known := map[string]secret.Secret{}
	for _, n := range []string{"a", "b", "c", "d"} {
		known[n] = secret.New(strings.Repeat(n+"7f3", 10))
	}
	fi := secret.NewFinder(known, false)
	text := []byte(strings.Repeat(`{"city":"Paris","days":3,"note":"the quick brown fox"}`, 20))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if fi.Has(text) {
			b.Fatal("found")
		}
	}
}
