// Package delta appends to lists of deltas.
package delta

import "github.com/lathe-run/lathe"

// Append appends a delta that has only these members to dst. It writes them in place: a [lathe.Delta] that is made apart and
// copied costs three times as much, and parsers append one for each piece of an answer.
func Append(dst []lathe.Delta, kind lathe.DeltaKind, index int, text string) []lathe.Delta {
	n := len(dst)
	if n == cap(dst) {
		return append(dst, lathe.Delta{Kind: kind, Index: index, Text: text})
	}
	dst = dst[:n+1]
	d := &dst[n]
	*d = lathe.Delta{}
	d.Kind, d.Index, d.Text = kind, index, text
	return dst
}
