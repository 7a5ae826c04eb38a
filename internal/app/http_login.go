package app

import (
	"errors"
	"net/url"
	"strings"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/oauth"
)

// httpLogins has the OAuth clients of HTTP tools.
type httpLogins struct {
	logins map[string]*oauth.Client // by source: http:NAME, openapi:NAME
	byTool map[string]string        // tool name → source, for tools whose requests carry a token
	shared map[string]*oauth.Client // by name of the entry in the token store
	others []*egress.Client         // clients for authorization servers
}

// addLogin adds the OAuth client of a source. If that is not possible, it records a problem and returns false.
func (b *HTTPTools) addLogin(kind, name, address string, c *config.HTTPCall, scopes []string) bool {
	if !c.OAuth.IsSet() {
		return true
	}
	tokens, err := b.tokensAt(address, c, scopes)
	if err != nil {
		b.report("tools."+kind+"."+name+".oauth", err)
		return false
	}
	b.logins[kind+":"+name] = tokens
	return true
}

func (b *HTTPTools) tokensAt(address string, c *config.HTTPCall, scopes []string) (*oauth.Client, error) {
	if !c.Bearer.IsZero() || !c.Basic.IsZero() || HasAuthorization(c.Headers) {
		return nil, errors.New("bearer, basic or headers bring an Authorization besides: there is one of both")
	}
	u, err := url.Parse(bracesEscaped.Replace(address))
	if err != nil {
		return nil, errors.New("the address cannot be read")
	}
	conf := apiConfig(u, &c.OAuth, scopes)
	if err := conf.Check(); err != nil {
		return nil, err
	}
	if have := b.shared[conf.Name]; have != nil {
		return have, nil
	}
	tokens, client, err := tokenClient(conf, b.cfg)
	if err != nil {
		return nil, err
	}
	b.shared[conf.Name], b.others = tokens, append(b.others, client)
	return tokens, nil
}

func (a *httpLogins) close() {
	for _, c := range a.others {
		c.Close()
	}
}

// NeedsLogin returns the login of a tool, or nil if its requests carry no token.
func (a *httpLogins) NeedsLogin(tool string) *Login {
	if source := a.byTool[tool]; source != "" {
		return a.login(source)
	}
	return nil
}

// HasLogins reports whether requests of at least one tool carry tokens.
func (a *httpLogins) HasLogins() bool { return len(a.logins) > 0 }

func (a *httpLogins) login(source string) *Login {
	kind, name, _ := strings.Cut(source, ":")
	return &Login{Kind: kind, Name: name, tokens: a.logins[source]}
}
