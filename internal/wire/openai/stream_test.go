package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// FuzzAssembler wants no panic, text that is UTF-8, and deltas that make up the answer.
func FuzzAssembler(f *testing.F) {
	for _, h := range hazards() {
		f.Add([]byte(strings.Join(h.lines, "\n")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		lines := append(strings.Split(string(b), "\n"), done)
		ds, fin, err := assemble(lines, nil, true)
		if err != nil {
			return
		}
		got := partsOf(fin)
		var text, args string
		for _, d := range ds {
			switch d.Kind {
			case lathe.DeltaText:
				text += d.Text
			case lathe.DeltaCallArgs:
				args += d.Text
			}
		}
		want := 0
		for _, c := range got.calls {
			want += len(c.Arguments)
		}
		// What comes after the finish reason may be given up only at the end.
		if !strings.HasPrefix(got.text, text) || len(args) > want {
			t.Fatalf("deltas say %q and %d bytes of arguments, the answer %q and %d", text, len(args), got.text, want)
		}
		if s := text + args; strings.ToValidUTF8(s, "") != s {
			t.Fatalf("%q is not UTF-8", s)
		}
	})
}

// stream makes a stream of n deltas; envelope says what changes in each chunk.
func stream(n int, envelope func(i int) string, delta func(i int) string) [][]byte {
	lines := make([][]byte, n)
	for i := range n {
		lines[i] = fmt.Appendf(nil, `{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_fc9f1d7035"%s,"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":null}]}`, envelope(i), delta(i))
	}
	return lines
}

func same(int) string       { return `` }
func changing(i int) string { return fmt.Sprintf(`,"obfuscation":"p%07d"`, i) }

func argsDelta(int) string {
	return `{"tool_calls":[{"index":0,"function":{"arguments":"line of code;\\n "}}]}`
}
func textDelta(int) string { return `{"content":" word"}` }

func argsStream(envelope func(int) string) [][]byte {
	first := []byte(calls(begin(0, "call_abc", "write_file")))
	return append([][]byte{first}, stream(4096, envelope, argsDelta)...)
}

func run(tb testing.TB, opts *AssemblerOptions, ds []lathe.Delta, lines [][]byte) (*Assembler, []lathe.Delta) {
	a := NewAssembler(opts)
	for _, l := range lines {
		var err error
		if ds, err = a.Append(ds[:0], l); err != nil {
			tb.Fatal(err)
		}
	}
	return a, ds
}

func TestAssemblerAllocs(t *testing.T) {
	testdata.CountsAllocations(t)
	for _, tt := range []struct {
		name, finish string
		lines        [][]byte
	}{
		{"arguments, same envelope", "tool_calls", argsStream(same)},
		{"arguments, changing envelope", "tool_calls", argsStream(changing)},
		{"text, same envelope", "stop", stream(2000, same, textDelta)},
		{"text, changing envelope", "stop", stream(2000, changing, textDelta)},
	} {
		a, ds := run(t, nil, nil, tt.lines)
		lines := append(tt.lines[:len(tt.lines):len(tt.lines)], []byte(finish(tt.finish)), []byte(done))
		perStream := testing.AllocsPerRun(5, func() {
			a, ds = run(t, nil, ds, lines)
			if _, err := a.Finish(true); err != nil {
				t.Fatal(err)
			}
		})
		if perStream > 64 { // for thousands of chunks
			t.Errorf("%s: %v allocations for a stream, want at most 64", tt.name, perStream)
		}
		a, ds = run(t, nil, ds, tt.lines)
		a.text.b.Grow(1 << 20)
		for _, c := range a.calls {
			c.args.b.Grow(1 << 20)
		}
		i := 0
		perDelta := testing.AllocsPerRun(1000, func() {
			i++
			ds, _ = a.Append(ds[:0], tt.lines[1+i%(len(tt.lines)-1)])
			if len(ds) != 1 {
				t.Fatalf("%d deltas", len(ds))
			}
		})
		if perDelta != 0 {
			t.Errorf("%s: %v allocations for a delta, want 0", tt.name, perDelta)
		}
	}
}

func benchmarkLines(b *testing.B, lines [][]byte, opts *AssemblerOptions) {
	n := 0
	for _, l := range lines {
		n += len(l)
	}
	_, ds := run(b, opts, nil, lines)
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		_, ds = run(b, opts, ds, lines)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(lines)), "ns/chunk")
}

func BenchmarkAssembler64K(b *testing.B) {
	b.Run("same", func(b *testing.B) { benchmarkLines(b, argsStream(same), nil) })
	b.Run("changing", func(b *testing.B) { benchmarkLines(b, argsStream(changing), nil) })
}

func BenchmarkText2000(b *testing.B) {
	b.Run("same", func(b *testing.B) { benchmarkLines(b, stream(2000, same, textDelta), nil) })
	b.Run("changing", func(b *testing.B) { benchmarkLines(b, stream(2000, changing, textDelta), nil) })
}

// BenchmarkChunk decodes chunks of 282 bytes.
func BenchmarkChunk(b *testing.B) {
	bare := len(stream(1, same, func(int) string { return `{"content":""}` })[0])
	word := strings.Repeat("w", 282-bare)
	lines := stream(1000, same, func(int) string { return `{"content":"` + word + `"}` })
	benchmarkLines(b, lines, nil)
}
