package tool

import (
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// lane is what one goroutine uses again from call to call. Between runs it waits in its runner.
type lane struct {
	info   lathe.CallInfo // what policies and journals are told of the call
	asked  lathe.ToolCall // of info
	detail []byte         // of the call
	timer  *time.Timer
	back   chan struct{}
	buf    []byte
	proj   projector
	text   strings.Builder // memory that short strings share
	args   []byte          // memory that short arguments share
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
	if cap(l.detail)+cap(l.buf)+cap(l.proj.buf) > maxKept {
		l.detail, l.buf, l.proj.buf = nil, nil, nil
	}
	l.info, l.asked = lathe.CallInfo{}, lathe.ToolCall{}
	clear(l.proj.places[:cap(l.proj.places)])
	r.lanes.Put(l)
}

const (
	textBlock = 1 << 10 // the memory that short strings share, and that short arguments do
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

// bytesOf returns the bytes of s, for whoever gets them alone. They share their memory with others when
// they are few, and no append reaches that.
func (l *lane) bytesOf(s string) []byte {
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
