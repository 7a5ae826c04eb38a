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

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/markdown"
	"github.com/lathe-run/lathe/internal/progress"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
)

// Rules of the terminal: data goes to stdout, and messages about the work go to stderr. Lines are overwritten only if stderr is a terminal,
// and colours are used only if NO_COLOR is not set either. Messages begin in lower case and end without a full stop.

// A screen is an event.Sink that shows a run to a user. It may be used from several goroutines at once.
type screen struct {
	out, err         io.Writer
	text             bool // write the answer to out
	quiet            bool // write no messages about the work
	outTerm, errTerm bool
	live             bool // lines on err can be overwritten
	colour           bool
	wholeTurns       bool // write the text of a turn when it is complete, instead of deltas
	// markdown renders the text for out; nil: the text is written unchanged.
	markdown *markdown.Writer

	mu       sync.Mutex
	midLine  bool        // the last byte written to out is not a line end
	liveLine bool        // the last line of err will be overwritten
	tick     *time.Timer // updates the live line every second
	broken   error       // first error of out
	// failed is the warning about a failed attempt of the model call. It is written when another attempt follows: the failure of the last
	// attempt is that of the run, which the command reports.
	failed string
	// unread are the unreadable calls without a result. A result shows its call on the same line; a call without a result gets its own
	// line.
	unread     []*event.ToolCallParseError
	commentary bool              // the last text was commentary
	children   map[string]bool   // runs that tool calls started, whose text is not the answer
	failures   map[string]string // tool name → why the last call of the tool failed
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

// Emit shows the events that are useful for a user: the answer, tool calls and their results.
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
		s.endLine() // after the text that the noop executor has shown
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
	default: // other events are not shown
	}
}

// attemptText describes a failed attempt of a model call. It contains the error text of the server, but not the parts of it that quote the
// request.
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

// ofChild shows the events of a run that a tool call started, and reports whether the event belongs to such a run.
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

// result shows the end of a call; indent precedes the calls of a run that a call started.
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

// maxFailureText is the number of bytes of a failure text in one line.
const maxFailureText = 200

// failureText returns why a call failed, from the result for the model: the detail of the error, or the text of the tool. It is "" if the
// result has neither.
func failureText(result string) string {
	var r struct {
		Error  struct{ Detail string }
		Errors []struct{ Detail string } // in an envelope
		Data   any
	}
	_ = json.Unmarshal([]byte(result), &r) // a result in another form has no failure text
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

// removeUnread removes and returns the first unreadable call to which a result with the code belongs, or nil. For a truncated answer the
// code of all results is incomplete_call.
func (s *screen) removeUnread(code lathe.Code) *event.ToolCallParseError {
	i := slices.IndexFunc(s.unread, func(d *event.ToolCallParseError) bool { return d.Error == code || code == lathe.CodeIncompleteCall })
	if i < 0 {
		return nil
	}
	call := s.unread[i]
	s.unread = slices.Delete(s.unread, i, i+1)
	return call
}

// printUnread writes a line for each unreadable call without a result, for example with on_parse_error retry_without_tools.
func (s *screen) printUnread() {
	for _, d := range s.unread {
		s.printLine("yellow", "!", fmt.Sprintf("%s: %s", d.Error, unreadText(d)))
	}
	s.unread = s.unread[:0]
}

// unreadText describes an unreadable call. A server that parses calls itself may not send the text.
func unreadText(d *event.ToolCallParseError) string {
	if d.ExcerptBytes == 0 {
		return "a call of the model could not be read"
	}
	return "a call of the model could not be read, " + bytesText(d.ExcerptBytes)
}

// maxNamed is the largest number of tools that are named in one line.
const maxNamed = 5

// withheld shows the tools that are not offered to the model because of the policy or a missing approver, so that a user does not search
// for the cause elsewhere.
func (s *screen) withheld(tools *event.ToolsDigest) {
	var denied, asked []string
	for _, held := range tools.Withheld {
		switch held.Reason {
		case event.WithheldPolicy:
			denied = append(denied, held.Tool)
		case event.WithheldApproval, event.WithheldUndeclared:
			asked = append(asked, held.Tool)
		case event.WithheldDepth, event.WithheldMode: // the user has requested it
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

// maxSeconds is the width of the mark and the seconds in a live line.
const maxSeconds = 12

// running writes a line that the next line overwrites, and adds the seconds that have passed. It must fit into one line of the terminal,
// because only one line can be overwritten.
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

// piece writes text of the answer, or commentary. It separates the two by an empty line.
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

// wrote stores the first error of out.
func (s *screen) wrote(err error) {
	if err != nil && s.broken == nil {
		s.broken = err
	}
}

// endLine flushes the renderer and ends an incomplete line of the answer.
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

// startProgress begins to show the progress of long work on stderr. The caller must stop it.
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

// startingServers shows which MCP servers are starting, until the caller stops it. names are their names; nil: all.
func startingServers(w io.Writer, cfg *config.Config, names []string, quiet bool) *progress.Line {
	if names == nil {
		names = slices.Sorted(maps.Keys(cfg.Tools.MCP))
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return cfg.Tools.MCP[name] == nil })
	if len(names) == 0 {
		return nil
	}
	line := startProgress(w, quiet)
	line.Say("starting the MCP server " + strings.Join(names, ", "))
	return line
}

// startServers starts MCP servers, and shows which ones.
func startServers(cmd *cobra.Command, cfg *config.Config, set *tool.Set, opts *app.ServerOptions, quiet bool) (*app.Servers, error) {
	defer startingServers(cmd.ErrOrStderr(), cfg, opts.Only, quiet).Stop()
	return app.StartServers(cmd.Context(), cfg, set, opts)
}

var colours = map[string]string{"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}

func (s *screen) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colours[colour] + "m" + text + "\x1b[0m"
}
