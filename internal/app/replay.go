package app

import (
	"log/slog"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/budget"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// replayer returns the function for [server.Setup].Replay. It makes the loop of a model with tools that answer from a record.
func (r *revision) replayer(log *slog.Logger, meter *budget.Meter) func(model string, record []event.Event) (*loop.Loop, error) {
	return func(model string, record []event.Event) (*loop.Loop, error) {
		made, err := r.models.model(model)
		if err != nil {
			return nil, err
		}
		set, approver, err := (&replay.Record{Events: record}).Answers(r.tools.Set, r.cfg.Limits())
		if err != nil {
			return nil, err
		}
		opts, err := RunnerOptions(r.cfg, &CallOptions{Approver: approver, Log: log})
		if err != nil {
			return nil, err
		}
		opts.Retry, opts.Circuit = tool.Retry{Attempts: 1}, tool.Circuit{Failures: -1} // no tool is executed
		runner, err := tool.NewRunner(set, opts)
		if err != nil {
			return nil, err
		}
		return newLoop(r.cfg, made.entry, made.chat, runner, meter)
	}
}
