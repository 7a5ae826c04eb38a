package uistream

import "testing"

// Clients of the data stream join texts that no other part stands between: a paragraph ends where a step does, and where commentary becomes
// the answer.
func TestDataStreamKeepsTextsApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(w *dataWriter) []byte
		want  string
	}{
		"two steps": {func(w *dataWriter) []byte {
			w.stepStart(nil, 1)
			w.callStart(nil, &call{})
			w.blockDelta(nil, block{kind: textBlock}, " mid")
			w.result(nil, &call{}, &outcome{})
			w.stepStart(nil, 2)
			return w.blockDelta(nil, block{kind: textBlock}, "answer")
		}, "0:\"\\n\\n\"\n0:\"answer\"\n"},
		"a call between": {func(w *dataWriter) []byte {
			w.blockDelta(nil, block{kind: textBlock}, "Let me")
			w.callStart(nil, &call{})
			w.stepStart(nil, 2)
			return w.blockDelta(nil, block{kind: textBlock}, "answer")
		}, "0:\"answer\"\n"},
		"commentary": {func(w *dataWriter) []byte {
			w.blockDelta(nil, block{kind: commentaryBlock}, "pre")
			return w.blockDelta(nil, block{kind: textBlock}, "two")
		}, "0:\"\\n\\n\"\n0:\"two\"\n"},
		"one text": {func(w *dataWriter) []byte {
			w.blockDelta(nil, block{kind: textBlock}, "o")
			return w.blockDelta(nil, block{kind: textBlock}, "ne")
		}, "0:\"ne\"\n"},
	} {
		if got := string(c.write(&dataWriter{})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
