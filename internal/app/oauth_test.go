package app

import (
	"os"
	"path/filepath"
	"testing"
)

// Tools of one origin share their tokens where they say the same of who asks, and nowhere else.
func TestT8_ToolsOfOtherIdentitiesShareNoTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"admin", "user"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"-1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	admin, user := "'${file:"+filepath.Join(dir, "admin")+"}'", "'${file:"+filepath.Join(dir, "user")+"}'"
	const as, idp = "token_endpoint: 'https://as.example.com/t', client_id: a", "token_endpoint: 'https://idp.example.com/t'"
	for name, tc := range map[string]struct{ a, b string }{
		"assertion":              {"grant: jwt_bearer, " + as + ", assertion: " + admin, "grant: jwt_bearer, " + as + ", assertion: " + user},
		"client_secret":          {"grant: client_credentials, " + as + ", client_secret: " + admin, "grant: client_credentials, " + as + ", client_secret: " + user},
		"client_id":              {"grant: jwt_bearer, " + as + ", assertion: " + admin, "grant: jwt_bearer, " + as + "2, assertion: " + admin},
		"provider.id_token":      {crossApp(as, idp, admin, ""), crossApp(as, idp, user, "")},
		"provider.client_id":     {crossApp(as, idp, admin, ", client_id: x"), crossApp(as, idp, admin, ", client_id: z")},
		"provider.client_secret": {crossApp(as, idp, admin, ", client_id: x, client_secret: "+admin), crossApp(as, idp, admin, ", client_id: x, client_secret: "+user)},
		"provider":               {crossApp(as, idp, admin, ""), crossApp(as, "token_endpoint: 'https://other.example.com/t'", admin, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := func(oauth string) string {
				return "{url: 'https://api.example.com/v1', oauth: {" + oauth + "}, allowlist: ['*']}"
			}
			cfg := loadText(t, "tools: {http: {a: "+tool(tc.a)+", b: "+tool(tc.b)+", c: "+tool(tc.a)+"}}\n")
			b := newHTTPTools(cfg)
			defer b.Close()
			b.addAll()
			if len(b.problems) > 0 {
				t.Fatal(b.problems)
			}
			if b.logins["http:a"] == b.logins["http:b"] {
				t.Error("tools of two identities share their tokens")
			}
			if b.logins["http:a"] == nil || b.logins["http:a"] != b.logins["http:c"] {
				t.Error("tools of one identity do not share their tokens")
			}
			server := func(oauth string) string {
				return identityOf(&loadText(t, "tools: {mcp: {s: {url: 'https://mcp.example.com', oauth: {"+oauth+"}, allowlist: ['*']}}}\n").Tools.MCP["s"].OAuth)
			}
			if x := server(tc.a); x == "" || x == server(tc.b) || x != server(tc.a+", scopes: [more]") {
				t.Error("an MCP server is not known by who asks, and by nothing else")
			}
		})
	}
}

func crossApp(as, idp, token, more string) string {
	return "grant: cross_app, " + as + ", provider: {" + idp + more + ", id_token: " + token + "}"
}

// An identity stays what it is while its secrets are put anew, and who registers itself has none.
func TestIdentitiesOutliveTheirSecrets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jwt")
	identity := func(oauth, secret string) string {
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		return identityOf(&loadText(t, "tools: {mcp: {s: {url: 'https://mcp.example.com', oauth: {"+oauth+"}, allowlist: ['*']}}}\n").Tools.MCP["s"].OAuth)
	}
	grant := "grant: jwt_bearer, issuer: 'https://as.example.com', assertion: '${file:" + path + "}'"
	if first := identity(grant, "first"); first == "" || first != identity(grant, "second") {
		t.Error("a secret that is put anew is another identity")
	}
	if got := identity("grant: authorization_code, scopes: [a], redirect_port: 8123", "x"); got != "" {
		t.Errorf("who registers itself is %q", got)
	}
}
