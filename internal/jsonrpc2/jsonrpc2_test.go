package jsonrpc2_test

import (
	"errors"
	"testing"

	"github.com/lathe-run/lathe/internal/jsonrpc2"
	"github.com/lathe-run/lathe/internal/rawjson"
)

func TestBatchSplitsUpToItsLimit(t *testing.T) {
	t.Parallel()
	syntax := (*rawjson.SyntaxError)(nil)
	for in, want := range map[string]any{
		` [{"a":1}, {"b":[2]}]`: []string{`{"a":1}`, `{"b":[2]}`},
		`[1,2,3]`:               []string{"1", "2", "3"},
		`[1,2,3,4]`:             jsonrpc2.ErrLongBatch,
		`[]`:                    jsonrpc2.ErrEmptyBatch,
		` [ ] `:                 jsonrpc2.ErrEmptyBatch,
		`[1`:                    syntax,
		`[{"a":1,"a":2}]`:       syntax,
	} {
		if !jsonrpc2.IsBatch([]byte(in)) {
			t.Errorf("%s is not taken as a batch", in)
		}
		got, err := jsonrpc2.Batch([]byte(in), rawjson.Limits{}, 3)
		switch want := want.(type) {
		case *rawjson.SyntaxError:
			if !errors.As(err, &want) {
				t.Errorf("%s: got %v", in, err)
			}
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", in, err, want)
			}
		case []string:
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: got %q, %v", in, got, err)
			}
			for i := range got {
				if string(got[i]) != want[i] {
					t.Errorf("%s: got %q, want %q", in, got[i], want[i])
				}
			}
		}
	}
	for _, in := range []string{"", " ", `{"a":[]}`, "x[", `"["`} {
		if jsonrpc2.IsBatch([]byte(in)) {
			t.Errorf("%s is taken as a batch", in)
		}
	}
}

func TestAppendErrorQuotesTheMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"", "a \"b\"\n", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a \"b\"\n"}}`},
		{`"x"`, "no", `{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"no"}}`},
		{"7", "", `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":""}}`},
	} {
		if got := string(jsonrpc2.AppendError(nil, tt[0], -32600, tt[1])); got != tt[2] {
			t.Errorf("got %s, want %s", got, tt[2])
		}
	}
}
