package jsonlines_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lathe-run/lathe/internal/jsonlines"
)

// all returns what a reader returns until the input ends, one text for each call of Next.
func all(t testing.TB, in io.Reader, limit int) (out []string) {
	t.Helper()
	r := jsonlines.NewReader(in, limit)
	for {
		line, err := r.Next()
		switch {
		case err == nil:
			out = append(out, string(line))
		case errors.Is(err, jsonlines.ErrTooLong):
			out = append(out, "(too long)")
		case errors.Is(err, jsonlines.ErrNoLineEnd):
			out = append(out, string(line)+"(cut)")
		case errors.Is(err, io.EOF):
			return out
		default:
			t.Fatal(err)
		}
	}
}

func TestReaderReadsLinesUpToTheLimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for _, tt := range []struct {
		in    string
		limit int
		want  []string
	}{
		{"", 4, nil},
		{"\n", 4, []string{""}},
		{"ab\ncd\r\n", 4, []string{"ab", "cd"}},
		{"abcd\nabcde\nab\n", 4, []string{"abcd", "(too long)", "ab"}},
		{"abcd\r\nef\n", 4, []string{"abcd", "ef"}},
		{"ab", 4, []string{"ab(cut)"}},
		{"ab\ncdefg", 4, []string{"ab", "(too long)"}},
		{"ab\r", 4, []string{"ab\r(cut)"}},
		{long + "\nab\n", 4, []string{"(too long)", "ab"}},
		{long + "\nab\n", 200 << 10, []string{long, "ab"}},
		{"a\rb\n", 4, []string{"a\rb"}},
	} {
		for name, in := range map[string]io.Reader{"whole": strings.NewReader(tt.in), "bytes": iotest.OneByteReader(strings.NewReader(tt.in))} {
			got := all(t, in, tt.limit)
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s, limit %d, %s: got %.80q, want %.80q", name, tt.limit, tt.in[:min(len(tt.in), 20)], got, tt.want)
			}
		}
	}
}

// An endless line must not keep its reader waiting, and must not be kept.
func TestReaderReportsALongLineBeforeItsEnd(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	defer func() { _ = in.Close() }()
	go func() { _, _ = out.Write([]byte("abcdefgh")) }()
	if _, err := jsonlines.NewReader(in, 4).Next(); !errors.Is(err, jsonlines.ErrTooLong) {
		t.Fatal(err)
	}
}

func TestReaderReturnsTheErrorOfItsInput(t *testing.T) {
	t.Parallel()
	want := io.ErrUnexpectedEOF // of the input: it must not be taken for its end
	r := jsonlines.NewReader(io.MultiReader(strings.NewReader("ab\ncd"), iotest.ErrReader(want)), 10)
	if line, err := r.Next(); err != nil || string(line) != "ab" {
		t.Fatal(string(line), err)
	}
	if line, err := r.Next(); line != nil || !errors.Is(err, want) {
		t.Fatal(string(line), err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("ab\r\n\nabcdefgh\nx"), uint8(4))
	f.Fuzz(func(t *testing.T, in []byte, limit uint8) {
		whole := all(t, bytes.NewReader(in), int(limit))
		if bytewise := all(t, iotest.OneByteReader(bytes.NewReader(in)), int(limit)); !slices.Equal(whole, bytewise) {
			t.Errorf("whole %q, byte by byte %q", whole, bytewise)
		}
		var want []string
		for line := range bytes.Lines(in) {
			content, ended := bytes.CutSuffix(line, []byte{'\n'})
			trimmed := bytes.TrimSuffix(content, []byte{'\r'})
			switch {
			case len(trimmed) > int(limit):
				want = append(want, "(too long)")
			case ended:
				want = append(want, string(trimmed))
			default:
				want = append(want, string(content)+"(cut)")
			}
		}
		if !slices.Equal(whole, want) {
			t.Errorf("got %q, want %q", whole, want)
		}
	})
}
