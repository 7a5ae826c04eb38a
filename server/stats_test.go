package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/server"
)

type callStats struct {
	Calls, Errors int
	P50           int64 `json:"p50_ms"`
	P95           int64 `json:"p95_ms"`
	First         int64 `json:"first_token_p50_ms"`
}

type statRow struct {
	Time   time.Time
	Name   string
	Runs   int
	Failed int       `json:"failed_runs"`
	Model  callStats `json:"model_calls"`
	Tool   callStats `json:"tool_calls"`
	Input  int64     `json:"input_tokens"`
	Cost   float64
}

type statsAnswer struct {
	Step                   int64      `json:"step_seconds"`
	Complete               *time.Time `json:"complete_since"`
	Total                  statRow
	Buckets, Models, Tools []statRow
	Reasons                []statRow
	Statuses, Keys         []statRow
}

func (h *runFixture) stats(query string, header ...string) *statsAnswer {
	h.t.Helper()
	resp, body := h.do("GET", "/api/stats?"+query, "", header...)
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %d %s", query, resp.StatusCode, body)
	}
	return parse[statsAnswer](h.t, body)
}

// record stores a run with one model call, at a time.
func (h *runFixture) record(id, owner string, at time.Time, ms int64, tools ...*event.ToolCallExecuted) {
	h.t.Helper()
	cost := 0.5
	data := []event.Data{&event.RunStarted{Model: "m", Principal: owner}, &event.ModelCallStarted{Attempt: 1},
		&event.ModelCallFinished{Attempt: 1, Model: "m", Status: "success", LatencyMS: ms, FirstTokenMS: ms / 2, Usage: lathe.Usage{InputTokens: 10}, ProviderCost: &cost}}
	if ms > 900 {
		data[2] = &event.ModelCallFinished{Attempt: 1, Model: "slow", Status: "error", LatencyMS: ms}
	}
	for _, t := range tools {
		data = append(data, &event.ToolCallPlanned{ToolCallID: t.ToolCallID, Tool: t.ToolName}, t)
	}
	if ms > 900 {
		data = append(data, &event.RunFinished{Reason: lathe.ReasonUpstreamError, Status: "failed"})
	}
	h.append(id, at, data...)
}

// append stores the first events of a run, at a time.
func (h *runFixture) append(id string, at time.Time, data ...event.Data) {
	h.t.Helper()
	var events []event.Event
	for i, d := range data {
		events = append(events, event.Event{ID: int64(i) + 1, RunID: id, RequestID: "req", Time: at, Turn: 1, Data: d})
	}
	if _, err := h.store.Append(h.t.Context(), id, 0, events...); err != nil {
		h.t.Fatal(err)
	}
}

