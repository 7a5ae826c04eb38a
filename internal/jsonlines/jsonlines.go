// Package jsonlines reads a stream of lines whose length is bounded.
package jsonlines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Errors of [Reader.Next].
var (
	ErrTooLong = errors.New("jsonlines: the line is too long")
	// ErrNoLineEnd is returned together with the text after the last line end.
	ErrNoLineEnd = errors.New("jsonlines: the input ends within a line")
)

// A Reader reads lines. It buffers at most one line in memory.
type Reader struct {
	in   *bufio.Reader
	max  int
	skip bool // the rest of the last line, which was too long, is to be skipped
}

// NewReader returns a reader of lines that are at most limit bytes long, without their line end.
func NewReader(in io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), max: limit}
}

// Buffered returns the number of bytes that can be read without blocking.
func (r *Reader) Buffered() int { return r.in.Buffered() }

// Next returns the next line without its line end (
// or \r
// ). The caller owns the line.
//
// For a line over the limit it returns [ErrTooLong] as soon as the limit is exceeded, without waiting for the end of the line; the next
// call skips the rest of that line. If the input ends within a line, Next returns the incomplete line with [ErrNoLineEnd]. At the end of
// the input, and for an error of the input, it returns no line.
func (r *Reader) Next() ([]byte, error) {
	var line []byte
	for {
		if _, err := r.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				return line, ErrNoLineEnd
			}
			return nil, err
		}
		part, _ := r.in.Peek(r.in.Buffered()) // the bytes that are available without blocking
		end := bytes.IndexByte(part, '\n')
		ended := end >= 0
		if ended {
			part = part[:end+1]
		}
		if !r.skip {
			line = append(line, part...)
		}
		_, _ = r.in.Discard(len(part))
		if r.skip {
			r.skip = !ended
			continue
		}
		if len(trimEnd(line, ended)) > r.max {
			r.skip = !ended
			return nil, ErrTooLong
		}
		if ended {
			return trimEnd(line, true), nil
		}
	}
}

// trimEnd returns the line without its line end. ended is false if the
// has not been read yet: a last \r is then cut too, because it may belong to the line end.
func trimEnd(line []byte, ended bool) []byte {
	if ended {
		line = line[:len(line)-1]
	}
	return bytes.TrimSuffix(line, []byte{'\r'})
}
