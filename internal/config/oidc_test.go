package config

import (
	"strings"
	"testing"
)

func TestCallersAreChecked(t *testing.T) {
	t.Parallel()
	const issuer = "serve:\n  oidc:\n    issuer: https://login.example.com\n"
	for name, c := range map[string]struct{ yaml, want string }{
		"no issuer":              {"serve: {oidc: {audience: [lathe]}}\n", "serve.oidc.issuer: no issuer"},
		"an issuer by name":      {"serve: {oidc: {issuer: login.example.com}}\n", "an address begins with"},
		"no audience":            {issuer, "serve.oidc.audience: no audience"},
		"no profiles":            {issuer + "    audience: [lathe]\n", "serve.oidc.profiles: no profiles"},
		"no claim":               {issuer + "    audience: [lathe]\n    profiles: [eng=dev]\nkeys: {dev: {}}\n", "serve.oidc.profile_claim: no claim"},
		"a profile that is none": {issuer + "    audience: [lathe]\n    profiles: [eng]\n", "want VALUE=KEY"},
		"an unknown key":         {issuer + "    audience: [lathe]\n    default_profile: dve\nkeys: {dev: {sha256: " + strings.Repeat("ab", 32) + "}}\n", `unknown key "dve", did you mean "dev"?`},
		"no algorithm":           {issuer + "    audience: [lathe]\n    algorithms: []\n    default_profile: dev\nkeys: {dev: {}}\n", "no algorithm"},
		"HMAC":                   {issuer + "    algorithms: [HS256]\n", "is none of RS256, ES256, EdDSA"},
		"none":                   {issuer + "    algorithms: [none]\n", "is none of RS256"},
		"a key without a key":    {"keys: {dev: {}}\n", "keys.dev: no key: set key to a reference, or sha256"},
		"two forms of a key":     {"keys: {dev: {key: \"${KEY}\", sha256: " + strings.Repeat("ab", 32) + "}}\n", "one setting"},
		"a short hash":           {"keys: {dev: {sha256: abcd}}\n", "64 hex digits"},
		"the hash of nothing":    {"keys: {dev: {sha256: E3B0C44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}}\n", "was empty or not set"},
		"the hash of a line":     {"keys: {dev: {sha256: 01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b}}\n", "was empty or not set"},
		"a certificate alone":    {"serve: {tls: {cert: cert.pem}}\n", "serve.tls: a certificate needs its key"},
	} {
		path := write(t, t.TempDir(), "lathe.yaml", c.yaml)
		_, err := Load(path, &LoadOptions{Environ: []string{"KEY=0123456789abcdef"}})
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, `"`, ``)) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	path := write(t, t.TempDir(), "lathe.yaml", issuer+"    audience: [lathe]\n    profile_claim: groups\n    profiles: [\"cn=a,ou=b=dev\", ops=dev]\nkeys: {dev: {}}\n")
	cfg, err := Load(path, &LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if value, key := ProfileOf(cfg.Serve.OIDC.Profiles[0]); value != "cn=a,ou=b" || key != "dev" {
		t.Errorf("the profile is %q, %q", value, key)
	}
}