func TestStatsCountWhatTheStoreHas(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			root := key("root")
			root.Admin = true
			o.Setup.Keys = []server.Key{key("ann"), key("bob"), root}
		}
	})
	now := h.clock.now()
	for i := range 20 { // 100 ms to 2 s, one run in each of the last 20 minutes
		h.record(fmt.Sprintf("run_%02d", i), "ann", now.Add(-time.Duration(i)*time.Minute-time.Second), int64(i+1)*100,
			&event.ToolCallExecuted{ToolCallID: "a", ToolName: "look", Success: true, LatencyMS: int64(i)}, &event.ToolCallExecuted{ToolCallID: "b", ToolName: "write", LatencyMS: 7})
	}
	h.record("run_bob", "bob", now.Add(-time.Second), 100)
	h.record("run_old", "ann", now.Add(-2*time.Hour), 100)

	s := h.stats("since=20m&buckets=10")
	if s.Step != 120 || len(s.Buckets) != 10 || s.Complete != nil {
		t.Fatalf("step %d, %d buckets, complete since %v", s.Step, len(s.Buckets), s.Complete)
	}
	for i, b := range s.Buckets {
		if b.Runs != 2 || b.Model.Calls != 2 || b.Tool.Calls != 4 || b.Tool.Errors != 2 || !b.Time.Equal(now.Add(-20*time.Minute+time.Duration(i)*2*time.Minute)) {
			t.Errorf("bucket %d: %+v", i, b)
		}
	}
	if b := s.Buckets[9]; b.Model.P50 != 100 || b.Model.P95 != 200 || b.Model.First != 50 || b.Input != 20 || b.Cost != 1 {
		t.Errorf("the last bucket: %+v", b)
	}
	if n := s.Total; n.Runs != 20 || n.Failed != 11 || n.Model.Calls != 20 || n.Model.Errors != 11 || n.Model.P50 != 1000 || n.Model.P95 != 1900 || n.Tool.Calls != 40 || n.Tool.Errors != 20 {
		t.Errorf("total: %+v", n)
	}
	if len(s.Models) != 2 || s.Models[0].Name != "slow" || s.Models[0].Model.Calls != 11 || s.Models[1].Model.Calls != 9 {
		t.Errorf("models: %+v", s.Models)
	}
	if len(s.Tools) != 2 || s.Tools[0].Name != "look" || s.Tools[0].Tool.P50 != 9 || s.Tools[1].Tool.Errors != 20 {
		t.Errorf("tools: %+v", s.Tools)
	}
	if len(s.Reasons) != 2 || s.Reasons[0].Name != "upstream_error" || s.Reasons[0].Runs != 11 || s.Reasons[1].Name != "running" {
		t.Errorf("reasons: %+v", s.Reasons)
	}
	runs := func(rows []statRow) (out []string) {
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%s %d", r.Name, r.Runs))
		}
		return out
	}
	if got := runs(s.Statuses); !slices.Equal(got, []string{"failed 11", "running 9"}) {
		t.Errorf("runs by status: %q", got)
	}
	if got := runs(h.stats("since=1d", "Authorization", "Bearer "+text("root")).Keys); !slices.Equal(got, []string{"ann 21", "bob 1"}) {
		t.Errorf("runs by key: %q", got)
	}
	if got := runs(s.Models); !slices.Equal(got, []string{"slow 0", "m 20"}) {
		t.Errorf("runs by model: %q", got)
	}
	if got := runs(s.Tools); !slices.Equal(got, []string{"look 20", "write 20"}) {
		t.Errorf("runs by tool: %q", got)
	}
	if s := h.stats("", "Authorization", "Bearer "+text("bob")); s.Total.Runs != 1 || len(s.Buckets) != 60 || s.Step != 60 {
		t.Errorf("bob's: %+v", s.Total)
	}
	if s := h.stats("since=1d", "Authorization", "Bearer "+text("root")); s.Total.Runs != 22 || len(s.Buckets) != 60 {
		t.Errorf("of all: %+v", s.Total)
	}
	for query, want := range map[string]statRow{"model=slow": {Model: callStats{Calls: 2, Errors: 2, P50: 1900, P95: 2000}}, "tool=write": {Tool: callStats{Calls: 2, Errors: 2, P50: 7, P95: 7}}} {
		s := h.stats("since=20m&buckets=10&" + query)
		if want.Time = s.Buckets[0].Time; s.Buckets[0] != want || s.Total.Runs != 20 || s.Total.Model.Calls != 20 || len(s.Tools) != 2 {
			t.Errorf("%s: %+v, want %+v; total %+v", query, s.Buckets[0], want, s.Total)
		}
	}
	if s := h.stats("since=10s&buckets=300"); len(s.Buckets) != 10 || s.Step != 1 {
		t.Errorf("%d buckets of %d s", len(s.Buckets), s.Step)
	}
	for i, target := range []string{"local", "down"} { // two entries that name one model
		id := "run_" + target
		if _, err := h.store.Append(t.Context(), id, 0, event.Event{ID: 1, RunID: id, Time: now, Data: &event.RunStarted{Model: "m", Target: target, Principal: "bob"}},
			event.Event{ID: 2, RunID: id, Time: now, Turn: 1, Data: &event.ModelCallStarted{Attempt: 1}},
			event.Event{ID: 3, RunID: id, Time: now, Turn: 1, Data: &event.ModelCallFinished{Attempt: 1, Model: "m", Status: []string{"success", "error"}[i]}}); err != nil {
			t.Fatal(err)
		}
	}
	h.clock.add(time.Second)
	if s := h.stats("", "Authorization", "Bearer "+text("bob")); len(s.Models) != 3 || s.Models[0].Name != "down" || s.Models[0].Model.Errors != 1 || s.Models[1].Name != "local" || s.Models[2].Name != "m" {
		t.Errorf("bob's models: %+v", s.Models)
	}
	for query, says := range map[string]string{"since=x": "such as 15m", "buckets=0": "from 1 to 300", "buckets=301": "from 1 to 300", "since=1h&until=2h": "before until", "window=1h": "no query parameter", "model=a&tool=b": "Either model or tool"} {
		if p := h.refused("GET", "/api/stats?"+query, "", 400, "invalid_request"); !strings.Contains(p.Detail, says) {
			t.Errorf("%s: %s", query, p.Detail)
		}
	}
}

// Tools of clients, which have runs and no calls here, do not displace tools with calls.
func TestStatsListToolsWithCallsFirst(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	at := h.clock.now().Add(-time.Second)
	for i := range 2 {
		for j := range 60 {
			h.append(fmt.Sprintf("run_%d_%d", i, j), at, &event.RunStarted{Model: "m"}, &event.ToolCallPlanned{ToolCallID: "a", Tool: fmt.Sprintf("client_%02d", j)})
		}
	}
	h.record("run_look", "", at, 100, &event.ToolCallExecuted{ToolCallID: "a", ToolName: "look", Success: true})
	s := h.stats("since=1h")
	if len(s.Tools) != 50 || s.Tools[0].Name != "look" || s.Tools[0].Runs != 1 || s.Tools[1].Name != "client_00" || s.Tools[1].Runs != 2 {
		t.Errorf("%d tools, first %+v", len(s.Tools), s.Tools[:2])
	}
}

// A client can name any number of tools. Those of the newest runs are counted, up to a limit.
func TestStatsBoundTheNamesOfTools(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	now := h.clock.now()
	for i := range 3 {
		h.append(fmt.Sprintf("run_old_%d", i), now.Add(-time.Hour), &event.RunStarted{Model: "m"}, &event.ToolCallPlanned{ToolCallID: "a", Tool: "old"})
	}
	for i := range 160 { // with 64 names each
		data := []event.Data{&event.RunStarted{Model: "m"}}
		for j := range 64 {
			data = append(data, &event.ToolCallPlanned{ToolCallID: "a", Tool: fmt.Sprintf("client_%05d", i*64+j)})
		}
		h.append(fmt.Sprintf("run_%03d", i), now.Add(-time.Minute), data...)
	}
	if s := h.stats("since=2h"); len(s.Tools) != 50 || s.Tools[0].Runs != 1 || s.Total.Runs != 163 {
		t.Errorf("%d runs, %d tools, first %+v", s.Total.Runs, len(s.Tools), s.Tools[0])
	}
}
