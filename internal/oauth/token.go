package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/secret"
)

// joinScopes is how scopes are sent.
func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }

// exchange asks a token endpoint and puts what it gives into e. asked are the scopes that count as
// granted where the answer names none.
func (c *Client) exchange(ctx context.Context, e *entry, as *authServer, form url.Values, asked []string) error {
	header := http.Header{}
	if err := c.identify(&e.Client, as, form, header); err != nil {
		return err
	}
	if e.Resource != "" {
		form.Set("resource", e.Resource)
	}
	o, err := c.askToken(ctx, e, as, form, header)
	if err != nil {
		return err
	}
	token, kind := o.text("access_token"), "Bearer"
	if e.Bound {
		kind = "DPoP"
	}
	if !strings.EqualFold(o.text("token_type"), kind) {
		return errors.New("the authorization server gives a token of a type that is not known here")
	}
	if !isToken(token) {
		return errors.New("the authorization server gives no token")
	}
	if r := o.text("refresh_token"); isToken(r) {
		e.RefreshToken = r
	}
	e.AccessToken, e.Expires = token, time.Time{}
	if s := o.seconds("expires_in"); s > 0 {
		e.Expires = c.now().Add(time.Duration(s) * time.Second).UTC().Truncate(time.Second)
	}
	e.Scopes = slices.Clone(asked)
	if granted := strings.Fields(o.text("scope")); len(granted) > 0 && checkScopes(granted) == nil {
		e.Scopes = granted
	}
	e.Issuer, e.TokenEndpoint = as.issuer, as.token
	return nil
}

// askToken posts the form, with a proof of the key that the token is to be bound to where it is. A nonce
// that the server wants in the proof is put there once.
func (c *Client) askToken(ctx context.Context, e *entry, as *authServer, form url.Values, header http.Header) (object, error) {
	if !e.Bound {
		return c.postForm(ctx, as.token, form, header)
	}
	if e.Key == "" {
		var err error
		if e.Key, err = newKey(); err != nil {
			return nil, err
		}
	}
	key, err := readKey(e.Key)
	if err != nil {
		return nil, err
	}
	u, err := secureURL(as.token)
	if err != nil {
		return nil, err
	}
	for again := true; ; again = false {
		proof, err := c.proof(key, http.MethodPost, u, "")
		if err != nil {
			return nil, err
		}
		header.Set("DPoP", proof)
		o, err := c.postForm(ctx, as.token, form, header)
		if e := (*serverError)(nil); again && errors.As(err, &e) && e.nonce && e.code == useNonce {
			continue
		}
		return o, err
	}
}

// isToken reports whether a token can stand in a header.
func isToken(s string) bool {
	if s == "" || len(s) > maxTokenBytes {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

var errNotBound = errors.New("the server wants tokens that are bound to a key (DPoP), and its authorization server gives none with " + dpopAlg)

// grantMachine gets a token without a person.
func (c *Client) grantMachine(ctx context.Context, metadata string, challenged []string, bound bool) error {
	p, err := c.discover(ctx, metadata)
	if err != nil {
		return err
	}
	e := entry{URL: c.conf.Server, Identity: c.conf.Identity, Resource: p.resource, Bound: bound || p.bound}
	if e.Bound && !p.as.binds {
		return errNotBound
	}
	var ok bool
	if e.Client, ok, err = c.registered(&p.as); err != nil {
		return err
	} else if !ok && c.conf.Grant != JWTBearer {
		return errors.New("the grant wants a client_id")
	}
	scopes := c.scopesFor(p, challenged, c.has.Scopes)
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
		assertion, err := c.identityAssertion(ctx, p, idToken, scopes)
		if err != nil {
			return err
		}
		form.Set("grant_type", grantJWT)
		form.Set("assertion", assertion)
	case AuthorizationCode:
	}
	if err := c.exchange(ctx, &e, &p.as, form, scopes); err != nil {
		return err
	}
	e.RefreshToken = "" // the grant itself is made again
	c.has = e
	return nil
}

// identities are what a machine shows of itself, as it is now.
func (c *Client) identities() (assertion, idToken secret.Secret, err error) {
	if c.conf.Fresh == nil {
		return c.conf.Assertion, c.conf.Provider.IDToken, nil
	}
	if assertion, idToken, err = c.conf.Fresh(); err != nil {
		return assertion, idToken, errors.New("the file of the assertion, or of the identity token, cannot be read")
	}
	return assertion, idToken, nil
}

const (
	grantJWT      = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDToken   = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG     = "urn:ietf:params:oauth:token-type:id-jag"
)

// identityAssertion has the identity provider exchange the identity token for an assertion to the
// authorization server of p (RFC 8693).
func (c *Client) identityAssertion(ctx context.Context, p *place, idToken secret.Secret, scopes []string) (string, error) {
	who := registration{ID: c.conf.Provider.ClientID, Secret: c.conf.Provider.Secret.Reveal(), Method: authNone}
	if who.Secret != "" {
		who.Method = authBasic
	}
	form := url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {typeIDJAG},
		"subject_token": {idToken.Reveal()}, "subject_token_type": {typeIDToken},
		"audience": {p.as.issuer},
	}
	if p.resource != "" {
		form.Set("resource", p.resource)
	}
	if len(scopes) > 0 {
		form.Set("scope", joinScopes(scopes))
	}
	header := http.Header{}
	if err := c.identify(&who, &p.as, form, header); err != nil {
		return "", err
	}
	o, err := c.postForm(ctx, c.conf.Provider.TokenEndpoint, form, header)
	if err != nil {
		return "", err
	}
	assertion := o.text("access_token")
	if o.text("issued_token_type") != typeIDJAG || !isToken(assertion) {
		return "", errors.New("the identity provider gives no assertion")
	}
	return assertion, nil
}

// refresh renews the token of c.has. What the authorization server refuses for good is thrown away.
func (c *Client) refresh(ctx context.Context) error {
	e := c.has
	as := &authServer{issuer: e.Issuer, token: e.TokenEndpoint}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {e.RefreshToken}}
	err := c.exchange(ctx, &e, as, form, e.Scopes)
	switch codeOf(err) {
	case "invalid_grant", "invalid_client", "unauthorized_client":
		c.has.AccessToken, c.has.RefreshToken = "", ""
		return err
	}
	if err == nil {
		c.has = e
	}
	return err
}
