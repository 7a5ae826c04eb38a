package provider

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

var (
	errTooLarge = errors.New("the response is larger than MaxResponseBytes")
	// errWholeTooLarge is returned by readAll.
	errWholeTooLarge = errors.New("the response, which is not a stream, is larger than MaxEventBytes")
	errEncoding      = errors.New("the response has a content encoding that cannot be unpacked")
)

// maxAhead is the number of bytes at the beginning of a response that can be peeked.
const maxAhead = 256

// A responseBody reads the body of a response. Its first maxAhead bytes can be peeked.
type responseBody struct {
	*bufio.Reader
	from *boundedBody
}

func newResponseBody(resp *http.Response, w *watch, limit int64) *responseBody {
	from := &boundedBody{src: resp.Body, watch: w, left: limit}
	enc := resp.Header["Content-Encoding"]
	switch {
	case len(enc) == 0 || resp.Uncompressed || strings.EqualFold(enc[0], "identity"):
	case strings.EqualFold(enc[0], "gzip"):
		from.src = &gunzip{src: resp.Body}
	default:
		from.err = errEncoding
	}
	return &responseBody{bufio.NewReaderSize(from, maxAhead), from}
}

// first returns the first byte that is not white space, without consuming it. A byte order mark counts as space. The error is io.EOF if
// there is no such byte.
func (b *responseBody) first() (byte, error) {
	for n := 1; n <= maxAhead; n++ {
		ahead, err := b.Peek(n)
		if err != nil {
			return 0, err
		}
		switch c := ahead[n-1]; c {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
		default:
			return c, nil
		}
	}
	return ' ', nil // so much white space is the padding of a stream
}

// readAll returns the rest of the body, at most limit bytes.
func (b *responseBody) readAll(limit int) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(b, int64(limit)+1))
	if len(all) > limit {
		return all[:limit], errWholeTooLarge
	}
	return all, err
}

// A boundedBody reads the decompressed body of a response up to a limit. While a read blocks, the watch counts the time.
type boundedBody struct {
	src   io.Reader
	watch *watch
	left  int64 // number of bytes that may still be read
	err   error // the error of src, after which Read returns nothing else
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.watch.readBegins()
	n, err := b.src.Read(p)
	b.watch.readEnds()
	if int64(n) > b.left {
		n, err = int(b.left), errTooLarge
	}
	b.left -= int64(n)
	b.err = err
	return n, err
}

// A gunzip decompresses src. It reads nothing before its first Read.
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

// unpacking returns errEncoding if the bytes are not gzip, and other errors, such as those of the connection, unchanged.
func unpacking(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return errEncoding
	}
	return err
}
