package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Authentication methods of a client at the token endpoint, and the name under which it registers.
const (
	authBasic  = "client_secret_basic"
	authPost   = "client_secret_post"
	authNone   = "none"
	authJWT    = "private_key_jwt"
	clientName = "Lathe"
)

// A registration identifies a client at one authorization server. It is not valid at others.
type registration struct {
	ID       string `json:"id"`
	Secret   string `json:"secret,omitempty"`
	Method   string `json:"method"`
	Redirect string `json:"redirect,omitempty"` // redirect URI; "": the registration was not created by this package
	Expires  int64  `json:"expires,omitempty"`  // expiry of Secret in seconds since 1970; 0: never
}

// registered returns the registration in the configuration, or else one by the metadata document of this client. ok is false if there is
// neither, or the authorization server does not support such documents.
func (c *Client) registered(as *authServer) (r registration, ok bool, err error) {
	switch {
	case c.conf.ClientID != "":
		method, err := c.method(as)
		return registration{ID: c.conf.ClientID, Secret: c.conf.Secret.Reveal(), Method: method}, err == nil, err
	case c.conf.MetadataURL != "" && as.ClientIDMetadataDocumentSupported:
		return registration{ID: c.conf.MetadataURL, Method: authNone}, true, nil
	}
	return registration{}, false, nil
}

// method selects the authentication method of a configured client.
func (c *Client) method(as *authServer) (string, error) {
	methods := as.TokenEndpointAuthMethodsSupported // nil: the server publishes no methods
	takes := func(m string) bool { return slices.Contains(methods, m) }
	switch {
	case !c.conf.PrivateKey.IsZero():
		if methods != nil && !takes(authJWT) {
			return "", errors.New("the authorization server takes no signed assertion (private_key_jwt)")
		}
		return authJWT, nil
	case c.conf.Secret.IsZero():
		return authNone, nil
	case methods == nil || takes(authBasic): // client_secret_basic is the default of RFC 8414
		return authBasic, nil
	case takes(authPost):
		return authPost, nil
	}
	return "", errors.New("the authorization server takes no client secret")
}

// registrationMethods are the authentication methods of a client that registers itself, in order of preference.
var registrationMethods = []string{authNone, authBasic, authPost}

// registrationMethod returns the authentication method to register with: the preferred one that the authorization server supports.
func (s *authServer) registrationMethod() string {
	supported := s.TokenEndpointAuthMethodsSupported
	if supported == nil {
		return authBasic // the default of RFC 8414
	}
	for _, method := range registrationMethods {
		if slices.Contains(supported, method) {
			return method
		}
	}
	return authNone
}

// register registers a client for logins with a redirect URI (RFC 7591).
func (c *Client) register(ctx context.Context, as *authServer, redirect string, scopes []string) (registration, error) {
	if as.RegistrationEndpoint == "" {
		return registration{}, errors.New("the authorization server registers no clients by itself: register one there, and give its client_id")
	}
	method := as.registrationMethod()
	want := &oauthex.ClientRegistrationMetadata{
		ClientName: clientName, ApplicationType: "native", RedirectURIs: []string{redirect},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: method, Scope: joinScopes(scopes),
	}
	var got *oauthex.ClientRegistrationResponse
	err := c.send(ctx, func(ctx context.Context, client *http.Client) (err error) {
		got, err = oauthex.RegisterClient(ctx, as.RegistrationEndpoint, want, client)
		return err
	})
	if err != nil {
		return registration{}, fmt.Errorf("registering: %w", err)
	}
	r := registration{ID: got.ClientID, Secret: got.ClientSecret, Method: cmp.Or(got.TokenEndpointAuthMethod, method), Redirect: redirect}
	if !got.ClientSecretExpiresAt.IsZero() {
		r.Expires = got.ClientSecretExpiresAt.Unix()
	}
	switch {
	case len(r.ID) > maxURLBytes || len(r.Secret) > maxTokenBytes:
		return registration{}, errors.New("registering: the answer holds no client")
	case !slices.Contains(registrationMethods, r.Method):
		return registration{}, errors.New("registering: the authorization server wants a way to log in that is not known here")
	case r.Method != authNone && r.Secret == "":
		return registration{}, errors.New("registering: the answer holds no secret")
	}
	return r, nil
}

// usable reports whether a registration that this package created is still valid.
func (r *registration) usable(now time.Time) bool {
	return r.ID != "" && r.Redirect != "" && (r.Expires == 0 || now.Unix() < r.Expires)
}

// port returns the port of the redirect URI of the registration, or "".
func (r *registration) port() string {
	u, err := url.Parse(r.Redirect)
	if err != nil {
		return ""
	}
	return u.Port()
}
