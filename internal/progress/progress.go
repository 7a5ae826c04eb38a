// Package progress reports the progress of long work to a person: on a terminal as one line that is overwritten, elsewhere as a new line
// every ten seconds.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Options are the options of [Start]. The zero value writes to no terminal.
type Options struct {
	Live  bool          // w is a terminal: the line is overwritten
	Quiet bool          // Start returns nil: nothing is written
	After time.Duration // delay of the first line on a terminal, so that short work writes nothing; 0: 1 s
	Every time.Duration // interval of lines that are not overwritten; 0: 10 s
	Width func() int    // columns of the terminal; nil: 80
}

const usualWidth = 80

// A Line reports the progress of one piece of work. Its methods may be called from several goroutines at once; on a nil Line they do
// nothing.
type Line struct {
	w     io.Writer
	opts  Options
	began time.Time
	stop  chan struct{}
	ended chan struct{}

	mu          sync.Mutex
	text        string
	since       time.Time // when text was set last
	done, total int
	counting    time.Time // when the counted work began; zero: Count was not called
	first       int       // value of done at the first Count, if work was resumed; else 0
	shown       bool      // the terminal shows the line
}

// Start begins to report the progress of work to w, in a goroutine that Stop ends.
func Start(w io.Writer, opts *Options) *Line {
	l := &Line{w: w, began: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.Quiet {
		return nil
	}
	if l.opts.After <= 0 {
		l.opts.After = time.Second
	}
	if l.opts.Every <= 0 {
		l.opts.Every = 10 * time.Second
	}
	go l.run()
	return l
}

func (l *Line) run() {
	defer close(l.ended)
	period, next := l.opts.Every, l.opts.Every
	if l.opts.Live {
		period, next = time.Second, l.opts.After
	}
	for {
		select {
		case <-time.After(next):
			l.write()
			next = period
		case <-l.stop:
			return
		}
	}
}

// Say sets the text of the line, which describes the current work; "" hides the line.
func (l *Line) Say(text string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if text != l.text {
		l.text, l.since = text, time.Now()
	}
	if text == "" {
		l.clear()
	}
}

// Count sets the number of units that are done. total is 0 if it is unknown.
func (l *Line) Count(done, total int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counting.IsZero() {
		l.counting, l.first = l.began, 0
		if done > 1 { // resumed work: the rate counts from here
			l.counting, l.first = time.Now(), done
		}
	}
	l.done, l.total = done, total
}

// Show writes the line at once if it is overwritten (Options.Live).
func (l *Line) Show() {
	if l != nil && l.opts.Live {
		l.write()
	}
}

// Stop removes the line. After it has returned, nothing more is written.
func (l *Line) Stop() {
	if l == nil {
		return
	}
	close(l.stop)
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

func (l *Line) clear() {
	if l.shown {
		_, _ = io.WriteString(l.w, "\r\x1b[2K") // a failure to write progress is ignored
		l.shown = false
	}
}

func (l *Line) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		return
	}
	text := l.line(time.Now())
	if !l.opts.Live {
		_, _ = fmt.Fprintf(l.w, "note: %s\n", text)
		return
	}
	width := usualWidth
	if l.opts.Width != nil {
		width = l.opts.Width()
	}
	for utf8.RuneCountInString(text)+3 > width && text != "" {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	_, _ = fmt.Fprintf(l.w, "\r\x1b[2K· %s", text)
	l.shown = true
}

// line returns the text of the line: the work, the count, the rate, and the time that has passed or, with a total, is left.
func (l *Line) line(now time.Time) string {
	if l.counting.IsZero() {
		return fmt.Sprintf("%s, %s", l.text, span(now.Sub(l.since)))
	}
	parts := []string{fmt.Sprintf("%s: %d", l.text, l.done)}
	if l.total > 0 {
		parts[0] += fmt.Sprintf(" of %d", l.total)
	}
	passed := now.Sub(l.counting)
	if n := l.done - l.first; n > 0 && passed > 0 {
		parts = append(parts, rate(n, passed))
		if l.total > l.done {
			parts = append(parts, span(time.Duration(float64(passed)/float64(n)*float64(l.total-l.done)))+" left")
		}
	} else {
		parts = append(parts, span(now.Sub(l.began)))
	}
	return strings.Join(parts, ", ")
}

// rate returns n divided by the time, per second or, if below 1, per minute.
func rate(n int, in time.Duration) string {
	switch each := float64(n) / in.Seconds(); {
	case each >= 10:
		return fmt.Sprintf("%.0f/s", each)
	case each >= 1:
		return fmt.Sprintf("%.1f/s", each)
	default:
		return fmt.Sprintf("%.1f/min", each*60)
	}
}

// span returns a duration in the largest unit that fits: s, min or h.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
}
