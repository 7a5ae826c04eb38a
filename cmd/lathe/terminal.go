package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/markdown"
)

// Rules of the terminal: data goes to stdout, and messages about the work go to stderr. Lines are overwritten only if stderr is a terminal,
// and colours are used only if NO_COLOR is not set either. Messages begin in lower case and end without a full stop.

// A screen is an event.Sink that shows a run to a user. It may be used from several goroutines at once: Emit, note, warn, ask and writeText
// lock mu, and the other methods but paint require that it is locked.
type screen struct {
	out, err         io.Writer
	showAnswer       bool // write the answer to out
	quiet            bool // write no messages about the work
	outTerm, errTerm bool
	live             bool // lines on err can be overwritten
	colour           bool
	wholeTurns       bool // write the text of a turn when it is complete, instead of deltas
	// markdown renders the text for out; nil: the text is written unchanged.
	markdown *markdown.Writer

	mu       sync.Mutex  // guards the fields below
	midLine  bool        // the last byte written to out is not a line end
	liveLine bool        // the last line of err will be overwritten
	tick     *time.Timer // updates the live line every second
	outErr   error       // first error of out
	// failed is the warning about a failed attempt of the model call. It is written when another attempt follows: the failure of the last
	// attempt is that of the run, which the command reports.
	failed string
	// unread are the unreadable calls without a result. A result shows its call on the same line; a call without a result gets its own
	// line.
	unread    []*event.ToolCallParseError
	lastPiece piece             // what was written last to out
	children  map[string]bool   // runs that tool calls started, whose text is not the answer
	failures  map[string]string // tool name → why the last call of the tool failed; read by toolError when the run has ended
}

// commandScreen returns a screen for the streams of a command.
func commandScreen(cmd *cobra.Command) *screen {
	return newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr())
}

func newScreen(out, err io.Writer) *screen {
	s := &screen{out: out, err: err, outTerm: isTerminal(out), errTerm: isTerminal(err), children: map[string]bool{}}
	s.live = s.errTerm && os.Getenv("TERM") != "dumb"
	s.colour = s.live && os.Getenv("NO_COLOR") == ""
	return s
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Emit shows the events that are useful for a user: the answer, tool calls and their results.
func (s *screen) Emit(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordChild(&e)
	if s.children[e.RunID] {
		s.showChild(&e)
		return
	}
	switch d := e.Data.(type) {
	case *event.RunStarted:
		s.printWithheld(&d.Tools)
	case *event.TextDelta:
		s.writePiece(answerPiece, d.Text)
	case *event.CommentaryDelta:
		s.writePiece(commentaryPiece, d.Text)
	case *event.ModelCallFinished:
		s.showModelCall(d)
	case *event.ModelCallStarted:
		s.endLine() // after the text that the noop executor has shown
		s.printUnread()
		if s.failed != "" {
			s.printLine("yellow", "!", s.failed)
			s.failed = ""
		}
	case *event.ToolCallPlanned:
		s.showRunning(d.Tool + " …")
	case *event.ToolCallResult:
		s.result(d, "")
	case *event.ToolCallParseError:
		s.unread = append(s.unread, d)
	case *event.RunPaused:
		s.endLine()
		s.printUnread()
		if d.Result != nil { // the run can be resumed
			s.printLine("dim", "·", fmt.Sprintf("%s waits; see it: lathe runs show %s", count(len(d.Pending), "call"), e.RunID))
		}
	case *event.RunFinished:
		s.endLine()
		s.printUnread()
		s.printLine("dim", "·", fmt.Sprintf("%s after %s, %s, %d tokens, %s", d.Reason, count(d.Turns, "turn"), count(d.ToolCalls, "tool call"), d.Usage.TotalTokens, took(d.LatencyMS)))
	default: // other events are not shown
	}
}

// showModelCall shows the end of an attempt of a model call, and stores its failure.
func (s *screen) showModelCall(d *event.ModelCallFinished) {
	if s.wholeTurns && d.Message != nil {
		s.write(d.Message.Text())
	}
	s.endLine()
	s.failed = ""
	if d.Status == "error" && d.ErrorCode != string(lathe.CodeCancelled) {
		s.failed = attemptText(d)
	}
	if slices.ContainsFunc(d.Faults, func(f lathe.Fault) bool { return f.Kind == "tool_choice_ignored" }) {
		s.printLine("yellow", "!", "tool_choice names a tool, and the model called another one or none; offer that tool alone with --tools")
	}
}

// recordChild records a run that a tool call started.
func (s *screen) recordChild(e *event.Event) {
	if d, ok := e.Data.(*event.RunStarted); ok && d.ParentRunID != "" {
		s.children[e.RunID] = true
	}
}

// showChild shows the events of a run that a tool call started.
func (s *screen) showChild(e *event.Event) {
	switch d := e.Data.(type) {
	case *event.ToolCallPlanned:
		s.showRunning("  " + d.Tool + " …")
	case *event.ToolCallResult:
		s.result(d, "  ")
	case *event.ModelCallFinished:
		if d.Status == "error" {
			s.printLine("yellow", "!", "  "+attemptText(d))
		}
	default: // the text of such a run is the result of the call
	}
}

// note writes a message about the work.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printLine("dim", "·", text)
}

