package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"

	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/text"
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

// maxAnswers is how often a refused request is repeated: once with a stored or renewed token, and once with a new token.
const maxAnswers = 2

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if home := httpname.Origin(t.c.server); httpname.Origin(req.URL) != home || hasLeft(req, home) {
		return t.next.RoundTrip(req)
	}
	used, err := t.c.token(req.Context())
	if err == nil && used == "" && t.c.conf.API {
		used, err = t.c.first(req.Context())
	}
	if err != nil {
		closeBody(req)
		return nil, &Error{err}
	}
	for answers := 0; ; answers++ {
		resp, err := t.next.RoundTrip(withToken(req, used))
		if err != nil {
			return nil, err
		}
		ch := readChallenge(resp.Header)
		if !asksForToken(resp, &ch) || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusalBytes)) // lets the connection be reused
		_ = resp.Body.Close()
		if used, err = t.c.answer(req.Context(), resp.StatusCode, &ch, used, answers); err != nil {
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
		return ch.bearer || ch.bound || resp.Header.Get("WWW-Authenticate") == ""
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

// token returns the token to send, or "" if none exists. It renews an expired token.
func (c *Client) token(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid() {
		return c.has.AccessToken, nil
	}
	defer c.publish()
	if err := c.load(); err != nil {
		return "", err
	}
	if !c.valid() && c.has.RefreshToken != "" {
		if err := c.renew(ctx, c.has.AccessToken); err != nil && codeOf(err) == "" {
			return "", fmt.Errorf("renewing the token: %w", err)
		}
	}
	if !c.valid() {
		return "", nil
	}
	return c.has.AccessToken, nil
}

// first obtains a token for a server that has not requested one yet.
func (c *Client) first(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid() { // another goroutine has obtained a token
		return c.has.AccessToken, nil
	}
	if c.byPerson() {
		return "", &LoginError{Name: c.conf.Name, Why: "there is no token"}
	}
	defer c.publish()
	return c.machine(ctx, &challenge{})
}

// machine obtains a token without a user and stores it.
func (c *Client) machine(ctx context.Context, ch *challenge) (string, error) {
	if err := c.grantMachine(ctx, ch.metadata, ch.scopes); err != nil {
		return "", fmt.Errorf("getting a token: %w", err)
	}
	if err := c.save(); err != nil {
		return "", err
	}
	return c.has.AccessToken, nil
}

func (c *Client) valid() bool {
	return c.has.AccessToken != "" && (c.has.Expires.IsZero() || c.now().Before(c.has.Expires.Add(-expiryMargin)))
}

// load reads the entry of the server from the store. It ignores an entry for another URL or another identity.
func (c *Client) load() error {
	e, err := c.store.get(c.conf.Name)
	if err != nil {
		return err
	}
	c.take(e)
	return nil
}

// take replaces the current entry by e, or by an empty entry if e belongs to another client.
func (c *Client) take(e entry) {
	if !c.owns(&e) {
		e = entry{URL: c.conf.Server, Identity: c.conf.Identity}
	}
	c.has, c.was = e, e
}

// owns reports whether a stored entry belongs to this client. An entry whose token is bound to a key does not, because the token cannot be
// sent.
func (c *Client) owns(e *entry) bool {
	return e.URL == c.conf.Server && e.Identity == c.conf.Identity && !e.Bound
}

// save stores the current entry, unless another process has stored other tokens since the entry was read, for example after a login. Those
// tokens have precedence: the client then uses them.
func (c *Client) save() error {
	err := c.store.change(c.conf.Name, func(kept entry) (*entry, bool) {
		if c.owns(&kept) && (kept.AccessToken != c.was.AccessToken || kept.RefreshToken != c.was.RefreshToken) {
			c.take(kept)
			return nil, true
		}
		return &c.has, reflect.DeepEqual(kept, c.has)
	})
	if err != nil {
		return err
	}
	c.was = c.has
	return nil
}

// renew obtains a new token with the refresh token, unless another process has renewed the token `used` in the meantime.
func (c *Client) renew(ctx context.Context, used string) error {
	unlock, err := c.store.lock(c.conf.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.load(); err != nil {
		return err
	}
	if c.valid() && c.has.AccessToken != used {
		return nil
	}
	if c.has.RefreshToken == "" {
		return errors.New("there is no refresh token")
	}
	err = c.refresh(ctx)
	return errors.Join(err, c.save())
}

// answer returns another token after the server has refused the token used. answers is the number of repetitions so far.
func (c *Client) answer(ctx context.Context, status int, ch *challenge, used string, answers int) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.publish()
	if ch.bound && !ch.bearer {
		return "", errBound
	}
	if err := c.load(); err != nil {
		return "", err
	}
	if answers == 0 && c.valid() && c.has.AccessToken != used {
		return c.has.AccessToken, nil
	}
	if status == http.StatusForbidden {
		if err := c.mayWiden(ch.scopes); err != nil {
			return "", err
		}
	} else if answers == 0 && used != "" && c.has.RefreshToken != "" {
		err := c.renew(ctx, used)
		if err == nil || c.valid() && c.has.AccessToken != used { // the token was renewed, or a user has just logged in
			return c.has.AccessToken, nil
		}
		if codeOf(err) == "" {
			return "", fmt.Errorf("renewing the token: %w", err)
		}
	}
	if !c.byPerson() {
		if answers >= maxAnswers {
			return "", errors.New("the server does not take the token that it was got for")
		}
		return c.machine(ctx, ch)
	}
	c.has.Wanted, c.has.Want, c.has.Metadata = true, ch.scopes, ch.metadata
	why := "the server wants a token"
	switch {
	case status == http.StatusForbidden:
		why = "the server wants further scopes: " + shownScopes(ch.scopes)
	case used != "":
		why = "the server does not take the token any more"
		c.has.AccessToken, c.has.RefreshToken = "", ""
	}
	if err := c.save(); err != nil {
		return "", err
	}
	if c.valid() && c.has.AccessToken != used && answers < maxAnswers { // another process has stored a token
		return c.has.AccessToken, nil
	}
	return "", &LoginError{Name: c.conf.Name, Why: why}
}

// mayWiden returns why a token with further scopes would not help, or nil if it could.
func (c *Client) mayWiden(want []string) error {
	missing := func(have []string) bool {
		return slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
	}
	switch {
	case !missing(c.has.Scopes):
		return errors.New("the server refuses the request for want of scopes that its token has: " + shownScopes(want))
	case c.conf.Scopes != nil && missing(c.conf.Scopes):
		return errors.New("the server wants scopes that the configuration does not ask for (oauth.scopes): " + shownScopes(want))
	}
	return nil
}

// shownScopes returns the first 200 bytes of a list of scopes for an error text. The scopes are known to be printable.
func shownScopes(scopes []string) string {
	return text.Clip(joinScopes(scopes), 200)
}
