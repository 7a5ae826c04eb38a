package config

import "errors"

// OAuth configures how access tokens for a server are obtained. The zero value follows the metadata of the server.
type OAuth struct {
	// How tokens are got: with `authorization_code` a person logs in by `lathe tools login NAME`; with the others the
	// client itself, an assertion or an identity provider takes the place of the person. A tool over HTTP sends the
	// token in place of another `Authorization`; its default is no token, or `authorization_code` if another key of
	// `oauth` is set. See docs/tools-http.md.
	Grant string `key:"grant" of:"authorization_code=login,code client_credentials=machine jwt_bearer=assertion,workload cross_app=enterprise"`
	// The only authorization server that is taken; a secret or an assertion wants it, or `oauth.token_endpoint`.
	// Default: the first that the server names.
	Issuer Ref `key:"issuer" is:"url" also:"authorization_server"`
	// Where tokens are got, of an authorization server that publishes no metadata.
	TokenEndpoint Ref `key:"token_endpoint" is:"url" also:"token_url"`
	// Where a person logs in, with `oauth.token_endpoint` and `oauth.client_id`.
	AuthorizationEndpoint Ref `key:"authorization_endpoint" is:"url" also:"authorization_url authorize_url"`
	// Scopes to ask for. Default: those that the server names. An empty list: none.
	Scopes []string `key:"scopes" is:"text" unset:"omit" also:"scope"`
	// Client that is registered at the authorization server. Default: Lathe registers itself.
	ClientID Ref `key:"client_id" is:"shown"`
	// Its secret, as a reference.
	ClientSecret Ref `key:"client_secret" is:"key"`
	// Key in PEM that it signs with in place of a secret, as a reference.
	PrivateKey Ref `key:"private_key" is:"reference"`
	// Address of a client metadata document, which is the client's id where authorization servers read such
	// documents.
	ClientMetadataURL Ref `key:"client_metadata_url" is:"url" also:"cimd"`
	// Port on 127.0.0.1 that logins are answered at; `0`: any that is free.
	RedirectPort int `key:"redirect_port" default:"0" range:"0..65535"`
	// With `jwt_bearer`: the JWT that a token is given for, as a reference.
	Assertion Ref              `key:"assertion" is:"key"`
	Provider  IdentityProvider `key:"provider"`
}

// An IdentityProvider exchanges an identity token for what the grant cross_app needs.
type IdentityProvider struct {
	// With `cross_app`: where the identity provider exchanges tokens.
	TokenEndpoint Ref `key:"token_endpoint" is:"url"`
	// Client that is registered there.
	ClientID Ref `key:"client_id" is:"shown"`
	// Its secret, as a reference.
	ClientSecret Ref `key:"client_secret" is:"key"`
	// The identity token to exchange, as a reference.
	IDToken Ref `key:"id_token" is:"key"`
}

// IsSet reports whether requests of an HTTP tool get tokens.
func (o *OAuth) IsSet() bool { return o.Grant != "" || !o.IsZero() }

// IsZero reports whether nothing is configured, except possibly the default grant authorization_code.
func (o *OAuth) IsZero() bool {
	if o.Grant != "" && o.Grant != "authorization_code" || o.Scopes != nil || o.RedirectPort != 0 {
		return false
	}
	p := &o.Provider
	for _, r := range []Ref{o.Issuer, o.TokenEndpoint, o.AuthorizationEndpoint, o.ClientID, o.ClientSecret, o.PrivateKey, o.ClientMetadataURL, o.Assertion,
		p.TokenEndpoint, p.ClientID, p.ClientSecret, p.IDToken} {
		if !r.IsZero() {
			return false
		}
	}
	return true
}

// isReference accepts only a reference.
func isReference(r *Ref) error {
	if r.shown == "" {
		return errors.New("write the key as a reference, ${NAME} or ${file:path}; plain text is refused")
	}
	return nil
}

// showText accepts text that is not a secret, or a reference. It lets the text be shown.
func showText(r *Ref) error {
	if err := isHeaderValue(r); err != nil {
		return err
	}
	r.show()
	return nil
}
