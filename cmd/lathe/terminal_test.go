package main

import (
	"bytes"
	"testing"

	"github.com/lathe-run/lathe"
)

// A line that says that a tool is running is taken back by what comes next, whatever that is.
func TestScreenTakesBackLiveLines(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	s := &screen{out: &both, err: &both, text: true, live: true}
	for _, d := range []lathe.EventData{
		&lathe.TextDelta{Text: "Let me see."},
		&lathe.ModelCallFinished{Status: "success"},
		&lathe.ToolCallPlanned{Tool: "slow"},
		&lathe.ToolCallPlanned{Tool: "slower"},
		&lathe.ToolCallResult{Tool: "slow", Status: "ok", LatencyMS: 1200, Result: "12345"},
		&lathe.ToolCallResult{Tool: "slower", Status: "error", ErrorType: lathe.CodeTimeout, Limit: "tool_timeout"},
		&lathe.TextDelta{Text: "Done."},
		&lathe.RunFinished{Reason: lathe.ReasonAnswered, Turns: 2, ToolCalls: 2},
	} {
		s.Emit(t.Context(), lathe.Event{Data: d})
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
	s := &screen{out: &out, err: &errw, text: true, live: true, quiet: true}
	for _, d := range []lathe.EventData{
		&lathe.ToolCallPlanned{Tool: "slow"},
		&lathe.ToolCallResult{Tool: "slow", Status: "ok"},
		&lathe.ToolCallParseError{Error: lathe.CodePayloadParseError},
		&lathe.TextDelta{Text: "Done."},
		&lathe.RunFinished{Reason: lathe.ReasonAnswered},
	} {
		s.Emit(t.Context(), lathe.Event{Data: d})
	}
	if out.String() != "Done.\n" || errw.Len() > 0 {
		t.Errorf("got %q and %q", out.String(), errw.String())
	}
}
