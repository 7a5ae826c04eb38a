package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
)

// A Break is the error of an altered log: the line at which it was detected, and how.
type Break struct {
	File string
	Line int // line number in File, from 1
	Why  string
}

// Error returns "file:line: why".
func (b *Break) Error() string { return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Why) }

// An Entry is a line of a log that was read: its decoded form and its bytes.
type Entry struct {
	Line
	Raw  []byte // without the line end
	File string
	At   int // line number in File, from 1
}

// Lines yields the lines of the log at path, those of rotated files first, and checks each against the hash of the previous line. At the
// first altered line it yields a *[Break] and ends. An incomplete last line, which a process is writing or left in a crash, is not an
// error. Processes may append at the same time.
func Lines(path string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if _, err := scan(path, func(e *Entry) bool { return yield(*e, nil) }); err != nil {
			yield(Entry{}, err)
		}
	}
}

// A Report is the result of [Verify].
type Report struct {
	Files       int
	Lines       int64
	First, Last Head
	// Torn is the number of bytes of an incomplete last line, which a process is writing or left in a crash.
	Torn int64
}

// Verify checks each line of a log against the previous line, and the log against heads that were stored elsewhere. The error is a *[Break]
// if a line was changed, removed, added or moved, or if the end was cut off. If the first files of a log no longer exist, Verify begins
// with the oldest file that does. A file that is empty, or does not begin with a line of kind Begin or Rotated, is a Break.
func Verify(path string, noted ...Head) (*Report, error) {
	r := &Report{}
	hashes := map[int64]string{} // the hashes in the log of the lines that were noted, by number; "": the log does not have the line
	for _, h := range noted {
		hashes[h.N] = ""
	}
	note := func(h Head) {
		if _, ok := hashes[h.N]; ok {
			hashes[h.N] = h.Hash
		}
	}
	var last Entry
	torn, err := scan(path, func(e *Entry) bool {
		r.Last = Head{e.N, sumOf(e.Raw)}
		if r.Lines == 0 {
			r.First = r.Last
			note(Head{e.N - 1, e.Prev}) // the line before it is in a file that may be elsewhere
		}
		note(r.Last)
		if e.File != last.File {
			r.Files++
		}
		r.Lines++
		last = *e
		return true
	})
	r.Torn = torn
	if err != nil {
		return r, err
	}
	for _, h := range noted {
		if hashes[h.N] != h.Hash {
			return r, r.missing(h, &last)
		}
	}
	return r, nil
}

// missing returns the error of a log that does not have the noted line h; last is its last line.
func (r *Report) missing(h Head, last *Entry) error {
	switch {
	case h.N > r.Last.N:
		return &Break{last.File, last.At, fmt.Sprintf("the log ends at line %d, and line %d was noted: its end was cut off", r.Last.N, h.N)}
	case h.N < r.First.N-1:
		return fmt.Errorf("line %d was noted, and the log begins at line %d: bring back the files before it", h.N, r.First.N)
	}
	return &Break{last.File, last.At, fmt.Sprintf("line %d is not the one that was noted: the log was written anew", h.N)}
}

// scan calls fn with each verified line until fn returns false. torn is the number of bytes of an incomplete last line.
func scan(path string, fn func(*Entry) bool) (torn int64, err error) {
	files, err := openAll(path)
	defer func() {
		for _, f := range files {
			_ = f.Close() // the file was only read
		}
	}()
	if err != nil {
		return 0, err
	}
	c := &chain{fn: fn}
	for i, f := range files {
		c.file, c.at = f.Name(), 0
		rest, err := readLines(f, c.line)
		switch {
		case err != nil:
			return 0, err
		case c.broken != nil || c.over:
			return 0, c.end()
		case c.at == 0 && rest == 0:
			return 0, &Break{c.file, 1, "the file is empty: its lines were removed, or a process ended before it wrote the first"}
		case rest > 0 && i < len(files)-1:
			return 0, &Break{c.file, c.at + 1, "the file does not end with a whole line"}
		default:
			torn = rest
		}
	}
	return torn, c.end()
}

