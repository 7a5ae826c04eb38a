package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A place has the metadata that is needed to obtain tokens for a server: that of the server and that of its authorization server.
type place struct {
	resource string   // resource identifier that the server publishes
	scopes   []string // scopes that the server publishes
	as       authServer
}

// An authServer is the checked metadata of an authorization server.
type authServer struct {
	oauthex.AuthServerMeta
	unnamed bool // the configuration has endpoints and no issuer
}

// discover returns the metadata for the server. metadata is the URL in the challenge of the server, or "".
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

// configured returns the metadata for an authorization server whose endpoints are in the configuration.
func (c *Client) configured() *place {
	p := &place{resource: c.resource}
	p.as.Issuer, p.as.AuthorizationEndpoint, p.as.TokenEndpoint = c.conf.Issuer, c.conf.AuthorizationEndpoint, c.conf.TokenEndpoint
	p.as.CodeChallengeMethodsSupported = []string{"S256"} // S256 is always sent, although it is unknown whether the server checks it
	if p.as.Issuer == "" {
		p.as.Issuer, p.as.unnamed = c.conf.TokenEndpoint, true
	}
	return p
}

// protectedResource reads the metadata of the server (RFC 9728) from the URL in the challenge, else from the well-known URLs, and returns
// it with the issuer. A server without metadata is its own authorization server, as in MCP version 2025-03-26.
func (c *Client) protectedResource(ctx context.Context, metadata string) (*place, string, error) {
	if c.conf.API && c.conf.Issuer != "" && metadata == "" {
		return &place{resource: c.resource}, c.conf.Issuer, nil
	}
	isNamed := metadata != ""
	addresses := []string{metadata}
	if !isNamed {
		addresses = slices.Compact([]string{wellKnown(c.server, "oauth-protected-resource", c.server.EscapedPath()), wellKnown(c.server, "oauth-protected-resource", "")})
	} else if u, err := secureURL(metadata); err != nil || httpname.Origin(u) != httpname.Origin(c.server) {
		return nil, "", errors.New("the server names metadata at another origin than its own")
	}
	for _, address := range addresses {
		var m oauthex.ProtectedResourceMetadata
		err := c.get(ctx, address, &m)
		if isAbsent(err) && !isNamed {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("the server's metadata: %w", err)
		}
		return c.readResource(&m)
	}
	return &place{resource: c.resource}, cmp.Or(c.conf.Issuer, (&url.URL{Scheme: c.server.Scheme, Host: c.server.Host}).String()), nil
}

func (c *Client) readResource(m *oauthex.ProtectedResourceMetadata) (*place, string, error) {
	if err := covers(m.Resource, c.server, c.conf.API); err != nil {
		return nil, "", err
	}
	if m.DPOPBoundAccessTokensRequired {
		return nil, "", errBound
	}
	if err := checkScopes(m.ScopesSupported); err != nil {
		return nil, "", fmt.Errorf("the server's metadata: %w", err)
	}
	p, issuers := &place{resource: m.Resource, scopes: m.ScopesSupported}, m.AuthorizationServers
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

// sameIssuer compares two issuers from a configuration or from metadata of another server. It ignores a final slash, which is often
// omitted.
func sameIssuer(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// authorizationServer reads the metadata of an issuer from its well-known URLs (RFC 8414, OpenID Connect Discovery).
func (c *Client) authorizationServer(ctx context.Context, issuer string) (*authServer, error) {
	u, err := secureURL(issuer)
	if err != nil || u.RawQuery != "" {
		return nil, errors.New("its address is not an https address without a query")
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	addresses := []string{wellKnown(u, "oauth-authorization-server", path), wellKnown(u, "openid-configuration", path)}
	if path != "" {
		base := url.URL{Scheme: u.Scheme, Host: u.Host}
		addresses = append(addresses, base.String()+path+"/.well-known/openid-configuration")
	}
	for _, address := range addresses {
		var s authServer
		err := c.get(ctx, address, &s.AuthServerMeta)
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &s, s.check(issuer)
	}
	return nil, fmt.Errorf("%s has no metadata at the well-known places", u.Host)
}

// check returns an error if the metadata belongs to another issuer, or if an endpoint URL is not secure enough for tokens and codes.
func (s *authServer) check(issuer string) error {
	if !sameIssuer(s.Issuer, issuer) {
		return errors.New("its metadata are those of another issuer")
	}
	for _, endpoint := range []struct{ name, address string }{
		{"token_endpoint", s.TokenEndpoint}, {"authorization_endpoint", s.AuthorizationEndpoint}, {"registration_endpoint", s.RegistrationEndpoint},
	} {
		isRequired := endpoint.name == "token_endpoint"
		if endpoint.address == "" && !isRequired {
			continue
		}
		if _, err := secureURL(endpoint.address); err != nil {
			return fmt.Errorf("its %s %w", endpoint.name, err)
		}
	}
	return nil
}

// scopesFor returns the scopes to request: those of the configuration; else those of the challenge, or else those that the server
// publishes, in both cases with the granted scopes added, so that a login never removes scopes.
func (c *Client) scopesFor(p *place, challenged, granted []string) []string {
	if c.conf.Scopes != nil {
		return slices.Clone(c.conf.Scopes)
	}
	scopes := slices.Clone(challenged)
	if len(scopes) == 0 {
		scopes = slices.Clone(p.scopes)
	}
	for _, s := range granted {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// offlineAccess is the scope that requests a refresh token. It is requested only if the authorization server lists it.
const offlineAccess = "offline_access"
