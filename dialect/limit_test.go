package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// hostile are texts that are repeated without end.
var hostile = []string{
	"a", "<", "<|", "<|start", "<|start|>", "<|end|>", "<|channel|>x", "<|channel|>tool<|message|>{", "\n", " to=", "`", "``` ",
	"<tool ", "<tool name=\"", "<tool name=\"a\" args>", "<tool name=\"a\" args>{", "</tool>", "<tool:", "<tool:a>{\"x\":", "\\", "{{", "<think>", "</think>",
	"assistant", "analysisX assistantfina", "é", "\xf0\x9f", "<|channel|>commentary to=functions.f<|message|>{\"a\":\"", `\"`, "[[[[",
}

func newParsers(o *Options) map[string]func() Parser {
	out := map[string]func() Parser{}
	for _, name := range Names() {
		d, _ := Lookup(name)
		out[name] = func() Parser { return d.NewParser(o) }
	}
	return out
}

// looked returns how much the scanner of p has looked at.
func looked(t *testing.T, p Parser) int {
	t.Helper()
	switch p := p.(type) {
	case *harmony:
		return p.looked
	case *tags:
		return p.looked
	case *jsonParser:
		return p.looked
	case *tagged:
		return p.looked
	case *gemma:
		return p.looked
	case *pythonic:
		return p.looked
	case *autoParser:
		if p.parser != nil {
			return p.looked + looked(t, p.parser)
		}
		return p.looked
	}
	t.Fatalf("no scanner in %T", p)
	return 0
}

// Whatever the text and the pieces, the scanner looks at each byte a bounded number of times, and
// what the parser holds on to does not grow with the text.
func TestWorkIsLinear(t *testing.T) {
	t.Parallel()
	const n = 1 << 11
	for name, newParser := range newParsers(&Options{AllowDeprecatedSyntax: true}) {
		for _, unit := range hostile {
			for _, lead := range []string{"", "<|channel|>final<|message|>", "<|channel|>tool<|message|>{\"tool\":\"a\",\"arguments\":\"", "<tool name=\"a\" args>{\"a\":\""} {
				text := lead + strings.Repeat(unit, n/len(unit))
				for _, size := range []int{1, 7, len(text)} {
					p := newParser()
					var deltas []lathe.Delta
					out := 0
					for at := 0; at < len(text); at += size {
						deltas = p.Append(deltas[:0], text[at:min(at+size, len(text))])
						for _, d := range deltas {
							out += len(d.Text)
						}
					}
					deltas, _ = p.Flush(deltas[:0])
					for _, d := range deltas {
						out += len(d.Text)
					}
					at := fmt.Sprintf("%s: %q and %q in pieces of %d", name, lead, unit, size)
					if got := looked(t, p); got > 40*len(text) {
						t.Errorf("%s: looked %d times at %d bytes", at, got, len(text))
					}
					// Text, and at most what one call says before it is taken back, with an
					// excerpt for each failure.
					if out > 30*len(text) {
						t.Errorf("%s: %d bytes said of %d", at, out, len(text))
					}
				}
			}
		}
	}
}

// The memory that a turn costs does not grow with the text, nor with the number of pieces.
func TestAllocationsDoNotGrow(t *testing.T) {
	testdata.CountsAllocations(t)
	texts := map[string]struct{ lead, unit string }{
		"harmony reasoning": {"<|channel|>analysis<|message|>", "Some text with a < b and <div>, || and so on. "},
		"harmony answer":    {"", "Plain text with a < b and <div>, || and so on. "},
		"harmony arguments": {"<|channel|>commentary to=functions.f<|message|>{\"a\":\"", `text \"quoted\" <b>bold</b> `},
		"harmony messages":  {"", "<|channel|>final<|message|>ok<|end|><|start|>assistant"},
		"tags text":         {"", "Some text with a < b, <b>, `code` and\n"},
		"tags thinking":     {"<think>", "Some text with a < b, <b>, `code` and\n"},
		"auto text":         {"", "Some text with a < b, <b>, `code` and\n"},
	}
	opts := &Options{Tools: []*lathe.ToolSpec{{Name: "f"}}}
	for name, text := range texts {
		d, _ := Lookup(strings.Fields(name)[0])
		for _, size := range []int{1, 8, 4096} {
			measure := func(n int) float64 {
				whole := text.lead + strings.Repeat(text.unit, n)
				deltas := make([]lathe.Delta, 0, 1024)
				return testing.AllocsPerRun(5, func() {
					p := d.NewParser(opts)
					for at := 0; at < len(whole); at += size {
						deltas = p.Append(deltas[:0], whole[at:min(at+size, len(whole))])
					}
					deltas, _ = p.Flush(deltas[:0])
				})
			}
			more := 2.0
			if name == "harmony arguments" { // a call is kept until it ends, in memory that doubles: six times for 40 times the text
				more = 6
			}
			if small, large := measure(20), measure(800); large > small+more {
				t.Errorf("%s in pieces of %d: %v allocations for 20 units, %v for 800", name, size, small, large)
			}
		}
	}
}