// openAll opens the files of a log, the oldest first.
func openAll(path string) (files []*os.File, err error) {
	current, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	missing := err
	old, err := rotated(path) // listed after the current file was opened, so that no file is missed
	for _, name := range old {
		f, oerr := os.Open(name)
		if oerr != nil {
			err = oerr
			break
		}
		if current != nil && same(current, f) { // the current file was rotated in the meantime
			_ = f.Close()
			continue
		}
		files = append(files, f)
	}
	if current != nil {
		files = append(files, current)
	}
	if err == nil && len(files) == 0 {
		err = missing
	}
	return files, err
}

func same(a, b *os.File) bool {
	ai, aerr := a.Stat()
	bi, berr := b.Stat()
	return aerr == nil && berr == nil && os.SameFile(ai, bi)
}

// readLines calls fn with each complete line of f until fn returns false. rest is the number of bytes after the last complete line.
func readLines(f *os.File, fn func([]byte) bool) (rest int64, err error) {
	r := bufio.NewReaderSize(f, 64<<10)
	var long []byte
	for {
		b, err := r.ReadSlice('\n')
		if len(long)+len(b) > 2*MaxLine {
			return 0, fmt.Errorf("%s: a line is longer than %d bytes", f.Name(), 2*MaxLine)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, b...)
			continue
		case errors.Is(err, io.EOF):
			return int64(len(long) + len(b)), nil
		case err != nil:
			return 0, err
		}
		if len(long) > 0 {
			long = append(long, b...)
			b = long
		}
		if !fn(b[:len(b)-1]) {
			return 0, nil
		}
		long = long[:0]
	}
}

// A chain checks each line against the previous one. It passes a line to fn after the next line, or the end, has confirmed its hash. The
// chain ends with over or broken.
type chain struct {
	fn   func(*Entry) bool
	file string // name of the current file
	at   int    // line number in it
	over bool   // fn returned false

	last    Head   // of the last line that was read
	pending *Entry // the last line, which was not passed to fn; nil: no line was read
	// doubt is the first of two lines of which the second does not contain the hash of the first. The third line decides which of the two
	// was changed, and then breaks the chain.
	doubt  *Break
	broken *Break
}

// line checks the next line. It returns false if the chain has ended.
func (c *chain) line(raw []byte) bool {
	c.at++
	var l Line
	err := json.Unmarshal(raw, &l)
	if c.doubt != nil {
		if err == nil && l.Prev == c.last.Hash { // the second line is unchanged
			c.doubt.Why = "the line was changed"
		}
		c.broken = c.doubt
		return false
	}
	why := "this is no line of a log"
	if err == nil && l.N >= 1 && len(l.Prev) == len(none) {
		why = c.fault(&l)
	}
	if why != "" {
		c.broken = &Break{c.file, c.at, why}
		return false
	}
	before, previous := c.pending, c.last
	c.last = Head{l.N, sumOf(raw)}
	if before != nil && l.Prev != previous.Hash {
		c.doubt = &Break{before.File, before.At, "the line, or the one after it, was changed"}
		return true
	}
	c.pending = &Entry{Line: l, Raw: bytes.Clone(raw), File: c.file, At: c.at}
	c.over = before != nil && !c.fn(before)
	return !c.over
}

// fault returns why the number of a line does not follow those before it; "": it does. The first line that is read may have any number, if
// it is the first of a file, since files before it may be elsewhere.
func (c *chain) fault(l *Line) string {
	next := c.last.N + 1
	switch isFirst := c.pending == nil; {
	case isFirst && l.N == 1 && (l.Prev != none || l.Kind != Begin):
		return "a log does not begin so"
	case isFirst && l.N > 1 && l.Kind != Rotated:
		return fmt.Sprintf("the file begins with line %d, which does not begin a file: the lines before it were removed", l.N)
	case !isFirst && l.N > next:
		return fmt.Sprintf("line %d is missing here: it was removed or moved", next)
	case !isFirst && l.N < next:
		return fmt.Sprintf("line %d stands where line %d is expected: it was moved or added", l.N, next)
	}
	return ""
}

// end passes the last line to fn and returns the break, if any.
func (c *chain) end() error {
	if c.over {
		return nil
	}
	if c.broken == nil {
		c.broken = c.doubt
	}
	if c.broken != nil { // a nil *Break would be an error that is not nil
		return c.broken
	}
	if c.pending != nil {
		c.fn(c.pending)
	}
	return nil
}
