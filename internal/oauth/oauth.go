// Package oauth obtains access tokens for HTTP servers that require them, and sends each token only to its server.
//
// It is a client of OAuth 2.1 as the Model Context Protocol specifies it: the server publishes the URL of its metadata (RFC 9728), the
// metadata names the authorization server (RFC 8414, OpenID), the client registers itself or has a registration, a user logs in with the
// authorization code flow and PKCE, and tokens are requested for one resource (RFC 8707). Programs log in with client credentials, with an
// assertion, or with a token exchange at their identity provider. Servers that require tokens bound to a key (DPoP, RFC 9449) are not
// supported: the request fails with that reason.
//
// Input from servers is untrusted. Every request uses package egress, without redirects, and every URL is https or loopback. Metadata must
// name the issuer from which it was requested, and a resource that contains the server; the redirect of a login must carry the state of the
// login, and the expected issuer if it has one. The size of responses is limited; errors have fixed texts that contain at most host names
// and error codes of the protocol. oauthex and x/oauth2 build the requests and parse most responses; the type sender enforces these rules.
//
// Tokens are stored in one file of mode 0600, for the URL of their server: see [Store].
package oauth

import (
	"cmp"
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

// Grants. The zero value means AuthorizationCode.
const (
	AuthorizationCode Grant = "authorization_code" // a user logs in
	ClientCredentials Grant = "client_credentials" // the client acts for itself
	JWTBearer         Grant = "jwt_bearer"         // the client presents an assertion of the workload
	CrossApp          Grant = "cross_app"          // the identity provider exchanges an identity token
)

// Config configures the tokens of one server. If only Server is set, the client registers itself, if the authorization server allows it,
// and a user logs in with the published metadata.
type Config struct {
	Name   string // name of the entry in the store
	Server string // URL of the server, https or loopback
	// Identity distinguishes the configured client from others and contains no secret: stored tokens of another identity are not used.
	Identity string

	Grant  Grant
	Issuer string // the only accepted authorization server; "": the first one in the metadata of the server
	// TokenEndpoint and AuthorizationEndpoint belong to an authorization server that publishes no metadata. If TokenEndpoint is set, no
	// metadata is read, and it is unknown whether the authorization server checks PKCE.
	TokenEndpoint, AuthorizationEndpoint string
	Scopes                               []string // scopes to request; nil: the published scopes; empty: none
	ClientID                             string   // client id of a manual registration
	Secret                               secret.Secret
	PrivateKey                           secret.Secret // PEM; the client signs an assertion instead of sending Secret
	// MetadataURL is the URL of the metadata document of this client. It is the client id at authorization servers that read such
	// documents.
	MetadataURL string
	// API means that the server is not an MCP server, and Server is its origin. Such a server gets no request without a token, may publish
	// metadata of any resource at its origin, and its authorization server need not support resources.
	API          bool
	RedirectPort int           // port of the redirect URI, on 127.0.0.1; 0: any
	Assertion    secret.Secret // JWT for the grant JWTBearer
	Provider     Provider      // for the grant CrossApp
	// Fresh, if set, returns the current values of Assertion and Provider.IDToken, which can be replaced before they expire.
	Fresh func() (assertion, idToken secret.Secret, err error)
}

// needsUser reports whether the grant requires that a user logs in.
func (c *Config) needsUser() bool { return c.Grant == "" || c.Grant == AuthorizationCode }

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
	Store *Store         // nil: tokens are stored in memory
	Now   func() time.Time
}

// Limits.
const (
	requestTimeout = 30 * time.Second // time of one request to a metadata or authorization server
	maxAnswerBytes = 256 << 10        // size of one response of such a server
	maxTokenBytes  = 16 << 10         // size of one token
	maxScopes      = 64
	maxScopeBytes  = 256
	maxServers     = 16               // authorization servers in the metadata of a server
	maxURLBytes    = 2 << 10          // size of a URL in metadata
	expiryMargin   = 10 * time.Second // a token is renewed this long before it expires
)

