package main

import (
	"net/http"
	"net/textproto"
	"path/filepath"
	"slices"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/egress"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// tokensFor returns the client that gets the tokens of an MCP server, and what it reaches others
// by; nil where none can be got: for a program, for a server whose configuration brings its
// credentials, and for one that is neither https nor on this machine.
func tokensFor(name string, cfg *config.Config, base string) (*oauth.Client, *egress.Client, error) {
	c := cfg.Tools.MCP[name]
	conf := oauthConfig(name, c)
	if c.URL.IsZero() || bringsCredentials(c) {
		return nil, nil, nil
	}
	if err := conf.Check(); err != nil && c.OAuth.IsZero() {
		return nil, nil, nil //nolint:nilerr // nobody asked for tokens, and what is sent to such an address is seen
	} else if err != nil {
		return nil, nil, err
	}
	// A server names whatever authorization server it likes. What is private is reached for a server
	// that is so itself, and for addresses of the configuration.
	rules := egress.Rules{Hosts: []string{"*"}, Schemes: []string{"https"}, AnyPort: true}
	if c.OAuth.Issuer.IsZero() && c.OAuth.Provider.TokenEndpoint.IsZero() {
		rules.Schemes = append(rules.Schemes, "http")
		public, err := egress.New(&rules, nil)
		if err != nil {
			return nil, nil, err
		}
		inner := egress.CodeOf(public.Check(conf.Server)) == egress.CodeAddress
		public.Close()
		if inner || slices.Contains(cfg.Tools.Egress.Private, hostOf(conf.Server)) {
			rules.Private = cfg.Tools.Egress.Private
		}
	} else {
		rules.Schemes, rules.Private = append(rules.Schemes, "http"), cfg.Tools.Egress.Private
	}
	client, err := egress.New(&rules, &egress.Options{MaxRedirects: -1})
	if err != nil {
		return nil, nil, err
	}
	path := cfg.Tools.Tokens
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	tokens, err := oauth.New(conf, &oauth.Options{HTTP: client, Store: oauth.NewStore(path)})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return tokens, client, nil
}

// bringsCredentials reports whether the headers of a server say who asks.
func bringsCredentials(c *config.MCPServer) bool {
	for name := range c.Headers {
		if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}

func oauthConfig(name string, c *config.MCPServer) oauth.Config {
	o := &c.OAuth
	return oauth.Config{
		Name: name, Server: c.URL.Reveal(), Grant: oauth.Grant(o.Grant), Issuer: o.Issuer.Reveal(), Scopes: o.Scopes,
		ClientID: o.ClientID.Reveal(), Secret: o.ClientSecret.Secret(), PrivateKey: o.PrivateKey.Secret(),
		MetadataURL: o.ClientMetadataURL.Reveal(), RedirectPort: o.RedirectPort, Assertion: o.Assertion.Secret(),
		Provider: oauth.Provider{TokenEndpoint: o.Provider.TokenEndpoint.Reveal(), ClientID: o.Provider.ClientID.Reveal(),
			Secret: o.Provider.ClientSecret.Secret(), IDToken: o.Provider.IDToken.Secret()},
	}
}

// withTokens has requests of a server carry tokens.
func (s *servers) withTokens(name string, cfg *config.Config, base string, to *mcptool.Server) error {
	tokens, client, err := tokensFor(name, cfg, base)
	if err != nil || tokens == nil {
		return err
	}
	s.clients, s.tokens[name] = append(s.clients, client), tokens
	to.Client, to.Tokens = &http.Client{Transport: tokens.Transport(to.Client.Transport)}, tokens.Secrets
	return nil
}

// wantsMore reports whether a server that is ready has asked for rights that no login brought yet.
func (s *servers) wantsMore(st *mcptool.Status) bool {
	tokens := s.tokens[st.Server]
	if tokens == nil || st.State != mcptool.StateReady {
		return false
	}
	wanted, err := tokens.Wanted()
	return wanted && err == nil
}

// loginHint is the next step where a server wants a login.
func loginHint(server string) string { return "`lathe mcp login " + server + "`" }
