package middleware

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// The errors of [ReadBody].
var (
	ErrTooLarge   = errors.New("the request body is too large")
	ErrTimeout    = errors.New("the request body did not arrive in time")
	ErrEncoding   = errors.New("the encoding of the request body is not supported")
	ErrUnreadable = errors.New("the request body could not be read")
)

// A BodyLimit is the limits of one request body.
type BodyLimit struct {
	MaxBytes int64 // after decompression
	// Plain is set if a compressed body is refused with [ErrEncoding].
	Plain bool
	// Reserve, if set, is called before memory is allocated, with the total number of bytes that the body and its decoder then occupy. The
	// bytes of a Content-Length are reserved at the start. If Reserve returns an error, reading ends with that error.
	Reserve func(bytes int64) error
}

// A refusedError is an error that BodyLimit.Reserve returned.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// reserve calls Reserve, if set, with the total number of bytes.
func (l *BodyLimit) reserve(bytes int64) error {
	if l.Reserve == nil {
		return nil
	}
	if err := l.Reserve(bytes); err != nil {
		return refusedError{err}
	}
	return nil
}

// maxWindow bounds the window of a compressed body in bytes, which is the memory that the decoder occupies.
const maxWindow = 8 << 20

// LimitBodyTime sets the deadline for the body of the request to be received, whether a handler reads it or not.
func LimitBodyTime(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // the writer of a test has no deadlines
	}
}

// ReadBody reads the body of a request and decompresses it. The limit applies to the decompressed size, so that a small body cannot become
// a large one. The error is one of those of this package or wraps one of limit.Reserve. ReadBody removes the deadline of [LimitBodyTime].
// After an error it keeps the deadline and closes the connection after the response, so that the server does not wait for the rest of the
// body.
func ReadBody(w http.ResponseWriter, r *http.Request, limit BodyLimit) ([]byte, error) {
	body, err := inflate(w, r, limit)
	if err != nil {
		w.Header().Set("Connection", "close")
		return nil, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the writer of a test has no deadlines
	return body, nil
}

func inflate(w http.ResponseWriter, r *http.Request, limit BodyLimit) ([]byte, error) {
	var src io.Reader = http.MaxBytesReader(w, r.Body, limit.MaxBytes)
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); {
	case encoding == "" || encoding == "identity": // src is the body
	case limit.Plain:
		return nil, ErrEncoding
	case encoding == "gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, readError(err)
		}
		src = z
	case encoding == "zstd":
		window, whole := windowOf(src)
		if reserve := limit.Reserve; reserve != nil { // the memory of the decoder counts, too
			limit.Reserve = func(bytes int64) error { return reserve(window + bytes) }
		}
		if err := limit.reserve(0); err != nil {
			return nil, err
		}
		z, err := zstd.NewReader(whole, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, readError(err)
		}
		defer z.Close()
		src = z
	default:
		return nil, ErrEncoding
	}
	body, err := ReadAll(src, r.ContentLength, limit)
	switch {
	case err != nil:
		return nil, readError(err)
	case int64(len(body)) > limit.MaxBytes:
		return nil, ErrTooLarge
	}
	return body, nil
}

// maxAhead bounds the bytes that are allocated for a body before any of it has been received.
const maxAhead = 64 << 10

// maxGrowth bounds the bytes allocated for a body of declared length, as a multiple of the bytes received.
const maxGrowth = 8

// windowOf returns the bytes of memory that the decoder needs for the first frame of a compressed body, and a reader of the whole body.
func windowOf(src io.Reader) (bytes int64, whole io.Reader) {
	buffered := bufio.NewReader(src)
	head, _ := buffered.Peek(zstd.HeaderMaxSize)
	var h zstd.Header
	if h.Decode(head) != nil {
		return 0, buffered
	}
	return int64(min(h.WindowSize, maxWindow)), buffered
}

// ReadAll reads src up to one byte more than limit.MaxBytes, by which the caller detects a longer body. declared is the Content-Length of
// the request, or -1. It allocates at most maxAhead bytes or maxGrowth times the bytes received, and in the end no more than a declared
// length requires.
func ReadAll(src io.Reader, declared int64, limit BodyLimit) ([]byte, error) {
	most := limit.MaxBytes
	if err := limit.reserve(min(max(declared, 0), most)); err != nil {
		return nil, err
	}
	ahead := min(max(declared, 511), most, maxAhead)
	b := make([]byte, 0, ahead+1) // one more byte is needed to detect the end
	for {
		if len(b) == cap(b) {
			size := int64(len(b))
			room := min(maxGrowth*size, declared+1, most+1) // the declared length is reserved
			if size > declared {                            // more is reserved step by step, also without a declared length
				room = min(3*size, most+1)
				if err := limit.reserve(room); err != nil {
					return nil, err
				}
			}
			b = append(make([]byte, 0, room), b...)
		}
		n, err := src.Read(b[len(b):min(int64(cap(b)), most+1)])
		b = b[:len(b)+n]
		if err != nil || int64(len(b)) > most {
			return fitted(b), ignoreEOF(err)
		}
	}
}

// fitted returns b, or a copy of it without spare capacity if b is long and more than half of its capacity is unused.
func fitted(b []byte) []byte {
	if len(b) > maxAhead && cap(b) > 2*len(b) {
		return append(make([]byte, 0, len(b)), b...)
	}
	return b
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func readError(err error) error {
	var large *http.MaxBytesError
	var late interface{ Timeout() bool }
	var refused refusedError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &large):
		return ErrTooLarge
	case errors.As(err, &late) && late.Timeout():
		return ErrTimeout
	}
	return ErrUnreadable
}
