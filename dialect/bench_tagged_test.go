package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
)

// longCall writes a call with a string argument of about n bytes in the dialect's own way.
func longCall(tb testing.TB, name string, n int) string {
	tb.Helper()
	d, ok := dialect.Lookup(name)
	if !ok {
		tb.Fatalf("no dialect %q", name)
	}
	const line = "<p class=\"x\">Some text of a page, a < b && c > d, that it's to write.</p>\n"
	args := append([]byte(`{"path":"index.html","text":`), rawjson.AppendQuote(nil, strings.Repeat(line, n/len(line)))...)
	text := d.AppendCall([]byte("I write the page.\n"), lathe.ToolCall{Name: "write", Arguments: string(append(args, '}'))})
	if name == "glimmer" {
		return " to=write<|message|>" + string(text[len("I write the page.\n"):]) + "<|eot|>"
	}
	return string(text)
}

func BenchmarkWrittenArguments(b *testing.B) {
	tools := []*lathe.ToolSpec{{Name: "write", Schema: json.RawMessage(
		`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}`)}}
	for _, name := range written {
		for _, n := range []int{64 << 10, 1 << 20} {
			text := longCall(b, name, n)
			for _, size := range []int{8, 4096, len(text)} {
				piece := fmt.Sprint(size)
				if size == len(text) {
					piece = "all"
				}
				b.Run(fmt.Sprintf("%s/bytes=%d/piece=%s", name, n, piece), func(b *testing.B) {
					d, _ := dialect.Lookup(name)
					opts := &dialect.Options{Tools: tools, MaxPayloadBytes: 1 << 20}
					var deltas []lathe.Delta
					b.SetBytes(int64(len(text)))
					b.ReportAllocs()
					for b.Loop() {
						p := d.NewParser(opts)
						calls := 0
						for at := 0; at < len(text); at += size {
							deltas = p.Append(deltas[:0], text[at:min(at+size, len(text))])
						}
						deltas, _ = p.Flush(deltas[:0])
						for _, d := range deltas {
							if d.Kind == lathe.DeltaCallEnd && !d.Incomplete {
								calls++
							}
						}
						_ = calls
					}
				})
			}
		}
	}
}

// A token inside of an argument costs few allocations, and arguments go out before the text ends.
func TestWrittenArgumentsFlow(t *testing.T) {
	testdata.CountsAllocations(t)
	for _, name := range written {
		d, _ := dialect.Lookup(name)
		text := longCall(t, name, 256<<10)
		p := d.NewParser(&dialect.Options{Tools: writeTool, MaxPayloadBytes: 1 << 20})
		deltas := make([]lathe.Delta, 0, 64)
		at, args := 0, 0
		next := func() {
			deltas = p.Append(deltas[:0], text[at:at+8])
			at += 8
			for _, d := range deltas {
				if d.Kind == lathe.DeltaCallArgs {
					args += len(d.Text)
				}
			}
		}
		for at < 64<<10 {
			next()
		}
		if args < at-256 {
			t.Errorf("%s: %d bytes of arguments after %d bytes of text", name, args, at)
		}
		if n := testing.AllocsPerRun(2000, next); n > 4 {
			t.Errorf("%s: %v allocations a token", name, n)
		}
	}
}
