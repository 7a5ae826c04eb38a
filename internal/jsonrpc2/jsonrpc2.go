// Package jsonrpc2 splits batches and writes error responses of JSON-RPC 2.0, for clients and servers.
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

// IsBatch reports whether the first character of the text, after white space, is that of a JSON array.
func IsBatch(b []byte) bool {
	i := rawjson.SkipSpace(b, 0)
	return i < len(b) && b[i] == '['
}

// Batch returns the messages of a batch, as subslices of b. It returns an error if b is not strict JSON within the limits (see
// [rawjson.Check]), or if the batch has no message or more than most messages.
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

// AppendError appends an error response to dst. id is the JSON text of the request's id; "" means null.
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
