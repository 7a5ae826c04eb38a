package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Wanted reports whether the server has asked for a login that was not made yet.
func (c *Client) Wanted() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	return c.has.Wanted, err
}

// A Granted is what a login has brought.
type Granted struct {
	Issuer  string
	Scopes  []string  // nil: the authorization server names none
	Expires time.Time // zero: not said
	Renews  bool      // without a person
}

// Login has a person log in: open is told the address to visit, and the answer is waited for on
// 127.0.0.1 until ctx is done. The tokens are kept in the store.
func (c *Client) Login(ctx context.Context, open func(address string) error) (*Granted, error) {
	if !c.byPerson() {
		return nil, fmt.Errorf("the grant %s needs no login", c.conf.Grant)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.publish()
	if err := c.load(); err != nil {
		return nil, err
	}
	p, err := c.discover(ctx, c.has.Metadata)
	if err != nil {
		return nil, err
	}
	switch {
	case p.as.authorize == "":
		return nil, errors.New("the authorization server has no place to log in at")
	case !p.as.pkce:
		return nil, errors.New("the authorization server does not say that it does PKCE with S256, without which a login could be stolen")
	case (p.bound || c.has.Bound) && !p.as.binds:
		return nil, errNotBound
	}
	a := &attempt{c: c, place: p, verifier: rand.Text() + rand.Text(), state: rand.Text()}
	if err := a.prepare(ctx); err != nil {
		return nil, err
	}
	defer a.back.close()
	if err := open(a.address()); err != nil {
		return nil, err
	}
	answer, err := a.back.wait(ctx)
	if err != nil {
		return nil, err
	}
	code, err := codeFrom(answer, &p.as)
	if err != nil {
		return nil, err
	}
	return a.finish(ctx, code)
}

// An attempt is one login under way.
type attempt struct {
	c               *Client
	place           *place
	client          registration
	scopes          []string
	verifier, state string
	back            *callback
}

// prepare opens the listener and finds or makes the registration. One that was made before serves
// again where its port is free.
func (a *attempt) prepare(ctx context.Context) error {
	c, as := a.c, &a.place.as
	same := c.has.Issuer == as.issuer
	var granted []string
	if same {
		granted = c.has.Scopes
	}
	a.scopes = c.scopesFor(a.place, c.has.Want, granted)
	if c.conf.Scopes == nil && slices.Contains(as.scopes, offlineAccess) && !slices.Contains(a.scopes, offlineAccess) {
		a.scopes = append(a.scopes, offlineAccess)
	}
	own, ok, err := c.registered(as)
	if err != nil {
		return err
	}
	if ok {
		a.client = own
		a.back, err = listen(ctx, strconv.Itoa(c.conf.RedirectPort), a.state)
		return err
	}
	if old := c.has.Client; same && old.usable(c.now()) && (c.conf.RedirectPort == 0 || old.port() == strconv.Itoa(c.conf.RedirectPort)) {
		if a.back, err = listen(ctx, old.port(), a.state); err == nil {
			a.client = old
			return nil
		}
	}
	if a.back, err = listen(ctx, strconv.Itoa(c.conf.RedirectPort), a.state); err != nil {
		return err
	}
	if a.client, err = c.register(ctx, as, a.back.redirect(), a.scopes); err != nil {
		a.back.close()
	}
	return err
}

// address is where the person logs in.
func (a *attempt) address() string {
	u, err := url.Parse(a.place.as.authorize)
	if err != nil {
		return "" // it was read before
	}
	sum := sha256.Sum256([]byte(a.verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": a.client.ID, "redirect_uri": a.back.redirect(), "state": a.state,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
		"resource": a.place.resource, "scope": joinScopes(a.scopes),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if slices.Contains(a.scopes, offlineAccess) {
		q.Set("prompt", "consent") // as OpenID Connect wants it
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// finish exchanges the code and keeps what comes.
func (a *attempt) finish(ctx context.Context, code string) (*Granted, error) {
	e := entry{URL: a.c.conf.Server, Identity: a.c.conf.Identity, Resource: a.place.resource, Client: a.client, Bound: a.place.bound || a.c.has.Bound}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.back.redirect()}, "code_verifier": {a.verifier}}
	if err := a.c.exchange(ctx, &e, &a.place.as, form, a.scopes); err != nil {
		return nil, fmt.Errorf("exchanging the code: %w", err)
	}
	a.c.has = e
	if err := a.c.store.change(a.c.conf.Name, func(entry) (*entry, bool) { return &e, false }); err != nil {
		return nil, err
	}
	a.c.was = e
	return &Granted{Issuer: e.Issuer, Scopes: e.Scopes, Expires: e.Expires, Renews: e.RefreshToken != ""}, nil
}

// Logout forgets the tokens and the registration of the server. They stay good at the authorization
// server until they expire or are revoked there.
func (c *Client) Logout() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(entry{})
	c.publish()
	return c.store.change(c.conf.Name, func(entry) (*entry, bool) { return nil, false })
}
