package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/stdlog"
	"github.com/lathe-run/lathe/loop"
)

// HTTPServer returns an http.Server with g as its handler, without an address. It has the [Limits] on request headers and on idle
// connections. Responses have no total time limit, because streams are long; each write has a deadline instead. The caller calls Serve and,
// after [Server.Drain], Shutdown.
func (g *Server) HTTPServer() *http.Server {
	l := &g.opts.Limits
	return &http.Server{Handler: g, ReadHeaderTimeout: l.HeaderTimeout, IdleTimeout: l.IdleTimeout, MaxHeaderBytes: l.MaxHeader,
		ConnState: newIdleConns(l.MaxIdle).changed, ErrorLog: stdlog.Logger(g.opts.Log)}
}

// CheckAddr returns an error of code invalid_config if addr does not have the form HOST:PORT, or if addr is not a loopback address although
// there are no API keys. keys is the number of API keys.
func CheckAddr(addr string, keys int) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		port := "8080"
		if n, err := strconv.Atoi(addr); err == nil && n > 0 {
			port = addr
		}
		return invalid("listen", fmt.Errorf("%.80q is not HOST:PORT, such as 127.0.0.1:%s", addr, port))
	}
	if keys > 0 || httpname.IsLoopback(addr) {
		return nil
	}
	if host == "" {
		host = "every address of this machine"
	}
	return invalid("listen", fmt.Errorf("%s can be reached by others, and there are no keys: configure `keys`, or listen on 127.0.0.1", host))
}

// Metrics returns a handler of /metrics, /livez, /readyz and /healthz for a separate listener. It requires no API key.
func (g *Server) Metrics() http.Handler {
	mux := http.NewServeMux()
	if g.opts.Metrics != nil {
		mux.Handle("GET /metrics", g.opts.Metrics.Handler())
	}
	mux.HandleFunc("GET /livez", g.livez)
	mux.HandleFunc("GET /readyz", g.readyz)
	mux.HandleFunc("GET /healthz", g.readyz)
	return mux
}

// Unready makes /readyz, and requests that would start a run, return 503 from now on. Call it some time before [Server.Drain], so that load
// balancers stop sending requests.
func (g *Server) Unready() { g.draining.Store(true) }

// Drain calls [Server.Unready], ends the streams of subscribers, and blocks until no request is in progress and all WebSockets are closed.
// When ctx is done, Drain ends the runs of the remaining requests with reason interrupted, and returns after their responses are sent.
func (g *Server) Drain(ctx context.Context) {
	g.Unready()
	g.leave() // watchers reconnect to another process with the id of their last event, so they miss none
	over := g.work.idle()
	select {
	case <-over:
	case <-ctx.Done():
		g.stop(loop.ErrInterrupted)
		g.inflight.interrupt(loop.ErrInterrupted)
		<-over
	}
	g.sockets.drain(ctx)
	g.stop(nil)
	g.sockets.serving.Wait()
}

var errDraining = errors.New("the gateway is about to stop")

// takes returns a problem while the server drains, and nil otherwise. Handlers call it before they begin a run.
func (co *core) takes() *problem {
	if co.draining.Load() {
		return draining()
	}
	return nil
}

// head handles HEAD / with status 200, for clients that probe the server.
func head(http.ResponseWriter, *http.Request) {}

// livez handles /livez: it responds with 200 while the process serves.
func (g *Server) livez(w http.ResponseWriter, _ *http.Request) {
	answerText(w, http.StatusOK, "ok")
}

// answerText writes a plain-text response: the line and a newline.
func answerText(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(line + "\n")) // the client may have disconnected
}

// readyz handles /readyz and, for monitors that support only that path, /healthz. It returns 503 while the server drains or
// the check of the store fails. The cause of a failure is logged once, until the next success.
func (g *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if g.draining.Load() {
		answerText(w, http.StatusServiceUnavailable, errDraining.Error())
		return
	}
	if err := g.ready(r.Context()); err != nil {
		text := unwritable
		if p := problems.OfStore(err); p != nil {
			text = p.Message
		}
		if !g.unready.Swap(true) {
			g.opts.Log.Error("the gateway is not ready", "cause", err)
		}
		answerText(w, http.StatusServiceUnavailable, text)
		return
	}
	g.unready.Store(false)
	answerText(w, http.StatusOK, "ok")
}

// unwritable says that the check of the store failed.
const unwritable = "the store cannot be written"

// ready checks the store for readyTimeout at most. It returns nil if there is no check.
func (co *core) ready(ctx context.Context) error {
	if co.opts.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return co.opts.Ready(ctx)
}

// readyTimeout bounds the check of the store for one /readyz.
const readyTimeout = 5 * time.Second

// metrics handles /metrics. The series name all keys with their use and costs, so the caller needs the right `metrics` or
// an admin key.
func (g *Server) metrics(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if g.opts.Metrics == nil || g.opts.NoMetrics {
		return notFound("not_found", "Metrics are not served here.")
	}
	if !c.key.isAdmin() && !c.key.Metrics {
		return forbidden("admin_required", "The metrics show the use of all keys: they need a key with keys.NAME.metrics: true, or an admin key.")
	}
	g.opts.Metrics.Handler().ServeHTTP(w, r)
	return nil
}

// answer writes v as JSON with status 200. It returns a problem, and has written nothing, if v cannot be encoded.
func answer(w http.ResponseWriter, v any) *problem { return answerAs(w, http.StatusOK, v) }

// answerAs writes v as JSON with the status, like answer.
func answerAs(w http.ResponseWriter, status int, v any) *problem {
	body, err := json.Marshal(v)
	if err != nil {
		return internalError("The gateway failed.")
	}
	return answerRaw(w, status, body)
}

// answerRaw writes body, which is JSON, and a newline. Its result is always nil, so that a handler can return it.
func answerRaw(w http.ResponseWriter, status int, body []byte) *problem {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
	return nil
}

// answerNothing responds with status 204 and no body. Its result is always nil.
func answerNothing(w http.ResponseWriter) *problem {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}
