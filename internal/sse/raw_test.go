package sse

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// However a stream is cut and whatever stands in it, the raw bytes of its events and the rest are all of it,
// in order, and those of an event are among its own.
func TestRawIsTheWholeStream(t *testing.T) {
	t.Parallel()
	pieces := []string{"data: {\"a\":1}\n\n", ": a comment\n\n", "id: 7\r\ndata: x\r\n\r\n", "event: e\ndata: 1\ndata: 2\n\n", "data:\n\n", "\n", "\r", "retry: 5\n\n",
		"data: " + strings.Repeat("long ", 9000) + "\n\n", "data: cut off"}
	rapid.Check(t, func(rt *rapid.T) {
		body := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(rt, "pieces"), "")
		if rapid.Bool().Draw(rt, "bom") {
			body = "\xEF\xBB\xBF" + body
		}
		src := strings.NewReader(body)
		r := NewReader(src, nil)
		if rapid.Bool().Draw(rt, "byte by byte") {
			r = NewReader(iotest.OneByteReader(src), nil)
		}
		r.KeepRaw()
		var got strings.Builder
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			raw := string(r.Raw())
			if line, _, _ := strings.Cut(string(e.Data), "\n"); !strings.Contains(raw, line) {
				rt.Fatalf("the raw bytes of %q are %q", e.Data, raw)
			}
			got.WriteString(raw)
		}
		got.Write(r.Rest())
		if got.String() != body {
			rt.Fatalf("got %q, want %q", got.String(), body)
		}
	})
}

// What stands before an event is bounded as the event is.
func TestRawIsBounded(t *testing.T) {
	t.Parallel()
	r := NewReader(strings.NewReader(strings.Repeat(": nothing\n", 100_000)+"data: x\n\n"), &Options{MaxLine: 1 << 10, MaxEvent: 1 << 10})
	r.KeepRaw()
	if _, err := r.Next(); !errors.Is(err, ErrEventTooLong) {
		t.Errorf("got %v, want %v", err, ErrEventTooLong)
	}
}
