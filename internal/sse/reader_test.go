package sse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe/internal/testdata"
)

type event struct {
	Type, Data, ID string
	Retry          int
}

// transcript is everything that can be seen of a stream.
type transcript struct {
	Events []event
	Err    string
}

func read(src io.Reader, opts *Options) transcript {
	r := NewReader(src, opts)
	var t transcript
	for {
		e, err := r.Next()
		if err != nil {
			t.Err = err.Error()
			if _, again := r.Next(); again != err {
				t.Err += " then " + fmt.Sprint(again)
			}
			return t
		}
		t.Events = append(t.Events, event{e.Type, string(e.Data), e.ID, e.Retry})
	}
}

// pieces returns the given slices one a Read.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

func cutAt(b []byte, at ...int) *pieces {
	var p pieces
	last := 0
	for _, i := range at {
		p = append(p, b[last:i])
		last = i
	}
	p = append(p, b[last:])
	return &p
}

// sameForAnyCut reads b whole, in each pair of pieces, byte by byte and in random pieces.
func sameForAnyCut(t *testing.T, b []byte, opts *Options) transcript {
	t.Helper()
	want := read(bytes.NewReader(b), opts)
	check := func(how string, src io.Reader) {
		if got := read(src, opts); !cmp.Equal(want, got) {
			t.Fatalf("%s of %q differs (-whole +cut):\n%s", how, b, cmp.Diff(want, got))
		}
	}
	check("byte by byte", iotest.OneByteReader(bytes.NewReader(b)))
	check("EOF with data", iotest.DataErrReader(bytes.NewReader(b)))
	for i := range min(len(b), 512) + 1 {
		if i <= len(b) {
			check(fmt.Sprintf("cut at %d", i), cutAt(b, i))
		}
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(b))))
	for range 8 {
		var at []int
		for i := 1; i < len(b); i++ {
			if rng.IntN(4) == 0 {
				at = append(at, i)
			}
		}
		check(fmt.Sprintf("cuts at %v", at), cutAt(b, at...))
	}
	return want
}

