package dialect

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// eachWritten runs a test for each dialect whose arguments the parser writes. call returns a call of f that has fill twice.
func eachWritten(t *testing.T, run func(t *testing.T, d *Dialect, o Options, call func(fill string) string)) {
	for _, d := range append(taggedDialects[:len(taggedDialects):len(taggedDialects)], lookupTest(t, "llama3-json")) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Tools: []*lathe.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array"}}}`)}}}
			if d.name == "glimmer" {
				o.Prefix = " to=f<|message|>"
			}
			run(t, d, o, func(fill string) string {
				if d.name == "llama3-json" {
					return `<|python_tag|>f.call(a="` + fill + `", b=[1, "` + fill + `"])`
				}
				return string(d.AppendCall(nil, lathe.ToolCall{Name: "f", Arguments: `{"a":"` + fill + `","b":[1,"` + fill + `"]}`}))
			})
		})
	}
}

func lookupTest(t *testing.T, name string) *Dialect {
	t.Helper()
	d, ok := Lookup(name)
	if !ok {
		t.Fatalf("no dialect %q", name)
	}
	return d
}

// readPieces parses text in pieces of size bytes and returns the message and the text that users see.
func readPieces(p Parser, text string, size int) (m lathe.Message, shown string, deltas []lathe.Delta) {
	for at := 0; at < len(text); at += size {
		deltas = p.Append(deltas, text[at:min(at+size, len(text))])
	}
	deltas, _ = p.Flush(deltas)
	var c Collector
	c.AddAll(deltas)
	var b strings.Builder
	for _, d := range deltas {
		if d.Kind == lathe.DeltaText && !d.Unreadable {
			b.WriteString(d.Text)
		}
	}
	return c.Message(), b.String(), deltas
}

// max_payload_bytes bounds a call that is no JSON, to the byte and for every cut. The call that is too long is read to
// its end: its text is not shown, the text behind it is, and a call behind it is a call.
func TestWrittenCallsHavePayloadLimit(t *testing.T) {
	t.Parallel()
	eachWritten(t, func(t *testing.T, d *Dialect, o Options, call func(string) string) {
		long := call(strings.Repeat("é<b>]\\n}) ", 40))
		least := 0 // the smallest limit that the call is within
		for limit := 1; limit <= len(long)+1; limit++ {
			o.MaxPayloadBytes = limit
			lead, tail := "Let me see. ", " And so on."
			if d.name == "pythonic" || d.name == "glimmer" {
				lead = ""
			}
			if d.name == "glimmer" {
				tail = ""
			}
			want := ""
			for _, size := range []int{len(long) * 2, 1, 7} {
				if size < len(long) && limit%16 > 1 && (size != 1 || !testdata.All()) {
					continue
				}
				m, shown, deltas := readPieces(d.NewParser(&o), lead+long+tail, size)
				calls := m.Calls()
				if len(calls) != 1 || calls[0].Name != "f" || calls[0].Incomplete != (calls[0].ParseError != "") {
					t.Fatalf("limit %d, pieces of %d: %+v", limit, size, calls)
				}
				switch {
				case calls[0].ParseError == "" && least == 0:
					least = limit
				case calls[0].ParseError != "" && calls[0].ParseError != lathe.CodePayloadTooLarge, (calls[0].ParseError == "") != (least > 0):
					t.Fatalf("limit %d of %d, pieces of %d: %q", limit, len(long), size, calls[0].ParseError)
				}
				if strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(lead+tail), " ") {
					t.Fatalf("limit %d, pieces of %d: users see %q", limit, size, shown)
				}
				if got := fmt.Sprint(calls, m.Text()); want == "" {
					want = got
				} else if got != want {
					t.Fatalf("limit %d, pieces of %d: %s, want %s", limit, size, got, want)
				}
				for _, delta := range deltas {
					if delta.Kind == lathe.DeltaParseError && (delta.Bytes < limit || delta.Bytes > len(long)) {
						t.Fatalf("limit %d: %d bytes of %d", limit, delta.Bytes, len(long))
					}
				}
			}
		}
		if least < len(long)-len("</function>\n</minimax:tool_call>  ") || least > len(long) {
			t.Errorf("the call of %d bytes is within %d", len(long), least)
		}
	})
}

