package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// Whatever is called and however it ends: each call has one Planned, at most one Proposed and one
// Executed, in order; one Result and one message unless it is pending; ids are unique; the names in
// events are registered ones; the answer agrees with the event.
func TestEveryCallIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tools := []lathe.Tool{
			reader("echo", echo),
			reader("fails", func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, errBoom }),
			reader("panics", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic(errBoom) }),
			reader("exits", func(context.Context, json.RawMessage) (*lathe.Output, error) { runtime.Goexit(); return nil, nil }),
			reader("nothing", func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, nil }),
			reader("rubbish", returns("\xff")),
			reader("error", func(context.Context, json.RawMessage) (*lathe.Output, error) {
				return &lathe.Output{IsError: true, Data: json.RawMessage(`{"a":1}`)}, nil
			}),
			reader("big", returns(`"`+strings.Repeat("x", 3000)+`"`)),
			reader("ask", echo), reader("deny", echo), reader("slow_rate", echo), reader("writes", echo), reader("hidden", echo),
		}
		spec := func(i int) *lathe.ToolSpec { return tools[i].Spec() }
		spec(10).Rate = 0.001
		spec(11).Effect = lathe.Writes
		spec(12).Hidden = true
		spec(0).CacheTTL = 1 << 40
		known := map[string]bool{"unknown": true, "client": true}
		for _, f := range tools {
			known[f.Spec().Name] = true
		}
		pending := rapid.Bool().Draw(t, "pending")
		settings := lathe.Settings{
			MaxParallel:       rapid.IntRange(0, 4).Draw(t, "parallel"),
			Executor:          rapid.SampledFrom([]lathe.Executor{"", lathe.ExecutorNoop}).Draw(t, "executor"),
			OversizeOutput:    rapid.SampledFrom([]lathe.OversizeOutput{"", lathe.OversizeTruncate}).Draw(t, "oversize"),
			ResultFormat:      rapid.SampledFrom([]lathe.ResultFormat{"", lathe.ResultEnvelope}).Draw(t, "format"),
			CompactEnvelope:   rapid.Bool().Draw(t, "compact"),
			StrictUnknownTool: rapid.Bool().Draw(t, "strict"),
			Repair:            rapid.SampledFrom([]lathe.Repair{"", lathe.RepairOff}).Draw(t, "repair"),
		}
		opts := &tool.Options{
			Policy:   policy.Tools{Ask: []string{"ask"}, Deny: []string{"deny"}, Else: policy.AllowAll()},
			Settings: settings,
			Limits:   lathe.Limits{MaxToolCalls: rapid.IntRange(1, 12).Draw(t, "budget"), MaxOutputBytes: 2000, MaxToolArgsBytes: 500},
			Approver: approver(func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
				if pending {
					return lathe.Approval{}, lathe.ErrPending
				}
				return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"edited":1}`)}, nil
			}),
		}
		set, err := tool.NewSet(tools...)
		if err != nil {
			t.Fatal(err)
		}
		runner, err := tool.NewRunner(set, opts)
		if err != nil {
			t.Fatal(err)
		}
		w := runner.Begin(&lathe.RunInfo{RunID: "r"}, &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "client"}}})

		name := rapid.OneOf(rapid.SampledFrom([]string{"echo", "fails", "panics", "exits", "nothing", "rubbish", "error", "big", "ask", "deny",
			"slow_rate", "writes", "hidden", "client", " echo ", "nope", "constructor", ""}), rapid.String())
		args := rapid.OneOf(rapid.SampledFrom([]string{"", "{}", "null", `{"a":1}`, `{"b":2}`, "[]", "{", "```json\n{}\n```", `"{}"`, strings.Repeat("x", 600)}), rapid.String())
		codes := rapid.SampledFrom([]lathe.Code{"", "", "", "", lathe.CodeTooManyCalls, lathe.CodeIncompleteCall})
		parse := rapid.SampledFrom([]lathe.Code{"", "", "", "", "", lathe.CodePayloadParseError, lathe.CodePayloadTooLarge})
		ids := map[string]bool{}
		wantSeq := 0
		for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
			msg := lathe.Message{Role: lathe.RoleAssistant}
			for range rapid.IntRange(0, 6).Draw(t, "calls") {
				msg.Parts = append(msg.Parts, lathe.ToolCall{ID: rapid.SampledFrom([]string{"", "a", "b", " a ", "\x00"}).Draw(t, "id"),
					Name: name.Draw(t, "name"), Arguments: args.Draw(t, "args"), ParseError: parse.Draw(t, "parse"), Incomplete: rapid.IntRange(0, 9).Draw(t, "cut") == 0})
			}
			w.Adopt(&msg)
			var calls []tool.Call
			for _, c := range msg.Calls() {
				if ids[c.ID] || c.ID == "" {
					t.Fatalf("id %q is given twice, or empty", c.ID)
				}
				ids[c.ID] = true
				calls = append(calls, tool.Call{ToolCall: c, Refuse: codes.Draw(t, "refuse")})
			}
			events := map[string]string{}
			results := map[string]*event.ToolCallResult{}
			check := func(id, tool, what string) {
				if !ids[id] || !known[tool] {
					t.Fatalf("%s of call %q with tool %q", what, id, tool)
				}
				events[id] += what
			}
			out := w.Execute(context.Background(), turn, calls, func(d event.Data) {
				switch d := d.(type) {
				case *event.ToolCallProposed:
					check(d.ToolCallID, d.ToolName, "P")
				case *event.ToolCallPlanned:
					check(d.ToolCallID, d.Tool, "p")
					if d.Seq != wantSeq {
						t.Fatalf("seq %d, want %d", d.Seq, wantSeq)
					}
					wantSeq++
				case *event.ApprovalRequested:
					check(d.ToolCallID, d.Tool, "a")
				case *event.ApprovalResolved:
					check(d.ToolCallID, d.Tool, "A")
				case *event.ToolCallExecuted:
					check(d.ToolCallID, d.ToolName, "x")
				case *event.ToolCallResult:
					check(d.ToolCallID, d.Tool, "r")
					results[d.ToolCallID] = d
				default:
					t.Fatalf("unexpected event %T", d)
				}
			})
			pendingIDs := map[string]bool{}
			for _, c := range out.Pending {
				pendingIDs[c.ID] = true
			}
			next := 0
			for _, c := range calls {
				got := events[c.ID]
				if pendingIDs[c.ID] {
					if got != "Pp" && got != "Ppa" {
						t.Fatalf("pending call has the events %q", got)
					}
					continue
				}
				plain := strings.NewReplacer("aA", "", "x", "").Replace(got)
				if plain != "Ppr" && !(plain == "pr" && c.ParseError != "") || strings.Count(got, "x") > 1 {
					t.Fatalf("call %+v has the events %q", c, got)
				}
				res, ok := out.Messages[next].Parts[0].(lathe.ToolResult)
				result := results[c.ID]
				if !ok || res.CallID != c.ID || res.Content != result.Result || res.IsError != (result.Status == "error") || res.Code != result.ErrorType || res.IsError != (res.Code != "") {
					t.Fatalf("call %q: answer %+v, event %+v", c.ID, res, result)
				}
				if (settings.ResultFormat == lathe.ResultEnvelope || res.IsError) && !json.Valid([]byte(res.Content)) {
					t.Fatalf("answer is not JSON: %s", res.Content)
				}
				next++
			}
			if next != len(out.Messages) {
				t.Fatalf("%d messages for %d answered calls", len(out.Messages), next)
			}
			if out.Reason != "" {
				return
			}
		}
	})
}

// Secrets in arguments, outputs, errors and panics are never in the data of an event, nor in a log line.
func TestCanaries(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-5cb1"
	secret := func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return &lathe.Output{Data: json.RawMessage(`{"x":"` + canary + `"}`)}, nil
	}
	typed := reader("typed", echo)
	typed.spec.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	shows := reader("shows", secret)
	shows.spec.Allowlist = []string{"y"}
	output := reader("output", secret)
	output.spec.OutputSchema = json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}}}`)
	tools := []lathe.Tool{typed, shows, output, reader("echo", echo),
		reader("fails", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return nil, fmt.Errorf("boom %s", canary)
		}),
		reader("refuses", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return nil, tool.Fail(lathe.CodeInvalidArguments, "%s", canary)
		}),
		reader("panics", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic(canary) }),
		reader("rubbish", returns(`{"x":"`+canary+`",}`)),
		reader("ask", echo), reader("big", returns(`"`+strings.Repeat(canary, 10_000)+`"`)),
		reader("fault", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{IsError: true, Code: canary, Data: json.RawMessage(`"` + canary + `"`)}, nil
		}),
	}
	var logs, events bytes.Buffer
	for _, settings := range []lathe.Settings{{}, {OversizeOutput: lathe.OversizeTruncate, ResultFormat: lathe.ResultEnvelope}, {MaxParallel: 3}} {
		opts := &tool.Options{Policy: policy.Tools{Ask: []string{"ask"}, Else: policy.AllowAll()}, Settings: settings, Limits: lathe.Limits{MaxToolCalls: 100, MaxUnknownTools: 100},
			Log: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Approver: approver(func(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
				return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"e":"` + canary + `"}`)}, fmt.Errorf("%s", req.Call.Arguments)
			})}
		w := open(t, opts, tools...)
		var calls []tool.Call
		for _, f := range tools {
			calls = append(calls, call(f.Spec().Name, `{"`+canary+`":"`+canary+`"}`), call(f.Spec().Name, `{"n":"`+canary+`"`), call(f.Spec().Name, "{}"))
		}
		calls = append(calls, call(canary, "{}"), call("echo", strings.Repeat(canary, 50_000)),
			tool.Call{ToolCall: lathe.ToolCall{Name: canary, ParseError: lathe.CodePayloadParseError, Arguments: canary}})
		out := w.Execute(t.Context(), 1, calls, func(d event.Data) {
			b, err := event.Event{RunID: "r", Data: d}.MarshalData()
			if err != nil {
				t.Error(err)
			}
			events.Write(b)
			events.WriteByte('\n')
		})
		if len(out.Messages) != len(calls) {
			t.Fatalf("%d messages for %d calls", len(out.Messages), len(calls))
		}
		b, _ := json.Marshal(out.Calls)
		events.Write(b)
	}
	for name, text := range map[string]string{"event data": events.String(), "logs": logs.String()} {
		if len(text) < 1_000 {
			t.Errorf("%s has %d bytes: the test looks at nothing", name, len(text))
		}
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s hold a secret: …%s…", name, text[max(0, i-200):min(len(text), i+50)])
		}
	}
}
