package seal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
)

func ring(t *testing.T, keys ...string) *Ring {
	t.Helper()
	var list []secret.Secret
	for _, k := range keys {
		list = append(list, secret.New(strings.Repeat(k, KeySize)))
	}
	r, err := NewRing(list...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealOpensUnderItsBindingOnly(t *testing.T) {
	t.Parallel()
	r := ring(t, "a")
	content := []byte(`{"messages":[]}`)
	text := r.Seal(content, "key", "session", "position")
	if got, err := r.Open(text, "key", "session", "position"); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("got %q, %v", got, err)
	}
	if !Sealed(text) || strings.Contains(text, "messages") || text == r.Seal(content, "key", "session", "position") {
		t.Errorf("got %q", text)
	}
	for _, binding := range [][]string{{"other", "session", "position"}, {"key", "other", "position"}, {"key", "session", "other"},
		{"key", "session"}, {"keys", "ession", "position"}, {"key", "session", "position", ""}, nil} {
		if got, err := r.Open(text, binding...); !errors.Is(err, ErrRefused) || got != nil {
			t.Errorf("%q: got %q, %v", binding, got, err)
		}
	}
}

func TestSealOfRotatedKeyOpens(t *testing.T) {
	t.Parallel()
	before, after, later := ring(t, "a"), ring(t, "b", "a"), ring(t, "b")
	text := before.Seal([]byte("x"), "k")
	if got, err := after.Open(text, "k"); err != nil || string(got) != "x" {
		t.Errorf("with the key before: %q, %v", got, err)
	}
	if _, err := later.Open(text, "k"); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("without it: %v", err)
	}
	if _, err := before.Open(after.Seal([]byte("x"), "k"), "k"); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("sealed with the new key: %v", err)
	}
}

func TestSealRefusesEveryChange(t *testing.T) {
	t.Parallel()
	r := ring(t, "a")
	text := r.Seal([]byte("content"), "k")
	for i := range len(text) {
		for _, c := range []byte("A-=. \n\xff") {
			changed := text[:i] + string(c) + text[i+1:]
			if changed == text {
				continue
			}
			if _, err := r.Open(changed, "k"); err == nil {
				t.Fatalf("byte %d as %q opens", i, c)
			}
		}
		if _, err := r.Open(text[:i], "k"); err == nil {
			t.Fatalf("cut at %d opens", i)
		}
	}
	for _, bad := range []string{"", "lathe1.", "gAAAA", text + "A", text + "\n", "lathe2." + text[len(Prefix):]} {
		if _, err := r.Open(bad, "k"); err == nil || strings.Contains(err.Error(), "gAAAA") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestRingRefusesShortKeysAndDoesNotPrint(t *testing.T) {
	t.Parallel()
	if _, err := NewRing(); !errors.Is(err, ErrShortKey) {
		t.Error(err)
	}
	if _, err := NewRing(secret.New("short")); !errors.Is(err, ErrShortKey) {
		t.Error(err)
	}
	if s := fmt.Sprintf("%v %+v %#v", ring(t, "z"), ring(t, "z"), ring(t, "z")); strings.Contains(s, "zzzz") {
		t.Error(s)
	}
	if k := newKey(); len(k) != KeySize || bytes.Equal(k, newKey()) {
		t.Error("a key is not random")
	}
}

func FuzzOpen(f *testing.F) {
	r, err := NewRing(secret.New(strings.Repeat("k", KeySize)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.Seal([]byte("x"), "k"))
	f.Add("lathe1.")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := r.Open(text, "other"); err == nil {
			t.Fatalf("%q opens as %q", text, got)
		}
	})
}

func TestMarkBelongsToContentBindingAndKey(t *testing.T) {
	t.Parallel()
	before, after, other := ring(t, "a"), ring(t, "b", "a"), ring(t, "b")
	mark := before.Mark([]byte("x"), "k", "u")
	if len(mark) != MarkSize || !bytes.Equal(mark, before.Mark([]byte("x"), "k", "u")) {
		t.Errorf("got %x", mark)
	}
	if !before.Marked(mark, []byte("x"), "k", "u") || !after.Marked(mark, []byte("x"), "k", "u") {
		t.Error("it is refused under its own key")
	}
	if other.Marked(mark, []byte("x"), "k", "u") || before.Marked(mark, []byte("y"), "k", "u") || before.Marked(mark, []byte("x"), "ku") ||
		before.Marked(mark, []byte("xk"), "u") || before.Marked(mark[:4], []byte("x"), "k", "u") || before.Marked(nil, []byte("x"), "k", "u") {
		t.Error("it is taken for something else")
	}
}