// The excerpt of an error ends at a rune, wherever the limit is.
func TestExcerptEndsAtRune(t *testing.T) {
	t.Parallel()
	eachWritten(t, func(t *testing.T, d *Dialect, o Options, call func(string) string) {
		for _, lead := range []string{"", "x", "xy"} {
			for _, limit := range []int{20, 1 << 10} {
				o.MaxPayloadBytes = limit
				_, _, deltas := readPieces(d.NewParser(&o), call(lead+strings.Repeat("日", 500)), 64)
				for _, delta := range deltas {
					if delta.Kind == lathe.DeltaParseError && (!utf8.ValidString(delta.Text) || len(delta.Text) < 198) {
						t.Errorf("the excerpt is %q", delta.Text)
					}
				}
			}
		}
	})
}

// A call behind one that is too long is read.
func TestCallAfterLongCallIsRead(t *testing.T) {
	t.Parallel()
	eachWritten(t, func(t *testing.T, d *Dialect, o Options, call func(string) string) {
		o.MaxPayloadBytes = len(call("x")) + 10
		text := call(strings.Repeat("x", 400)) + "\n" + call("x")
		for _, size := range []int{1, 5, len(text)} {
			m, shown, _ := readPieces(d.NewParser(&o), text, size)
			calls := m.Calls()
			if len(calls) != 2 || calls[0].ParseError != lathe.CodePayloadTooLarge || calls[1].ParseError != "" || calls[1].Arguments != `{"a":"x","b":[1,"x"]}` && calls[1].Arguments != `{"a":"x","b":[1, "x"]}` ||
				strings.TrimSpace(shown) != "" {
				t.Errorf("pieces of %d: %+v and %q", size, calls, shown)
			}
		}
	})
}

// What a parser holds of a call does not grow with the call, nor do the deltas of one piece grow beyond its text.
func TestLongCallsBufferNothing(t *testing.T) {
	t.Parallel()
	const limit = 300
	eachWritten(t, func(t *testing.T, d *Dialect, o Options, call func(string) string) {
		o.MaxPayloadBytes = limit
		head, _, _ := strings.Cut(call("@"), "@")
		for _, unit := range []string{"x", " ", "\n", "<", "</parameter>", "</parameter>\n<parameter=a>", "<parameter=b>\n", "<function=f>", "\", c=\"", "\",", "é", "[", "`", "]", "\\", "\"", "<|\"|>", "<escape>,a:", "</arg_value>",
			"<arg_key>a", "</atem:parameter>", "</｜DSML｜parameter>", "null"} {
			text := head + strings.Repeat(unit, 1<<14/len(unit))
			for _, size := range []int{1, len(text)} {
				p := d.NewParser(&o)
				var deltas []lathe.Delta
				most, emitted, n := 0, 0, 0
				for at := 0; at < len(text); at += size {
					deltas = p.Append(deltas[:0], text[at:min(at+size, len(text))])
					most = max(most, buffered(p))
					for _, delta := range deltas {
						emitted += len(delta.Text)
					}
					n = max(n, len(deltas))
				}
				if most > 12*limit+4*maxTagBytes+4096 {
					t.Errorf("%q in pieces of %d: %d bytes are held", unit, size, most)
				}
				if emitted > 2*len(text)+8*limit {
					t.Errorf("%q in pieces of %d: %d bytes are said of %d", unit, size, emitted, len(text))
				}
				if n > 64+len(text)/32 {
					t.Errorf("%q in pieces of %d: %d deltas", unit, size, n)
				}
			}
		}
	})
}

// buffered returns the bytes that a parser holds.
func buffered(p Parser) int {
	switch p := p.(type) {
	case *prefixed:
		return buffered(p.fullParser)
	case *tagged:
		return cap(p.raw) + cap(p.pending) + cap(p.token) + cap(p.value.text) + cap(p.value.json) + cap(p.value.lit.held) + cap(p.payload.raw) + cap(p.payload.object.earlyArgs)
	case *gemma:
		return cap(p.raw) + cap(p.head) + cap(p.lit.held)
	case *pythonic:
		return cap(p.raw) + cap(p.token) + cap(p.lit.held)
	case *jsonParser:
		return cap(p.raw) + cap(p.object.earlyArgs) + cap(p.gap) + cap(p.partial) + cap(p.builtin.token) + cap(p.builtin.lit.held)
	}
	return 1 << 30
}
