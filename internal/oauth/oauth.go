// Package oauth gets access tokens for HTTP servers that want them, and sends each to its server alone.
//
// It is a client of OAuth 2.1 as the Model Context Protocol profiles it: the server says where its
// metadata stands (RFC 9728), the metadata names the authorization server (RFC 8414, OpenID), the
// client registers or brings its own registration, a person logs in by the authorization code flow
// with PKCE, and tokens are asked for one resource (RFC 8707), bound to a key where the server wants
// that (RFC 9449). Machines log in by client
// credentials, by an assertion of theirs, or by what their identity provider exchanges.
//
// What servers say is untrusted. Every address is reached through internal/egress, without
// redirects, and is https or loopback. Metadata has to name the issuer it was asked of and a resource
// that the server is part of; the answer to a login has to carry its state, and the issuer where one is given.
// Answers are bounded; errors are of fixed text, with the names of hosts and error codes of the protocol at most.
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

	"github.com/lathe-run/lathe/internal/egress"
	"github.com/lathe-run/lathe/internal/secret"
)

// A Grant is the way by which tokens are got.
type Grant string

// The grants. The zero value counts as AuthorizationCode.
const (
	AuthorizationCode Grant = "authorization_code" // a person logs in
	ClientCredentials Grant = "client_credentials" // the client is the one who asks
	JWTBearer         Grant = "jwt_bearer"         // an assertion of the workload's own
	CrossApp          Grant = "cross_app"          // an identity token, exchanged at the identity provider
)

// Config says how the tokens of one server are got. The zero Config but for Server logs in with what
// the server says, and registers itself where it may.
type Config struct {
	Name   string // of the entry in the store
	Server string // URL of the server, https or loopback
	// Identity tells who the tokens are got for from others, without a secret in it: what the store has of another is not used.
	Identity string

	Grant  Grant
	Issuer string // the only authorization server that is taken; "": the first that the server names
	// TokenEndpoint and AuthorizationEndpoint are those of an authorization server that publishes no metadata.
	// With the first nothing is discovered, and a login is not known to be protected by PKCE.
	TokenEndpoint, AuthorizationEndpoint string
	Scopes                               []string // asked for in place of those that the server names; nil: those; empty: none
	ClientID                             string   // of a registration that was made by hand
	Secret                               secret.Secret
	PrivateKey                           secret.Secret // PEM; the client signs instead of showing a secret
	// MetadataURL is the address of the client's own metadata document, which serves as its id where
	// authorization servers read such documents.
	MetadataURL string
	// API says that the server is no MCP server, and Server its origin. Such a server is asked for nothing without a
	// token, publishes metadata of any resource at its origin, and its authorization server need not know of resources.
	API          bool
	RedirectPort int           // where a login is answered, on 127.0.0.1; 0: any
	Assertion    secret.Secret // of the JWTBearer grant: a JWT
	Provider     Provider      // of the CrossApp grant
	// Fresh, where it is set, returns Assertion and Provider.IDToken as they are now: others put new ones in
	// their place before they expire.
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
	HTTP  *egress.Client // what reaches metadata and authorization servers; required
	Store *Store         // nil: tokens are kept in memory
	Now   func() time.Time
}

// Limits.
const (
	requestTimeout   = 30 * time.Second // of one request to a metadata or authorization server
	maxMetadataBytes = 256 << 10        // of one answer
	maxTokenBytes    = 16 << 10         // of one token
	maxScopes        = 64
	maxScopeBytes    = 256
	maxServers       = 16               // authorization servers that a server may name
	maxURLBytes      = 2 << 10          // of an address in metadata
	expiryMargin     = 10 * time.Second // a token is renewed that long before it expires
)

// A Client gets the tokens of one server. It may be used by several goroutines at once.
type Client struct {
	conf     Config
	server   *url.URL
	resource string // the server's URL in its canonical form
	http     *egress.Client
	store    *Store
	now      func() time.Time

	mu       sync.Mutex // held while a token is read, got or renewed
	has, was entry      // what the client has, and what the store had when it was read

	nonces  nonces
	secrets atomic.Pointer[[]secret.Secret] // of has, for who cannot wait
}

// New returns a client, or says what is wrong with its configuration.
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

// Check says what is wrong with a configuration, or returns nil.
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
	// A server names whatever authorization server it likes, and that could show what it gets to others. What is signed
	// with private_key is for the one that it is sent to, as is what a provider exchanges.
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

// byPerson reports whether a person has to log in.
func (c *Client) byPerson() bool { return c.conf.Grant == "" || c.conf.Grant == AuthorizationCode }

// Ready reports whether requests can carry a token without a person: there is one, or it is got or renewed. It looks at
// what the store has, and asks nobody.
func (c *Client) Ready() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	return !c.byPerson() || c.valid() || c.has.RefreshToken != "", err
}

// A LoginError says that a person has to log in before the server answers.
type LoginError struct {
	Name string // of the server
	Why  string
}

func (e *LoginError) Error() string { return "a login is needed: " + e.Why }

// An Error is why the transport of a [Client] gives no answer of the server's: it has no token that
// the server takes. Nothing that the request asks for was done.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason, which may be a [*LoginError].
func (e *Error) Unwrap() error { return e.Err }

// Secrets are the tokens that the client has now, for who keeps them out of texts.
func (c *Client) Secrets() []secret.Secret {
	if s := c.secrets.Load(); s != nil {
		return slices.Clone(*s)
	}
	return nil
}

// publish shows Secrets what the client has now.
func (c *Client) publish() {
	var out []secret.Secret
	for _, s := range []string{c.has.AccessToken, c.has.RefreshToken, c.has.Client.Secret, c.has.Key} {
		if s != "" {
			out = append(out, secret.New(s))
		}
	}
	c.secrets.Store(&out)
}
