package egress

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// Limits of compressed bodies: past ratioFloor decoded bytes, each byte on the wire may stand for
// at most maxRatio bytes.
const (
	ratioFloor = 1 << 20
	maxRatio   = 256
	// gzipOverhead is how much longer than its content a compressed body may be, besides an eighth.
	gzipOverhead = 64 << 10
)

// bound puts the decoder and the limit between the wire and the reader of the response.
func bound(resp *http.Response, limit int64) *Error {
	wire := &counter{r: resp.Body, most: -1}
	b := &body{from: wire, wire: wire, closer: resp.Body, left: limit, unbounded: limit < 0}
	switch strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ",")) {
	case "", "identity":
		if !b.unbounded && resp.ContentLength > limit && resp.Request.Method != http.MethodHead {
			return &Error{Code: CodeBodyTooLarge}
		}
	case "gzip", "x-gzip":
		b.from, b.gzip = nil, true
		if limit >= 0 { // else empty parts could follow each other for as long as the connection lasts
			wire.most = limit + limit/8 + gzipOverhead
		}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	default:
		return &Error{Code: CodeEncodingRefused}
	}
	resp.Body = b
	return nil
}

// counter counts the bytes of a body as received, and fails beyond most.
type counter struct {
	r    io.Reader
	n    int64
	most int64 // negative: no limit
	err  error
}

var errWire = errors.New("more than the limit on the wire")

func (c *counter) Read(p []byte) (int, error) {
	if c.most >= 0 && c.n > c.most {
		c.err = errWire
		return 0, errWire
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// body is the body of a response, decoded and within its limit. Its errors are io.EOF or *Error.
type body struct {
	from      io.Reader // nil: the decoder is not made yet
	wire      *counter
	closer    io.Closer
	gzip      bool
	left      int64
	unbounded bool
	got       int64
	err       error
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.from == nil { // not earlier: making it reads, which would hold up the headers
		zr, err := gzip.NewReader(b.wire)
		if errors.Is(err, io.EOF) { // an empty body, of HEAD or 204
			return 0, b.fail(io.EOF)
		}
		if err != nil {
			return 0, b.fail(Plain(err))
		}
		b.from = zr
	}
	if !b.unbounded && int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.from.Read(p)
	b.got += int64(n)
	switch {
	case b.gzip && b.got > ratioFloor && b.got > maxRatio*b.wire.n:
		return 0, b.fail(&Error{Code: CodeCompressionRatio})
	case b.gzip && errors.Is(b.wire.err, errWire):
		return 0, b.fail(&Error{Code: CodeBodyTooLarge})
	case !b.unbounded && int64(n) > b.left:
		n = int(b.left)
		return n, b.fail(&Error{Code: CodeBodyTooLarge})
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = Plain(err)
	}
	if err != nil {
		b.err = err
	}
	return n, err
}

func (b *body) fail(err error) error {
	b.err, b.left = err, 0
	return err
}

// Close gives the connection up or back.
func (b *body) Close() error { return b.closer.Close() }
