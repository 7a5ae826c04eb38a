// Package oauth obtains access tokens for HTTP servers that require them, and sends each to its server only.
//
// It is a client of OAuth 2.1 as the Model Context Protocol specifies it: the server names the URL of its
// metadata (RFC 9728), the metadata names the authorization server (RFC 8414, OpenID), the
// client registers itself or has a registration, a user logs in with the authorization code flow
// and PKCE, and tokens are requested for one resource (RFC 8707). Programs log in with client
// credentials, with an assertion, or with a token exchange at their identity provider.
// A server that requires tokens bound to a key (DPoP, RFC 9449) is not supported: the request fails with that reason.
//
// Input from servers is untrusted. Every request uses package egress, without
// redirects, and every URL is https or loopback. Metadata must name the issuer from which it was requested, and a resource
// that contains the server; the redirect of a login must carry its state, and the issuer if one is given.
// Answers are bounded; errors have fixed text, with at most the names of hosts and error codes of the protocol.
// oauthex and x/oauth2 build the requests and parse most answers; a sender per request enforces these rules.
//
// Tokens are kept in one file of mode 0600, bound to the URL of their server: see [Store].
package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/secret"
)

// A Grant is a method of obtaining tokens.
type Grant string

// The grants. The zero value counts as AuthorizationCode.
const (
	AuthorizationCode Grant = "authorization_code" // a user logs in
	ClientCredentials Grant = "client_credentials" // the client acts for itself
	JWTBearer         Grant = "jwt_bearer"         // an assertion of the workload
	CrossApp          Grant = "cross_app"          // an identity token, exchanged at the identity provider
)

// Config configures the tokens of one server. A Config with only Server logs a user in with the server's
// metadata, and registers itself if the server allows it.
type Config struct {
	Name   string // of the entry in the store
	Server string // URL of the server, https or loopback
	// Identity distinguishes the configured client from others, without a secret in it: stored tokens of another identity are not used.
	Identity string

	Grant  Grant
	Issuer string // the only accepted authorization server; "": the first that the server names
	// TokenEndpoint and AuthorizationEndpoint are those of an authorization server that publishes no metadata.
	// If the first is set, nothing is discovered, and it is unknown whether the server checks PKCE.
	TokenEndpoint, AuthorizationEndpoint string
	Scopes                               []string // requested in place of those that the server names; nil: those; empty: none
	ClientID                             string   // of a manual registration
	Secret                               secret.Secret
	PrivateKey                           secret.Secret // PEM; the client signs an assertion instead of sending a secret
	// MetadataURL is the URL of the client's own metadata document. It is the client's id at
	// authorization servers that read such documents.
	MetadataURL string
	// API means that the server is not an MCP server, and Server is its origin. Such a server gets no request without a
	// token, publishes metadata of any resource at its origin, and its authorization server need not support resources.
	API          bool
	RedirectPort int           // port of the redirect URI, on 127.0.0.1; 0: any
	Assertion    secret.Secret // of the JWTBearer grant: a JWT
	Provider     Provider      // of the CrossApp grant
	// Fresh, if set, returns the current Assertion and Provider.IDToken, which may be replaced before
	// they expire.
	Fresh func() (assertion, idToken secret.Secret, err error)
}

// A Provider is the identity provider of the [CrossApp] grant.
type Provider struct {
	TokenEndpoint string
	ClientID      string
	Secret        secret.Secret
	IDToken       secret.Secret
}

// Options of a [Client].
type Options struct {
	HTTP  *egress.Client // for requests to metadata and authorization servers; required
	Store *Store         // nil: tokens are kept in memory
	Now   func() time.Time
}

// Limits.
const (
	requestTimeout = 30 * time.Second // of one request to a metadata or authorization server
	maxAnswerBytes = 256 << 10        // of one of their answers
	maxTokenBytes  = 16 << 10         // of one token
	maxScopes      = 64
	maxScopeBytes  = 256
	maxServers     = 16               // authorization servers that a server may name
	maxURLBytes    = 2 << 10          // of an address in metadata
	expiryMargin   = 10 * time.Second // a token is renewed this long before it expires
)

// A Client obtains the tokens of one server. It may be used by several goroutines at once.
type Client struct {
	conf     Config
	server   *url.URL
	resource string // the server's URL in its canonical form
	http     *egress.Client
	store    *Store
	now      func() time.Time

	mu       sync.Mutex // held while a token is read, requested or renewed
	has, was entry      // the current entry, and the stored entry when it was read

	secrets atomic.Pointer[[]secret.Secret] // of has, for callers that cannot wait
}

