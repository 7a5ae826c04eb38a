package app

import (
	"log/slog"
	"strings"
	"time"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/webhook"
)

const (
	webhookTimeout = 10 * time.Second // timeout of one request
	maxWebhookBody = 64 << 10         // bytes of a response, which is ignored
)

// newWebhook returns the notifier of pending approvals, or nil if none is configured.
func newWebhook(cfg *config.Config, log *slog.Logger) (*webhook.Notifier, error) {
	w := &cfg.Approval.Webhook
	address := w.URL.Reveal()
	if address == "" {
		if !w.Secret.IsZero() || w.Page != "" {
			return nil, invalidConfig("approval.webhook.url: no address: where notices of waiting calls are sent")
		}
		return nil, nil
	}
	secret, err := webhook.ParseSecret(w.Secret.Reveal())
	if err != nil {
		return nil, invalidConfig("approval.webhook.secret: %w", err)
	}
	client, err := hostClient(address, cfg, &egress.Options{Timeout: webhookTimeout, MaxBodyBytes: maxWebhookBody, MaxRedirects: -1})
	if err == nil {
		err = client.Check(address)
	}
	switch {
	case egress.CodeOf(err) == egress.CodeAddress:
		return nil, invalidConfig("approval.webhook.url: the address is not public: name its host in tools.egress.private if it may be reached")
	case err != nil:
		return nil, invalidConfig("approval.webhook.url: %w", egress.Plain(err))
	}
	return webhook.New(&webhook.Options{URL: address, Secret: secret, Page: strings.TrimRight(w.Page, "/"), Do: client.Do, Log: log}), nil
}
