package gateway

import (
	"net/http"

	"github.com/lathe-run/lathe/internal/wire/uistream"
)

// uiLimits returns the limits of a request of a chat page.
func (g *Gateway) uiLimits() uistream.Limits {
	limits := uistream.DefaultLimits()
	limits.MaxText = g.opts.Limits.MaxText
	return limits
}

// showLimits answers with the limits that a chat page has to know before it sends a text.
func (g *Gateway) showLimits(w http.ResponseWriter, _ *http.Request, c *caller) {
	c.answer(w, struct {
		MaxText int `json:"max_text"` // characters
		MaxBody int `json:"max_body_bytes"`
	}{g.opts.Limits.MaxText, g.opts.Limits.MaxBody})
}
