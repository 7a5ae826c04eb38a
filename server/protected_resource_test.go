package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/lathe-run/lathe/server"
)

// A client without a token finds the issuer of each protected resource: by the address in the answer 401, and at the address
// that RFC 9728 makes of the resource's own. The MCP SDK's client reads both and checks that they name the resource.
func TestProtectedResourcesNameTheirIssuer(t *testing.T) {
	t.Parallel()
	f := serve(t, identified(&idp{others: "dev"}, func(o *server.Options) {
		o.MCP = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}))
	for resource, request := range map[string][2]string{"/mcp": {"POST", "/mcp"}, "": {"GET", "/v1/models"}} {
		resp, body := f.do(request[0], request[1], "", "Authorization", "")
		if resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%s without a token: %d %s", request[1], resp.StatusCode, body)
		}
		challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
		if err != nil || len(challenges) != 1 || challenges[0].Scheme != "bearer" {
			t.Fatalf("%s: challenges %+v, %v", request[1], challenges, err)
		}
		where := challenges[0].Params["resource_metadata"]
		if want := f.url + "/.well-known/oauth-protected-resource" + resource; where != want || challenges[0].Params["error"] != "" {
			t.Errorf("%s: the challenge is %v, want the address %s alone", request[1], challenges[0].Params, want)
		}
		m, err := oauthex.GetProtectedResourceMetadata(t.Context(), where, f.url+resource, f.client)
		if err != nil || !slices.Equal(m.AuthorizationServers, []string{issuer}) || !slices.Equal(m.BearerMethodsSupported, []string{"header"}) {
			t.Errorf("%s: metadata %+v, %v", request[1], m, err)
		}
	}
	resp, _ := f.do("POST", "/mcp", "{}", bearer(signed("forged"))...)
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || !strings.HasSuffix(got, `/oauth-protected-resource/mcp", error="invalid_token"`) {
		t.Errorf("a forged token: %d %s", resp.StatusCode, got)
	}
	resp, _ = f.do("POST", "/mcp", "{}", bearer(signed("guest"))...)
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 403 || got != "" {
		t.Errorf("a caller without a profile: %d %s", resp.StatusCode, got)
	}
	without := serve(t, identified(&idp{others: "dev"}, nil))
	if resp, _ := without.do("GET", "/.well-known/oauth-protected-resource/mcp", ""); resp.StatusCode != 404 {
		t.Errorf("without MCP: %d", resp.StatusCode)
	}
}

// The public URL of the configuration counts, and neither the host of a request nor a header of a proxy. Keys are of no issuer.
func TestProtectedResourcesHaveThePublicURL(t *testing.T) {
	t.Parallel()
	setup := identified(&idp{others: "dev"}, func(o *server.Options) {
		o.Setup.PublicURL = "https://lathe.example.com"
		o.MCP = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	})
	f := serve(t, setup)
	resp, body := f.do("GET", "/.well-known/oauth-protected-resource/mcp", "", "Authorization", "", "Host", "localhost", "X-Forwarded-Proto", "gopher", "X-Forwarded-Host", "evil.example")
	want := `{"resource":"https://lathe.example.com/mcp","authorization_servers":["` + issuer + `"],"bearer_methods_supported":["header"],"resource_name":"Lathe"}` + "\n"
	if resp.StatusCode != 200 || body != want || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %s, want %s", resp.StatusCode, body, want)
	}
	resp, _ = f.do("POST", "/mcp", "", "Authorization", "")
	if got := resp.Header.Get("WWW-Authenticate"); got != `Bearer resource_metadata="https://lathe.example.com/.well-known/oauth-protected-resource/mcp"` {
		t.Errorf("the challenge is %s", got)
	}
	f = serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{key("ann")}
		o.MCP = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}})
	for _, path := range []string{"", "/mcp"} {
		if resp, body := f.do("GET", "/.well-known/oauth-protected-resource"+path, "", "Authorization", ""); resp.StatusCode != 404 || !strings.Contains(body, "serve.oidc") {
			t.Errorf("without an issuer: %d %s", resp.StatusCode, body)
		}
	}
	if resp, _ := f.do("POST", "/mcp", "", "Authorization", ""); resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without an issuer: %d %s", resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
	}
	for _, bad := range []string{"lathe.example.com", "https://lathe.example.com/", "https://a/b", "ftp://a", "https://u@a"} {
		s := server.Setup{Models: &models{}, PublicURL: bad}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "public URL") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
