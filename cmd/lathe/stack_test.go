package main

import (
	"context"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/sim"
)

const twoTools = "What is 7 + 35, and what time is it in Tokyo?"

// runModel carries one run through all parts as the command puts them together.
func runModel(ctx context.Context, t testing.TB, cfg *config.Config, name string) (*event.Result, []event.Event) {
	t.Helper()
	entry, err := cfg.Model(name)
	if err != nil {
		t.Fatal(err)
	}
	model, err := app.NewProvider(entry, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := app.NewToolSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := app.NewRunner(cfg, set, nil)
	if err != nil {
		t.Fatal(err)
	}
	pol, err := app.NewPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(model, runner, &loop.Options{Settings: cfg.Settings(), Limits: cfg.Limits(), Policy: pol})
	if err != nil {
		t.Fatal(err)
	}
	var rec recorder
	res, _ := newEngine(t, &engine.Options{Sinks: []event.Sink{&rec}}).Run(ctx, l, &loop.Input{Messages: []lathe.Message{lathe.User(twoTools)}}, nil)
	return res, rec.events
}

// A recorder stores every event that it receives.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Emit(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Every fault of the simulated model ends as it says, without a real wait and without a goroutine
// left: a bubble whose goroutines do not end fails its test.
func TestEveryFaultEndsAsDocumented(t *testing.T) {
	t.Parallel()
	for _, wire := range []struct {
		word string // of the configuration
		wire lathe.Wire
	}{{"openai", lathe.WireOpenAIChat}, {"responses", lathe.WireResponses}, {"anthropic", lathe.WireMessages}, {"gemini", lathe.WireGemini}} {
		for _, f := range sim.FaultsOn(wire.wire) {
			t.Run(wire.word+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cfg, err := config.Load("", &config.LoadOptions{Overrides: []config.Override{
						{From: "test", Key: "models.m.provider", Value: "sim"},
						{From: "test", Key: "models.m.model", Value: "sim/fault-" + f.Name},
						{From: "test", Key: "models.m.wire", Value: wire.word},
					}})
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					res, events := runModel(t.Context(), t, cfg, "m")
					if res.Reason != f.Ends {
						t.Errorf("ended %s (%v), want %s", res.Reason, res.Err, f.Ends)
					}
					if took := time.Since(began); took > 5*time.Minute {
						t.Errorf("took %s", took)
					}
					checkEvents(t, events)
					checkHistory(t, res.History)
				})
			})
		}
	}
}

// The same over HTTP: not parallel, so that the goroutines that are left can be counted.
func TestEveryFaultOverHTTP(t *testing.T) {
	check := leaktest.Since(t)
	// A server each: faults that come with every other request count the requests.
	var wg sync.WaitGroup
	for _, f := range sim.FaultsOn(lathe.WireOpenAIChat) {
		wg.Go(func() {
			srv := httptest.NewServer(sim.New(nil).Handler())
			defer srv.Close()
			cfg, err := config.Load("", &config.LoadOptions{Overrides: []config.Override{
				{From: "test", Key: "models.m.base_url", Value: srv.URL + "/v1"},
				{From: "test", Key: "models.m.model", Value: "sim/fault-" + f.Name},
				{From: "test", Key: "models.m.client_timeout", Value: timeoutFor(f)},
			}})
			if err != nil {
				t.Error(err)
				return
			}
			res, events := runModel(t.Context(), t, cfg, "m")
			if res.Reason != f.Ends {
				t.Errorf("%s: ended %s (%v), want %s", f.Name, res.Reason, res.Err, f.Ends)
			}
			checkEvents(t, events)
			checkHistory(t, res.History)
		})
	}
	wg.Wait()
	check()
}

func timeoutFor(f sim.Fault) string {
	if f.Name == "hang" {
		return "200ms"
	}
	return "60s"
}

// checkHistory holds a history to the rule that it can be sent again: each call is answered exactly
// once, in call order, before any other message.
func checkHistory(t testing.TB, history []lathe.Message) {
	t.Helper()
	var open []string
	for i := range history {
		m := &history[i]
		if m.Role == lathe.RoleTool {
			r, ok := m.Parts[0].(lathe.ToolResult)
			switch {
			case !ok || len(m.Parts) != 1:
				t.Errorf("message %d: not one tool result", i)
			case len(open) == 0 || open[0] != r.CallID:
				t.Errorf("message %d answers %q, open are %q", i, r.CallID, open)
			default:
				open = open[1:]
			}
			continue
		}
		if len(open) > 0 {
			t.Errorf("message %d comes before the answers to %q", i, open)
		}
		open = nil
		for _, c := range m.Calls() {
			if c.ID == "" || slices.Contains(open, c.ID) {
				t.Errorf("message %d: call id %q", i, c.ID)
			}
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without an answer: %q", open)
	}
}
