package sse_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/sse"
)

func TestAppendEvent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		in   sse.Event
		want string
	}{
		{"data", sse.Event{Data: []byte("a")}, "data: a\n\n"},
		{"no data", sse.Event{}, "data: \n\n"},
		{"all", sse.Event{Type: "x", ID: "1", Retry: 5, Data: []byte("a")}, "event: x\nid: 1\nretry: 5\ndata: a\n\n"},
		{"default type", sse.Event{Type: "message", Data: []byte("a")}, "data: a\n\n"},
		{"lines", sse.Event{Data: []byte("a\nb\r\nc\rd\n")}, "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"},
		{"injection", sse.Event{Type: "x\ndata: pwn", ID: "1\rdata: pwn", Data: []byte("a")}, "data: a\n\n"},
		{"bad UTF-8", sse.Event{Data: []byte("a\xFFb")}, "data: a\uFFFDb\n\n"},
	} {
		if got := sse.AppendEvent(nil, tt.in); string(got) != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got, want := string(sse.AppendComment(nil, "a\n\ndata: b")), ": a\n: \n: data: b\n\n"; got != want {
		t.Errorf("comment: got %q, want %q", got, want)
	}
}

func TestAppendEventVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/sse.json")
	if err != nil {
		t.Fatal(err)
	}
	type ev struct {
		ID, Type, Data string
		Raw            []byte `json:"data_b64"`
	}
	var vectors struct {
		Emit []struct {
			Name        string
			Event       ev
			MustParseTo []ev `json:"must_parse_to"`
			MustBeValid bool `json:"must_be_valid_utf8"`
		}
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors.Emit {
		e := sse.Event{Type: v.Event.Type, ID: v.Event.ID, Data: []byte(v.Event.Data)}
		if v.Event.Raw != nil {
			e.Data = v.Event.Raw
		}
		out := sse.AppendEvent(nil, e)
		if v.MustBeValid && !utf8.Valid(out) {
			t.Errorf("%s: %q is not UTF-8", v.Name, out)
		}
		if v.MustParseTo == nil {
			continue
		}
		r := sse.NewReader(bytes.NewReader(out), nil)
		for _, want := range v.MustParseTo {
			got, err := r.Next()
			if err != nil || got.Type != want.Type || string(got.Data) != want.Data {
				t.Errorf("%s: read back %q %q, %v", v.Name, got.Type, got.Data, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: more than the wanted events", v.Name)
		}
	}
}

func FuzzAppendEvent(f *testing.F) {
	f.Add("x", "1", []byte("a\r\nb"), 3)
	f.Add("", "", []byte("\n\nevent: admin\ndata: x"), -1)
	f.Fuzz(func(t *testing.T, typ, id string, data []byte, retry int) {
		e := sse.Event{Type: typ, ID: id, Data: data, Retry: retry}
		out := sse.AppendEvent(nil, e)
		if !utf8.Valid(out) {
			t.Fatalf("%q is not UTF-8", out)
		}
		r := sse.NewReader(bytes.NewReader(out), nil)
		got, err := r.Next()
		if err != nil {
			t.Fatalf("reading back %q: %v", out, err)
		}
		want := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\r", "\n")
		if utf8.Valid(data) && string(got.Data) != want {
			t.Fatalf("data %q, want %q", got.Data, want)
		}
		if utf8.ValidString(typ) && typ != "" && !strings.ContainsAny(typ, "\r\n\x00") && got.Type != typ {
			t.Fatalf("type %q, want %q", got.Type, typ)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("%q holds more than one event", out)
		}
	})
}

func ExampleReader() {
	stream := strings.NewReader(": hello\n\ndata: one\n\nevent: done\ndata: two\ndata: lines\n\n")
	r := sse.NewReader(stream, nil)
	for {
		e, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %q\n", e.Type, e.Data)
	}
	// Output:
	// message "one"
	// done "two\nlines"
	// EOF
}
