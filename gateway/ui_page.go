package gateway

import (
	"net/http"

	"github.com/lathe-run/lathe/gateway/console"
)

// page serves the page for people. It asks for no key: it is the same for everybody.
func (g *Gateway) page(mux *http.ServeMux) {
	if g.opts.NoPage {
		return
	}
	h := console.Handler()
	for _, pattern := range console.Patterns() {
		mux.Handle(pattern, h)
	}
}
