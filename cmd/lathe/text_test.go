package main

import (
	"strings"
	"testing"
)

func TestPrintableStopsWhatSteers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, printable, visible string }{
		{"plain\n\ttext", "plain\n\ttext", `plain` + "\n" + `\u0009text`},
		{"a\x1b[31mred\a\r", `a\u001b[31mred\u0007\u000d`, `a\u001b[31mred\u0007\u000d`},
		{"\u202eevil\u2066", `\u202eevil\u2066`, `\u202eevil\u2066`},
		{"你好 👩‍💻", "你好 👩‍💻", `你好 👩\u200d💻`},
		{"zero\u200bwidth\U000e0041", "zero\u200bwidth\U000e0041", `zero\u200bwidth\U000e0041`},
		{"fil\u3164ler\ufe0f", "fil\u3164ler\ufe0f", `fil\u3164ler\ufe0f`},
		{"\x9b31m", "\uFFFD31m", "\uFFFD31m"},
		{"", "", ""},
	} {
		if got := printable(tc.in); got != tc.printable {
			t.Errorf("printable(%q): got %q, want %q", tc.in, got, tc.printable)
		}
		if got := visible(tc.in); got != tc.visible {
			t.Errorf("visible(%q): got %q, want %q", tc.in, got, tc.visible)
		}
	}
}

func TestBreakText(t *testing.T) {
	t.Parallel()
	got := breakText("one two  three averyverylongword x", 9)
	if want := "one two|three|averyverylongword|x"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := breakText("", 9); len(got) != 1 || got[0] != "" {
		t.Errorf("got %q", got)
	}
}

func TestQuantities(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		count(1, "turn"): "1 turn", count(0, "turn"): "0 turns",
		bytesText(9_999): "9999 B", bytesText(10_240): "10 KiB", bytesText(16 << 20): "16 MiB",
		took(0): "under 1 ms", took(9_999): "9999 ms", took(12_340): "12.3 s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
