package app

import (
	"cmp"
	"log/slog"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// CallOptions are options of tool calls that are not in the configuration. The zero value is usable.
type CallOptions struct {
	// Approver decides the calls that need an approval; nil: they are denied.
	Approver lathe.Approver
	// Audit records each call before its tool runs; nil: calls are not recorded.
	Audit *audit.Log
	Log   *slog.Logger // nil: discards

	disabled *policy.Disabled // tools disabled by operators; nil: none
}

// RunnerOptions returns the options of a [tool.Runner] from the configuration: policy, limits, secrets, circuits and retries.
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
		Circuit: tool.Circuit{Failures: cmp.Or(cfg.Tools.Circuit.Failures, -1), OpenFor: cfg.Tools.Circuit.OpenFor},
		Retry:   tool.Retry{Attempts: cfg.Tools.Retry.Attempts, Backoff: cfg.Tools.Retry.Backoff},
	}
	if calls.Audit != nil {
		opts.Journal = calls.Audit.Call
	}
	return opts, nil
}

// NewRunner returns a runner that calls the tools of the set with the settings of the configuration.
func NewRunner(cfg *config.Config, set *tool.Set, calls *CallOptions) (*tool.Runner, error) {
	opts, err := RunnerOptions(cfg, calls)
	if err != nil {
		return nil, err
	}
	runner, err := tool.NewRunner(set, opts)
	if err != nil {
		return nil, configError(Cause(err))
	}
	return runner, nil
}

// NewLoop returns the loop of a model entry, with its model, the runner, and the settings and limits of runs.
func NewLoop(cfg *config.Config, entry *config.Model, model lathe.Model, runner *tool.Runner) (*loop.Loop, error) {
	return newLoop(cfg, entry, model, runner, nil)
}
