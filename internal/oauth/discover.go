package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A place is where the tokens of a server are got: what its metadata and its authorization server's say.
type place struct {
	resource string   // as the server publishes it
	scopes   []string // that the server names
	bound    bool     // the server wants tokens that are bound to a key
	as       authServer
}

// An authServer is the metadata of an authorization server, checked.
type authServer struct {
	issuer                          string
	authorize, token, register      string // endpoints; "" where there is none
	scopes                          []string
	authMethods, signingAlgs        []string
	authMethodsKnown                bool
	pkce, issInAnswer, readsClients bool
	binds                           bool // it gives tokens that are bound to a key
	unnamed                         bool // nobody has said who the issuer is
}

// discover finds out where tokens are got, with what the server's challenge says.
func (c *Client) discover(ctx context.Context, metadata string) (*place, error) {
	if c.conf.TokenEndpoint != "" {
		return c.configured(), nil
	}
	p, issuer, err := c.protectedResource(ctx, metadata)
	if err != nil {
		return nil, err
	}
	as, err := c.authorizationServer(ctx, issuer)
	if err != nil {
		return nil, fmt.Errorf("the authorization server: %w", err)
	}
	p.as = *as
	return p, nil
}

// configured is the place that the configuration names.
func (c *Client) configured() *place {
	p := &place{resource: c.resource, as: authServer{issuer: c.conf.Issuer, authorize: c.conf.AuthorizationEndpoint, token: c.conf.TokenEndpoint, pkce: true}}
	if p.as.issuer == "" {
		p.as.issuer, p.as.unnamed = c.conf.TokenEndpoint, true
	}
	return p
}

// protectedResource reads the server's metadata (RFC 9728): where the challenge says, else at the
// well-known places. A server without any is its own authorization server, as in 2025-03-26.
func (c *Client) protectedResource(ctx context.Context, metadata string) (*place, string, error) {
	if c.conf.API && c.conf.Issuer != "" && metadata == "" {
		return &place{resource: c.resource}, c.conf.Issuer, nil
	}
	places := []string{metadata}
	if metadata == "" {
		places = []string{wellKnown(c.server, "oauth-protected-resource", c.server.EscapedPath())}
		if root := wellKnown(c.server, "oauth-protected-resource", ""); root != places[0] {
			places = append(places, root)
		}
	} else if u, err := secureURL(metadata); err != nil || originOf(u) != originOf(c.server) {
		return nil, "", errors.New("the server names metadata at another origin than its own")
	}
	for _, address := range places {
		o, err := c.get(ctx, address)
		if errors.Is(err, errAbsent) && metadata == "" {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("the server's metadata: %w", err)
		}
		return c.readResource(o)
	}
	issuer := (&url.URL{Scheme: c.server.Scheme, Host: c.server.Host}).String()
	if c.conf.Issuer != "" {
		issuer = c.conf.Issuer
	}
	return &place{resource: c.resource}, issuer, nil
}

func (c *Client) readResource(o object) (*place, string, error) {
	p := &place{resource: o.text("resource")}
	if err := covers(p.resource, c.server, c.conf.API); err != nil {
		return nil, "", err
	}
	p.bound = o.isTrue("dpop_bound_access_tokens_required")
	p.scopes, _ = o.texts("scopes_supported")
	if err := checkScopes(p.scopes); err != nil {
		return nil, "", fmt.Errorf("the server's metadata: %w", err)
	}
	issuers, _ := o.texts("authorization_servers")
	switch {
	case len(issuers) == 0:
		return nil, "", errors.New("the server's metadata name no authorization server")
	case len(issuers) > maxServers:
		return nil, "", fmt.Errorf("the server's metadata name more than %d authorization servers", maxServers)
	case c.conf.Issuer == "":
		return p, issuers[0], nil
	case !slices.ContainsFunc(issuers, func(s string) bool { return sameIssuer(s, c.conf.Issuer) }):
		return nil, "", errors.New("the server does not name the authorization server of the configuration (oauth.issuer)")
	}
	return p, c.conf.Issuer, nil
}

// sameIssuer compares two issuers that were written by hand or in another's metadata: a slash at the
// end, which many leave out, is no difference.
func sameIssuer(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// authorizationServer reads the metadata of an issuer (RFC 8414, OpenID Connect Discovery).
func (c *Client) authorizationServer(ctx context.Context, issuer string) (*authServer, error) {
	u, err := secureURL(issuer)
	if err != nil || u.RawQuery != "" {
		return nil, errors.New("its address is not an https address without a query")
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	places := []string{wellKnown(u, "oauth-authorization-server", path), wellKnown(u, "openid-configuration", path)}
	if path != "" {
		base := url.URL{Scheme: u.Scheme, Host: u.Host}
		places = append(places, base.String()+path+"/.well-known/openid-configuration")
	}
	for _, address := range places {
		o, err := c.get(ctx, address)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return readServer(o, issuer)
	}
	return nil, fmt.Errorf("%s has no metadata at the well-known places", u.Host)
}

func readServer(o object, issuer string) (*authServer, error) {
	s := &authServer{issuer: o.text("issuer"), authorize: o.text("authorization_endpoint"), token: o.text("token_endpoint"), register: o.text("registration_endpoint")}
	if !sameIssuer(s.issuer, issuer) {
		return nil, errors.New("its metadata are those of another issuer")
	}
	for _, e := range []struct {
		name, address string
		required      bool
	}{{"token_endpoint", s.token, true}, {"authorization_endpoint", s.authorize, false}, {"registration_endpoint", s.register, false}} {
		if e.address == "" && !e.required {
			continue
		}
		if _, err := secureURL(e.address); err != nil {
			return nil, fmt.Errorf("its %s %w", e.name, err)
		}
	}
	s.scopes, _ = o.texts("scopes_supported")
	s.authMethods, s.authMethodsKnown = o.texts("token_endpoint_auth_methods_supported")
	s.signingAlgs, _ = o.texts("token_endpoint_auth_signing_alg_values_supported")
	challenges, _ := o.texts("code_challenge_methods_supported")
	s.pkce = slices.Contains(challenges, "S256")
	algs, _ := o.texts("dpop_signing_alg_values_supported")
	s.binds = slices.Contains(algs, dpopAlg)
	s.issInAnswer = o.isTrue("authorization_response_iss_parameter_supported")
	s.readsClients = o.isTrue("client_id_metadata_document_supported")
	return s, nil
}

// scopesFor returns the scopes to ask for: those of the configuration; else those of the challenge,
// else those that the server names, with what was granted before, so that a login never takes away.
func (c *Client) scopesFor(p *place, challenged, granted []string) []string {
	scopes := slices.Clone(c.conf.Scopes)
	if scopes == nil {
		if scopes = slices.Clone(challenged); len(scopes) == 0 {
			scopes = slices.Clone(p.scopes)
		}
		for _, s := range granted {
			if !slices.Contains(scopes, s) {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}

// offlineAccess is the scope by which a refresh token is asked for. It is asked for where the
// authorization server names it, and nowhere else.
const offlineAccess = "offline_access"
