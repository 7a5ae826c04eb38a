package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/term"

	"github.com/lathe-run/lathe/internal/jsonlines"
	"github.com/lathe-run/lathe/internal/private"
)

// Limits of the history.
const (
	maxHistoryLines = 1000
	maxHistoryLine  = 4 << 10   // bytes; longer lines are not stored
	maxHistoryBytes = 512 << 10 // bytes of the file
)

// errStop is the error of Ctrl-C at the prompt.
var errStop = errors.New("interrupted")

// A lineReader reads one line or one pasted text. It returns io.EOF at the end of the input, and errStop for Ctrl-C.
type lineReader interface {
	readLine(ctx context.Context) (string, error)
}

// plainLines reads lines from an input that is not a terminal.
type plainLines struct{ in *jsonlines.Reader }

func (p *plainLines) readLine(context.Context) (string, error) {
	line, err := p.in.Next()
	switch {
	case errors.Is(err, jsonlines.ErrTooLong):
		return "", usageError("a line of standard input is larger than %s", bytesText(maxPrompt))
	case err != nil && !errors.Is(err, jsonlines.ErrNoLineEnd): // the last line may have no line end
		return "", err
	}
	return strings.TrimRight(string(line), "\r"), nil
}

// A terminalLine edits a line on the terminal.
type terminalLine struct {
	keys     *keys
	tty      *os.File // standard input
	prompt   io.Writer
	history  *history
	complete func(line string) []string
}

// readLine sets the terminal to raw mode until a line is complete. Pasted lines are joined with the line that is typed after them.
func (t *terminalLine) readLine(ctx context.Context) (string, error) {
	fd := int(t.tty.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, old) }() // a failure cannot be handled
	in := &ctrlC{r: t.keys.reader(ctx)}
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, t.prompt}, "> ")
	editor.History, editor.AutoCompleteCallback = t.history, t.completed
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = editor.SetSize(width, height) // writes nothing before the prompt
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

// completed completes a command on Tab, up to the common prefix of all candidates.
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

// ctrlC records that Ctrl-C was typed, because the editor returns the same error for Ctrl-C and for the end of the input.
type ctrlC struct {
	r     io.Reader
	typed bool
}

// Read returns one byte at a time: input after the end of a line is for the next reader.
func (c *ctrlC) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:1])
	if n == 1 && p[0] == 3 {
		c.typed = true
	}
	return n, err
}

// keys shares standard input between several readers: only the newest one, the owner, gets input. A read from a terminal cannot be
// cancelled: a pending read continues for the next owner.
type keys struct {
	src io.Reader

	mu      sync.Mutex    // guards the fields below
	owner   *keyReader    // nil until the first call of take
	buf     []byte        // input that no reader has received
	err     error         // error of the last read of src
	reading bool          // fill is running
	changed chan struct{} // closed, and replaced by a new one, when the owner changes or fill ends
}

// A keyReader is one reader of keys. Its reads block while it is not the owner, and end with ctx.
type keyReader struct {
	keys *keys
	ctx  context.Context //nolint:containedctx // io.Reader has none
}

func newKeys(src io.Reader) *keys { return &keys{src: src, changed: make(chan struct{})} }

// reader returns a reader that gets the input until a newer reader takes it over. Its reads end with ctx.
func (k *keys) reader(ctx context.Context) io.Reader {
	r := &keyReader{k, ctx}
	k.take(r)
	return r
}

// take makes r the owner.
func (k *keys) take(r *keyReader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owner = r
	k.notify()
}

// notify wakes the blocked readers. The caller has locked mu.
func (k *keys) notify() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// Read implements io.Reader.
func (r *keyReader) Read(p []byte) (int, error) {
	for {
		n, changed, err := r.keys.poll(r, p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
}

// poll does the work of Read without blocking. If r cannot read now, n is 0, and r must call poll again when changed is closed.
func (k *keys) poll(r *keyReader, p []byte) (n int, changed <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.owner != r: // r waits until it is the owner
	case len(k.buf) > 0:
		n = copy(p, k.buf)
		k.buf = k.buf[n:]
	case k.err != nil:
		err = k.err
	case !k.reading:
		k.reading = true
		go k.fill()
	}
	return n, k.changed, err
}

// fill reads from src once.
func (k *keys) fill() {
	b := make([]byte, 4<<10)
	n, err := k.src.Read(b)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading, k.buf, k.err = false, append(k.buf, b[:n]...), err
	k.notify()
}

// history stores the lines of earlier chats in a private file.
type history struct {
	file  *private.File // nil: lines are not stored
	lines []string      // the newest line last
}

// openHistory reads the file at path, which need not exist. If path is "", lines are not stored.
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

// Add stores a line, unless it equals the previous line, is too long, or has unprintable characters.
func (h *history) Add(line string) {
	line = strings.TrimSpace(line)
	unprintable := strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })
	if line == "" || len(line) > maxHistoryLine || unprintable {
		return
	}
	if h.file != nil {
		unlock, err := h.file.Lock("")
		if err != nil {
			h.file = nil // the folder may not be writable: the lines of this chat stay in memory
		} else {
			defer unlock()
			_ = h.read() // lines of other chats; on error only those of this chat are stored
		}
	}
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.lines = slices.Clone(h.lines[max(0, len(h.lines)-maxHistoryLines):])
	size := 0
	for i, line := range slices.Backward(h.lines) { // the newest lines that fit into the file
		size += len(line) + 1
		if size > maxHistoryBytes {
			h.lines = h.lines[i+1:]
			break
		}
	}
	if h.file != nil && h.file.Replace([]byte(strings.Join(h.lines, "\n")+"\n")) != nil {
		h.file = nil
	}
}

// Len implements [term.History].
func (h *history) Len() int { return len(h.lines) }

// At implements [term.History]. The newest line has index 0.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
