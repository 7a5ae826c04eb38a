package main

import (
	"bytes"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A line that says that a tool is running is taken back by what comes next, whatever that is.
func TestScreenTakesBackLiveLines(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	s := &screen{out: &both, err: &both, showAnswer: true, live: true}
	for _, d := range []event.Data{
		&event.TextDelta{Text: "Let me see."},
		&event.ModelCallFinished{Status: "success"},
		&event.ToolCallPlanned{Tool: "slow"},
		&event.ToolCallPlanned{Tool: "slower"},
		&event.ToolCallResult{Tool: "slow", Status: "ok", LatencyMS: 1200, Result: "12345"},
		&event.ToolCallResult{Tool: "slower", Status: "error", ErrorType: lathe.CodeTimeout, Limit: "tool_timeout"},
		&event.TextDelta{Text: "Done."},
		&event.RunFinished{Reason: lathe.ReasonAnswered, Turns: 2, ToolCalls: 2},
	} {
		s.Emit(t.Context(), event.Event{Data: d})
	}
	const back = "\r\x1b[2K"
	want := "Let me see.\n· slow …" + back + "· slower …" + back + "✓ slow  5 B in 1200 ms\n✗ slower  timeout: limit tool_timeout\nDone.\n" +
		"· answered after 2 turns, 2 tool calls, 0 tokens, under 1 ms\n"
	if got := both.String(); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// What could not be written is known, and nothing of the work is said when quiet.
func TestScreenQuiet(t *testing.T) {
	t.Parallel()
	var out, errw bytes.Buffer
	s := &screen{out: &out, err: &errw, showAnswer: true, live: true, quiet: true}
	for _, d := range []event.Data{
		&event.ToolCallPlanned{Tool: "slow"},
		&event.ToolCallResult{Tool: "slow", Status: "ok"},
		&event.ToolCallParseError{Error: lathe.CodePayloadParseError},
		&event.TextDelta{Text: "Done."},
		&event.RunFinished{Reason: lathe.ReasonAnswered},
	} {
		s.Emit(t.Context(), event.Event{Data: d})
	}
	if out.String() != "Done.\n" || errw.Len() > 0 {
		t.Errorf("got %q and %q", out.String(), errw.String())
	}
}

// A call that could not be read has one line: that of its result, or one of its own if it gets no result.
func TestScreenShowsAnUnreadableCallOnce(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	s := &screen{out: &both, err: &both, showAnswer: true, live: true}
	for _, d := range []event.Data{
		&event.ToolCallParseError{Error: lathe.CodePayloadParseError, ExcerptBytes: 82},
		&event.ToolCallParseError{Error: lathe.CodePayloadParseError},
		&event.ModelCallFinished{Status: "success"},
		&event.ToolCallResult{Tool: "a", Status: "error", ErrorType: lathe.CodePayloadParseError},
		&event.ToolCallResult{Tool: "b", Status: "error", ErrorType: lathe.CodeExecutionFailed},
		&event.ToolCallResult{Tool: "c", Status: "error", ErrorType: lathe.CodePayloadParseError},
		&event.ModelCallStarted{},
		&event.ToolCallParseError{Error: lathe.CodePayloadParseError, ExcerptBytes: 7},
		&event.ModelCallFinished{Status: "success"},
		&event.ModelCallStarted{}, // without tools: the call was dropped
		&event.ToolCallParseError{Error: lathe.CodePayloadParseError, ExcerptBytes: 9},
		&event.ToolCallResult{Tool: "d", Status: "error", ErrorType: lathe.CodeIncompleteCall},
		&event.ToolCallParseError{Error: lathe.CodePayloadParseError, ExcerptBytes: 3},
		&event.RunFinished{Reason: lathe.ReasonLength, Turns: 3},
	} {
		s.Emit(t.Context(), event.Event{Data: d})
	}
	want := "✗ a  tool_payload_parse_error: a call of the model could not be read, 82 B\n" +
		"✗ b  execution_failed\n" +
		"✗ c  tool_payload_parse_error: a call of the model could not be read\n" +
		"! tool_payload_parse_error: a call of the model could not be read, 7 B\n" +
		"✗ d  incomplete_call: a call of the model could not be read, 9 B\n" +
		"! tool_payload_parse_error: a call of the model could not be read, 3 B\n" +
		"· length after 3 turns, 0 tool calls, 0 tokens, under 1 ms\n"
	if got := both.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
