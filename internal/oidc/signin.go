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

	"github.com/lathe-run/lathe/internal/rawjson"
)

// metadataHolds is the age at which a discovery document is fetched again for a sign-in.
const metadataHolds = time.Hour

// A Client is the gateway as a client of the issuer: it signs users in with the authorization code flow and PKCE.
type Client struct {
	ID     string
	Secret string   // "": a public client, which only PKCE protects
	Scopes []string // scopes to request; openid is always added
}

// A Login is one sign-in in progress. Its texts are random, with at least 256 bits each, and known only to the browser that began it.
type Login struct {
	State    string
	Nonce    string // must be in the token of the issuer
	Verifier string // PKCE code verifier: 43 to 128 letters and digits
	Redirect string // URL to which the issuer redirects the browser
}

// AuthorizeURL returns the URL of the issuer at which the user signs in.
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

// Exchange exchanges the authorization code for a token and verifies the token: in addition to the checks of [Provider.Verify], it must be
// for the client and have the nonce of the login. The error is an [*Error].
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
	t, err := p.verifyFor(ctx, rawjson.Text(answer["id_token"]), []string{c.ID})
	switch {
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare([]byte(rawjson.Text(t.claims["nonce"])), []byte(l.Nonce)) != 1:
		return nil, refuse(Code, "the token is of another sign-in")
	case t.claims["azp"] != nil && rawjson.Text(t.claims["azp"]) != c.ID:
		return nil, refuse(Audience, "the token is for another client")
	}
	return t, nil
}

// metadata returns the discovery document. It fetches the document again after an hour, and for 10 s after a failed fetch it returns the
// error of that fetch.
func (p *Provider) metadata(ctx context.Context) (*Metadata, error) {
	unavailable := func(err error) (*Metadata, error) {
		return nil, &Error{Unavailable, "the issuer's discovery document could not be fetched", err}
	}
	select {
	case p.discovering <- struct{}{}:
		defer func() { <-p.discovering }()
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
	now, d := p.opts.Now(), &p.discovered
	if d.meta != nil && now.Sub(d.at) < metadataHolds {
		return d.meta, nil
	}
	if d.err != nil && now.Sub(d.tried) < unknownEvery {
		return unavailable(d.err)
	}
	// Other sign-ins wait for this fetch: it must not end with the current one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	m, err := p.Discover(ctx)
	d.tried, d.err = p.opts.Now(), err
	if err != nil {
		return unavailable(err)
	}
	d.meta, d.at = m, now
	return m, nil
}

// discovery is the last discovery document that was fetched, and the last attempt to fetch one.
type discovery struct {
	meta      *Metadata
	at, tried time.Time
	err       error
}

// A statusError is a response of the issuer with a status other than 200.
type statusError struct {
	address string
	code    int
}

// Error implements error.
func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers with status %d", e.address, e.code)
}
