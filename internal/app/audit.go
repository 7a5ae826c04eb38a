package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
)

// OpenAudit opens the audit log that audit.path names, and writes its last hash to log. It returns nil, nil if audit.path is empty.
func OpenAudit(cfg *config.Config, log *slog.Logger) (*audit.Log, error) {
	if cfg.Audit.Path == "" {
		return nil, nil
	}
	opts := &audit.Options{Content: cfg.Telemetry.Content, MaxBytes: int64(cfg.Audit.MaxBytes)}
	if cfg.Telemetry.ArgsPreviewHash == "keyed" {
		opts.HashKey = []byte(cfg.Telemetry.ArgsPreviewKey.Reveal())
	}
	file := AuditPath(cfg)
	l, err := audit.Open(file, opts)
	if err != nil {
		return nil, failed(fmt.Errorf("the audit log %s: %w", file, Cause(err)))
	}
	log.Info("the audit log is open", "head", l.Head().String())
	return l, nil
}

// AuditPath returns the path of the audit log.
func AuditPath(cfg *config.Config) string { return stateFile(cfg, cfg.Audit.Path) }

// audited returns an emit that writes events to the audit log and then calls emit. It is used for tool calls outside of the engine.
func audited(ctx context.Context, trail *audit.Log, run *lathe.RunInfo, emit func(event.Data)) func(event.Data) {
	n := int64(0)
	return func(d event.Data) {
		n++
		// After a failed write, the journal of the runner refuses the call before its tool runs.
		_ = trail.Event(ctx, run, event.Event{ID: n, Time: time.Now(), RunID: run.RunID, RequestID: run.RequestID, SessionID: run.SessionID, Turn: 1, Data: d})
		emit(d)
	}
}
