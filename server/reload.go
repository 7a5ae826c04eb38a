package server

import (
	"context"
	"net/http"

	problems "github.com/lathe-run/lathe/internal/gateway/problem"
)

// reload handles POST /api/reload: it reads the configuration again. It responds when the new configuration is in effect,
// with its warnings, or with the reason why it was refused. The request itself is served under the former configuration.
func (h *stateHandler) reload(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if h.opts.Reload == nil {
		return notFound("not_found", "This gateway cannot reload its configuration.")
	}
	if p := h.takes(); p != nil {
		return p
	}
	// The reload continues if the client disconnects, so that it is not left half done. Its outcome is then only in the
	// log.
	if err := h.opts.Reload(context.WithoutCancel(r.Context()), c.decider()); err != nil {
		return problems.New(http.StatusUnprocessableEntity, "invalid_config", "The configuration was not reloaded, the one before stays in force: %v", err)
	}
	now := h.work.begin()
	warnings := now.Warnings
	h.work.end(now)
	return answer(w, struct {
		Reloaded bool     `json:"reloaded"`
		Warnings []string `json:"warnings,omitempty"`
	}{true, warnings})
}
