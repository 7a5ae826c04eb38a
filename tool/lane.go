package tool

import (
	"strings"
	"time"
)

// lane is what one goroutine uses again from call to call. Between runs it waits in its runner.
type lane struct {
	call  call
	timer *time.Timer
	back  chan struct{}
	buf   []byte
	proj  projector
	text  strings.Builder // memory that short strings share
}

// maxKept is the largest memory of a lane that waits for the next run.
const maxKept = 64 << 10

func (r *Runner) takeLane() *lane {
	if l, ok := r.lanes.Get().(*lane); ok {
		return l
	}
	return &lane{}
}

func (r *Runner) giveBack(l *lane) {
	if cap(l.call.detail)+cap(l.buf)+cap(l.proj.buf) > maxKept {
		l.call.detail, l.buf, l.proj.buf = nil, nil, nil
	}
	clear(l.proj.places[:cap(l.proj.places)])
	r.lanes.Put(l)
}

const (
	textBlock = 1 << 10 // the memory that short strings share
	maxShort  = 128     // the longest of them
)

// keep returns b as a string, which shares its memory with others when it is short.
func (l *lane) keep(b []byte) string {
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