// Text that cannot become a mark flows at once.
func TestNothingIsBuffered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dialect, lead string }{
		{"harmony", "Answer"}, {"harmony", "<|channel|>final<|message|>"}, {"harmony", "<|channel|>analysis<|message|>"},
		{"harmony", "<|channel|>commentary to=functions.f<|message|>{\"a\":\""},
		{"harmony", "<|channel|>tool<|message|>{\"tool\":\"f\",\"arguments\":{\"a\":\""},
		{"tags", ""}, {"tags", "<think>"}, {"tags", "<tool name=\"f\" args>{\"a\":\""}, {"auto", ""},
	} {
		d, _ := Lookup(c.dialect)
		p := d.NewParser(nil)
		p.Append(nil, c.lead)
		for _, piece := range []string{"W", "ord", " next", " < 3", " <d", " two"} {
			got := ""
			for _, delta := range p.Append(nil, piece) {
				got += delta.Text
			}
			if got != piece {
				t.Errorf("%s after %q: %q says %q", c.dialect, c.lead, piece, got)
			}
		}
	}
}

// max_payload_bytes holds to the byte; by default it bounds the payload of the channel tool alone.
func TestPayloadLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dialect, before, payload, after string }{
		{"harmony", "<|channel|>tool<|message|>", `{"tool":"f","arguments":{"a":"%s"}}`, "<|end|>"},
		{"harmony", "<|channel|>commentary to=functions.f<|message|>", `{"a":"%s"}`, "<|call|>"},
		{"tags", `<tool name="f" args>`, `{"a":"%s"}`, "</tool>"},
	} {
		for _, limit := range []int{0, 100} {
			most := limit
			switch {
			case limit == 0 && strings.Contains(c.before, "tool<|message|>"):
				most = 8192
			case limit == 0: // max_tool_args_bytes, and the marks
				most = 204_096
			}
			for _, size := range []int{most - 1, most, most + 1} {
				fill := size - len(c.payload) + len("%s")
				text := c.before + strings.Replace(c.payload, "%s", strings.Repeat("é", fill/2)+strings.Repeat("x", fill%2), 1) + c.after
				d, _ := Lookup(c.dialect)
				p := d.NewParser(&Options{MaxPayloadBytes: limit})
				deltas, err := p.Flush(p.Append(nil, text))
				if err != nil {
					t.Fatal(err)
				}
				var codes []string
				for _, d := range deltas {
					if d.Kind == lathe.DeltaParseError {
						codes = append(codes, fmt.Sprint(d.Code, " ", d.Bytes))
					}
				}
				want := "[]"
				if size > most {
					want = fmt.Sprintf("[tool_payload_too_large %d]", len(text)-map[string]int{"harmony": len(c.before + c.after)}[c.dialect])
				}
				if got := fmt.Sprint(codes); got != want {
					t.Errorf("%s: payload of %d bytes, limit %d: %s, want %s", c.dialect, size, most, got, want)
				}
			}
		}
	}
}

// White space between the arguments and the closing tag may have 1 KiB and what the payload leaves of max_payload_bytes. With more, the call
// is too long, and its text is unreadable text up to the closing tag.
func TestWhiteSpaceBeforeTheClosingTagIsLimited(t *testing.T) {
	t.Parallel()
	const head, payload, limit = `<tool name="f" args>`, `{"a":1}`, 100
	d, _ := Lookup("tags")
	for _, spaces := range []int{2*maxTagBytes + limit - len(payload), 2*maxTagBytes + limit - len(payload) + 1, 10_000} {
		call := head + payload + strings.Repeat(" ", spaces) + "</tool>"
		for _, size := range []int{1, 7, len(call)} {
			p := d.NewParser(&Options{MaxPayloadBytes: limit})
			var deltas []lathe.Delta
			for rest := call + "after"; rest != ""; {
				n := min(size, len(rest))
				deltas = p.Append(deltas, rest[:n])
				rest = rest[n:]
			}
			deltas, err := p.Flush(deltas)
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			text, unreadable := "", ""
			for _, d := range deltas {
				switch {
				case d.Kind == lathe.DeltaParseError:
					codes = append(codes, fmt.Sprint(d.Code, " ", d.Bytes))
				case d.Kind == lathe.DeltaText && d.Unreadable:
					unreadable += d.Text
				case d.Kind == lathe.DeltaText:
					text += d.Text
				}
			}
			wantCodes, want := "[]", ""
			if spaces > 2*maxTagBytes+limit-len(payload) {
				wantCodes, want = fmt.Sprintf("[tool_payload_too_large %d]", len(call)), call
			}
			if got := fmt.Sprint(codes); got != wantCodes || unreadable != want || text != "after" {
				t.Errorf("%d spaces in pieces of %d: %s, want %s; %d bytes of unreadable text, text %q", spaces, size, got, wantCodes, len(unreadable), text)
			}
		}
	}
}

// White space before and behind a bare call, in many small pieces, is looked at a bounded number of times.
func TestBareCallsAreReadInLinearTime(t *testing.T) {
	t.Parallel()
	d, _ := Lookup("hermes")
	const call = "{\"name\":\"f\",\"arguments\":{}}"
	space := strings.Repeat("\n \n ", 10_000)
	for _, text := range []string{call + space, space + call, "```json" + space + call, "```json\n" + call + space + "```"} {
		p := d.NewParser(&Options{Tools: []*lathe.ToolSpec{{Name: "f"}}, BareCalls: true})
		for rest := text; rest != ""; {
			n := min(2, len(rest))
			p.Append(nil, rest[:n])
			rest = rest[n:]
		}
		b, ok := p.(*bareCalls)
		if !ok {
			t.Fatalf("the parser is a %T", p)
		}
		if _, _ = p.Flush(nil); b.looked > 10*len(text) || b.looked < len(text) {
			t.Errorf("%.20q: looked at %d bytes of %d", text, b.looked, len(text))
		}
	}
}
