package server

import (
	"net/http"

	"github.com/lathe-run/lathe/internal/wire/uistream"
)

// uiLimits returns the limits of requests to /api/chat.
func (h *uiHandler) uiLimits() uistream.Limits {
	limits := uistream.DefaultLimits()
	limits.MaxText = h.opts.Limits.MaxText
	return limits
}

// showLimits handles GET /api/limits: a chat page reads the limits before it sends a text.
func (h *catalogHandler) showLimits(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	return answer(w, struct {
		MaxText int `json:"max_text"` // characters
		MaxBody int `json:"max_body_bytes"`
	}{h.opts.Limits.MaxText, h.opts.Limits.MaxBody})
}
