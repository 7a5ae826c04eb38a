package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
)

// maxRefusalBytes bounds what is read of an answer that asks for another token.
const maxRefusalBytes = 64 << 10

// Transport returns a transport that adds the token to requests to the server's origin, and to no
// other; one that was redirected to another on its way does not get it again. An answer that asks for a token is met once with a renewed or new one, where no person is
// needed for it; where one is, the request fails with a [*LoginError], and what the server asked
// for is kept for the login. Errors of its own are [*Error].
func (c *Client) Transport(next http.RoundTripper) http.RoundTripper { return &transport{c, next} }

type transport struct {
	c    *Client
	next http.RoundTripper
}

// CloseIdleConnections serves http.Client.CloseIdleConnections.
func (t *transport) CloseIdleConnections() {
	if n, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		n.CloseIdleConnections()
	}
}

// maxAnswers is how often one request is sent with another token after it was refused: once with
// one that was there or could be renewed, and once with a new one.
const maxAnswers = 2

// RoundTrip sends the request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if home := originOf(t.c.server); originOf(req.URL) != home || hasLeft(req, home) {
		return t.next.RoundTrip(req)
	}
	used, err := t.c.token(req.Context())
	if err == nil && used.token == "" && t.c.conf.API {
		used, err = t.c.first(req.Context())
	}
	if err != nil {
		closeBody(req)
		return nil, &Error{err}
	}
	answers, proven := 0, false // proven: a nonce was put into the proof already
	for {
		out, err := t.c.withToken(req, used)
		if err != nil {
			closeBody(req)
			return nil, &Error{err}
		}
		resp, err := t.next.RoundTrip(out)
		if err != nil {
			return nil, err
		}
		nonce := used.key != nil && t.c.nonces.take(req.URL, resp.Header)
		ch := readChallenge(resp.Header)
		if !asksForToken(resp, &ch) || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusalBytes)) // so that the connection serves again
		_ = resp.Body.Close()
		if nonce && !proven && ch.code == useNonce {
			proven = true
		} else {
			if used, err = t.c.answer(req.Context(), resp.StatusCode, &ch, used.token, answers); err != nil {
				return nil, &Error{err}
			}
			answers, proven = answers+1, false
		}
		if req.Body != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req = req.Clone(req.Context()) // the caller's stays as it is
			req.Body = body
		}
	}
}

// hasLeft reports whether a request has come over another origin, by redirects.
func hasLeft(req *http.Request, home string) bool {
	for req.Response != nil && req.Response.Request != nil {
		if req = req.Response.Request; originOf(req.URL) != home {
			return true
		}
	}
	return false
}

// asksForToken reports whether a token, or another one, would help. A server that wants to know its
// client by another scheme alone is none of ours.
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
		_ = req.Body.Close() // a RoundTripper closes it, whatever happens
	}
}

func (c *Client) withToken(req *http.Request, h held) (*http.Request, error) {
	out := req.Clone(req.Context())
	switch {
	case h.token == "":
	case h.key == nil:
		out.Header.Set("Authorization", "Bearer "+h.token)
	default:
		proof, err := c.proof(h.key, req.Method, req.URL, h.token)
		if err != nil {
			return nil, err
		}
		out.Header.Set("Authorization", "DPoP "+h.token)
		out.Header.Set("DPoP", proof)
	}
	return out, nil
}

// token returns the token to send now, none where there is none yet.
func (c *Client) token(ctx context.Context) (held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid() {
		return c.held()
	}
	defer c.publish()
	if err := c.load(); err != nil {
		return held{}, err
	}
	if !c.valid() && c.has.RefreshToken != "" {
		if err := c.renew(ctx, c.has.AccessToken); err != nil && codeOf(err) == "" {
			return held{}, fmt.Errorf("renewing the token: %w", err)
		}
	}
	if !c.valid() {
		return held{}, nil
	}
	return c.held()
}

// first returns a token before the server has asked for one.
func (c *Client) first(ctx context.Context) (held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid() { // got meanwhile
		return c.held()
	}
	if c.byPerson() {
		return held{}, &LoginError{Name: c.conf.Name, Why: "there is no token"}
	}
	defer c.publish()
	return c.machine(ctx, &challenge{})
}

// machine gets a token without a person, and keeps it.
func (c *Client) machine(ctx context.Context, ch *challenge) (held, error) {
	if err := c.grantMachine(ctx, ch.metadata, ch.scopes, ch.bound); err != nil {
		return held{}, fmt.Errorf("getting a token: %w", err)
	}
	if err := c.save(); err != nil {
		return held{}, err
	}
	return c.held()
}

func (c *Client) valid() bool {
	return c.has.AccessToken != "" && (c.has.Expires.IsZero() || c.now().Before(c.has.Expires.Add(-expiryMargin)))
}

// load reads what the store has of the server. What was kept for another address, or got for another identity, is not used.
func (c *Client) load() error {
	e, err := c.store.get(c.conf.Name)
	if err != nil {
		return err
	}
	c.take(e)
	return nil
}

// take makes an entry of the store the client's own.
func (c *Client) take(e entry) {
	if !c.owns(&e) {
		e = entry{URL: c.conf.Server, Identity: c.conf.Identity}
	}
	c.has, c.was = e, e
}

// owns reports whether an entry of the store is the client's.
func (c *Client) owns(e *entry) bool { return e.URL == c.conf.Server && e.Identity == c.conf.Identity }

// save keeps what the client has, unless another process has put other tokens there since they were
// read: a login, say, which counts for more than what is known here. Then the client has those.
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

// renew gets a new token by the refresh token, unless another process has done so since `used` was read.
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

// answer returns another token after one was refused.
func (c *Client) answer(ctx context.Context, status int, ch *challenge, used string, answers int) (held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.publish()
	if err := c.load(); err != nil {
		return held{}, err
	}
	if answers == 0 && c.valid() && c.has.AccessToken != used {
		return c.held()
	}
	if status == http.StatusForbidden {
		if err := c.mayWiden(ch.scopes); err != nil {
			return held{}, err
		}
	} else if answers == 0 && used != "" && c.has.RefreshToken != "" {
		err := c.renew(ctx, used)
		if err == nil || c.valid() && c.has.AccessToken != used { // renewed, or somebody has logged in just now
			return c.held()
		}
		if codeOf(err) == "" {
			return held{}, fmt.Errorf("renewing the token: %w", err)
		}
	}
	if !c.byPerson() {
		if answers >= maxAnswers {
			return held{}, errors.New("the server does not take the token that it was got for")
		}
		return c.machine(ctx, ch)
	}
	c.has.Wanted, c.has.Want, c.has.Metadata = true, ch.scopes, ch.metadata
	if status == http.StatusUnauthorized && (ch.bearer || ch.bound) {
		c.has.Bound = ch.bound
	}
	why := "the server wants a token"
	switch {
	case status == http.StatusForbidden:
		why = "the server wants further scopes: " + shownScopes(ch.scopes)
	case used != "":
		why = "the server does not take the token any more"
		c.has.AccessToken, c.has.RefreshToken = "", ""
	}
	if err := c.save(); err != nil {
		return held{}, err
	}
	if c.valid() && c.has.AccessToken != used && answers < maxAnswers { // the same
		return c.held()
	}
	return held{}, &LoginError{Name: c.conf.Name, Why: why}
}

// mayWiden says why a token with further scopes would not help, or returns nil.
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

// shownScopes is the beginning of a list of scopes, which were checked to be printable.
func shownScopes(scopes []string) string {
	s := joinScopes(scopes)
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}
