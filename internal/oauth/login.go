package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/oauth2"
)

// Wanted reports whether the server has requested a login that has not taken place yet.
func (c *Client) Wanted() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	return c.entry.LoginRequested, err
}

// A Granted describes the tokens that a login has obtained.
type Granted struct {
	Issuer  string
	Scopes  []string  // nil: the authorization server has named none
	Expires time.Time // zero: unknown
	Renews  bool      // can be renewed without a user
}

// Login logs a user in. It calls open with the address to visit, and waits for the redirect to
// 127.0.0.1 until ctx is done. It saves the tokens in the store.
func (c *Client) Login(ctx context.Context, open func(address string) error) (*Granted, error) {
	if !c.conf.needsUser() {
		return nil, fmt.Errorf("the grant %s needs no login", c.conf.Grant)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.publish()
	if err := c.load(); err != nil {
		return nil, err
	}
	p, err := c.discover(ctx, c.entry.Metadata)
	if err != nil {
		return nil, err
	}
	switch {
	case p.as.AuthorizationEndpoint == "":
		return nil, errors.New("the authorization server has no place to log in at")
	case !slices.Contains(p.as.CodeChallengeMethodsSupported, "S256"):
		return nil, errors.New("the authorization server does not say that it does PKCE with S256, without which a login could be stolen")
	}
	a := &attempt{c: c, place: p, verifier: oauth2.GenerateVerifier(), state: rand.Text()}
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

// An attempt is one login in progress.
type attempt struct {
	c               *Client
	place           *place
	client          registration
	scopes          []string
	verifier, state string
	back            *callback
}

// prepare opens the listener and finds or creates the registration of the client. It reuses a stored registration if the port of its
// redirect URI is free.
func (a *attempt) prepare(ctx context.Context) error {
	c, as := a.c, &a.place.as
	isStored := c.entry.Issuer == as.Issuer // the stored entry belongs to this authorization server
	a.chooseScopes(isStored)
	port := strconv.Itoa(c.conf.RedirectPort)
	own, ok, err := c.registered(as)
	if err != nil {
		return err
	}
	if ok {
		a.client = own
		a.back, err = listen(ctx, port, a.state)
		return err
	}
	stored := c.entry.Client
	fitsPort := c.conf.RedirectPort == 0 || stored.port() == port
	if isStored && stored.usable(c.now()) && fitsPort {
		if a.back, err = listen(ctx, stored.port(), a.state); err == nil {
			a.client = stored
			return nil
		}
	}
	if a.back, err = listen(ctx, port, a.state); err != nil {
		return err
	}
	if a.client, err = c.register(ctx, as, a.back.redirect(), a.scopes); err != nil {
		a.back.close()
	}
	return err
}

// chooseScopes sets the scopes to request. hasGranted says that the scopes of the stored entry were granted by this authorization server.
func (a *attempt) chooseScopes(hasGranted bool) {
	var granted []string
	if hasGranted {
		granted = a.c.entry.Scopes
	}
	a.scopes = a.c.scopesFor(a.place, a.c.entry.RequestedScopes, granted)
	isOffered := slices.Contains(a.place.as.ScopesSupported, offlineAccess)
	if a.c.conf.Scopes == nil && isOffered && !slices.Contains(a.scopes, offlineAccess) {
		a.scopes = append(a.scopes, offlineAccess)
	}
}

// address returns the URL of the login page.
func (a *attempt) address() string {
	conf := oauth2.Config{ClientID: a.client.ID, RedirectURL: a.back.redirect(), Scopes: a.scopes, Endpoint: oauth2.Endpoint{AuthURL: a.place.as.AuthorizationEndpoint}}
	opts := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(a.verifier)}
	if a.place.resource != "" {
		opts = append(opts, oauth2.SetAuthURLParam("resource", a.place.resource))
	}
	if slices.Contains(a.scopes, offlineAccess) {
		opts = append(opts, oauth2.ApprovalForce) // prompt=consent, as OpenID Connect requires
	}
	return conf.AuthCodeURL(a.state, opts...)
}

// finish exchanges the authorization code for tokens and stores the tokens.
func (a *attempt) finish(ctx context.Context, code string) (*Granted, error) {
	e := entry{URL: a.c.conf.Server, Identity: a.c.conf.Identity, Resource: a.place.resource, Client: a.client}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.back.redirect()}, "code_verifier": {a.verifier}}
	if err := a.c.exchange(ctx, &e, &a.place.as, form, a.scopes); err != nil {
		return nil, fmt.Errorf("exchanging the code: %w", err)
	}
	a.c.entry = e
	if err := a.c.store.change(a.c.conf.Name, func(*entry) *entry { return &e }); err != nil {
		return nil, err
	}
	a.c.stored = e
	return &Granted{Issuer: e.Issuer, Scopes: e.Scopes, Expires: e.Expires, Renews: e.RefreshToken != ""}, nil
}

// Logout deletes the tokens and the registration for the server from the store. The authorization server still accepts the tokens until
// they expire or are revoked.
func (c *Client) Logout() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setEntry(entry{})
	c.publish()
	return c.store.change(c.conf.Name, func(*entry) *entry { return nil })
}
