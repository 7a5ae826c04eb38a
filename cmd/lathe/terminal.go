package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/markdown"
	"github.com/lathe-run/lathe/internal/progress"
	"github.com/lathe-run/lathe/internal/text"
)

// The rules of the terminal: data goes to stdout, everything said about the work goes to stderr.
// Lines that are written over appear only where stderr is a terminal, and colours only where
// NO_COLOR is not set either. Messages start in lower case and end without a full stop.

// A screen shows a run to a person. It is a event.Sink, and may be used by several goroutines at once.
type screen struct {
	out, err         io.Writer
	text             bool // write the answer to out
	quiet            bool // say nothing of the work
	outTerm, errTerm bool
	live             bool // lines on err may be written over
	colour           bool
	wholeTurns       bool // write the text of a turn when it is whole, and no deltas
	// markdown renders what is written to out; nil: it is written as it is.
	markdown *markdown.Writer

	mu       sync.Mutex
	midLine  bool        // out's last byte was not a line end
	liveLine bool        // err's last line is one that will be written over
	tick     *time.Timer // that writes the live line with the seconds since it began
	broken   error       // the first error of out
	// failed is the warning about an attempt of the model call. It is written once another attempt follows: the
	// last attempt's failure is the run's, which the command reports itself.
	failed string
	// unread are the calls that could not be read and have no result yet. A result shows its call on the
	// same line; a call that gets no result has a line of its own.
	unread     []*event.ToolCallParseError
	commentary bool              // the last text was commentary
	children   map[string]bool   // the runs that tool calls started: their text is not the answer
	failures   map[string]string // why the last call of a tool failed, by the tool's name
}

