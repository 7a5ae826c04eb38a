package app

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/internal/config"
)

var (
	errClosed     = errors.New("the application is closed")
	errNotAudited = errors.New("the audit log cannot be written; the log of the gateway has the cause")
)

// reloadFor reloads the configuration for the holder of a key, after the audit log has recorded the reload.
func (a *App) reloadFor(ctx context.Context, by string) error {
	if a.audit != nil {
		if err := a.audit.Change(ctx, &audit.Changed{Change: "config_reload", By: by}); err != nil {
			a.log.Error("the audit log cannot be written", "error", err)
			return errNotAudited
		}
	}
	return a.opts.Reload(ctx)
}

// restartKeys are the settings, and the sections of settings, that Reload does not change.
var restartKeys = []string{"approval.webhook", "audit", "cluster", "serve.addr", "serve.advertise", "serve.console", "serve.keep_alive", "serve.max_body_bytes",
	"serve.max_calls", "serve.max_concurrent", "serve.max_idle_connections", "serve.max_inflight_bytes", "serve.max_messages", "serve.max_parts", "serve.max_runs",
	"serve.max_text", "serve.max_tools", "serve.max_watchers", "serve.metrics_addr", "serve.previous_seal_key", "serve.repeat_window", "serve.retry_window",
	"serve.seal_key", "serve.store", "serve.usage", "serve.worker_lease", "telemetry.args_preview_hash", "telemetry.args_preview_key", "telemetry.baggage",
	"telemetry.content", "telemetry.content_url", "telemetry.metric_names", "telemetry.otlp_endpoint"}

// Reload activates a new configuration; if it returns an error, nothing changes. Requests and runs that began with the previous
// configuration use it until they end; then its servers and modules are closed. Store, audit log, collector, limits of the HTTP server,
// addresses, and whether TLS is used, change only with a restart.
func (a *App) Reload(cfg *config.Config) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return failed(errClosed)
	}
	a.warn(cfg)
	cert, err := loadCertificate(cfg)
	if err != nil {
		return err
	}
	if err := a.checkBudgets(cfg); err != nil {
		return err
	}
	next, err := a.newRevision(cfg)
	if err != nil {
		return err
	}
	if err := a.pools.workers.Reload(poolsOf(cfg)); err != nil {
		next.close()
		return configError(Cause(err))
	}
	setup := next.setup
	former, err := a.server.Reload(&setup)
	if err != nil {
		next.close()
		return errors.Join(configError(Cause(err)), a.pools.workers.Reload(poolsOf(a.current.cfg)))
	}
	unused := a.offerTools(next)
	a.keep.Store(&cfg.Keep)
	if a.TLS() && cert != nil {
		a.certificate.Store(cert)
	}
	if a.meter != nil {
		a.meter.SetKeys(budgetsOf(cfg))
	}
	old, closed := a.current, make(chan struct{})
	a.current, a.retired = next, append(a.retired, closed)
	go func() {
		defer close(closed)
		<-former // closed when no request and no run uses the previous revision
		<-unused // closed when no call of an MCP client uses it
		old.close()
	}()
	return nil
}
