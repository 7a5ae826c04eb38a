package egress

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// Limits of compressed bodies: past ratioFloor decoded bytes, at most maxRatio decoded bytes are allowed for each received byte.
const (
	ratioFloor = 1 << 20
	maxRatio   = 256
	// gzipOverhead is the number of bytes, besides an eighth of the limit, by which a compressed body may exceed the limit.
	gzipOverhead = 64 << 10
)

// bound replaces the body of a response by one that is decoded and limited. It returns an error for an encoding other than gzip, and for a
// Content-Length beyond the limit.
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
		// Without this limit, a server could send empty gzip members for as long as the connection lasts.
		if limit >= 0 {
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

// A counter counts the received bytes of a body. Read returns errWire once there are more than most.
type counter struct {
	r    io.Reader
	n    int64 // number of bytes that were read from r
	most int64 // negative: no limit
	err  error // errWire, or nil: the gzip decoder may return another error in its place
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
	wire      *counter  // the body as it is received
	from      io.Reader // wire or, for gzip, the decoder that the first Read makes
	gzip      bool
	closer    io.Closer
	got       int64 // number of decoded bytes
	left      int64 // number of decoded bytes until the limit
	unbounded bool  // there is no limit, and left has no meaning
	err       error // what every further Read returns
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.from == nil {
		if err := b.startGzip(); err != nil {
			return 0, b.fail(err)
		}
	}
	if !b.unbounded && int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more than allowed shows that the body is too large
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

// startGzip makes the decoder. gzip.NewReader reads the header of the stream: in bound it would delay the headers of the response.
func (b *body) startGzip() error {
	zr, err := gzip.NewReader(b.wire)
	if errors.Is(err, io.EOF) { // an empty body, as of HEAD or status 204
		return io.EOF
	}
	if err != nil {
		return Plain(err)
	}
	b.from = zr
	return nil
}

func (b *body) fail(err error) error {
	b.err, b.left = err, 0
	return err
}

// Close closes the body of the response, so that its connection is reused or closed.
func (b *body) Close() error { return b.closer.Close() }
