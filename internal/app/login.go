package app

import (
	"context"
	"errors"
	"strings"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/oauth"
)

// A Login obtains OAuth tokens for one source of tools and stores them in the file tools.tokens. The caller must call Close.
type Login struct {
	Kind string // mcp, http or openapi
	Name string // name of the source

	tokens *oauth.Client
	close  func()
}

// A Grant is what a login obtained.
type Grant = oauth.Granted

// OpenLogin returns the login for an MCP server, an HTTP tool or an OpenAPI document. name is its name or, if several sources share it,
// KIND:NAME, such as mcp:search.
func OpenLogin(cfg *config.Config, name string) (*Login, error) {
	kind, plain, err := sourceNamed(cfg, name)
	if err != nil {
		return nil, err
	}
	if kind != "mcp" {
		b := OpenHTTPTools(cfg)
		l := &Login{Kind: kind, Name: plain, tokens: b.logins[kind+":"+plain], close: b.Close}
		if l.tokens == nil {
			b.Close()
			return nil, invalidRequest("tools.%s.%s has no oauth, which says how tokens are got", kind, plain)
		}
		return l, nil
	}
	c := cfg.Tools.MCP[plain]
	switch {
	case c.URL.IsZero():
		return nil, invalidRequest("%s is a program: only servers with a url are logged in to", plain)
	case HasAuthorization(c.Headers):
		return nil, invalidRequest("%s has its credentials in tools.mcp.%s.headers: take Authorization out of them to log in", plain, plain)
	}
	tokens, client, err := tokensFor(plain, cfg)
	if err == nil && tokens == nil {
		err = errors.New("its url is neither https nor on this machine: tokens would be seen on their way")
	}
	if err != nil {
		return nil, invalidConfig("%s: %w", plain, err)
	}
	return &Login{Kind: kind, Name: plain, tokens: tokens, close: client.Close}, nil
}

// sourceNamed returns the kind and the name without kind of a source of tools.
func sourceNamed(cfg *config.Config, name string) (kind, plain string, err error) {
	kind, plain, hasKind := strings.Cut(name, ":")
	if !hasKind {
		kind, plain = "", name
	}
	var found []string
	for _, one := range []struct {
		kind  string
		known bool
	}{{"mcp", cfg.Tools.MCP[plain] != nil}, {"http", cfg.Tools.HTTP[plain] != nil}, {"openapi", cfg.Tools.OpenAPI[plain] != nil}} {
		if one.known && (kind == "" || kind == one.kind) {
			found = append(found, one.kind)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], plain, nil
	case len(found) > 1:
		return "", "", invalidRequest("%s is the name of several: write %s:%s", plain, strings.Join(found, ":"+plain+" or "), plain)
	case kind == "mcp":
		return "", "", invalidRequest("no MCP server %q: `lathe tools doctor` names those of the configuration", plain)
	}
	return "", "", invalidRequest("no MCP server, HTTP tool or OpenAPI document %q in the configuration: `lathe tools list` names what there is", plain)
}

// Ready reports whether tokens are stored or can be obtained without a user.
func (l *Login) Ready() (bool, error) { return l.tokens.Ready() }

// RightsWanted reports whether the server has requested scopes that no login has obtained yet.
func (l *Login) RightsWanted() (bool, error) { return l.tokens.Wanted() }

// Obtain logs in: it calls open with the URL at which the user logs in, and blocks until the browser is redirected to this machine or ctx
// is done.
func (l *Login) Obtain(ctx context.Context, open func(address string) error) (*Grant, error) {
	return l.tokens.Login(ctx, open)
}

// Forget removes the stored tokens and the registration with the authorization server.
func (l *Login) Forget() error { return l.tokens.Logout() }

// Close closes the idle connections.
func (l *Login) Close() {
	if l.close != nil {
		l.close()
	}
}