// warn writes a message about a configuration that does not work. It is written even if the screen is quiet.
func (s *screen) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLine("yellow", "!", text)
}

// ask writes a question unchanged, on a new line. It is written even if the screen is quiet.
func (s *screen) ask(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	s.clearLive()
	fmt.Fprint(s.err, text)
}

var plainMarks = map[string]string{"✓": "ok:", "✗": "failed:", "·": "note:", "!": "warning:"}

// printLine writes a line about the work, unless the screen is quiet.
func (s *screen) printLine(colour, mark, text string) {
	if s.quiet {
		s.endLine()
		s.clearLive()
		return
	}
	s.writeLine(colour, mark, text)
}

// writeLine writes a line about the work, even if the screen is quiet.
func (s *screen) writeLine(colour, mark, text string) {
	s.endLine()
	s.clearLive()
	if !s.live {
		mark = plainMarks[mark]
	}
	if colour == "dim" {
		text = s.paint("dim", text)
	}
	fmt.Fprintf(s.err, "%s %s\n", s.paint(colour, mark), text)
}

// maxSeconds is the width of the mark and the seconds in a live line.
const maxSeconds = 12

// showRunning writes a line that the next line overwrites, and adds the seconds that have passed. It must fit into one line of the terminal,
// because only one line can be overwritten.
func (s *screen) showRunning(text string) {
	if !s.live || s.quiet {
		return
	}
	s.endLine()
	s.clearLive()
	if f, ok := s.err.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && len(text)+maxSeconds >= width {
			return
		}
	}
	fmt.Fprintf(s.err, "%s %s", s.paint("dim", "·"), s.paint("dim", text))
	s.liveLine = true
	began := time.Now()
	var tick *time.Timer
	tick = time.AfterFunc(time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tick != tick {
			return // another line has replaced this one
		}
		fmt.Fprintf(s.err, "\r\x1b[2K%s %s", s.paint("dim", "·"), s.paint("dim", fmt.Sprintf("%s %d s", text, int(time.Since(began).Seconds()))))
		tick.Reset(time.Second)
	})
	s.tick = tick
}

// writeText writes text of the answer that is not in an event.
func (s *screen) writeText(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(text)
}

// A piece is a kind of text that a model writes for the user.
type piece int

const (
	answerPiece piece = iota
	commentaryPiece
)

// writePiece writes a piece of text, with an empty line between pieces of different kinds.
func (s *screen) writePiece(kind piece, text string) {
	if s.wholeTurns || text == "" {
		return
	}
	if s.midLine && s.lastPiece != kind {
		s.write("\n\n")
	}
	s.lastPiece = kind
	s.write(text)
}

// write writes text of the answer, if the screen shows it.
func (s *screen) write(text string) {
	if !s.showAnswer || text == "" {
		return
	}
	s.clearLive()
	if s.outTerm {
		text = printable(text)
	}
	var err error
	if s.markdown != nil {
		err = s.markdown.WriteString(text)
	} else {
		_, err = io.WriteString(s.out, text)
	}
	s.recordError(err)
	s.midLine = !strings.HasSuffix(text, "\n")
}

// recordError stores the first error of out.
func (s *screen) recordError(err error) {
	if err != nil && s.outErr == nil {
		s.outErr = err
	}
}

// endLine flushes the renderer and ends an incomplete line of the answer.
func (s *screen) endLine() {
	if s.markdown != nil {
		s.clearLive()
		s.recordError(s.markdown.Flush())
	}
	if s.midLine {
		s.midLine = false
		_, err := io.WriteString(s.out, "\n")
		s.recordError(err)
	}
}

// clearLive removes the line of showRunning.
func (s *screen) clearLive() {
	if s.tick != nil {
		s.tick.Stop()
		s.tick = nil
	}
	if s.liveLine {
		fmt.Fprint(s.err, "\r\x1b[2K")
		s.liveLine = false
	}
}

var colours = map[string]string{"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}

// paint adds a colour to text, if the screen shows colours.
func (s *screen) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colours[colour] + "m" + text + "\x1b[0m"
}
