package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// nextToken returns another token after the server has refused the token used. repeats is the number of repetitions so far.
func (c *Client) nextToken(ctx context.Context, status int, ch *challenge, used string, repeats int) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.publish()
	if ch.bound && !ch.bearer {
		return "", errBound
	}
	if err := c.load(); err != nil {
		return "", err
	}
	if repeats == 0 && c.hasOther(used) {
		return c.entry.AccessToken, nil
	}
	if status == http.StatusForbidden {
		if err := checkFurtherScopes(ch.scopes, c.entry.Scopes, c.conf.Scopes); err != nil {
			return "", err
		}
	} else if repeats == 0 && used != "" && c.entry.RefreshToken != "" {
		err := c.renew(ctx, used)
		if err == nil || c.hasOther(used) { // the token was renewed, or a user has just logged in
			return c.entry.AccessToken, nil
		}
		if codeOf(err) == "" {
			return "", fmt.Errorf("renewing the token: %w", err)
		}
	}
	if !c.conf.needsUser() {
		if repeats >= maxRepeats {
			return "", errors.New("the server does not take the token that it was got for")
		}
		return c.tokenWithoutUser(ctx, ch)
	}
	why, err := c.requestLogin(status, ch, used)
	if err != nil {
		return "", err
	}
	if c.hasOther(used) && repeats < maxRepeats { // another process has stored a token
		return c.entry.AccessToken, nil
	}
	return "", &LoginError{Name: c.conf.Name, Why: why}
}

// requestLogin stores what the server requests for the next login, and returns why a user must log in. It deletes a refused token.
func (c *Client) requestLogin(status int, ch *challenge, used string) (why string, err error) {
	c.entry.LoginRequested, c.entry.RequestedScopes, c.entry.Metadata = true, ch.scopes, ch.metadata
	why = "the server wants a token"
	switch {
	case status == http.StatusForbidden:
		why = "the server wants further scopes: " + shownScopes(ch.scopes)
	case used != "":
		why = "the server does not take the token any more"
		c.entry.AccessToken, c.entry.RefreshToken = "", ""
	}
	return why, c.save()
}

// checkFurtherScopes returns why a token with the scopes of want would not help, or nil if it could. granted are those of the current token, and
// configured those that the configuration allows; nil: all.
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
