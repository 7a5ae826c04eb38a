package main

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/egress"
	"github.com/lathe-run/lathe/internal/oauth"
)

// apiLogins are what gets the tokens of tools over HTTP.
type apiLogins struct {
	logins map[string]*oauth.Client // by source: http:NAME, openapi:NAME
	byTool map[string]string        // the source, by name of the tool, where its requests carry a token
	shared map[string]*oauth.Client // by name of the entry in the store
	others []*egress.Client         // to authorization servers
}

func newAPILogins() apiLogins {
	return apiLogins{logins: map[string]*oauth.Client{}, byTool: map[string]string{}, shared: map[string]*oauth.Client{}}
}

// addLogin makes what gets the tokens of a source; false where something is wrong, which is noted then.
func (b *httpBuilder) addLogin(kind, name, address string, c *config.HTTPCall, scopes []string) bool {
	if !c.OAuth.IsSet() {
		return true
	}
	tokens, err := b.tokensAt(address, c, scopes)
	if err != nil {
		b.note("tools."+kind+"."+name+".oauth", err)
		return false
	}
	b.logins[kind+":"+name] = tokens
	return true
}

func (b *httpBuilder) tokensAt(address string, c *config.HTTPCall, scopes []string) (*oauth.Client, error) {
	if !c.Bearer.IsZero() || !c.Basic.IsZero() || bringsCredentials(c.Headers) {
		return nil, errors.New("bearer, basic or headers bring an Authorization besides: there is one of both")
	}
	u, err := url.Parse(strings.NewReplacer("{", "%7B", "}", "%7D").Replace(address))
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

func (a *apiLogins) close() {
	for _, c := range a.others {
		c.Close()
	}
}

// notLoggedIn is the state of a tool whose server a person has to log in to.
const notLoggedIn = "not logged in"

// loginState says why a tool cannot be called for want of a login, and what to do; "" where it can.
func (a *apiLogins) loginState(tool string) (state, next string) {
	source := a.byTool[tool]
	if source == "" {
		return "", ""
	}
	switch ready, err := a.logins[source].Ready(); {
	case err != nil:
		return notLoggedIn, err.Error()
	case !ready:
		return notLoggedIn, loginHint(sourceName(source))
	}
	return "", ""
}

// sourceName is the name of a source without its kind.
func sourceName(source string) string {
	_, name, _ := strings.Cut(source, ":")
	return name
}

// loginsAt are those of the tools of an origin, by source.
func (b *httpBuilder) loginsAt(origin string) map[string]*oauth.Client {
	_, host, _ := strings.Cut(origin, "://")
	out := map[string]*oauth.Client{}
	for _, t := range b.tools {
		if source := b.byTool[t.Spec().Name]; source != "" && t.Spec().Backend == host {
			out[source] = b.logins[source]
		}
	}
	return out
}

// addLogins says which logins are missing.
func (r *sourceRow) addLogins(logins map[string]*oauth.Client) {
	for _, source := range slices.Sorted(maps.Keys(logins)) {
		ready, err := logins[source].Ready()
		wanted := false
		if err == nil {
			wanted, err = logins[source].Wanted()
		}
		what := ""
		switch {
		case err != nil:
			what = err.Error()
		case !ready:
			what = "nobody has logged in"
		case wanted:
			what = "the server has asked for further rights"
		default:
			continue
		}
		if r.OK && !ready {
			r.State = notLoggedIn
		}
		r.OK = false
		r.Problems = append(r.Problems, problem{source + ": " + what, loginHint(sourceName(source))})
	}
}
