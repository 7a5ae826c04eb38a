package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A driver that waits for each answer before it sends the next line gets it.
func TestBatchAnswersEachLineAtOnce(t *testing.T) {
	t.Parallel()
	in, feed := io.Pipe()
	results, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- checkBatch(in, out) }()
	lines := bufio.NewScanner(results)
	for _, id := range []string{"1", `"two"`} {
		if _, err := io.WriteString(feed, `{"id":`+id+`,"schema":true,"arguments":{}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if want := `{"id":` + id + `,"valid":true,"errors":[]}`; !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
	feed.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestToolsCheckRefusesNamesThatDifferOnlyInCase(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]bool{`{}`: false, `{"properties":{"a":{}}}`: false, `{"properties":{"a":{},"A":{}}}`: true} {
		if got := check([]byte(schema), []byte(`{"a":1,"A":2}`)); got.valid != want || (len(got.errors) == 0) != want {
			t.Errorf("schema %s: %s", schema, got.appendJSON(nil))
		}
	}
}

func TestBatchReportsWhenItCannotReadOrWrite(t *testing.T) {
	t.Parallel()
	if err := checkBatch(iotest.ErrReader(io.ErrUnexpectedEOF), io.Discard); err == nil {
		t.Error("a broken input is no error")
	}
	_, closed := io.Pipe()
	closed.Close()
	if err := checkBatch(strings.NewReader("{}\n"), closed); err == nil {
		t.Error("a broken output is no error")
	}
}

func TestEachLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	var out strings.Builder
	err := eachLine(iotest.OneByteReader(strings.NewReader("a\r\n\n  \n"+long+"\nlast")), &out, func(line []byte) []byte { return line })
	if want := "a\n" + long + "\nlast\n"; err != nil || out.String() != want {
		t.Errorf("got %d bytes, %v", out.Len(), err)
	}
}

// Whatever a line holds, there is one JSON object for it with its id.
func FuzzCheckLine(f *testing.F) {
	f.Add([]byte(`{"id":1,"schema":{"type":"object"},"arguments":{"a":1}}`))
	f.Add([]byte(`{"id":"x","schema":true,"arguments":"{\"a\":1"}`))
	f.Add([]byte(`{"id":"\ud800","schema":true,"arguments":1}`))
	f.Add([]byte(`{"id":1,"id":2} x`))
	f.Add([]byte(`{"\u0069d":7,"schema":{"$ref":"#"},"arguments":[[]]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		v := checkLine(line)
		out := v.appendJSON(nil)
		if err := rawjson.Check(out, rawjson.Limits{MaxDepth: 100}); err != nil || bytes.ContainsAny(out, "\r\n") {
			t.Fatalf("%q: %v: %s", line, err, out)
		}
		var got struct {
			ID     json.RawMessage `json:"id"`
			Valid  bool            `json:"valid"`
			Errors []any           `json:"errors"`
		}
		if err := json.Unmarshal(out, &got); err != nil || got.Valid != (len(got.Errors) == 0) {
			t.Fatalf("%q: %v: %s", line, err, out)
		}
		var in map[string]json.RawMessage
		if json.Unmarshal(line, &in) == nil && got.Valid && in["id"] != nil && string(got.ID) != string(rawjson.AppendCompact(nil, in["id"])) {
			t.Errorf("%q: id %s", line, got.ID)
		}
	})
}
