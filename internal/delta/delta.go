// Package delta appends to lists of deltas.
package delta

import "github.com/lathe-run/lathe"

// Append appends a delta of this kind, index and text to dst. It writes the fields in place, because a [lathe.Delta] that is built
// separately and copied costs three times as much and parsers append one for each piece of an answer.
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
