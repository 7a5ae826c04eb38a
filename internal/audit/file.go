package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A disk writes and syncs. Tests replace it to simulate failures.
type disk interface {
	write(f *os.File, b []byte) (int, error)
	sync(f *os.File) error
}

type realDisk struct{}

func (realDisk) write(f *os.File, b []byte) (int, error) { return f.Write(b) }
func (realDisk) sync(f *os.File) error                   { return f.Sync() }

var errClosed = errors.New("the log is closed")

// A file is the current file of the log. Other processes may append to it or rotate it between two writes. Each process locks the log
// during a write, and first checks how the file has changed.
type file struct {
	path string
	max  int64
	now  func() time.Time
	disk disk

	lock *lock
	f    *os.File // nil before the first call of catchUp
	size int64    // up to and including the last line
	head Head     // of the last line
	err  error    // error that every further write returns
}

func (x *file) open() error {
	var err error
	if x.lock, err = openLock(x.path + ".lock"); err != nil {
		return err
	}
	if err = x.locked(x.catchUp); err != nil {
		_ = x.close()
	}
	return err
}

func (x *file) close() error {
	if errors.Is(x.err, errClosed) {
		return nil
	}
	x.err = errClosed
	var err error
	if x.f != nil {
		err = x.f.Close()
	}
	return errors.Join(err, x.lock.close())
}

func (x *file) locked(do func() error) error {
	if err := x.lock.acquire(); err != nil {
		return err
	}
	defer x.lock.give()
	return do()
}

// append writes the lines. If it returns an error, none of them is part of the log.
func (x *file) append(lines []*Line) error {
	if x.err != nil {
		return x.err
	}
	return x.locked(func() error {
		if err := x.catchUp(); err != nil {
			return err
		}
		if x.size >= x.max {
			if err := x.rotate(); err != nil {
				return err
			}
		}
		return x.write(lines...)
	})
}

// write sets number, time and previous hash of the lines, and writes and syncs them in one write.
func (x *file) write(lines ...*Line) error {
	head, now := x.head, x.now().UTC()
	var buf []byte
	for _, l := range lines {
		l.N, l.Time, l.Prev = head.N+1, now, head.Hash
		if head.N == 0 {
			l.Prev = none
		}
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		head = head.follows(text)
		buf = append(append(buf, text...), '\n')
	}
	n, err := x.disk.write(x.f, buf)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	if err != nil { // not stored in x.err: the disk may have space again later
		if terr := x.f.Truncate(x.size); terr != nil {
			x.err = fmt.Errorf("what was half written could not be removed: %w", terr)
		}
		return err
	}
	if err := x.disk.sync(x.f); err != nil {
		x.err = fmt.Errorf("the disk did not keep what was written, and the log has to be opened again: %w", err)
		return x.err
	}
	x.size, x.head = x.size+int64(len(buf)), head
	return nil
}

// catchUp checks how the file has changed since this process last wrote to it: it creates a missing file, reopens a rotated one, and returns
// an error for one that was cut.
func (x *file) catchUp() error {
	info, err := os.Stat(x.path)
	if errors.Is(err, fs.ErrNotExist) { // a new log, or a process ended during the rotation
		return x.create()
	}
	if err != nil {
		return err
	}
	if x.f == nil {
		return x.reopen()
	}
	own, err := x.f.Stat()
	if err != nil {
		return err
	}
	switch size := info.Size(); {
	case !os.SameFile(own, info): // the file was rotated
		return x.reopen()
	case size < x.size:
		return errors.New("the file was cut off while it was open; `lathe audit verify` says where it ends")
	case size > x.size: // another process has appended lines
		return x.reopen()
	case size == 0: // the first line of the file could not be written
		return x.writeFirst()
	}
	return nil
}