func TestReader(t *testing.T) {
	t.Parallel()
	msg := func(data string) event { return event{Type: "message", Data: data} }
	tests := []struct {
		name, in string
		want     transcript
	}{
		{"nothing", "", transcript{}},
		{"one", "data: a\n\n", transcript{Events: []event{msg("a")}}},
		{"CR only", "data: a\rdata: b\r\r", transcript{Events: []event{msg("a\nb")}}},
		{"CR then LF lines", "data: a\r\r\ndata: b\n\r", transcript{Events: []event{msg("a"), msg("b")}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", transcript{Events: []event{msg("a"), msg("b")}}},
		{"BOM alone", "\xEF\xBB\xBF", transcript{}},
		{"half a BOM", "\xEF\xBB", transcript{}},
		{"half a BOM then data", "\xEF\xBBdata: a\n\n", transcript{}},
		{"two BOMs", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", transcript{}},
		{"cut in a line", "data: a\n\ndata: b", transcript{Events: []event{msg("a")}}},
		{"cut before the blank line", "data: a\n", transcript{}},
		{"cut in a comment", ": pi", transcript{}},
		{"ends after a comment", ": ping\n", transcript{}},
		{"all fields", "event: x\nid: 1\nretry: 20\ndata: a\n\ndata:b\n\n", transcript{
			Events: []event{{"x", "a", "1", 20}, {"message", "b", "1", 0}}}},
		{"id reset", "id: 1\nid\ndata: a\n\n", transcript{Events: []event{msg("a")}}},
		{"event without data", "event: x\n\ndata: a\n\n", transcript{Events: []event{msg("a")}}},
		{"huge retry", "retry: 99999999999999999999\ndata: a\n\n", transcript{Events: []event{{"message", "a", "", 1<<31 - 1}}}},
		{"retry 0", "retry: 0\n\n", transcript{}},
		{"truncated characters", "data: \xE2\x82A\xF0\x9F\x98\xED\xA0\x80\xC0\xAF\n\n", transcript{Events: []event{
			msg("\uFFFDA\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD")}}},
		{"bad UTF-8 in type and id", "event: \xFF\nid: \xFF\ndata: a\n\n", transcript{
			Events: []event{{"\uFFFD", "a", "\uFFFD", 0}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := sameForAnyCut(t, []byte(tt.in), nil)
			tt.want.Err = "EOF"
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestReaderVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/sse.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Parse []struct {
			Name   string
			Stream []byte `json:"stream_b64"`
			Events []struct{ Type, Data, LastEventID string }
		}
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Parse) < 20 {
		t.Fatalf("only %d vectors", len(vectors.Parse))
	}
	for _, v := range vectors.Parse {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			got := sameForAnyCut(t, v.Stream, nil)
			var events []event
			for _, e := range v.Events {
				events = append(events, event{Type: e.Type, Data: e.Data, ID: e.LastEventID})
			}
			for i := range got.Events {
				got.Events[i].Retry = 0
			}
			if d := cmp.Diff(events, got.Events); d != "" {
				t.Errorf("events (-want +got)\n%s", d)
			}
		})
	}
}

func TestReaderLimits(t *testing.T) {
	t.Parallel()
	opts := &Options{MaxLine: 20, MaxEvent: 30}
	for _, tt := range []struct {
		name, in string
		events   int
		want     error
	}{
		{"line at the limit", "data: " + strings.Repeat("x", 14) + "\n\n", 1, io.EOF},
		{"line at the limit, CRLF", "data: " + strings.Repeat("x", 14) + "\r\n\r\n", 1, io.EOF},
		{"line above", "data: a\n\ndata: " + strings.Repeat("x", 15) + "\n\n", 1, ErrLineTooLong},
		{"comment above", ":" + strings.Repeat("x", 20) + "\n\n", 0, ErrLineTooLong},
		{"no line end", strings.Repeat("x", 21), 0, ErrLineTooLong},
		{"no line end, at the limit", strings.Repeat("x", 20), 0, io.EOF},
		{"event at the limit", "data: 0123456789\ndata: 0123456789\ndata: 01234567\n\n", 1, io.EOF},
		{"event above", "data: 0123456789\ndata: 0123456789\ndata: 012345678\n\n", 0, ErrEventTooLong},
		{"many empty lines", strings.Repeat("data\n", 32), 0, ErrEventTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := sameForAnyCut(t, []byte(tt.in), opts)
			if len(got.Events) != tt.events || got.Err != tt.want.Error() {
				t.Errorf("got %d events, error %q; want %d, %q", len(got.Events), got.Err, tt.events, tt.want)
			}
		})
	}
	small := read(strings.NewReader("data: "+strings.Repeat("x", 29)+"\n\n"), &Options{MaxEvent: 28})
	if small.Err != ErrEventTooLong.Error() {
		t.Errorf("one long line: %q, want %q", small.Err, ErrEventTooLong)
	}
}

// The type of an event does not depend on those of earlier ones.
func TestReaderRepeatedTypes(t *testing.T) {
	t.Parallel()
	in := "event: a\ndata: 1\n\nevent: a\ndata: 2\n\nevent: ab\ndata: 3\n\nevent: a\ndata: 4\n\nevent:a\ndata: 5\n\ndata: 6\n\nevent: a\ndata: \n\n" +
		"event:\ndata: 8\n\nevent: a\n\nevent: a\nid: 9\ndata: 9\n\nevent: a\ndata: 10\ndata: 10\n\nevent: a\ndata: \xff\n\nevent: a\ndata:12\n\n" +
		"event: a\nevent: b\ndata: 13\n\nevent: b\ndata: 14\n\nevent: \ndata: 15\n\nevent: \xff\ndata: 16\n\nevent: \xff\ndata: 17\n\nevent: b\ndata: cut"
	want := []event{{"a", "1", "", 0}, {"a", "2", "", 0}, {"ab", "3", "", 0}, {"a", "4", "", 0}, {"a", "5", "", 0}, {"message", "6", "", 0}, {"a", "", "", 0},
		{"message", "8", "", 0}, {"a", "9", "9", 0}, {"a", "10\n10", "9", 0}, {"a", "\uFFFD", "9", 0}, {"a", "12", "9", 0},
		{"b", "13", "9", 0}, {"b", "14", "9", 0}, {"message", "15", "9", 0}, {"\uFFFD", "16", "9", 0}, {"\uFFFD", "17", "9", 0}}
	if got := sameForAnyCut(t, []byte(in), nil); !cmp.Equal(got.Events, want) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got.Events))
	}
	for n, want := range map[int]error{19: ErrLineTooLong, 20: io.EOF} { // of the third event the line of the type, of the fourth the other
		opts := &Options{MaxLine: n}
		typ, data := "event: "+strings.Repeat("t", 12), "data: "+strings.Repeat("x", 13)
		for _, in := range []string{
			"event:" + typ[7:] + "\ndata: 1\n\n" + "event:  " + typ[7:] + "\ndata: 2\n\n" + typ + "t\ndata: 3\n\n",
			typ + "\ndata: 1\n\n" + typ + "\n" + data + "\n\n" + typ + "\n" + data + "x\n\n",
		} {
			if got := sameForAnyCut(t, []byte(in), opts); got.Err != want.Error() {
				t.Errorf("lines of up to %d bytes: %+v, want %q", n, got, want)
			}
		}
	}
	// A type may come first on a shorter line, without the space.
	in = "event:" + strings.Repeat("t", 14) + "\ndata: 1\n\nevent: " + strings.Repeat("t", 14) + "\ndata: 2\n\n"
	if got := sameForAnyCut(t, []byte(in), &Options{MaxLine: 20}); len(got.Events) != 1 || got.Err != ErrLineTooLong.Error() {
		t.Errorf("got %+v, want one event and %q", got, ErrLineTooLong)
	}
}

func TestReaderLongLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", (1<<20-64)/16)
	in := "data: a\n\ndata: " + long + "\n\ndata: b\ndata: " + long + "\n\n"
	want := []event{{"message", "a", "", 0}, {"message", long, "", 0}, {"message", "b\n" + long, "", 0}}
	for _, n := range []int{1 << 30, 1000, 32 << 10} {
		var at []int
		for i := n; i < len(in); i += n {
			at = append(at, i)
		}
		if got := read(cutAt([]byte(in), at...), nil); !cmp.Equal(got.Events, want) || got.Err != "EOF" {
			t.Errorf("pieces of %d: %d events, %s", n, len(got.Events), got.Err)
		}
	}
}

func TestReaderRawUTF8(t *testing.T) {
	t.Parallel()
	got := sameForAnyCut(t, []byte("data: \xE2\x82\n\ndata: \xAC\n\n"), &Options{RawUTF8: true})
	want := []event{{"message", "\xE2\x82", "", 0}, {"message", "\xAC", "", 0}}
	if d := cmp.Diff(want, got.Events); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestReaderSourceError(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	r := NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), nil)
	if e, err := r.Next(); err != nil || string(e.Data) != "a" {
		t.Fatalf("got %q, %v; want the event before the error", e.Data, err)
	}
	if _, err := r.Next(); err != broken {
		t.Errorf("got %v; want the source's error", err)
	}
	if _, err := NewReader(stuck{}, nil).Next(); err != io.ErrNoProgress {
		t.Errorf("a source that never returns: %v, want %v", err, io.ErrNoProgress)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// manyEvents is what model servers send: short JSON lines.
func manyEvents(n int, end string) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" word %d"},"finish_reason":null}]}%s%s`, i, end, end)
	}
	return b.Bytes()
}

func TestReaderAllocs(t *testing.T) {
	testdata.CountsAllocations(t)
	for _, end := range []string{"\n", "\r\n"} {
		stream := manyEvents(1000, end)
		allocs := testing.AllocsPerRun(20, func() {
			r := NewReader(bytes.NewReader(stream), nil)
			n := 0
			for {
				if _, err := r.Next(); err != nil {
					break
				}
				n++
			}
			if n != 1000 {
				t.Fatalf("read %d events", n)
			}
		})
		if allocs > 20 {
			t.Errorf("line end %q: %v allocations for 1000 events, want those of the first event alone", end, allocs)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	for _, bb := range []struct {
		name, end string
		opts      *Options
	}{{"LF", "\n", nil}, {"LFRawUTF8", "\n", &Options{RawUTF8: true}}, {"CRLF", "\r\n", nil}} {
		b.Run(bb.name, func(b *testing.B) {
			stream := manyEvents(2000, bb.end)
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(bytes.NewReader(stream), bb.opts)
				for {
					if _, err := r.Next(); err != nil {
						break
					}
				}
			}
		})
	}
}

func FuzzReaderCuts(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\nid: 1\rdata:b\n\n: c\n"), uint64(3))
	f.Add([]byte("\xEF\xBB\xBFevent: x\ndata: \xE2\x82\n\n"), uint64(1))
	f.Add([]byte("retry: 1\n\ndata\ndata\n\r\r"), uint64(7))
	f.Add([]byte("event: x\ndata: 1\n\nevent: x\ndata: 2\n\nevent: y\ndata: 3\n\n"), uint64(2))
	f.Fuzz(func(t *testing.T, in []byte, n uint64) {
		for _, opts := range []*Options{nil, {MaxLine: 8, MaxEvent: 12}, {RawUTF8: true}} {
			want := read(bytes.NewReader(in), opts)
			rng := rand.New(rand.NewPCG(n, 0))
			var at []int
			for i := 1; i < len(in); i++ {
				if rng.IntN(3) == 0 {
					at = append(at, i)
				}
			}
			for _, src := range []io.Reader{cutAt(in, at...), iotest.OneByteReader(bytes.NewReader(in))} {
				if got := read(src, opts); !cmp.Equal(want, got) {
					t.Fatalf("cuts at %v (-whole +cut):\n%s", at, cmp.Diff(want, got))
				}
			}
		}
	})
}
