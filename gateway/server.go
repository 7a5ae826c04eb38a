package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/lathe-run/lathe/internal/stdlog"
	"github.com/lathe-run/lathe/loop"
)

// Server returns a server of the gateway with the limits that it needs: on the head of a request, on
// idle connections. It has no limit on writing, which would cut streams: each write has its own.
func (g *Gateway) Server() *http.Server {
	l := &g.opts.Limits
	return &http.Server{Handler: g, ReadHeaderTimeout: l.HeaderTimeout, IdleTimeout: l.IdleTimeout, MaxHeaderBytes: l.MaxHeader,
		ConnState: newIdleConns(l.MaxIdle).changed, ErrorLog: stdlog.Logger(g.opts.Log)}
}

// CheckAddr says whether the gateway may be served on the address: one that others reach wants keys.
func CheckAddr(addr string, keys int) error {
	if keys > 0 || isLoopback(addr) {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return invalid("listen", err)
	}
	if host == "" {
		host = "every address of this machine"
	}
	return invalid("listen", fmt.Errorf("%s can be reached by others, and there are no keys: configure `keys`, or listen on 127.0.0.1", host))
}

// Metrics serves the metrics for a listener of their own. It asks for no key.
func (g *Gateway) Metrics() http.Handler {
	mux := http.NewServeMux()
	if g.opts.Metrics != nil {
		mux.Handle("GET /metrics", g.opts.Metrics.Handler())
	}
	mux.HandleFunc("GET /livez", g.livez)
	mux.HandleFunc("GET /readyz", g.readyz)
	return mux
}

// Unready makes /readyz say that no more requests should be sent here, and answers those that begin a
// run 503. It comes before a drain, so that a balancer has turned to other servers.
func (g *Gateway) Unready() { g.draining.Store(true) }

// Drain waits until no request is worked on. When ctx is done before that, the runs of clients are
// ended `interrupted`, and their clients told. It returns when the last request is answered.
func (g *Gateway) Drain(ctx context.Context) {
	g.Unready()
	g.leave() // they come back, and miss nothing
	over := g.work.idle()
	select {
	case <-over:
	case <-ctx.Done():
		g.stop(loop.ErrInterrupted)
		g.flying.interrupt(loop.ErrInterrupted)
		<-over
	}
	g.stop(nil)
}

var errDraining = errors.New("the server is about to stop")

// takes refuses requests that begin a run in a server that is about to stop.
func (g *Gateway) takes() *problem {
	if g.draining.Load() {
		return &problem{Status: http.StatusServiceUnavailable, Code: "draining", RetryAfter: drainRetry, Message: "The server is about to stop; try again."}
	}
	return nil
}

func (g *Gateway) livez(w http.ResponseWriter, _ *http.Request) {
	probe(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // nobody to tell
}

func probe(w http.ResponseWriter) {
	if c := callerOf(w); c != nil { // on a listener of its own nothing is logged
		c.pattern = probed
	}
}

func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	probe(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if g.draining.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(errDraining.Error() + "\n")) // nobody to tell
		return
	}
	if g.opts.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := g.opts.Ready(ctx); err != nil {
			text := "the store cannot be written\n"
			if p := storeProblem(err); p != nil {
				text = p.Message + "\n"
			}
			if g.unready.CompareAndSwap(false, true) {
				g.opts.Log.Error("the server is not ready", "cause", err)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(text)) // nobody to tell
			return
		}
		g.unready.Store(false)
	}
	_, _ = w.Write([]byte("ok\n")) // nobody to tell
}

// readyTimeout bounds the check of the store for one /readyz.
const readyTimeout = 5 * time.Second

func (g *Gateway) metrics(w http.ResponseWriter, r *http.Request, c *caller) {
	if g.opts.Metrics == nil || g.opts.NoMetrics {
		c.fail(w, &problem{Status: http.StatusNotFound, Code: "not_found", Message: "Metrics are not served here."})
		return
	}
	g.opts.Metrics.Handler().ServeHTTP(w, r)
}

// answer writes v as JSON.
func (c *caller) answer(w http.ResponseWriter, v any) { c.answerAs(w, http.StatusOK, v) }

func (c *caller) answerAs(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		c.fail(w, &problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The server failed."})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // nobody to tell
}
