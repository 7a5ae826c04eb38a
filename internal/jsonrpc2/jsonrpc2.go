// Package jsonrpc2 has what both sides of a JSON-RPC 2.0 connection need before a message is decoded: batches, and
// error responses.
package jsonrpc2

import (
	"errors"
	"strconv"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Errors of [Batch].
var (
	ErrEmptyBatch = errors.New("the batch is empty")
	ErrLongBatch  = errors.New("the batch has too many messages")
)

// IsBatch reports whether the text begins like a JSON array.
func IsBatch(b []byte) bool {
	i := rawjson.SkipSpace(b, 0)
	return i < len(b) && b[i] == '['
}

// Batch returns the messages of a batch, which are parts of b. It returns an error if b is not strict JSON within the
// limits, as [rawjson.Check] does, or if the batch has no message or more than most.
func Batch(b []byte, lim rawjson.Limits, most int) ([][]byte, error) {
	if err := rawjson.Check(b, lim); err != nil {
		return nil, err
	}
	var out [][]byte
	for m := range rawjson.Elements(b[rawjson.SkipSpace(b, 0):]) {
		if len(out) == most {
			return nil, ErrLongBatch
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, ErrEmptyBatch
	}
	return out, nil
}

// AppendError appends an error response to the request with that id, which is JSON text; "" stands for null.
func AppendError(dst []byte, id string, code int, message string) []byte {
	if id == "" {
		id = "null"
	}
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = rawjson.AppendQuote(dst, message)
	return append(dst, "}}"...)
}
