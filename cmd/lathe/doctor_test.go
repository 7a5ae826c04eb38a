package main

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/sim"
)

// runProfile writes what the doctor found as a configuration and runs a prompt with it.
func runProfile(t *testing.T, model string, timeout time.Duration) *event.Result {
	t.Helper()
	rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: "http://sim.invalid/v1", Model: model, Transport: sim.New(nil).Transport(),
		Entry: []doctor.Setting{{Key: "provider", Value: "sim"}, {Key: "model", Value: model}}}, &doctor.Options{Timeout: timeout, Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cfg := load(t, string(rep.Profile.YAML()), config.Override{From: "test", Key: "models." + rep.Profile.Name + ".client_timeout", Value: timeout.String()})
	entry, err := cfg.Model("")
	if err != nil {
		t.Fatal(err)
	}
	if entry.Model != model {
		t.Fatalf("the profile names %s", entry.Model)
	}
	chat, err := app.NewModel(cfg, entry, nil)
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
	l, err := loop.New(chat, runner, &loop.Options{Settings: cfg.SettingsFor(entry), Limits: cfg.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	res, _ := l.Do(t.Context(), &loop.Input{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}}) // the result says what went wrong
	return res
}

// The profile of each fault loads, and a run with it ends as that fault ends runs, or is mended.
func TestProfileOfEachFaultLoadsAndRuns(t *testing.T) {
	t.Parallel()
	mended := map[string]lathe.Reason{"status-400-tools": lathe.ReasonAnswered, "status-404-tools": lathe.ReasonAnswered}
	for _, f := range sim.FaultsOn(lathe.WireOpenAIChat) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			timeout := 30 * time.Second
			if f.Name == "hang" {
				timeout = 300 * time.Millisecond
			}
			want, ok := mended[f.Name]
			if !ok {
				want = f.Ends
			}
			if res := runProfile(t, "sim/fault-"+f.Name, timeout); res.Reason != want {
				t.Errorf("the run ended %s, want %s", res.Reason, want)
			}
		})
	}
}

// A model that writes its calls as text gets the dialect that reads them.
func TestProfileOfEachDialectRuns(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names() {
		if name == "auto" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := runProfile(t, "sim/demo+"+name, 30*time.Second)
			if res.Reason != lathe.ReasonAnswered || res.ToolCalls != 1 {
				t.Errorf("%s after %d calls: %s", res.Reason, res.ToolCalls, res.Answer)
			}
		})
	}
}
