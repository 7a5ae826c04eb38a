package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/secret"
)

// tokenClient returns the OAuth client for conf, and the HTTP client that it uses.
func tokenClient(conf *oauth.Config, cfg *config.Config) (*oauth.Client, *egress.Client, error) {
	// A server can name any authorization server. Private addresses are allowed only if the server itself is private, or if the
	// configuration names the authorization server.
	rules := egress.Rules{Hosts: []string{"*"}, Schemes: []string{"https", "http"}, AnyPort: true}
	mayBePrivate := conf.Issuer != "" || conf.TokenEndpoint != "" || conf.Provider.TokenEndpoint != "" || slices.Contains(cfg.Tools.Egress.Private, hostOf(conf.Server))
	if !mayBePrivate {
		public, err := egress.New(&rules, nil)
		if err != nil {
			return nil, nil, err
		}
		mayBePrivate = egress.CodeOf(public.Check(conf.Server)) == egress.CodeAddress
		public.Close()
	}
	if mayBePrivate {
		rules.Private = cfg.Tools.Egress.Private
	}
	client, err := egress.New(&rules, &egress.Options{MaxRedirects: -1})
	if err != nil {
		return nil, nil, err
	}
	tokens, err := oauth.New(*conf, &oauth.Options{HTTP: client, Store: oauth.NewStore(stateFile(cfg, cfg.Tools.Tokens))})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return tokens, client, nil
}

func oauthConfig(name, server string, o *config.OAuth) oauth.Config {
	return oauth.Config{
		Name: name, Server: server, Identity: identityOf(o), Grant: oauth.Grant(o.Grant), Issuer: o.Issuer.Reveal(), Scopes: o.Scopes,
		TokenEndpoint: o.TokenEndpoint.Reveal(), AuthorizationEndpoint: o.AuthorizationEndpoint.Reveal(),
		ClientID: o.ClientID.Reveal(), Secret: o.ClientSecret.Secret(), PrivateKey: o.PrivateKey.Secret(),
		MetadataURL: o.ClientMetadataURL.Reveal(), RedirectPort: o.RedirectPort, Assertion: o.Assertion.Secret(),
		Provider: oauth.Provider{TokenEndpoint: o.Provider.TokenEndpoint.Reveal(), ClientID: o.Provider.ClientID.Reveal(),
			Secret: o.Provider.ClientSecret.Secret(), IDToken: o.Provider.IDToken.Secret()},
		Fresh: func() (assertion, idToken secret.Secret, err error) {
			if assertion, err = o.Assertion.Fresh(); err == nil {
				idToken, err = o.Provider.IDToken.Fresh()
			}
			return assertion, idToken, err
		},
	}
}

// identityOf returns a text that identifies the OAuth client of the configuration, or "" for a client that registers itself. Secrets are
// compared by their references in the file, so that a renewed secret does not change the identity.
func identityOf(o *config.OAuth) string {
	grant := o.Grant
	if oauth.Grant(grant) == oauth.AuthorizationCode {
		grant = ""
	}
	parts := []string{grant, o.Issuer.Reveal(), o.TokenEndpoint.Reveal(), o.AuthorizationEndpoint.Reveal(), o.ClientID.Reveal(), o.ClientMetadataURL.Reveal(),
		o.ClientSecret.Mark(), o.PrivateKey.Mark(), o.Assertion.Mark(),
		o.Provider.TokenEndpoint.Reveal(), o.Provider.ClientID.Reveal(), o.Provider.ClientSecret.Mark(), o.Provider.IDToken.Mark()}
	if strings.Join(parts, "") == "" {
		return ""
	}
	return digest(parts)
}

func digest(parts []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:16])
}

// apiConfig returns the OAuth configuration of HTTP tools. Tools with the same origin and settings share tokens: the name of the store
// entry is a hash of both.
func apiConfig(address *url.URL, o *config.OAuth, scopes []string) *oauth.Config {
	conf := oauthConfig("", address.Scheme+"://"+address.Host, o)
	conf.API = true
	if conf.Grant == "" {
		conf.Grant = oauth.AuthorizationCode
	}
	if conf.Scopes == nil {
		conf.Scopes = slices.Sorted(slices.Values(scopes))
	}
	conf.Name = "api." + digest(append([]string{conf.Server, conf.Identity}, conf.Scopes...))
	return &conf
}

// LoginCommand returns the command that logs in to the source of tools with that name, for messages.
func LoginCommand(name string) string { return "`lathe tools login " + name + "`" }
