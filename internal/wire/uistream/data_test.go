package uistream

import "testing"

// Clients of the data stream join texts that no other part stands between: a paragraph ends where a step does, and where commentary becomes
// the answer.
func TestDataStreamKeepsTextsApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(w *dataWriter)
		want  string
	}{
		"two steps": {func(w *dataWriter) {
			w.stepStart(1)
			w.callStart(&call{})
			w.blockDelta(block{kind: textBlock}, " mid")
			w.result(&call{}, &outcome{})
			w.stepStart(2)
			w.dst = nil // only the last text counts
			w.blockDelta(block{kind: textBlock}, "answer")
		}, "0:\"\\n\\n\"\n0:\"answer\"\n"},
		"a call between": {func(w *dataWriter) {
			w.blockDelta(block{kind: textBlock}, "Let me")
			w.callStart(&call{})
			w.stepStart(2)
			w.dst = nil // only the last text counts
			w.blockDelta(block{kind: textBlock}, "answer")
		}, "0:\"answer\"\n"},
		"commentary": {func(w *dataWriter) {
			w.blockDelta(block{kind: commentaryBlock}, "pre")
			w.dst = nil // only the last text counts
			w.blockDelta(block{kind: textBlock}, "two")
		}, "0:\"\\n\\n\"\n0:\"two\"\n"},
		"one text": {func(w *dataWriter) {
			w.blockDelta(block{kind: textBlock}, "o")
			w.dst = nil // only the last text counts
			w.blockDelta(block{kind: textBlock}, "ne")
		}, "0:\"ne\"\n"},
	} {
		var o output
		c.write(&dataWriter{output: &o})
		if got := string(o.dst); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
