package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// resourceMetadataPath is where the metadata of protected resources is (RFC 9728). The path of a resource follows it, so that
// each resource of a host has its own.
const resourceMetadataPath = "/.well-known/oauth-protected-resource"

// resourceMetadata is the metadata of a resource in the form of RFC 9728.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}

// describeResource answers with the metadata of the resource at path, which is the whole server if path is empty. Without an
// identity provider there is none: keys are not obtained from an authorization server.
func (g *Server) describeResource(path string) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) *problem {
		if c.setup.Identity == nil {
			return notFound("unknown_url", "No issuer of tokens is configured (serve.oidc): send a key.")
		}
		if path == mcpPath && g.opts.MCP == nil {
			return notFound("unknown_url", "This server has no MCP endpoint.")
		}
		return answer(w, &resourceMetadata{Resource: c.setup.address(r) + path, AuthorizationServers: []string{c.setup.Identity.Issuer()},
			BearerMethods: []string{"header"}, Name: "Lathe"})
	}
}

// challenge returns the value of WWW-Authenticate of an answer 401 to a request of a route that takes tokens: where the metadata
// is that leads clients to the issuer, and whether the token of the request was refused.
func (s *setup) challenge(r *http.Request, refused bool) string {
	if s.Identity == nil {
		return "Bearer"
	}
	address := s.address(r)
	if strings.ContainsAny(address, `"\`) { // the text of a client that is not quoted
		return "Bearer"
	}
	path := ""
	if r.URL.Path == mcpPath {
		path = mcpPath
	}
	value := `Bearer resource_metadata="` + address + resourceMetadataPath + path + `"`
	if refused {
		value += `, error="invalid_token"`
	}
	return value
}

// address returns the scheme and host under which clients reach the server: those of [Setup].PublicURL, else those of the
// request. A header that a proxy sets, such as X-Forwarded-Proto, is not read, because clients can set it, too.
func (s *setup) address(r *http.Request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// checkPublicURL returns an error if s is no scheme and host.
func checkPublicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != s {
		return errors.New("the public URL is a scheme and a host, such as https://lathe.example.com")
	}
	return nil
}
