package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// checkEvents holds the events of one run to their order.
func checkEvents(t testing.TB, events []event.Event) {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("no events")
	}
	var last, n int64
	calls := map[string][]string{} // the events of each call
	ends := 0
	for i, e := range events {
		if e.RunID != events[0].RunID || e.RequestID != events[0].RequestID || e.RunID == "" || e.RequestID == "" {
			t.Errorf("event %d: ids %q and %q", i, e.RunID, e.RequestID)
		}
		name := e.Data.EventType()
		if event.IsDelta(e.Data) {
			if n++; e.ID != 0 || e.After != last || e.N != n {
				t.Errorf("%s %d: event_id %d, after %d, n %d; want after %d, n %d", name, i, e.ID, e.After, e.N, last, n)
			}
			continue
		}
		if last++; e.ID != last {
			t.Errorf("%s %d: event_id %d, want %d", name, i, e.ID, last)
		}
		switch d := e.Data.(type) {
		case *event.RunStarted:
			if i != 0 {
				t.Errorf("RunStarted is event %d", i)
			}
		case *event.RunFinished:
			ends++
		case *event.ModelCallStarted:
			n = 0
		case *event.ToolCallProposed:
			calls[d.ToolCallID] = append(calls[d.ToolCallID], name)
		case *event.ToolCallPlanned:
			calls[d.ToolCallID] = append(calls[d.ToolCallID], name)
		case *event.ApprovalRequested:
			calls[d.ToolCallID] = append(calls[d.ToolCallID], name)
		case *event.ApprovalResolved:
			calls[d.ToolCallID] = append(calls[d.ToolCallID], name)
		case *event.ToolCallExecuted:
			calls[d.ToolCallID] = append(calls[d.ToolCallID], name)
		case *event.ToolCallResult:
			calls[d.ToolCallID] = append(calls[d.ToolCallID], name)
		}
	}
	if _, ok := events[0].Data.(*event.RunStarted); !ok {
		t.Errorf("the first event is %s", events[0].Data.EventType())
	}
	if _, ok := events[len(events)-1].Data.(*event.RunFinished); !ok || ends != 1 {
		t.Errorf("%d terminal events; the last event is %s", ends, events[len(events)-1].Data.EventType())
	}
	whole := []string{"ToolCallProposed", "ToolCallPlanned", "ApprovalRequested", "ApprovalResolved", "ToolCallExecuted", "ToolCallResult"}
	for id, got := range calls {
		at := -1
		for _, name := range got {
			k := slices.Index(whole, name)
			if k <= at {
				t.Errorf("call %s: %s", id, strings.Join(got, " "))
			}
			at = k
		}
		if !slices.Contains(got, "ToolCallPlanned") || at != len(whole)-1 {
			t.Errorf("call %s: %s", id, strings.Join(got, " "))
		}
	}
}

// runJSON runs the command with --json and returns its lines.
func runJSON(t testing.TB, args ...string) []string {
	t.Helper()
	var out, errw bytes.Buffer
	args = append([]string{"run", "--json", "-q"}, args...)
	run(t.Context(), args, strings.NewReader(""), &out, &errw)
	if out.Len() == 0 {
		t.Fatalf("%q: no events: %s", args, errw.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func decode(t testing.TB, lines []string) []event.Event {
	t.Helper()
	var events []event.Event
	for _, line := range lines {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		again, err := json.Marshal(e)
		if err != nil || string(again) != line {
			t.Errorf("the line does not read back as it is (%v):\n%s\n%s", err, line, again)
		}
		events = append(events, e)
	}
	return events
}

// timesAndIDs are the members that differ from run to run.
var timesAndIDs = []string{"time", "run_id", "request_id", "latency_ms", "first_token_ms"}

// normal returns the lines as JSON values without times and ids.
func normal(t testing.TB, lines []string) []any {
	t.Helper()
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range timesAndIDs {
				delete(v, name)
			}
			for _, m := range v {
				strip(m)
			}
		case []any:
			for _, m := range v {
				strip(m)
			}
		}
	}
	var out []any
	for _, line := range lines {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		strip(v)
		out = append(out, v)
	}
	return out
}

// serveInProcess runs `lathe sim serve` until the test ends and returns its base URL.
func serveInProcess(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	pr, pw := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"sim", "serve", "--addr", "127.0.0.1:0"}, strings.NewReader(""), io.Discard, pw)
	}()
	lines := bufio.NewScanner(pr)
	lines.Scan()
	url := baseURL.FindString(lines.Text())
	go func() { _, _ = io.Copy(io.Discard, pr) }() // ends with pr
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("sim serve ended with %d", code)
		}
		_ = pr.Close() // always nil
	})
	if url == "" {
		t.Fatalf("sim serve said %q", lines.Text())
	}
	return url
}

// A run says the same whether its model is in this process or behind HTTP, but for times and ids.
func TestSameEventsInProcessAndOverHTTP(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ model, prompt string }{
		{"sim/demo", twoTools},
		{"sim/demo", "Hello."},
		{"sim/fault-reasoning", twoTools},
		{"sim/fault-args-invalid-json", "What is 7 + 35?"},
		{"sim/fault-status-401", "Hello."},
		{"sim/fault-error-in-band", "Hello."},
	} {
		t.Run(tc.model+" "+tc.prompt, func(t *testing.T) {
			t.Parallel()
			// The clock of get_current_time is the one thing that may move between the two runs.
			tools := []string{"--tools", "calculator"}
			inProcess := runJSON(t, append(tools, "--model", tc.model, tc.prompt)...)
			overHTTP := runJSON(t, append(tools, "--base-url", serveInProcess(t), "--model", tc.model, tc.prompt)...)
			checkEvents(t, decode(t, inProcess))
			checkEvents(t, decode(t, overHTTP))
			if diff := cmp.Diff(normal(t, inProcess), normal(t, overHTTP)); diff != "" {
				t.Errorf("in process (-), over HTTP (+):\n%s", diff)
			}
		})
	}
}

// Without content a line is the line with content less that member, and nothing else.
func TestNoContentLeavesOutContentAlone(t *testing.T) {
	t.Parallel()
	tools := []string{"--tools", "calculator", "What is 7 + 35?"}
	want := normal(t, runJSON(t, tools...))
	for _, v := range want {
		delete(v.(map[string]any), "content")
	}
	if diff := cmp.Diff(want, normal(t, runJSON(t, append([]string{"--no-content"}, tools...)...))); diff != "" {
		t.Error(diff)
	}
}

// A screen that follows a run of another process may have missed the first deltas of a turn.
func TestScreenWritesWholeTurns(t *testing.T) {
	t.Parallel()
	var out, err strings.Builder
	s := newScreen(&out, &err)
	s.showAnswer = true
	s.wholeTurns = true
	m := lathe.Assistant("7 + 35 = 43.")
	for _, d := range []event.Data{&event.TextDelta{Text: "+ 35 = 43."}, &event.ModelCallFinished{Status: "success", Message: &m}, &event.RunFinished{Reason: lathe.ReasonAnswered, Answer: "7 + 35 = 43."}} {
		s.Emit(t.Context(), event.Event{RunID: "r", Data: d})
	}
	if out.String() != "7 + 35 = 43.\n" {
		t.Errorf("got %q", out.String())
	}
}
