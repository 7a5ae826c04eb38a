package gateway

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what a compressed body makes the server hold while it is read, in bytes.
const maxWindow = 8 << 20

// readBody reads the body of a request, decompressed. Its size is bounded after that, so that a small
// body cannot become a large one, and the time it takes is, too.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	most := int64(g.opts.Limits.MaxBody)
	body, p := inflate(w, r, most)
	if p != nil {
		w.Header().Set("Connection", "close") // what is left of the body is not waited for
		return nil, p
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // see limitBody
	return body, nil
}

// limitBody bounds the time in which the body of a request must have come, whether it is read or not.
func (g *Gateway) limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.opts.Limits.BodyTimeout)) // a test's writer has none
	}
}

func inflate(w http.ResponseWriter, r *http.Request, most int64) ([]byte, *problem) {
	var src io.Reader = http.MaxBytesReader(w, r.Body, most)
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, unreadable(err, most)
		}
		src = z
	case "zstd":
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, unreadable(err, most)
		}
		defer z.Close()
		src = z
	default:
		return nil, &problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding", Message: "The body may be plain, gzip or zstd."}
	}
	body, err := readAll(src, most, r.ContentLength)
	switch {
	case err != nil:
		return nil, unreadable(err, most)
	case int64(len(body)) > most:
		return nil, tooLarge(most)
	}
	return body, nil
}

// maxAhead bounds the memory that is made for a body before any of it has come.
const maxAhead = 64 << 10

// readAll reads src, and one byte more than most of it at most. said is the length that the request names.
func readAll(src io.Reader, most, said int64) ([]byte, error) {
	b := make([]byte, 0, min(max(said, 511), most, maxAhead)+1) // the byte more finds the end
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := src.Read(b[len(b):min(int64(cap(b)), most+1)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil, int64(len(b)) > most:
			return b, err
		}
	}
}

func tooLarge(most int64) *problem {
	return &problem{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Message: fmt.Sprintf("The request body is larger than %d bytes.", most)}
}

func unreadable(err error, most int64) *problem {
	var large *http.MaxBytesError
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &large):
		return tooLarge(most)
	case errors.As(err, &late) && late.Timeout():
		return &problem{Status: http.StatusRequestTimeout, Code: "request_timeout", Message: "The request body did not come in time.", NoRetry: true}
	}
	return &problem{Status: http.StatusBadRequest, Code: "invalid_body", Message: "The request body could not be read."}
}
