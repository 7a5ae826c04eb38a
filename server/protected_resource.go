package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// resourceMetadataPath is the path of the metadata of the server as a protected resource (RFC 9728). The metadata of a
// resource at another path of the host is at this path followed by the path of the resource.
const resourceMetadataPath = "/.well-known/oauth-protected-resource"

// resourceMetadata is the metadata of a protected resource, as RFC 9728 defines it.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}

// describeResource returns the handler for the metadata of the resource at path; "" is the whole server. It responds with
// 404 if there is no identity provider, since keys are not obtained from an authorization server.
func (g *Server) describeResource(path string) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) *problem {
		if c.setup.Identity == nil {
			return notFound("unknown_url", "No issuer of tokens is configured (serve.oidc): send a key.")
		}
		if path == mcpPath && g.opts.MCP == nil {
			return notFound("unknown_url", "This gateway has no MCP endpoint.")
		}
		return answer(w, &resourceMetadata{Resource: c.setup.address(r) + path, AuthorizationServers: []string{c.setup.Identity.Issuer()},
			BearerMethods: []string{"header"}, Name: "Lathe"})
	}
}

// challenge returns the value of WWW-Authenticate for a 401 response on a route that accepts tokens. It contains the
// address of the metadata, which names the issuer, and an error code if the token of the request was refused.
func (s *setup) challenge(r *http.Request, refused bool) string {
	if s.Identity == nil {
		return "Bearer"
	}
	address := s.address(r)
	if strings.ContainsAny(address, `"\`) { // the host comes from the client and would have to be quoted
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

// address returns the scheme and host at which clients reach the server: [Setup].PublicURL if it is set, else those of the
// request. Headers that a proxy sets, such as X-Forwarded-Proto, are not read, because clients can set them, too.
func (s *setup) address(r *http.Request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// checkPublicURL returns an error unless s is "" or a scheme and a host.
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
