package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/term"

	"github.com/lathe-run/lathe/internal/private"
)

// Limits of what is typed.
const (
	maxHistoryLines = 1000
	maxHistoryLine  = 4 << 10   // bytes; a longer line is not kept
	maxHistoryBytes = 512 << 10 // of the file
)

// errStop is returned where Ctrl-C is typed at the prompt.
var errStop = errors.New("interrupted")

// A lineReader reads what a person types, a line or a pasted text at a time. It returns io.EOF at the end of the input, and
// errStop for Ctrl-C.
type lineReader interface {
	readLine(ctx context.Context) (string, error)
}

// plainLines reads lines where no terminal is.
type plainLines struct{ in *bufio.Reader }

func (p *plainLines) readLine(context.Context) (string, error) {
	var line []byte
	for {
		piece, err := p.in.ReadSlice('\n')
		if line = append(line, piece...); len(line) > maxPrompt {
			return "", usageError("a line of standard input is larger than %s", bytesText(maxPrompt))
		}
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			return strings.TrimRight(string(line), "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
}

// A terminalLine edits a line on the terminal.
type terminalLine struct {
	keys     *keys
	tty      *os.File // of standard input
	prompt   io.Writer
	history  *history
	complete func(line string) []string
}

// readLine puts the terminal into raw mode until a line is complete. Lines that were pasted belong to the line that is typed
// after them.
func (t *terminalLine) readLine(ctx context.Context) (string, error) {
	old, err := term.MakeRaw(int(t.tty.Fd()))
	if err != nil {
		return "", err
	}
	restore := func() { _ = term.Restore(int(t.tty.Fd()), old) } // there is nothing to do about a terminal that is gone
	defer restore()
	in := &ctrlC{r: t.keys.reader(ctx)}
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, t.prompt}, "> ")
	editor.History, editor.AutoCompleteCallback = t.history, t.completed
	if width, height, err := term.GetSize(int(t.tty.Fd())); err == nil && width > 0 {
		_ = editor.SetSize(width, height) // it writes nothing before the prompt
	}
	editor.SetBracketedPasteMode(true)
	defer editor.SetBracketedPasteMode(false)
	var pasted []string
	for {
		line, err := editor.ReadLine()
		switch {
		case errors.Is(err, term.ErrPasteIndicator):
			if pasted = append(pasted, line); len(strings.Join(pasted, "\n")) > maxPrompt {
				return "", usageError("the text that was pasted is larger than %s", bytesText(maxPrompt))
			}
			continue
		case err != nil:
			if in.typed {
				err = errStop
			}
			_, _ = io.WriteString(t.prompt, "\r\n")
			return "", err
		}
		return strings.Join(append(pasted, line), "\n"), nil
	}
}

// completed completes a command when Tab is typed: as far as all that begin like it agree.
func (t *terminalLine) completed(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || pos != len(line) {
		return "", 0, false
	}
	common := ""
	for i, word := range t.complete(line) {
		if i == 0 {
			common = word
		}
		for !strings.HasPrefix(word, common) {
			common = common[:len(common)-1]
		}
	}
	if len(common) <= len(line) {
		return line, pos, true
	}
	return common, len(common), true
}

// ctrlC notes that Ctrl-C was typed. The editor has the same error for it and for the end of the input.
type ctrlC struct {
	r     io.Reader
	typed bool
}

// Read hands one byte over at a time: what is typed ahead of the end of a line is for the next reader.
func (c *ctrlC) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:1])
	if n == 1 && p[0] == 3 {
		c.typed = true
	}
	return n, err
}

// keys reads standard input for several readers, of which the last one made gets what is typed. A read from a terminal cannot
// be cancelled; this one goes on for the next reader.
type keys struct {
	src io.Reader

	mu      sync.Mutex
	owner   *keyReader
	buf     []byte
	err     error
	reading bool
	changed chan struct{} // closed when one of the above changes
}

type keyReader struct {
	keys *keys
	ctx  context.Context //nolint:containedctx // io.Reader has none
}

func newKeys(src io.Reader) *keys { return &keys{src: src, changed: make(chan struct{})} }

// reader returns a reader that gets what is typed until another one is made. Its reads end with the context.
func (k *keys) reader(ctx context.Context) io.Reader {
	r := &keyReader{k, ctx}
	k.take(r)
	return r
}

func (k *keys) take(r *keyReader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owner = r
	k.notify()
}

func (k *keys) notify() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// Read implements io.Reader.
func (r *keyReader) Read(p []byte) (int, error) {
	k := r.keys
	for {
		k.mu.Lock()
		if k.owner == r {
			switch {
			case len(k.buf) > 0:
				n := copy(p, k.buf)
				k.buf = k.buf[n:]
				k.mu.Unlock()
				return n, nil
			case k.err != nil:
				defer k.mu.Unlock()
				return 0, k.err
			case !k.reading:
				k.reading = true
				go k.fill()
			}
		}
		changed := k.changed
		k.mu.Unlock()
		select {
		case <-changed:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
}

func (k *keys) fill() {
	b := make([]byte, 4<<10)
	n, err := k.src.Read(b)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading, k.buf, k.err = false, append(k.buf, b[:n]...), err
	k.notify()
}

// history keeps the lines of earlier chats in a file of its owner.
type history struct {
	file  *private.File // nil: nothing is kept beyond the process
	lines []string      // the newest last
}

// openHistory reads the file, which need not exist; "" is none.
func openHistory(path string) (*history, error) {
	h := &history{}
	if path == "" {
		return h, nil
	}
	h.file = &private.File{Path: path, Max: maxHistoryBytes}
	err := h.read()
	if err != nil {
		h.file = nil
	}
	return h, err
}

func (h *history) read() error {
	b, err := h.file.Read()
	if err != nil {
		return err
	}
	h.lines = nil
	for line := range strings.Lines(string(b)) {
		h.lines = append(h.lines, printable(strings.TrimRight(line, "\n")))
	}
	return nil
}

// Add keeps a line, unless it is that before, is long, or has characters that do not print.
func (h *history) Add(line string) {
	if line = strings.TrimSpace(line); line == "" || len(line) > maxHistoryLine || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return
	}
	if h.file != nil {
		unlock, err := h.file.Lock("")
		if err != nil {
			h.file = nil // the folder may not be written: the lines of this chat are kept in memory
		} else {
			defer unlock()
			_ = h.read() // what another chat has added; without it, what this one knows is kept
		}
	}
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.lines = slices.Clone(h.lines[max(0, len(h.lines)-maxHistoryLines):])
	size := 0
	for i := len(h.lines) - 1; i >= 0; i-- {
		if size += len(h.lines[i]) + 1; size > maxHistoryBytes {
			h.lines = h.lines[i+1:]
			break
		}
	}
	if h.file != nil && h.file.Replace([]byte(strings.Join(h.lines, "\n")+"\n")) != nil {
		h.file = nil
	}
}

// Len and At implement [term.History].
func (h *history) Len() int { return len(h.lines) }

// At returns a line, the newest first.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
