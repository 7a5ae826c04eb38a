package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// The ways by which a client shows at the token endpoint who it is.
const (
	authBasic  = "client_secret_basic"
	authPost   = "client_secret_post"
	authNone   = "none"
	authJWT    = "private_key_jwt"
	clientName = "Lathe"
)

// A registration is what a client is to one authorization server. It is of no use at any other.
type registration struct {
	ID       string `json:"id"`
	Secret   string `json:"secret,omitempty"`
	Method   string `json:"method"`
	Redirect string `json:"redirect,omitempty"` // of a registration that was made here
	Expires  int64  `json:"expires,omitempty"`  // of the secret; seconds since 1970
}

// registered returns the registration of the configuration, or one by the client's own metadata
// document; ok is false where neither serves at the server.
func (c *Client) registered(as *authServer) (r registration, ok bool, err error) {
	switch {
	case c.conf.ClientID != "":
		method, err := c.method(as)
		return registration{ID: c.conf.ClientID, Secret: c.conf.Secret.Reveal(), Method: method}, err == nil, err
	case c.conf.MetadataURL != "" && as.readsClients:
		return registration{ID: c.conf.MetadataURL, Method: authNone}, true, nil
	}
	return registration{}, false, nil
}

// method picks how a client of the configuration shows who it is.
func (c *Client) method(as *authServer) (string, error) {
	takes := func(m string) bool { return slices.Contains(as.authMethods, m) }
	switch {
	case !c.conf.PrivateKey.IsZero():
		if as.authMethodsKnown && !takes(authJWT) {
			return "", errors.New("the authorization server takes no signed assertion (private_key_jwt)")
		}
		return authJWT, nil
	case c.conf.Secret.IsZero():
		return authNone, nil
	case !as.authMethodsKnown || takes(authBasic): // the default of RFC 8414
		return authBasic, nil
	case takes(authPost):
		return authPost, nil
	}
	return "", errors.New("the authorization server takes no client secret")
}

// register registers a client for logins that are answered at redirect (RFC 7591).
func (c *Client) register(ctx context.Context, as *authServer, redirect string, scopes []string) (registration, error) {
	if as.register == "" {
		return registration{}, errors.New("the authorization server registers no clients by itself: register one there, and give its client_id")
	}
	method := authNone
	for _, m := range []string{authNone, authBasic, authPost} {
		if slices.Contains(as.authMethods, m) {
			method = m
			break
		}
	}
	if !as.authMethodsKnown {
		method = authBasic
	}
	want := map[string]any{
		"client_name": clientName, "application_type": "native", "redirect_uris": []string{redirect},
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": method,
	}
	if len(scopes) > 0 {
		want["scope"] = joinScopes(scopes)
	}
	body, err := json.Marshal(want)
	if err != nil {
		return registration{}, err
	}
	o, err := c.post(ctx, as.register, "application/json", string(body), nil)
	if err != nil {
		return registration{}, fmt.Errorf("registering: %w", err)
	}
	r := registration{ID: o.text("client_id"), Secret: o.text("client_secret"), Method: o.text("token_endpoint_auth_method"),
		Redirect: redirect, Expires: o.seconds("client_secret_expires_at")}
	if r.Method == "" {
		r.Method = method
	}
	switch {
	case r.ID == "" || len(r.ID) > maxURLBytes || len(r.Secret) > maxTokenBytes:
		return registration{}, errors.New("registering: the answer holds no client")
	case r.Method != authNone && r.Method != authBasic && r.Method != authPost:
		return registration{}, errors.New("registering: the authorization server wants a way to log in that is not known here")
	case r.Method != authNone && r.Secret == "":
		return registration{}, errors.New("registering: the answer holds no secret")
	}
	return r, nil
}

// usable reports whether a registration that was made here still serves.
func (r *registration) usable(now time.Time) bool {
	return r.ID != "" && r.Redirect != "" && (r.Expires == 0 || now.Unix() < r.Expires)
}

// port returns the port at which logins of the registration are answered.
func (r *registration) port() string {
	u, err := url.Parse(r.Redirect)
	if err != nil {
		return ""
	}
	return u.Port()
}
