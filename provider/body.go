package provider

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

var (
	errTooLarge = errors.New("the response is larger than MaxResponseBytes")
	// errWholeTooLarge is the error of appendAll.
	errWholeTooLarge = errors.New("the response, which is not a stream, is larger than MaxEventBytes")
	errEncoding      = errors.New("the response has a content encoding that cannot be unpacked")
)

// A responseBody reads a response: unpacked, bounded, under the eye of a watch, and with a look at
// its first bytes before anybody reads them.
type responseBody struct {
	src   io.Reader
	watch *watch
	left  int64 // bytes that may still come
	err   error // of src, once it has failed or ended
	ahead [256]byte
	pos   int // ahead[pos:end] was looked at and not read
	end   int
}

// reset makes b read resp.
func (b *responseBody) reset(resp *http.Response, w *watch, limit int64) {
	b.src, b.watch, b.left, b.err, b.pos, b.end = resp.Body, w, limit, nil, 0, 0
	enc := resp.Header["Content-Encoding"]
	switch {
	case len(enc) == 0 || resp.Uncompressed || strings.EqualFold(enc[0], "identity"):
	case strings.EqualFold(enc[0], "gzip"):
		b.src = &gunzip{src: resp.Body}
	default:
		b.err = errEncoding
	}
}

// peek returns the first byte that is not white space, without taking it away. A byte order mark
// counts as space. The error is io.EOF if there are no more bytes.
func (b *responseBody) peek() (byte, error) {
	for {
		for _, c := range b.ahead[b.pos:b.end] {
			switch c {
			case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			default:
				return c, nil
			}
		}
		if b.end == len(b.ahead) {
			return ' ', nil // long silence at the start is the comment padding of a stream
		}
		if b.err != nil {
			return 0, b.err
		}
		b.end += b.fetch(b.ahead[b.end:])
	}
}

func (b *responseBody) Read(p []byte) (int, error) {
	if b.pos < b.end {
		n := copy(p, b.ahead[b.pos:b.end])
		b.pos += n
		return n, nil
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n := b.fetch(p)
	if n > 0 {
		return n, nil // the error, if any, comes with the next call
	}
	return 0, b.err
}

// fetch reads from the source and keeps its error.
func (b *responseBody) fetch(p []byte) int {
	b.watch.silence(true)
	n, err := b.src.Read(p)
	b.watch.silence(false)
	b.err = err
	if int64(n) > b.left {
		n, b.err = int(b.left), errTooLarge
	}
	b.left -= int64(n)
	return n
}

// appendAll appends the rest of the body to dst, at most limit bytes.
func (b *responseBody) appendAll(dst []byte, limit int) ([]byte, error) {
	for start := len(dst); ; {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := b.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst)-start > limit {
			return dst[:start+limit], errWholeTooLarge
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return dst, nil
			}
			return dst, err
		}
	}
}

// A gunzip unpacks src; it reads nothing before its first Read.
type gunzip struct {
	src io.Reader
	zr  *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.zr == nil {
		zr, err := gzip.NewReader(g.src)
		if err != nil {
			return 0, unpacking(err)
		}
		g.zr = zr
	}
	n, err := g.zr.Read(p)
	return n, unpacking(err)
}

// unpacking tells bytes that are not gzip from a connection that failed.
func unpacking(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return errEncoding
	}
	return err
}
