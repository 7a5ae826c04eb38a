package storetest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// TestValues runs the tests for [store.ValueKeeper]. open is as of [Test].
func TestValues(t *testing.T, open func() store.ValueKeeper) {
	t.Helper()
	t.Run("keeps the last value of a name", func(t *testing.T) {
		t.Parallel()
		s := open()
		set := func(name, value string) {
			t.Helper()
			if err := s.SetValue(t.Context(), name, []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		set("a/1", "first")
		set("a/1", "\x00\xff")
		set("a/2", "two")
		set("a%", "per cent")
		set("b/1", "other")
		set("a/3", "gone")
		set("a/3", "")
		set("a/4", "")
		got, err := s.Values(t.Context(), "a/")
		if err != nil {
			t.Fatal(err)
		}
		if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != "a/1 a/2" || !bytes.Equal(got["a/1"], []byte{0, 0xff}) || string(got["a/2"]) != "two" {
			t.Errorf("got %q", got)
		}
		got["a/1"][0] = 1
		if again, err := s.Values(t.Context(), "a/1"); err != nil || !bytes.Equal(again["a/1"], []byte{0, 0xff}) {
			t.Errorf("a second time: %q, %v", again, err)
		}
		for prefix, want := range map[string]int{"a%": 1, "a_": 0, "": 4, "A/": 0, "c": 0} {
			if got, err := s.Values(t.Context(), prefix); err != nil || len(got) != want {
				t.Errorf("%q: %q, %v", prefix, got, err)
			}
		}
	})
	t.Run("keeps values apart from secrets", func(t *testing.T) {
		t.Parallel()
		s := open()
		secrets, ok := s.(store.SecretKeeper)
		if !ok {
			t.Skip("the store keeps no secrets")
		}
		if _, err := secrets.SharedSecret(t.Context(), "seal", []byte("random")); err != nil {
			t.Fatal(err)
		}
		if err := s.SetValue(t.Context(), "seal", []byte("written")); err != nil {
			t.Fatal(err)
		}
		if kept, err := secrets.SharedSecret(t.Context(), "seal", []byte("later")); err != nil || string(kept) != "random" {
			t.Errorf("the secret is %q, %v", kept, err)
		}
		if got, err := s.Values(t.Context(), ""); err != nil || len(got) != 1 || string(got["seal"]) != "written" {
			t.Errorf("the values are %q, %v", got, err)
		}
	})
	t.Run("refuses what cannot be a value", func(t *testing.T) {
		t.Parallel()
		s := open()
		for name, value := range map[string][]byte{"": []byte("x"), strings.Repeat("n", 257): []byte("x"), "large": make([]byte, 4097)} {
			if err := s.SetValue(t.Context(), name, value); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
				t.Errorf("%.20q: %v", name, err)
			}
		}
	})
	t.Run("respects the context with values", func(t *testing.T) {
		t.Parallel()
		ctx := cancelled(t)
		s := open()
		if err := s.SetValue(ctx, "one", []byte("x")); lathe.CodeOf(err) != lathe.CodeCancelled {
			t.Error(err)
		}
		if _, err := s.Values(ctx, ""); lathe.CodeOf(err) != lathe.CodeCancelled {
			t.Error(err)
		}
	})
}
