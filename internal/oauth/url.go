package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/httpname"
)

// secureURL parses a URL over which tokens, codes or metadata may be sent: https, or http to this machine. The host must be in plain ASCII
// form, so that a user can recognise it.
func secureURL(s string) (*url.URL, error) {
	if len(s) > maxURLBytes {
		return nil, errors.New("is too long")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, errors.New("is not a whole address")
	case u.User != nil || u.Fragment != "" || u.RawFragment != "":
		return nil, errors.New("has a user or a fragment in it")
	case !isPlain(u.Hostname()):
		return nil, errors.New("has a host that is not in plain form: its letters are ASCII, others are written as xn--…")
	case u.Scheme == "https":
		return u, nil
	case u.Scheme == "http" && httpname.IsLoopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("is neither https nor on this machine")
}

func isPlain(host string) bool {
	_, ok := egress.PlainHost(host)
	return ok
}

// canonical returns the resource identifier of a server that publishes none: its URL without fragment, query and final slash, with scheme
// and host in lower case. For an API it returns "".
func (c *Config) canonical(u *url.URL) string {
	if c.API {
		return ""
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + strings.TrimRight(u.EscapedPath(), "/")
}

// covers returns nil if the resource that a server publishes is the server or contains it: it must have the same origin, and its path must
// be a prefix of the server's path. For an API only the origin is compared.
func covers(resource string, server *url.URL, api bool) error {
	u, err := secureURL(resource)
	if err != nil {
		return fmt.Errorf("the resource that the server publishes %w", err)
	}
	if httpname.Origin(u) != httpname.Origin(server) {
		return errors.New("the server publishes the metadata of another resource than itself")
	}
	if api {
		return nil
	}
	part, whole := strings.TrimRight(u.EscapedPath(), "/")+"/", strings.TrimRight(server.EscapedPath(), "/")+"/"
	if !strings.HasPrefix(whole, part) || u.RawQuery != "" && u.RawQuery != server.RawQuery {
		return errors.New("the server publishes the metadata of another resource than itself")
	}
	return nil
}

// wellKnown returns the URL u with a well-known name between host and path.
func wellKnown(u *url.URL, name, path string) string {
	w := url.URL{Scheme: u.Scheme, Host: u.Host}
	return w.String() + "/.well-known/" + name + strings.TrimRight(path, "/")
}

// checkScopes returns an error if there are too many scopes, or if one is not a scope token of RFC 6749.
func checkScopes(scopes []string) error {
	if len(scopes) > maxScopes {
		return fmt.Errorf("more than %d scopes", maxScopes)
	}
	for _, s := range scopes {
		if s == "" || len(s) > maxScopeBytes || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
			return errors.New("a scope is not one word of printable ASCII")
		}
	}
	return nil
}
