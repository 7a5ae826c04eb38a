package oauth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/secret"
)

func TestMetadataPlaces(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, path, challenge, resource, issuerPath, metadata string
		reads                                                 []string // of the server, then of the authorization server
	}{
		{name: "well-known with the path", path: "/mcp", reads: []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"}},
		{name: "well-known at the root", path: "/mcp", resource: "/.well-known/oauth-protected-resource",
			reads: []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"}},
		{name: "a server at the root", path: "", reads: []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"}},
		{name: "where the challenge says", path: "/mcp", challenge: "/meta.json", resource: "/meta.json", reads: []string{"/meta.json", "/.well-known/oauth-authorization-server"}},
		{name: "OpenID", path: "/mcp", metadata: "/.well-known/openid-configuration",
			reads: []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"}},
		{name: "an issuer with a path", path: "/mcp", issuerPath: "/tenant", metadata: "/.well-known/oauth-authorization-server/tenant",
			reads: []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server/tenant"}},
		{name: "OpenID, an issuer with a path", path: "/mcp", issuerPath: "/tenant", metadata: "/tenant/.well-known/openid-configuration",
			reads: []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant", "/tenant/.well-known/openid-configuration"}},
		{name: "no metadata of the server's own", path: "/mcp", resource: "none", reads: []string{
			"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var reads []string
			var s *httptest.Server
			s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				reads = append(reads, r.URL.Path)
				resource, metadata := tc.resource, tc.metadata
				if resource == "" {
					resource = tc.reads[0]
				}
				if metadata == "" {
					metadata = "/.well-known/oauth-authorization-server"
				}
				switch r.URL.Path {
				case resource:
					writeJSON(w, 200, map[string]any{"resource": s.URL + tc.path, "authorization_servers": []string{s.URL + tc.issuerPath}})
				case metadata:
					writeJSON(w, 200, map[string]any{"issuer": s.URL + tc.issuerPath, "token_endpoint": s.URL + "/token"})
				default:
					http.NotFound(w, r)
				}
			}))
			s.Start()
			t.Cleanup(s.Close)
			w := &world{t: t, mcp: s, path: tc.path}
			c := w.client(nil, nil)
			challenge := tc.challenge
			if challenge != "" {
				challenge = s.URL + challenge
			}
			p, err := c.discover(t.Context(), challenge)
			if err != nil {
				t.Fatal(err)
			}
			if p.resource != s.URL+tc.path || p.as.TokenEndpoint != s.URL+"/token" || !slices.Equal(reads, tc.reads) {
				t.Errorf("resource %s, token endpoint %s, read %q", p.resource, p.as.TokenEndpoint, reads)
			}
		})
	}
}

func TestT7_ResourceIsTheServer(t *testing.T) {
	t.Parallel()
	for resource, ok := range map[string]bool{
		"https://a.example/v1/mcp": true, "https://a.example/v1/mcp/": true, "https://a.example/v1": true, "https://a.example": true,
		"https://A.example:443/": true, "https://evil.example/v1/mcp": false, "http://a.example/v1/mcp": false, "https://a.example/v1/mc": false,
		"https://a.example/v1/mcp/more": false, "https://a.example/v2": false, "https://a.example:8443/v1/mcp": false, "https://a.example.evil.example": false,
		"https://a.example@evil.example/v1/mcp": false, "https://a.example/v1/mcp#x": false, "https://a.example/v1/mcp?x": false, "": false, "/v1/mcp": false,
	} {
		u, err := secureURL("https://a.example/v1/mcp")
		if err != nil {
			t.Fatal(err)
		}
		if err := covers(resource, u, false); (err == nil) != ok {
			t.Errorf("%q: %v", resource, err)
		}
	}
}

// hosts answers every name with one address.
type hosts string

func (h hosts) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(string(h))}, nil
}

