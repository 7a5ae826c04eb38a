package oidc

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// metadataHolds is the age of a discovery document after which it is fetched again to sign a user in.
const metadataHolds = time.Hour

// A Client is this server as a client of the issuer: it signs users in with the authorization code flow and PKCE.
type Client struct {
	ID     string
	Secret string   // "": a public client, which PKCE alone protects
	Scopes []string // openid is among them always
}

// A Login is one sign-in that a browser has begun. Its texts are random, with at least 256 bits each, and known to that browser.
type Login struct {
	State    string
	Nonce    string // which the issuer puts into its token
	Verifier string // of PKCE: 43 to 128 letters and digits
	Redirect string // the address that the issuer sends the browser back to
}

// AuthorizeURL returns the address of the issuer at which the user signs in.
func (p *Provider) AuthorizeURL(ctx context.Context, c *Client, l *Login) (string, error) {
	m, err := p.metadata(ctx)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(m.AuthorizeURL)
	if err != nil || m.AuthorizeURL == "" {
		return "", &Error{Kind: Unavailable, text: "the discovery document has no authorization_endpoint"}
	}
	sum := sha256.Sum256([]byte(l.Verifier))
	q := u.Query()
	for name, value := range map[string]string{"response_type": "code", "client_id": c.ID, "redirect_uri": l.Redirect, "scope": c.scope(), "state": l.State, "nonce": l.Nonce,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256"} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

func (c *Client) scope() string {
	return strings.Join(append([]string{"openid"}, slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return s == "openid" })...), " ")
}

// Exchange exchanges the code that the issuer gave the browser for a token, and verifies it: besides what [Provider.Verify] checks, the
// token is for the client and has the nonce of the login. The error is an [*Error].
func (p *Provider) Exchange(ctx context.Context, c *Client, l *Login, code string) (*Token, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	m, err := p.metadata(ctx)
	if err != nil {
		return nil, err
	}
	if m.TokenURL == "" {
		return nil, &Error{Kind: Unavailable, text: "the discovery document has no token_endpoint"}
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {l.Redirect}, "code_verifier": {l.Verifier}}
	if c.Secret == "" {
		form.Set("client_id", c.ID)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, &Error{Kind: Unavailable, text: "the token endpoint is no address"}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if c.Secret != "" {
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	}
	var answer map[string]json.RawMessage
	var status *statusError
	switch err := p.do(r, &answer); {
	case errors.As(err, &status) && status.code >= 400 && status.code < 500:
		return nil, refuse(Code, "the issuer refuses the code (status %d): sign in again, or have the operator check serve.oidc.client_id and client_secret", status.code)
	case err != nil:
		return nil, &Error{Unavailable, "the token could not be fetched", err}
	}
	t, err := p.verifyFor(ctx, textOf(answer["id_token"]), []string{c.ID})
	switch {
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare([]byte(textOf(t.claims["nonce"])), []byte(l.Nonce)) != 1:
		return nil, refuse(Code, "the token is of another sign-in")
	case t.claims["azp"] != nil && textOf(t.claims["azp"]) != c.ID:
		return nil, refuse(Audience, "the token is for another client")
	}
	return t, nil
}

// metadata returns the discovery document, fetched again after an hour. After a failure it is not fetched for 10 s.
func (p *Provider) metadata(ctx context.Context) (*Metadata, error) {
	select {
	case p.discovering <- struct{}{}:
		defer func() { <-p.discovering }()
	case <-ctx.Done():
		return nil, &Error{Unavailable, "the issuer's discovery document could not be fetched", ctx.Err()}
	}
	now := p.opts.Now()
	if d := &p.discovered; d.meta == nil || now.Sub(d.at) >= metadataHolds {
		if !d.tried.IsZero() && now.Sub(d.tried) < unknownEvery && d.err != nil {
			return nil, &Error{Unavailable, "the issuer's discovery document could not be fetched", d.err}
		}
		// Other sign-ins wait for it, so that it does not end with this one.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		m, err := p.Discover(ctx)
		if d.tried, d.err = p.opts.Now(), err; err != nil {
			return nil, &Error{Unavailable, "the issuer's discovery document could not be fetched", err}
		}
		d.meta, d.at = m, now
	}
	return p.discovered.meta, nil
}

// discovery is a discovery document that was fetched, and the last attempt to fetch it.
type discovery struct {
	meta      *Metadata
	at, tried time.Time
	err       error
}

// A statusError is an answer of the issuer with another status than 200.
type statusError struct {
	address string
	code    int
}

// Error implements error.
func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers with status %d", e.address, e.code)
}
