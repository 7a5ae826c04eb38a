package config

import "errors"

// OAuth says how the access tokens of a server are got. The zero value does what the server says.
type OAuth struct {
	Grant                 string // authorization_code, client_credentials, jwt_bearer, cross_app
	Issuer                Ref
	TokenEndpoint         Ref // with AuthorizationEndpoint: of a server without metadata
	AuthorizationEndpoint Ref
	Scopes                []string
	ClientID              Ref
	ClientSecret          Ref
	PrivateKey            Ref // PEM
	ClientMetadataURL     Ref
	RedirectPort          int // 0: any
	Assertion             Ref // of jwt_bearer
	Provider              IdentityProvider
}

// An IdentityProvider exchanges an identity token for what the grant cross_app needs.
type IdentityProvider struct {
	TokenEndpoint Ref
	ClientID      Ref
	ClientSecret  Ref
	IDToken       Ref
}

var grants = []string{"authorization_code=login,code", "client_credentials=machine", "jwt_bearer=assertion,workload", "cross_app=enterprise"}

// serverKeys returns the rows of an MCP server, bound to o: tokens are got where it wants any.
func (o *OAuth) serverKeys() []key {
	return append([]key{{"oauth.grant", "authorization_code", words(&o.Grant, grants...),
		"How tokens for `url` are got, where it wants any: a person logs in with `lathe tools login NAME`; or without one, by the client itself, an assertion, or an identity provider.", ""}}, o.keys()...)
}

// apiKeys returns the rows of a tool over HTTP, bound to o: without any of them there are no tokens.
func (o *OAuth) apiKeys() []key {
	return append([]key{{"oauth.grant", "", optional(&o.Grant, grants...),
		"How tokens are got, in place of another `Authorization`: see docs/tools-http.md. Default: none are, or `authorization_code` where another key of `oauth` is set.", ""}}, o.keys()...)
}

func (o *OAuth) keys() []key {
	p := &o.Provider
	return []key{
		{"oauth.issuer", "", reference(&o.Issuer, isURL), "The only authorization server that is taken; a secret or an assertion wants it, or `oauth.token_endpoint`. Default: the first that the server names.", "authorization_server"},
		{"oauth.token_endpoint", "", reference(&o.TokenEndpoint, isURL), "Where tokens are got, of an authorization server that publishes no metadata.", "token_url"},
		{"oauth.authorization_endpoint", "", reference(&o.AuthorizationEndpoint, isURL), "Where a person logs in, with `oauth.token_endpoint` and `oauth.client_id`.", "authorization_url authorize_url"},
		{"oauth.scopes", "", distinct{texts(&o.Scopes)}, "Scopes to ask for. Default: those that the server names. An empty list: none.", "scope"},
		{"oauth.client_id", "", reference(&o.ClientID, isShown), "Client that is registered at the authorization server. Default: Lathe registers itself.", ""},
		{"oauth.client_secret", "", reference(&o.ClientSecret, isKey), "Its secret, as a reference.", ""},
		{"oauth.private_key", "", reference(&o.PrivateKey, isReference), "Key in PEM that it signs with in place of a secret, as a reference.", ""},
		{"oauth.client_metadata_url", "", reference(&o.ClientMetadataURL, isURL), "Address of a client metadata document, which is the client's id where authorization servers read such documents.", "cimd"},
		{"oauth.redirect_port", "0", count(&o.RedirectPort, 0, 65535), "Port on 127.0.0.1 that logins are answered at; `0`: any that is free.", ""},
		{"oauth.assertion", "", reference(&o.Assertion, isKey), "With `jwt_bearer`: the JWT that a token is given for, as a reference.", ""},
		{"oauth.provider.token_endpoint", "", reference(&p.TokenEndpoint, isURL), "With `cross_app`: where the identity provider exchanges tokens.", ""},
		{"oauth.provider.client_id", "", reference(&p.ClientID, isShown), "Client that is registered there.", ""},
		{"oauth.provider.client_secret", "", reference(&p.ClientSecret, isKey), "Its secret, as a reference.", ""},
		{"oauth.provider.id_token", "", reference(&p.IDToken, isKey), "The identity token to exchange, as a reference.", ""},
	}
}

// IsSet reports whether a tool over HTTP is to have tokens.
func (o *OAuth) IsSet() bool { return o.Grant != "" || !o.IsZero() }

// IsZero reports whether nothing is said, but that a person logs in.
func (o *OAuth) IsZero() bool {
	return (o.Grant == "" || o.Grant == "authorization_code") && o.Issuer.IsZero() && o.TokenEndpoint.IsZero() && o.AuthorizationEndpoint.IsZero() && o.Scopes == nil && o.ClientID.IsZero() && o.ClientSecret.IsZero() &&
		o.PrivateKey.IsZero() && o.ClientMetadataURL.IsZero() && o.RedirectPort == 0 && o.Assertion.IsZero() && o.Provider.TokenEndpoint.IsZero() &&
		o.Provider.ClientID.IsZero() && o.Provider.ClientSecret.IsZero() && o.Provider.IDToken.IsZero()
}

// isReference wants a reference, to anything.
func isReference(r *Ref) error {
	if r.shown == "" {
		return errors.New("a key is written as a reference, ${NAME} or ${file:path}, not as itself")
	}
	return nil
}

// isShown takes text that is no secret, or a reference to any.
func isShown(r *Ref) error {
	if err := isHeaderValue(r); err != nil {
		return err
	}
	if r.shown == "" {
		r.shown = r.Reveal()
	}
	return nil
}