// What a server says its metadata, authorization server or endpoints are leads to no inner address,
// not over a redirect either, and to no address that is not https.
func TestT9_AddressesInMetadata(t *testing.T) {
	t.Parallel()
	inner := "127.0.0.2" // is not opened
	for _, tc := range []struct {
		name, challenge string
		resource        func(w *world, m map[string]any)
		metadata        func(w *world, m map[string]any)
		want            string
	}{
		{name: "metadata elsewhere", challenge: "https://metadata.example/x", want: "another origin"},
		{name: "metadata at an inner address", challenge: "http://169.254.169.254/latest", want: "another origin"},
		{name: "another resource", resource: func(_ *world, m map[string]any) { m["resource"] = "https://evil.example/mcp" }, want: "another resource"},
		{name: "no resource", resource: func(_ *world, m map[string]any) { delete(m, "resource") }, want: "resource"},
		{name: "no authorization server", resource: func(_ *world, m map[string]any) { delete(m, "authorization_servers") }, want: "no authorization server"},
		{name: "many authorization servers", resource: func(_ *world, m map[string]any) {
			m["authorization_servers"] = slices.Repeat([]string{"https://as.example"}, 17)
		}, want: "more than 16"},
		{name: "issuer without TLS", resource: func(_ *world, m map[string]any) { m["authorization_servers"] = []string{"http://as.example"} }, want: "https"},
		{name: "issuer at an inner address", resource: func(_ *world, m map[string]any) {
			m["authorization_servers"] = []string{"https://169.254.169.254/"}
		}, want: "address_refused"},
		{name: "issuer that leads to an inner address", resource: func(_ *world, m map[string]any) {
			m["authorization_servers"] = []string{"https://as.example/"}
		}, want: "address_refused"},
		{name: "issuer on another port of this machine", resource: func(_ *world, m map[string]any) { m["authorization_servers"] = []string{"http://" + inner + ":1"} }, want: "address_refused"},
		{name: "issuer with a user", resource: func(_ *world, m map[string]any) { m["authorization_servers"] = []string{"https://a:b@as.example"} }, want: "https"},
		{name: "token endpoint without TLS", metadata: func(_ *world, m map[string]any) { m["token_endpoint"] = "http://as.example/token" }, want: "token_endpoint"},
		{name: "token endpoint missing", metadata: func(_ *world, m map[string]any) { delete(m, "token_endpoint") }, want: "token_endpoint"},
		{name: "registration without TLS", metadata: func(_ *world, m map[string]any) { m["registration_endpoint"] = "ftp://as.example" }, want: "registration_endpoint"},
		{name: "login without TLS", metadata: func(_ *world, m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }, want: "authorization_endpoint"},
		{name: "registration at an inner address", metadata: func(_ *world, m map[string]any) { m["registration_endpoint"] = "https://10.0.0.1/register" }, want: "address_refused"},
		{name: "huge", metadata: func(_ *world, m map[string]any) { m["x"] = strings.Repeat("x", maxAnswerBytes) }, want: "more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.resource != nil {
				w.resource = func(m map[string]any) { tc.resource(w, m) }
			}
			if tc.metadata != nil {
				w.metadata = func(m map[string]any) { tc.metadata(w, m) }
			}
			e, err := egress.New(&egress.Rules{Hosts: []string{"*"}, Schemes: []string{"https", "http"}, AnyPort: true, Private: []string{"127.0.0.1"}},
				&egress.Options{MaxRedirects: -1, Resolver: hosts("10.1.2.3")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			c, err := New(Config{Name: "notes", Server: w.mcp.URL + w.path}, &Options{HTTP: e})
			if err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			c.setEntry(entry{URL: c.conf.Server})
			c.entry.LoginRequested, c.entry.Metadata = true, tc.challenge
			err = c.save()
			c.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := login(t, c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if w.seen("POST /token") > 0 {
				t.Error("a code was sent")
			}
		})
	}
}

func TestT9_MetadataAreNotFollowedElsewhere(t *testing.T) {
	t.Parallel()
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(s.Close)
	w := &world{t: t, mcp: s, path: "/mcp"}
	if _, err := w.client(nil, nil).discover(t.Context(), ""); egress.CodeOf(err) != egress.CodeRedirectLimit || reached {
		t.Errorf("got %v, reached %v", err, reached)
	}
}

func TestConfigs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"no TLS":            {Server: "http://mcp.example/"},
		"a user":            {Server: "https://a:b@mcp.example/"},
		"scope":             {Server: "https://mcp.example", Scopes: []string{"a b"}},
		"issuer":            {Server: "https://mcp.example", Issuer: "as.example"},
		"document":          {Server: "https://mcp.example", MetadataURL: "https://client.example"},
		"grant":             {Server: "https://mcp.example", Grant: "password"},
		"no client":         {Server: "https://mcp.example", Grant: ClientCredentials},
		"no assertion":      {Server: "https://mcp.example", Grant: JWTBearer},
		"no provider":       {Server: "https://mcp.example", Grant: CrossApp, ClientID: "x"},
		"secret alone":      {Server: "https://mcp.example", Secret: secret.New("not shown")},
		"key that is none":  {Server: "https://mcp.example", ClientID: "x", PrivateKey: secret.New("not shown")},
		"endpoint":          {Server: "https://mcp.example", ClientID: "x", AuthorizationEndpoint: "https://as.example/a"},
		"login":             {Server: "https://mcp.example", ClientID: "x", TokenEndpoint: "https://as.example/t"},
		"unregistered":      {Server: "https://mcp.example", AuthorizationEndpoint: "https://as.example/a", TokenEndpoint: "https://as.example/t"},
		"open endpoint":     {Server: "https://mcp.example", Grant: JWTBearer, Assertion: secret.New("x"), TokenEndpoint: "http://as.example/t"},
		"secret for all":    {Server: "https://api.example", API: true, Grant: ClientCredentials, ClientID: "x", Secret: secret.New("not shown")},
		"other letters":     {Server: "https://mcp.example", Issuer: "https://%D0%B0pple.com"},
		"other slashes":     {Server: "https://google.com%E2%88%95login.evil.com/"},
		"secret for any":    {Server: "https://mcp.example", Grant: ClientCredentials, ClientID: "x", Secret: secret.New("not shown")},
		"login for any":     {Server: "https://mcp.example", ClientID: "x", Secret: secret.New("not shown")},
		"assertion for any": {Server: "https://mcp.example", Grant: JWTBearer, Assertion: secret.New("not shown")},
		"exchange for any": {Server: "https://mcp.example", Grant: CrossApp, ClientID: "x", Secret: secret.New("not shown"),
			Provider: Provider{TokenEndpoint: "https://idp.example", IDToken: secret.New("not shown")}},
		"name": {Name: "../x", Server: "https://mcp.example"},
	} {
		if c.Name == "" {
			c.Name = "x"
		}
		if err := c.Check(); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	if _, err := New(Config{Name: "x", Server: "https://mcp.example"}, nil); err == nil {
		t.Error("a client without HTTP")
	}
}
