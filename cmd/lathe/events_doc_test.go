package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/observe"
)

// everyEvent has one of each type, with a value wherever content has a place.
var everyEvent = []event.Data{
	&event.RunStarted{}, &event.ModelCallStarted{Attempt: 1}, &event.TextDelta{}, &event.ReasoningDelta{}, &event.CommentaryDelta{}, &event.ToolCallDelta{}, &event.ToolCallProgress{},
	&event.ModelCallFinished{Provider: "sim", ErrorMessage: "busy", Faults: []lathe.Fault{{Kind: "bad_line", Count: 1}}},
	&event.ToolCallProposed{ToolName: "calculator"}, &event.ToolCallParseError{Dialect: "harmony"}, &event.ToolCallPlanned{},
	&event.ApprovalRequested{Arguments: json.RawMessage(`{}`)}, &event.ApprovalResolved{Arguments: json.RawMessage(`{}`)},
	&event.ToolCallExecuted{ToolName: "calculator"}, &event.ToolsLoaded{},
	&event.ToolCallResult{Tool: "calculator", Status: "error", ErrorType: lathe.CodeTimeout, LatencyMS: 1, Limit: "tool_timeout", PolicyDecision: "allow"},
	&event.RunPaused{}, &event.RunResumed{}, &event.RunFinished{Reason: lathe.ReasonAnswered},
}

// documentRows returns the cells of the rows of docs/events.md whose first cell holds one name in code.
func documentRows(t *testing.T, heading string) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(b), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/events.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.SplitSeq(section, "\n") {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.Split(strings.Trim(line, "|"), "|"))
		}
	}
	return rows
}

var code = regexp.MustCompile("`([^`]+)`")

func codes(cell string) []string {
	var out []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	labelNames = regexp.MustCompile(`[{,]([a-z_]+)="`)
)

// The document lists each metric with its type and labels, under the names that the program has by default.
func TestDocumentedMetrics(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(metricsOptions(config.Default()))
	m.CountRequest("GET /v1/models", 200)
	m.ObserveRequest("GET /v1/models", time.Second)
	m.ObserveFirstByte("GET /v1/models", time.Second)
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/call", Tool: "t", Failure: "tool_error"})
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/call", Tool: "t", Failure: "tool_error", Server: true})
	m.CountWorkers(func() []observe.WorkerCount { return []observe.WorkerCount{{Pool: "f"}} })
	for _, data := range everyEvent {
		m.Emit(t.Context(), event.Event{RunID: "run_1", Turn: 1, Data: data})
	}
	text := string(scrape(m))
	want := map[string][]string{}
	for _, typed := range typeLine.FindAllStringSubmatch(text, -1) {
		labels := []string{typed[2]}
		series := regexp.MustCompile(`(?m)^` + typed[1] + `(_count)?(\{.*\})? `).FindString(text)
		for _, l := range labelNames.FindAllStringSubmatch(series, -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		want[typed[1]] = labels
	}
	got := map[string][]string{}
	for _, row := range documentRows(t, "## Metrics") {
		labels := append(codes(row[2]), strings.TrimSpace(row[1]))
		slices.Sort(labels)
		got[codes(row[0])[0]] = labels
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-scraped +documented):\n%s", diff)
	}
}
