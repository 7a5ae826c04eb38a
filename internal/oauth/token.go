package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/lathe-run/lathe/secret"
)

// joinScopes returns scopes in the format of a request parameter.
func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }

// exchange requests a token with form and stores it in e. asked are the scopes that count as granted if the response contains none.
func (c *Client) exchange(ctx context.Context, e *entry, as *authServer, form url.Values, asked []string) error {
	if e.Client.Method == authJWT {
		assertion, err := c.assertion(e.Client.ID, as)
		if err != nil {
			return err
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	}
	if e.Resource != "" {
		form.Set("resource", e.Resource)
	}
	token, err := c.askToken(ctx, &e.Client, as.TokenEndpoint, form)
	if err != nil {
		return err
	}
	if !strings.EqualFold(token.TokenType, "Bearer") {
		return errors.New("the authorization server gives a token of a type that is not known here")
	}
	e.AccessToken, e.Expires = token.AccessToken, time.Time{}
	if isToken(token.RefreshToken) {
		e.RefreshToken = token.RefreshToken
	}
	if left := time.Until(token.Expiry).Round(time.Second); !token.Expiry.IsZero() && left > 0 {
		e.Expires = c.now().Add(left).UTC().Truncate(time.Second)
	}
	e.Scopes = slices.Clone(asked)
	text, _ := token.Extra("scope").(string)
	if granted := strings.Fields(text); len(granted) > 0 && checkScopes(granted) == nil {
		e.Scopes = granted
	}
	e.Issuer, e.TokenEndpoint = as.Issuer, as.TokenEndpoint
	return nil
}

// askToken posts the form of any grant to a token endpoint, with the authentication of the client.
func (c *Client) askToken(ctx context.Context, r *registration, endpoint string, form url.Values) (*oauth2.Token, error) {
	// Of the request types of x/oauth2, only this one adds nothing but the client to the form.
	conf := clientcredentials.Config{ClientID: r.ID, TokenURL: endpoint, EndpointParams: form, AuthStyle: oauth2.AuthStyleInParams}
	switch r.Method {
	case authBasic:
		conf.ClientSecret, conf.AuthStyle = r.Secret, oauth2.AuthStyleInHeader
	case authPost:
		conf.ClientSecret = r.Secret
	}
	var token *oauth2.Token
	err := c.send(ctx, func(ctx context.Context, client *http.Client) (err error) {
		token, err = conf.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
		return err
	})
	hasNoToken := err == nil && !isToken(token.AccessToken)
	if hasNoToken || errors.Is(err, errUnusable) {
		return nil, errors.New("the answer of the token endpoint holds no token")
	}
	return token, err
}

// isToken reports whether s can be sent in a header and has at most maxTokenBytes.
func isToken(s string) bool {
	return s != "" && len(s) <= maxTokenBytes && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

var errBound = errors.New("the server requires tokens that are bound to a key (DPoP), which this client does not support")

// grantMachine obtains a token for a grant without a user.
func (c *Client) grantMachine(ctx context.Context, metadata string, challenged []string) error {
	p, err := c.discover(ctx, metadata)
	if err != nil {
		return err
	}
	client, ok, err := c.registered(&p.as)
	if err != nil {
		return err
	}
	if !ok && c.conf.Grant != JWTBearer {
		return errors.New("the grant wants a client_id")
	}
	scopes := c.scopesFor(p, challenged, c.entry.Scopes)
	assertion, idToken, err := c.identities()
	if err != nil {
		return err
	}
	form := url.Values{}
	if len(scopes) > 0 {
		form.Set("scope", joinScopes(scopes))
	}
	switch c.conf.Grant {
	case ClientCredentials:
		form.Set("grant_type", "client_credentials")
	case JWTBearer:
		form.Set("grant_type", grantJWT)
		form.Set("assertion", assertion.Reveal())
	case CrossApp:
		exchanged, err := c.identityAssertion(ctx, p, idToken, scopes)
		if err != nil {
			return err
		}
		form.Set("grant_type", grantJWT)
		form.Set("assertion", exchanged)
	case AuthorizationCode: // needs a user
	}
	e := entry{URL: c.conf.Server, Identity: c.conf.Identity, Resource: p.resource, Client: client}
	if err := c.exchange(ctx, &e, &p.as, form, scopes); err != nil {
		return err
	}
	e.RefreshToken = "" // the grant itself is repeated instead
	c.entry = e
	return nil
}

// identities returns the current assertion and identity token, from Fresh or from the configuration.
func (c *Client) identities() (assertion, idToken secret.Secret, err error) {
	if c.conf.Fresh == nil {
		return c.conf.Assertion, c.conf.Provider.IDToken, nil
	}
	if assertion, idToken, err = c.conf.Fresh(); err != nil {
		return assertion, idToken, errors.New("the file of the assertion, or of the identity token, cannot be read")
	}
	return assertion, idToken, nil
}

const grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// identityAssertion exchanges the identity token at the identity provider for an assertion for the authorization server of p (RFC 8693).
func (c *Client) identityAssertion(ctx context.Context, p *place, idToken secret.Secret, scopes []string) (string, error) {
	who := registration{ID: c.conf.Provider.ClientID, Secret: c.conf.Provider.Secret.Reveal(), Method: authNone}
	if who.Secret != "" {
		who.Method = authBasic
	}
	form := url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "requested_token_type": {oauthex.TokenTypeIDJAG},
		"subject_token": {idToken.Reveal()}, "subject_token_type": {oauthex.TokenTypeIDToken},
		"audience": {p.as.Issuer},
	}
	if p.resource != "" {
		form.Set("resource", p.resource)
	}
	if len(scopes) > 0 {
		form.Set("scope", joinScopes(scopes))
	}
	token, err := c.askToken(ctx, &who, c.conf.Provider.TokenEndpoint, form)
	if err != nil {
		return "", fmt.Errorf("the identity provider: %w", err)
	}
	if kind, _ := token.Extra("issued_token_type").(string); kind != oauthex.TokenTypeIDJAG {
		return "", errors.New("the identity provider gives no assertion")
	}
	return token.AccessToken, nil
}

// refresh renews the token of c.entry. If the authorization server refuses the refresh token permanently, refresh deletes both tokens.
func (c *Client) refresh(ctx context.Context) error {
	e := c.entry
	as := &authServer{AuthServerMeta: oauthex.AuthServerMeta{Issuer: e.Issuer, TokenEndpoint: e.TokenEndpoint}}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {e.RefreshToken}}
	err := c.exchange(ctx, &e, as, form, e.Scopes)
	switch codeOf(err) {
	case "invalid_grant", "invalid_client", "unauthorized_client":
		c.entry.AccessToken, c.entry.RefreshToken = "", ""
		return err
	}
	if err == nil {
		c.entry = e
	}
	return err
}