func newScreen(out, err io.Writer, text bool) *screen {
	s := &screen{out: out, err: err, text: text, outTerm: isTerminal(out), errTerm: isTerminal(err)}
	s.live = s.errTerm && os.Getenv("TERM") != "dumb"
	s.colour = s.live && os.Getenv("NO_COLOR") == ""
	return s
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Emit shows what a person wants to see: the answer, and which tool runs with which result.
func (s *screen) Emit(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ofChild(&e) {
		return
	}
	switch d := e.Data.(type) {
	case *event.RunStarted:
		s.withheld(&d.Tools)
	case *event.TextDelta:
		s.piece(false, d.Text)
	case *event.CommentaryDelta:
		s.piece(true, d.Text)
	case *event.ModelCallFinished:
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
	case *event.ModelCallStarted:
		s.endLine() // after what the noop executor has shown
		s.printUnread()
		if s.failed != "" {
			s.printLine("yellow", "!", s.failed)
			s.failed = ""
		}
	case *event.ToolCallPlanned:
		s.running(d.Tool + " …")
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
	default: // of no use to a person who watches
	}
}

// attemptText describes an attempt of a model call that failed. The server's words may hold what a person wrote, but
// not what they quote of the request.
func attemptText(d *event.ModelCallFinished) string {
	kind := lathe.UpstreamKind(d.ErrorCode)
	if kind == lathe.UpstreamLoading {
		return "the model server loads the model; waiting for it, up to loading_timeout"
	}
	text := fmt.Sprintf("attempt %d of the model call failed: ", d.Attempt)
	if kind == lathe.UpstreamAborted && d.ErrorMessage != "" {
		return text + d.ErrorMessage
	}
	text += failureName(kind, false, d.ErrorCode)
	if d.UpstreamStatus != 0 {
		text += fmt.Sprintf(" (HTTP %d)", d.UpstreamStatus)
	}
	if d.ErrorMessage != "" {
		text += ": " + strings.TrimRight(printable(d.ErrorMessage), ".")
	}
	return text
}

// ofChild shows what a run that a tool call started does, and reports whether the event is one of such a run.
func (s *screen) ofChild(e *event.Event) bool {
	switch d := e.Data.(type) {
	case *event.RunStarted:
		if d.ParentRunID != "" {
			if s.children == nil {
				s.children = map[string]bool{}
			}
			s.children[e.RunID] = true
		}
	case *event.ToolCallPlanned:
		if s.children[e.RunID] {
			s.running("  " + d.Tool + " …")
		}
	case *event.ToolCallResult:
		if s.children[e.RunID] {
			s.result(d, "  ")
		}
	case *event.ModelCallFinished:
		if s.children[e.RunID] && d.Status == "error" {
			s.printLine("yellow", "!", "  "+attemptText(d))
		}
	default: // the text of such a run is the result of the call
	}
	return s.children[e.RunID]
}

// result shows how a call ended; indent stands before the calls of a run that a call started.
func (s *screen) result(d *event.ToolCallResult, indent string) {
	if d.Status == "ok" {
		delete(s.failures, d.Tool)
		s.printLine("green", "✓", fmt.Sprintf("%s%s  %s in %s", indent, d.Tool, bytesText(len(d.Result)), took(d.LatencyMS)))
		return
	}
	why := ""
	switch {
	case d.ErrorType == lathe.CodePolicyDenied && d.PolicyDecision == lathe.Ask.String():
		why = ": rule " + d.PolicyRule + " asks, and no approver can be asked here; " + ruleAdvice(d.PolicyRule, d.Tool)
	case d.ErrorType == lathe.CodePolicyDenied:
		why = ": rule " + d.PolicyRule + "; " + ruleAdvice(d.PolicyRule, d.Tool)
	case d.Limit != "":
		why = ": limit " + d.Limit
	case d.Cause != "":
		why = ": " + printable(d.Cause)
	}
	if indent == "" {
		if call := s.removeUnread(d.ErrorType); call != nil && why == "" {
			why = ": " + unreadText(call)
		}
	}
	if said := failureText(d.Result); said != "" && why == "" {
		why = ": " + said
	}
	if indent == "" {
		if s.failures == nil {
			s.failures = map[string]string{}
		}
		s.failures[d.Tool] = string(d.ErrorType) + why
	}
	s.printLine("red", "✗", fmt.Sprintf("%s%s  %s%s", indent, d.Tool, d.ErrorType, why))
}

// maxFailureText bounds what a line on the terminal says of a failed call, in bytes.
const maxFailureText = 200

// failureText returns what the model reads about why its call failed: the detail of the error, or what the tool itself said. It is "" if
// the result has neither.
func failureText(result string) string {
	var r struct {
		Error  struct{ Detail string }
		Errors []struct{ Detail string } // of an envelope
		Data   any
	}
	_ = json.Unmarshal([]byte(result), &r) // a result of another form says nothing here
	said := r.Error.Detail
	if len(r.Errors) > 0 {
		said = r.Errors[0].Detail
	}
	switch data := r.Data.(type) {
	case string:
		said = cmp.Or(said, data)
	case map[string]any:
		of, _ := data["error"].(string)
		said = cmp.Or(said, of)
	}
	return printable(text.Clip(text.OneLine(said), maxFailureText))
}

// removeUnread removes and returns the first call that could not be read and that a result with the code answers;
// nil if there is no such call. An answer that was cut off has incomplete_call for all of its calls.
func (s *screen) removeUnread(code lathe.Code) *event.ToolCallParseError {
	i := slices.IndexFunc(s.unread, func(d *event.ToolCallParseError) bool { return d.Error == code || code == lathe.CodeIncompleteCall })
	if i < 0 {
		return nil
	}
	call := s.unread[i]
	s.unread = slices.Delete(s.unread, i, i+1)
	return call
}

// printUnread writes a line for each call that could not be read and got no result, as with on_parse_error
// retry_without_tools.
func (s *screen) printUnread() {
	for _, d := range s.unread {
		s.printLine("yellow", "!", fmt.Sprintf("%s: %s", d.Error, unreadText(d)))
	}
	s.unread = s.unread[:0]
}

// unreadText describes a call that could not be read. A server that reads calls itself may not send its text.
func unreadText(d *event.ToolCallParseError) string {
	if d.ExcerptBytes == 0 {
		return "a call of the model could not be read"
	}
	return "a call of the model could not be read, " + bytesText(d.ExcerptBytes)
}

// maxNamed bounds the tools that a line on the terminal names.
const maxNamed = 5

// withheld says which tools the model is not offered, where the policy or a missing approver is why: a tool that is
// missing without a word is looked for in the wrong place.
func (s *screen) withheld(tools *event.ToolsDigest) {
	var denied, asked []string
	for _, held := range tools.Withheld {
		switch held.Reason {
		case event.WithheldPolicy:
			denied = append(denied, held.Tool)
		case event.WithheldApproval, event.WithheldUndeclared:
			asked = append(asked, held.Tool)
		case event.WithheldDepth, event.WithheldMode: // the person has asked for it
		}
	}
	for _, group := range []struct {
		names []string
		why   string
	}{{denied, "the policy denies them"}, {asked, "they need an approval, and no approver can be asked here"}} {
		if n := len(group.names); n > 0 {
			names := strings.Join(group.names[:min(n, maxNamed)], ", ")
			if n > maxNamed {
				names += fmt.Sprintf(" and %d more", n-maxNamed)
			}
			s.printLine("dim", "·", fmt.Sprintf("not offered to the model: %s; %s (policy.tools in lathe.yaml decides by name)", names, group.why))
		}
	}
}

// note says something about the work that is no event.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printLine("dim", "·", text)
}