// New returns a client, or an error for an invalid configuration.
func New(conf Config, opts *Options) (*Client, error) {
	if opts == nil || opts.HTTP == nil {
		return nil, errors.New("oauth: there is no HTTP client")
	}
	if err := conf.Check(); err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	u, err := url.Parse(conf.Server)
	if err != nil {
		return nil, errors.New("oauth: the server's url cannot be read")
	}
	c := &Client{conf: conf, server: u, resource: conf.canonical(u), http: opts.HTTP, store: opts.Store, now: opts.Now}
	c.conf.Scopes = slices.Clone(conf.Scopes)
	if c.store == nil {
		c.store = NewStore("")
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// Check returns an error for an invalid configuration.
func (c *Config) Check() error {
	if c.Name == "" || strings.ContainsFunc(c.Name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}) {
		return errors.New("the name is not made of a-z, 0-9, -, _ and dots")
	}
	if _, err := secureURL(c.Server); err != nil {
		return fmt.Errorf("the server's url %w", err)
	}
	for name, u := range map[string]string{"issuer": c.Issuer, "token_endpoint": c.TokenEndpoint, "authorization_endpoint": c.AuthorizationEndpoint,
		"client_metadata_url": c.MetadataURL, "provider.token_endpoint": c.Provider.TokenEndpoint} {
		if u == "" {
			continue
		}
		if _, err := secureURL(u); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
	}
	if u, _ := url.Parse(c.MetadataURL); c.MetadataURL != "" && (u.Scheme != "https" || u.Path == "" || u.Path == "/") {
		return errors.New("client_metadata_url is an https address with a path")
	}
	if err := checkScopes(c.Scopes); err != nil {
		return err
	}
	byPerson := c.Grant == "" || c.Grant == AuthorizationCode
	switch {
	case c.TokenEndpoint == "" && c.AuthorizationEndpoint != "":
		return errors.New("authorization_endpoint goes with token_endpoint")
	case c.TokenEndpoint != "" && byPerson && (c.AuthorizationEndpoint == "" || c.ClientID == ""):
		return errors.New("a login with token_endpoint wants authorization_endpoint and client_id, too")
	}
	if _, err := c.key(); err != nil {
		return err
	}
	// A server may name any authorization server, and that one could forward what it receives. A signature of
	// private_key, and a token exchange, are valid for the named server only.
	if c.Issuer == "" && c.TokenEndpoint == "" && (!c.Secret.IsZero() || !c.Assertion.IsZero() || c.API && !c.Provider.IDToken.IsZero()) {
		return errors.New("a secret is for one authorization server: name it by issuer, or by token_endpoint")
	}
	switch {
	case !c.Secret.IsZero() && !c.PrivateKey.IsZero():
		return errors.New("both client_secret and private_key: a client has one of them")
	case c.ClientID == "" && (!c.Secret.IsZero() || !c.PrivateKey.IsZero()):
		return errors.New("client_secret and private_key go with client_id")
	}
	switch c.Grant {
	case "", AuthorizationCode:
	case ClientCredentials:
		if c.ClientID == "" || c.Secret.IsZero() && c.PrivateKey.IsZero() {
			return errors.New("the grant client_credentials wants client_id, and client_secret or private_key")
		}
	case JWTBearer:
		if c.Assertion.IsZero() {
			return errors.New("the grant jwt_bearer wants an assertion")
		}
	case CrossApp:
		if c.ClientID == "" || c.Provider.TokenEndpoint == "" || c.Provider.IDToken.IsZero() {
			return errors.New("the grant cross_app wants client_id, provider.token_endpoint and provider.id_token")
		}
	default:
		return errors.New("grant is authorization_code, client_credentials, jwt_bearer or cross_app")
	}
	return nil
}

// byPerson reports whether a user has to log in.
func (c *Client) byPerson() bool { return c.conf.Grant == "" || c.conf.Grant == AuthorizationCode }

// Ready reports whether requests can carry a token without a user: there is a token, or it can be obtained or renewed.
// It reads the store and sends no request.
func (c *Client) Ready() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	return !c.byPerson() || c.valid() || c.has.RefreshToken != "", err
}

// A LoginError means that a user has to log in before the server answers.
type LoginError struct {
	Name string // of the server
	Why  string
}

func (e *LoginError) Error() string { return "a login is needed: " + e.Why }

// An Error is the reason for which the transport of a [Client] returns no answer of the server: it has no token that
// the server accepts. The server has not executed the request.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason, which may be a [*LoginError].
func (e *Error) Unwrap() error { return e.Err }

// Secrets returns the client's current tokens, for callers that remove them from texts.
func (c *Client) Secrets() []secret.Secret {
	if s := c.secrets.Load(); s != nil {
		return slices.Clone(*s)
	}
	return nil
}

// publish updates the result of Secrets.
func (c *Client) publish() {
	var out []secret.Secret
	for _, s := range []string{c.has.AccessToken, c.has.RefreshToken, c.has.Client.Secret} {
		if s != "" {
			out = append(out, secret.New(s))
		}
	}
	c.secrets.Store(&out)
}