// reopen opens the file and reads its last line. It removes incomplete bytes at the end and records their removal.
func (x *file) reopen() error {
	f, err := os.OpenFile(x.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	line, size, torn, err := lastLine(f)
	if err == nil && torn != nil {
		err = f.Truncate(size)
	}
	var head Head
	if err == nil {
		head, err = x.headAfter(line)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	x.replace(f, size, head)
	if line == nil {
		if err := x.writeFirst(); err != nil {
			return err
		}
	}
	if torn == nil {
		return nil
	}
	return x.write(&Line{Kind: Recovered, Torn: torn})
}

// headAfter returns the head of line, the last line of the file, or that of the last rotated file if line is nil: the file was created and is
// still empty.
func (x *file) headAfter(line []byte) (head Head, err error) {
	if line == nil {
		head, err = x.rotatedHead()
	} else {
		head, err = headOf(line)
	}
	if err == nil && head.N < x.head.N {
		err = fmt.Errorf("the file ends at line %d, and line %d was written: it was replaced or cut off", head.N, x.head.N)
	}
	return head, err
}

// replace makes f the current file.
func (x *file) replace(f *os.File, size int64, head Head) {
	if x.f != nil {
		_ = x.f.Close() // all that was written to it has been synced
	}
	x.f, x.size, x.head = f, size, head
}

// create creates the file and writes its first line.
func (x *file) create() error {
	head, err := x.rotatedHead()
	if err != nil {
		return err
	}
	if x.head.N > head.N { // the last file was removed: the gap in the numbers shows that lines are missing
		head = x.head
	}
	f, err := os.OpenFile(x.path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	x.replace(f, 0, head)
	if err := syncFolder(filepath.Dir(x.path)); err != nil {
		return err
	}
	return x.writeFirst()
}

// writeFirst writes the first line of the file: Begin in a new log, else Rotated.
func (x *file) writeFirst() error {
	kind := Rotated
	if x.head.N == 0 {
		kind = Begin
	}
	return x.write(&Line{Kind: kind})
}

// rotate renames the file to the next number, such as path.000001, and creates a new one.
func (x *file) rotate() error {
	old, err := rotated(x.path)
	if err != nil {
		return err
	}
	last := 0
	if len(old) > 0 {
		last = rotation(x.path, old[len(old)-1])
	}
	if err := os.Rename(x.path, fmt.Sprintf("%s.%06d", x.path, last+1)); err != nil {
		return err
	}
	return x.create()
}

// rotatedHead returns the head of the last rotated file, or the zero head if no file was rotated.
func (x *file) rotatedHead() (Head, error) {
	old, err := rotated(x.path)
	if err != nil || len(old) == 0 {
		return Head{}, err
	}
	f, err := os.Open(old[len(old)-1])
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	line, _, torn, err := lastLine(f)
	if err == nil && (line == nil || torn != nil) {
		err = fmt.Errorf("%s does not end with a whole line", f.Name())
	}
	if err != nil {
		return Head{}, err
	}
	return headOf(line)
}

// rotated returns the rotated files of the log at path, the oldest first.
func rotated(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	var found []string
	for _, e := range entries {
		if rotation(base, e.Name()) > 0 {
			found = append(found, path+strings.TrimPrefix(e.Name(), base))
		}
	}
	slices.SortFunc(found, func(a, b string) int { return rotation(path, a) - rotation(path, b) })
	return found, nil
}

// rotation returns the number of a rotated file of the log at path, such as 1 for path.000001, or 0 if name is no such file.
func rotation(path, name string) int {
	digits, ok := strings.CutPrefix(name, path+".")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || len(digits) < 6 {
		return 0
	}
	return max(n, 0)
}

// lastLine returns the last complete line of f without its line end, and the size of f up to and including that line. torn describes the
// bytes after it; nil: none. line is nil if f has no complete line. It reads a growing part of the end of f until the part contains the line.
func lastLine(f *os.File) (line []byte, size int64, torn *Torn, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, nil, err
	}
	end := info.Size()
	for n := int64(64 << 10); ; n *= 4 {
		if n > 4*MaxLine {
			return nil, 0, nil, fmt.Errorf("its last line is longer than %d bytes", int64(MaxLine))
		}
		start := max(end-n, 0)
		b := make([]byte, end-start)
		if _, err := f.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, nil, err
		}
		// The line is between the last two line ends; an index is -1 if that line end is missing.
		last := bytes.LastIndexByte(b, '\n')
		previous := bytes.LastIndexByte(b[:max(last, 0)], '\n')
		if start > 0 && (last < 0 || previous < 0) {
			continue
		}
		if rest := b[last+1:]; len(rest) > 0 {
			torn = &Torn{Bytes: int64(len(rest)), Hash: sumOf(rest)}
		}
		if last >= 0 {
			line = b[previous+1 : last]
		}
		return line, start + int64(last) + 1, torn, nil
	}
}

func headOf(line []byte) (Head, error) {
	var l Line
	if err := json.Unmarshal(line, &l); err != nil || l.N < 1 || len(l.Prev) != len(none) {
		return Head{}, errors.New("its last line is damaged: `lathe audit verify` says more; move the file away to begin another")
	}
	return Head{N: l.N, Hash: sumOf(line)}, nil
}

// syncFolder syncs a directory, so that the names of new and renamed files survive a crash.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // where directories cannot be synced, names are stored together with their files
	}
	return errors.Join(err, d.Close())
}
