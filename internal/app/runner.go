package app

import (
	"log/slog"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// CallOptions are what tool calls pass besides the configuration. The zero value is usable.
type CallOptions struct {
	// Approver decides the calls that policy asks about; nil: they are denied.
	Approver lathe.Approver
	// Audit records each call before its tool runs; nil: no record.
	Audit *audit.Log
	Log   *slog.Logger // nil: discards

	disabled *policy.Disabled // nil: no tool is
}

// RunnerOptions returns the options of a [tool.Runner] that calls tools as the configuration says: policy, limits,
// secrets, circuits and retries.
func RunnerOptions(cfg *config.Config, calls *CallOptions) (*tool.Options, error) {
	if calls == nil {
		calls = &CallOptions{}
	}
	pol, err := NewPolicy(cfg)
	if err != nil {
		return nil, err
	}
	if calls.disabled != nil {
		pol = policy.All(pol, *calls.disabled)
	}
	opts := &tool.Options{
		Policy:   pol,
		Approver: calls.Approver,
		Settings: cfg.Settings(),
		Limits:   cfg.Limits(),
		HashMode: tool.HashMode(cfg.Telemetry.ArgsPreviewHash),
		HashKey:  []byte(cfg.Telemetry.ArgsPreviewKey.Reveal()),
		Log:      calls.Log, LogErrors: cfg.Telemetry.LogToolErrors,
		Secrets: newSecrets(cfg),
		Circuit: tool.Circuit{Failures: circuitFailures(cfg), OpenFor: cfg.Tools.Circuit.OpenFor},
		Retry:   tool.Retry{Attempts: cfg.Tools.Retry.Attempts, Backoff: cfg.Tools.Retry.Backoff},
	}
	if calls.Audit != nil {
		opts.Journal = calls.Audit.Call
	}
	return opts, nil
}

// circuitFailures returns tools.circuit.failures as [tool.Circuit] has it: negative if the circuit never opens.
func circuitFailures(cfg *config.Config) int {
	if cfg.Tools.Circuit.Failures == 0 {
		return -1
	}
	return cfg.Tools.Circuit.Failures
}

// NewRunner returns the runner that calls the tools of the set as the configuration says.
func NewRunner(cfg *config.Config, set *tool.Set, calls *CallOptions) (*tool.Runner, error) {
	opts, err := RunnerOptions(cfg, calls)
	if err != nil {
		return nil, err
	}
	runner, err := tool.NewRunner(set, opts)
	if err != nil {
		return nil, invalidConfig(Cause(err))
	}
	return runner, nil
}

// NewLoop returns the loop of a configuration entry: its model, the runner, and the settings and limits of its runs.
func NewLoop(cfg *config.Config, entry *config.Model, model lathe.Model, runner *tool.Runner) (*loop.Loop, error) {
	return newLoop(cfg, entry, model, runner, nil)
}
