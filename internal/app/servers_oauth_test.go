package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/config"
)

// What a public server says of its authorization server leads to no inner address, though tools may
// reach it; that of the configuration may, and that of a server which is on one itself.
func TestT9_PublicServersNameNoInnerAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, server, keys string
		opens              bool
	}{
		{"public", "https://mcp.example.com/mcp", "", false},
		{"public, with an issuer", "https://mcp.example.com/mcp", ", oauth: {issuer: 'https://10.1.0.7'}", true},
		{"public, with an identity provider", "https://mcp.example.com/mcp", ", oauth: {grant: cross_app, client_id: a, provider: {token_endpoint: 'https://10.1.0.7/token', id_token: '${HOME}'}}", true},
		{"public, with a client", "https://mcp.example.com/mcp", ", oauth: {client_id: a}", false},
		{"inner", "https://10.1.0.8/mcp", "", true},
		{"inner, by name", "https://inner.example.com/mcp", "", true},
		{"this machine", "http://127.0.0.1:8080/mcp", "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := loadText(t, "tools: {mcp: {s: {url: '"+tc.server+"', allowlist: ['*']"+tc.keys+"}}, egress: {private: [10.1.0.0/16, inner.example.com, 127.0.0.1]}}\n")
			tokens, client, err := tokensFor("s", cfg)
			if err != nil || tokens == nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := client.Check("https://10.1.0.7:8443/token"); (err == nil) != tc.opens || err != nil && egress.CodeOf(err) != egress.CodeAddress {
				t.Errorf("got %v", err)
			}
			for _, address := range []string{"https://10.2.0.1/", "https://169.254.169.254/"} {
				if egress.CodeOf(client.Check(address)) != egress.CodeAddress {
					t.Errorf("%s is open", address)
				}
			}
			if err := client.Check("https://login.example.com:8443/token"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoTokensWhereNoneBelong(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]string{
		"a program":       "command: x",
		"own credentials": "url: 'https://mcp.example.com', headers: {AUTHORIZATION: 'Bearer ${HOME}'}",
		"no TLS":          "url: 'http://10.1.0.8/mcp'",
	} {
		cfg := loadText(t, "tools: {mcp: {s: {"+server+", allowlist: ['*']}}}\n")
		if tokens, _, err := tokensFor("s", cfg); tokens != nil || err != nil {
			t.Errorf("%s: %v, %v", name, tokens, err)
		}
	}
}

func loadText(t *testing.T, text string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, &config.LoadOptions{Environ: []string{"HOME=secret-of-home"}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