// warn says that something does not work as it is configured. It is not silenced.
func (s *screen) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLine("yellow", "!", text)
}

// ask writes a question as it is, after what stands on the screen. It is not silenced.
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
	s.endLine()
	s.clearLive()
	if !s.quiet {
		s.writeLine(colour, mark, text)
	}
}

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

// maxSeconds is what stands beside the text of a live line: the mark and the seconds.
const maxSeconds = 12

// running writes a line that the next one replaces, and adds the seconds that have passed. It must not be broken: only one line can be
// taken back.
func (s *screen) running(text string) {
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
			return // another line has taken its place
		}
		fmt.Fprintf(s.err, "\r\x1b[2K%s %s", s.paint("dim", "·"), s.paint("dim", fmt.Sprintf("%s %d s", text, int(time.Since(began).Seconds()))))
		tick.Reset(time.Second)
	})
	s.tick = tick
}

// writeText writes text of the answer that no event brings.
func (s *screen) writeText(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(text)
}

// piece writes text of the answer, or commentary. No word continues in the other of the two.
func (s *screen) piece(commentary bool, text string) {
	if s.wholeTurns || text == "" {
		return
	}
	if s.midLine && s.commentary != commentary {
		s.write("\n\n")
	}
	s.commentary = commentary
	s.write(text)
}

func (s *screen) write(text string) {
	if !s.text || text == "" {
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
	s.wrote(err)
	s.midLine = !strings.HasSuffix(text, "\n")
}

// wrote keeps the first error of out.
func (s *screen) wrote(err error) {
	if err != nil && s.broken == nil {
		s.broken = err
	}
}

// endLine ends the line of the answer that is not complete, and what the renderer holds back of it.
func (s *screen) endLine() {
	if s.markdown != nil {
		s.clearLive()
		s.wrote(s.markdown.Flush())
	}
	if s.midLine {
		s.midLine = false
		_, err := io.WriteString(s.out, "\n")
		s.wrote(err)
	}
}

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

// startProgress begins to write the progress of long work to stderr. The caller stops it.
func startProgress(w io.Writer, quiet bool) *progress.Line {
	opts := &progress.Options{Quiet: quiet}
	if f, ok := w.(*os.File); ok && isTerminal(f) && os.Getenv("TERM") != "dumb" {
		opts.Live = true
		opts.Width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 {
				return 80
			}
			return width
		}
	}
	return progress.Start(w, opts)
}

// startingServers says which MCP servers start, of those whose tools are allowed, until the caller stops it.
func startingServers(w io.Writer, cfg *config.Config, allow []string, quiet bool) *progress.Line {
	names := app.ServersOf(cfg, allow)
	if names == nil {
		names = slices.Sorted(maps.Keys(cfg.Tools.MCP))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return cfg.Tools.MCP[name] == nil })
	if len(names) == 0 {
		return nil
	}
	line := startProgress(w, quiet)
	line.Say("starting the MCP server " + strings.Join(names, ", "))
	return line
}

var colours = map[string]string{"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}

func (s *screen) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colours[colour] + "m" + text + "\x1b[0m"
}
