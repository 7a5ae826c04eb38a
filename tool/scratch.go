package tool

import (
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// scratch is the memory that one goroutine uses again from call to call. Its runner keeps it between runs.
type scratch struct {
	detail []byte // of the call
	timer  *time.Timer
	back   chan struct{}
	buf    []byte
	proj   projector
	text   strings.Builder // memory that short strings share
	args   []byte          // memory that short arguments share
	used   []lathe.ToolUse // memory that short lists of used tools share
}

// maxKept is the largest memory of a scratch that waits for the next run.
const maxKept = 64 << 10

func (r *Runner) getScratch() *scratch {
	if l, ok := r.scratch.Get().(*scratch); ok {
		return l
	}
	return &scratch{}
}

func (r *Runner) putScratch(l *scratch) {
	if cap(l.detail)+cap(l.buf)+cap(l.proj.buf) > maxKept {
		l.detail, l.buf, l.proj.buf = nil, nil, nil
	}
	clear(l.proj.places[:cap(l.proj.places)])
	r.scratch.Put(l)
}

const (
	textBlock    = 1 << 10 // the memory that short strings share, and that short arguments do
	maxShort     = 128     // the longest of them
	usedBlock    = 32      // the entries of the memory that short lists of used tools share
	maxShortUsed = 8       // the longest of them
)

// keep returns b as a string, which shares its memory with others when it is short.
func (l *scratch) keep(b []byte) string {
	if len(b) > maxShort {
		return string(b)
	}
	if l.text.Cap()-l.text.Len() < len(b) {
		l.text = strings.Builder{}
		l.text.Grow(textBlock)
	}
	start := l.text.Len()
	l.text.Write(b)
	return l.text.String()[start:]
}

// bytesOf returns a copy of s. Short copies share one block of memory; an append to one does not reach the others.
func (l *scratch) bytesOf(s string) []byte {
	if len(s) > maxShort {
		return []byte(s)
	}
	if cap(l.args)-len(l.args) < len(s) {
		l.args = make([]byte, 0, textBlock)
	}
	start := len(l.args)
	l.args = append(l.args, s...)
	return l.args[start:len(l.args):len(l.args)]
}

// copyUsed returns a copy of the list, nil if it is empty. Short copies share one block of memory, as those of bytesOf do.
func (l *scratch) copyUsed(list []lathe.ToolUse) []lathe.ToolUse {
	if len(list) > maxShortUsed {
		return slices.Clip(slices.Clone(list))
	}
	if len(list) == 0 {
		return nil
	}
	if cap(l.used)-len(l.used) < len(list) {
		l.used = make([]lathe.ToolUse, 0, usedBlock)
	}
	start := len(l.used)
	l.used = append(l.used, list...)
	return l.used[start:len(l.used):len(l.used)]
}
