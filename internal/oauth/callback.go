package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// callbackPath is the path of the redirect URI.
const callbackPath = "/callback"

// maxCallbackBytes limits the request line and headers of the redirected browser.
const maxCallbackBytes = 32 << 10

// A callback is the loopback listener that receives the redirect of a login.
type callback struct {
	state   string
	address string // HOST:PORT
	server  *http.Server
	done    chan struct{} // closed when the server has stopped
	answers chan url.Values
}

// listen opens the listener. It returns an error if the port is in use. Port "0" selects a free port.
func listen(ctx context.Context, port, state string) (*callback, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, errors.New("the port at which the login would be answered is taken")
	}
	b := &callback{state: state, address: l.Addr().String(), done: make(chan struct{}), answers: make(chan url.Values, 1)}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: maxCallbackBytes}
	go func() {
		defer close(b.done)
		_ = b.server.Serve(l) // close ends Serve
	}()
	return b, nil
}

func (b *callback) redirect() string { return "http://" + b.address + callbackPath }

// close stops the listener. It waits up to a second for a response in progress.
func (b *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close() // the response is no longer needed
	}
	<-b.done
}

// ServeHTTP accepts one request with the state of the login. It refuses all other requests, for example from a page that guesses the port,
// without any effect on the login.
func (b *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	query, err := url.ParseQuery(r.URL.RawQuery)
	state := query.Get("state")
	if r.Method != http.MethodGet || r.URL.Path != callbackPath || r.Host != b.address || err != nil ||
		subtle.ConstantTimeCompare([]byte(state), []byte(b.state)) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "This is not the answer to the login that is under way.\n")
		return
	}
	select {
	case b.answers <- query:
		_, _ = io.WriteString(w, "Lathe has the answer. This page can be closed; the terminal says how it went.\n")
	default:
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, "The login was answered already.\n")
	}
}

// wait returns the query parameters of the redirect, or an error when ctx is done.
func (b *callback) wait(ctx context.Context) (url.Values, error) {
	select {
	case q := <-b.answers:
		return q, nil
	case <-ctx.Done():
		return nil, errors.New("no answer came to the login in time")
	}
}

// codeFrom returns the authorization code in the redirect parameters. It checks the issuer first (RFC 9207), and ignores everything,
// including errors, from another authorization server.
func codeFrom(q url.Values, as *authServer) (string, error) {
	for _, name := range []string{"code", "iss", "error", "state"} {
		if len(q[name]) > 1 {
			return "", errors.New("the answer to the login says something twice")
		}
	}
	switch {
	case q.Get("iss") == "" && as.AuthorizationResponseIssParameterSupported:
		return "", errors.New("the answer to the login does not name its authorization server, which says that it does so always")
	case q.Has("iss") && !as.unnamed && q.Get("iss") != as.Issuer:
		return "", errors.New("the answer to the login comes from another authorization server than was asked")
	case q.Get("error") != "":
		if code := plainCode(q.Get("error")); code != "" {
			return "", errors.New("the authorization server refuses the login: " + code)
		}
		return "", errors.New("the authorization server refuses the login")
	case q.Get("code") == "" || len(q.Get("code")) > maxTokenBytes:
		return "", errors.New("the answer to the login holds no code")
	}
	return q.Get("code"), nil
}