// A Client obtains the tokens for one server. It may be used from several goroutines at once.
type Client struct {
	conf     Config
	server   *url.URL
	resource string // URL of the server in canonical form
	http     *egress.Client
	store    *Store
	now      func() time.Time

	// mu is locked while a token is read, requested or renewed. Methods that use entry and do not lock mu are called with mu locked.
	mu     sync.Mutex
	entry  entry // current tokens
	stored entry // the entry of the store when it was last read

	secrets atomic.Pointer[[]secret.Secret] // tokens of entry, for callers that must not block
}

// New returns a client for the configuration, or an error if the configuration is not valid.
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
	if _, err := c.key(); err != nil {
		return err
	}
	if fault := cmp.Or(c.contradiction(), c.missing()); fault != "" {
		return errors.New(fault)
	}
	return nil
}

// contradiction returns the first fault in the settings that depend on each other, or "".
func (c *Config) contradiction() string {
	hasSecret, hasKey := !c.Secret.IsZero(), !c.PrivateKey.IsZero()
	switch {
	case c.TokenEndpoint == "" && c.AuthorizationEndpoint != "":
		return "authorization_endpoint goes with token_endpoint"
	case c.TokenEndpoint != "" && c.needsUser() && (c.AuthorizationEndpoint == "" || c.ClientID == ""):
		return "a login with token_endpoint wants authorization_endpoint and client_id, too"
	// The metadata of a server can name any authorization server, and that one could forward a secret. A signature made with private_key,
	// and a token exchange, are valid only for the authorization server that they name.
	case c.Issuer == "" && c.TokenEndpoint == "" && (hasSecret || !c.Assertion.IsZero() || c.API && !c.Provider.IDToken.IsZero()):
		return "a secret is for one authorization server: name it by issuer, or by token_endpoint"
	case hasSecret && hasKey:
		return "both client_secret and private_key: a client has one of them"
	case c.ClientID == "" && (hasSecret || hasKey):
		return "client_secret and private_key go with client_id"
	}
	return ""
}

// missing returns a text about the settings that the grant requires and that are missing, or "".
func (c *Config) missing() string {
	switch {
	case !slices.Contains([]Grant{"", AuthorizationCode, ClientCredentials, JWTBearer, CrossApp}, c.Grant):
		return "grant is authorization_code, client_credentials, jwt_bearer or cross_app"
	case c.Grant == ClientCredentials && (c.ClientID == "" || c.Secret.IsZero() && c.PrivateKey.IsZero()):
		return "the grant client_credentials wants client_id, and client_secret or private_key"
	case c.Grant == JWTBearer && c.Assertion.IsZero():
		return "the grant jwt_bearer wants an assertion"
	case c.Grant == CrossApp && (c.ClientID == "" || c.Provider.TokenEndpoint == "" || c.Provider.IDToken.IsZero()):
		return "the grant cross_app wants client_id, provider.token_endpoint and provider.id_token"
	}
	return ""
}

// Ready reports whether requests can be sent with a token without a user: a token is stored, or can be obtained or renewed. It reads the
// store and sends no request.
func (c *Client) Ready() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	return !c.conf.needsUser() || c.valid() || c.entry.RefreshToken != "", err
}

// A LoginError means that a user must log in before the server accepts requests.
type LoginError struct {
	Name string // name of the entry in the store
	Why  string
}

func (e *LoginError) Error() string { return "a login is needed: " + e.Why }

// An Error is the error of the transport of a [Client] if it has no token that the server accepts. The server has not executed the request.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason, which may be a [*LoginError].
func (e *Error) Unwrap() error { return e.Err }

// Secrets returns the current tokens of the client, for callers that remove them from texts.
func (c *Client) Secrets() []secret.Secret {
	if s := c.secrets.Load(); s != nil {
		return slices.Clone(*s)
	}
	return nil
}

// publish updates the result of Secrets.
func (c *Client) publish() {
	var out []secret.Secret
	for _, s := range []string{c.entry.AccessToken, c.entry.RefreshToken, c.entry.Client.Secret} {
		if s != "" {
			out = append(out, secret.New(s))
		}
	}
	c.secrets.Store(&out)
}
