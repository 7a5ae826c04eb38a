package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/egress"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/internal/secret"
)

// tokenClient returns what gets the tokens that conf says, and what it reaches others by.
func tokenClient(conf *oauth.Config, cfg *config.Config) (*oauth.Client, *egress.Client, error) {
	// A server names whatever authorization server it likes. What is private is reached for a server
	// that is so itself, and for addresses of the configuration.
	rules := egress.Rules{Hosts: []string{"*"}, Schemes: []string{"https", "http"}, AnyPort: true}
	inner := conf.Issuer != "" || conf.TokenEndpoint != "" || conf.Provider.TokenEndpoint != "" || slices.Contains(cfg.Tools.Egress.Private, hostOf(conf.Server))
	if !inner {
		public, err := egress.New(&rules, nil)
		if err != nil {
			return nil, nil, err
		}
		inner = egress.CodeOf(public.Check(conf.Server)) == egress.CodeAddress
		public.Close()
	}
	if inner {
		rules.Private = cfg.Tools.Egress.Private
	}
	client, err := egress.New(&rules, &egress.Options{MaxRedirects: -1})
	if err != nil {
		return nil, nil, err
	}
	path := cfg.Tools.Tokens
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.Dir(), path)
	}
	tokens, err := oauth.New(*conf, &oauth.Options{HTTP: client, Store: oauth.NewStore(path)})
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

// identityOf tells who tokens are got for from others; "" for who registers itself, which the server knows no better. Secrets
// count by what the file says of them: they may be put anew.
func identityOf(o *config.OAuth) string {
	grant := o.Grant
	if oauth.Grant(grant) == oauth.AuthorizationCode {
		grant = ""
	}
	said := []string{grant, o.Issuer.Reveal(), o.TokenEndpoint.Reveal(), o.AuthorizationEndpoint.Reveal(), o.ClientID.Reveal(), o.ClientMetadataURL.Reveal(),
		o.ClientSecret.Mark(), o.PrivateKey.Mark(), o.Assertion.Mark(),
		o.Provider.TokenEndpoint.Reveal(), o.Provider.ClientID.Reveal(), o.Provider.ClientSecret.Mark(), o.Provider.IDToken.Mark()}
	if !slices.ContainsFunc(said, func(s string) bool { return s != "" }) {
		return ""
	}
	return digest(said)
}

func digest(said []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", said))
	return hex.EncodeToString(sum[:16])
}

// apiConfig says how the tokens of a tool over HTTP are got. Tools of one origin that say the same
// share them: the entry of the store is named by what they say.
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

// loginHint is the next step where a person has to log in.
func loginHint(name string) string { return "`lathe tools login " + name + "`" }
