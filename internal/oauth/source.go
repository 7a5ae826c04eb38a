package oauth

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/lathe-run/lathe/internal/text"
)

// token returns the token to send, or "" if none exists. It renews an expired token.
func (c *Client) token(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid() {
		return c.entry.AccessToken, nil
	}
	defer c.publish()
	if err := c.load(); err != nil {
		return "", err
	}
	if !c.valid() && c.entry.RefreshToken != "" {
		if err := c.renew(ctx, c.entry.AccessToken); err != nil && codeOf(err) == "" {
			return "", fmt.Errorf("renewing the token: %w", err)
		}
	}
	if !c.valid() {
		return "", nil
	}
	return c.entry.AccessToken, nil
}

// initialToken obtains a token for a server that has not requested one yet.
func (c *Client) initialToken(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid() { // another goroutine has obtained a token
		return c.entry.AccessToken, nil
	}
	if c.conf.needsUser() {
		return "", &LoginError{Name: c.conf.Name, Why: "there is no token"}
	}
	defer c.publish()
	return c.tokenWithoutUser(ctx, &challenge{})
}

// tokenWithoutUser obtains a token without a user and stores it.
func (c *Client) tokenWithoutUser(ctx context.Context, ch *challenge) (string, error) {
	if err := c.grantMachine(ctx, ch.metadata, ch.scopes); err != nil {
		return "", fmt.Errorf("getting a token: %w", err)
	}
	if err := c.save(); err != nil {
		return "", err
	}
	return c.entry.AccessToken, nil
}

// valid reports whether the current entry has a token that does not expire soon.
func (c *Client) valid() bool {
	return c.entry.AccessToken != "" && (c.entry.Expires.IsZero() || c.now().Before(c.entry.Expires.Add(-expiryMargin)))
}

// hasOther reports whether the current entry has a valid token other than used.
func (c *Client) hasOther(used string) bool { return c.valid() && c.entry.AccessToken != used }

// load reads the entry of the server from the store.
func (c *Client) load() error {
	e, err := c.store.get(c.conf.Name)
	if err != nil {
		return err
	}
	c.setEntry(e)
	return nil
}

// setEntry replaces the current entry by e, or by an empty entry if e belongs to another client.
func (c *Client) setEntry(e entry) {
	if !c.owns(&e) {
		e = entry{URL: c.conf.Server, Identity: c.conf.Identity}
	}
	c.entry, c.stored = e, e
}

// owns reports whether a stored entry belongs to this client. An entry whose token is bound to a key does not, because the token cannot be
// sent.
func (c *Client) owns(e *entry) bool {
	return e.URL == c.conf.Server && e.Identity == c.conf.Identity && !e.Bound
}

// save stores the current entry, unless another process has stored other tokens since the entry was read, for example after a login. Those
// tokens have precedence: the client then uses them.
func (c *Client) save() error {
	err := c.store.change(c.conf.Name, func(stored *entry) *entry {
		if c.owns(stored) && (stored.AccessToken != c.stored.AccessToken || stored.RefreshToken != c.stored.RefreshToken) {
			c.setEntry(*stored)
		}
		if reflect.DeepEqual(*stored, c.entry) {
			return stored
		}
		return &c.entry
	})
	if err != nil {
		return err
	}
	c.stored = c.entry
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
	if c.hasOther(used) {
		return nil
	}
	if c.entry.RefreshToken == "" {
		return errors.New("there is no refresh token")
	}
	err = c.refresh(ctx)
	return errors.Join(err, c.save())
}

// A refusedToken is the token of a request that the server refused, with the kind of token that it requires instead.
type refusedToken struct {
	challenge
	forScopes bool   // the server wants a token with more scopes (status 403), and otherwise a valid one (status 401)
	token     string // "": the request had none
	repeats   int    // number of repetitions of the request so far
}

// nextToken returns another token after the server has refused one: a stored one, else a renewed one, else a new one. If a new one needs a user,
// it returns what tokenOfLogin returns. After the first repetition of a request, neither a stored nor a renewed one is tried.
func (c *Client) nextToken(ctx context.Context, refused *refusedToken) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.publish()
	if refused.scheme == dpop {
		return "", errBound
	}
	if err := c.load(); err != nil {
		return "", err
	}
	isFirst := refused.repeats == 0
	switch {
	case isFirst && c.hasOther(refused.token):
		return c.entry.AccessToken, nil
	case refused.forScopes: // a renewed token would have the same scopes
		if err := checkFurtherScopes(refused.scopes, c.entry.Scopes, c.conf.Scopes); err != nil {
			return "", err
		}
	case isFirst && refused.token != "" && c.entry.RefreshToken != "":
		err := c.renew(ctx, refused.token)
		if err == nil || c.hasOther(refused.token) { // the token was renewed, or a user has just logged in
			return c.entry.AccessToken, nil
		}
		if codeOf(err) == "" { // with a code, the authorization server has refused the refresh token
			return "", fmt.Errorf("renewing the token: %w", err)
		}
	}
	switch {
	case c.conf.needsUser():
		return c.tokenOfLogin(refused)
	case refused.repeats >= maxRepeats:
		return "", errors.New("the server does not take the token that it was got for")
	}
	return c.tokenWithoutUser(ctx, &refused.challenge)
}

// tokenOfLogin stores what the server requests for the next login, and deletes a refused token. It returns a [*LoginError], or the token that
// another process has stored in the meantime.
func (c *Client) tokenOfLogin(refused *refusedToken) (string, error) {
	c.entry.LoginRequested, c.entry.RequestedScopes, c.entry.Metadata = true, refused.scopes, refused.metadata
	why := "the server wants a token"
	switch {
	case refused.forScopes:
		why = "the server wants further scopes: " + shownScopes(refused.scopes)
	case refused.token != "":
		why = "the server does not take the token any more"
		c.entry.AccessToken, c.entry.RefreshToken = "", ""
	}
	if err := c.save(); err != nil {
		return "", err
	}
	if c.hasOther(refused.token) && refused.repeats < maxRepeats {
		return c.entry.AccessToken, nil
	}
	return "", &LoginError{Name: c.conf.Name, Why: why}
}

// checkFurtherScopes returns why a token with the scopes of want would not help, or nil if it could. granted are those of the current token,
// and configured those that the configuration allows; nil: all.
func checkFurtherScopes(want, granted, configured []string) error {
	missing := func(have []string) bool {
		return slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
	}
	switch {
	case !missing(granted):
		return errors.New("the server refuses the request for want of scopes that its token has: " + shownScopes(want))
	case configured != nil && missing(configured):
		return errors.New("the server wants scopes that the configuration does not ask for (oauth.scopes): " + shownScopes(want))
	}
	return nil
}

// shownScopes returns the first 200 bytes of a list of scopes for an error text. The scopes are known to be printable.
func shownScopes(scopes []string) string {
	return text.Clip(joinScopes(scopes), 200)
}
