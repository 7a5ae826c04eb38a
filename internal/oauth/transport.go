package oauth

import (
	"io"
	"net/http"

	"github.com/lathe-run/lathe/internal/httpname"
)

// maxRefusalBytes limits how much is read of a response that requests another token.
const maxRefusalBytes = 64 << 10

// Transport returns a transport that adds the token to requests to the origin of the server only. After a redirect to another origin, a
// request does not carry the token. If the server requests a token, the transport repeats the request with a renewed or new token, if it
// can obtain one without a user; otherwise it stores the requested scopes for the next login, and the request fails with a [*LoginError].
// Errors of the transport itself are [*Error].
func (c *Client) Transport(next http.RoundTripper) http.RoundTripper { return &transport{c, next} }

type transport struct {
	c    *Client
	next http.RoundTripper
}

// CloseIdleConnections closes the idle connections of the underlying transport, for http.Client.CloseIdleConnections.
func (t *transport) CloseIdleConnections() {
	if n, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		n.CloseIdleConnections()
	}
}

// maxRepeats is how often a refused request is repeated: once with a stored or renewed token, and once with a new token.
const maxRepeats = 2

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if home := httpname.Origin(t.c.server); httpname.Origin(req.URL) != home || hasLeft(req, home) {
		return t.next.RoundTrip(req)
	}
	used, err := t.c.token(req.Context())
	if err == nil && used == "" && t.c.conf.API {
		used, err = t.c.initialToken(req.Context())
	}
	if err != nil {
		closeBody(req)
		return nil, &Error{err}
	}
	for repeats := 0; ; repeats++ {
		resp, err := t.next.RoundTrip(withToken(req, used))
		if err != nil {
			return nil, err
		}
		ch := readChallenge(resp.Header)
		canRepeat := req.Body == nil || req.GetBody != nil
		if !asksForToken(resp, &ch) || !canRepeat {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusalBytes)) // lets the connection be reused
		_ = resp.Body.Close()
		refused := &refusedToken{challenge: ch, forScopes: resp.StatusCode == http.StatusForbidden, token: used, repeats: repeats}
		if used, err = t.c.nextToken(req.Context(), refused); err != nil {
			return nil, &Error{err}
		}
		if req.Body != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req = req.Clone(req.Context()) // the request of the caller must not be modified
			req.Body = body
		}
	}
}

// hasLeft reports whether redirects have led a request to an origin other than home.
func hasLeft(req *http.Request, home string) bool {
	for req.Response != nil && req.Response.Request != nil {
		if req = req.Response.Request; httpname.Origin(req.URL) != home {
			return true
		}
	}
	return false
}

// asksForToken reports whether a response requests a token, or one with more scopes. A server that requests only other schemes gets no
// token.
func asksForToken(resp *http.Response, ch *challenge) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return ch.scheme != noScheme || resp.Header.Get("WWW-Authenticate") == ""
	case http.StatusForbidden:
		return ch.code == "insufficient_scope" && len(ch.scopes) > 0
	}
	return false
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper must close the body
	}
}

func withToken(req *http.Request, token string) *http.Request {
	out := req.Clone(req.Context())
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	return out
}
