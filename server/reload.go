package server

import (
	"context"
	"net/http"
)

// reload reads the configuration again, for admin keys. It answers when the new configuration is in force, with its warnings, or with
// the reason why it is not. The request itself is served under the former one.
func (h *stateHandler) reload(w http.ResponseWriter, r *http.Request, c *caller) {
	if h.opts.Reload == nil {
		c.fail(w, &problem{Status: http.StatusNotFound, Code: "not_found", Message: "This server cannot reload its configuration."})
		return
	}
	if p := h.takes(); p != nil {
		c.fail(w, p)
		return
	}
	// The reload does not end when the client disconnects, so that it is not left half done. Its outcome is then in the log only.
	if err := h.opts.Reload(context.WithoutCancel(r.Context()), c.decider()); err != nil {
		c.fail(w, &problem{Status: http.StatusUnprocessableEntity, Code: "invalid_config",
			Message: "The configuration was not reloaded, the one before stays in force: " + err.Error()})
		return
	}
	now := h.work.begin()
	warnings := now.Warnings
	h.work.end(now)
	c.answer(w, struct {
		Reloaded bool     `json:"reloaded"`
		Warnings []string `json:"warnings,omitempty"`
	}{true, warnings})
}
