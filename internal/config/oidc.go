package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/text"
)

// OIDC configures callers that identify themselves by tokens of an OpenID Connect issuer, besides those with a key.
type OIDC struct {
	// Issuer of the tokens, as in their `iss`, such as `https://login.example.com/realms/main`. Callers send them where
	// they would send a key. It requires `serve.oidc.audience`, and `keys` as profiles; see docs/gateway.md.
	Issuer Ref `key:"issuer" is:"url" also:"url provider"`
	// Audiences: `aud` of a token must contain one of them.
	Audience []string `key:"audience" also:"aud client_ids"`
	// Address of the issuer's keys, a JWKS. Default: the one that its discovery document names.
	JWKSURL Ref `key:"jwks_url" is:"url" also:"jwks_uri keys_url"`
	// Algorithms that a token may be signed with, of `RS256`, `ES256` and `EdDSA`.
	Algorithms []string `key:"algorithms" default:"RS256,ES256,EdDSA" is:"algorithm" also:"alg algs"`
	// By how much the clocks of issuer and gateway may differ.
	ClockSkew time.Duration `key:"clock_skew" default:"30s" range:"0s..5m" also:"leeway skew"`
	// Claim whose values `serve.oidc.profiles` maps to keys: a text or a list of texts. Names of nested members are joined
	// with dots: `realm_access.roles`.
	ProfileClaim string `key:"profile_claim" is:"word" also:"claim groups_claim role_claim"`
	// Entries `VALUE=KEY`: a caller whose claim has VALUE gets the rights and limits of KEY, a name of `keys`. The first
	// entry that matches counts.
	Profiles []string `key:"profiles" is:"profile" also:"groups roles"`
	// Key whose rights and limits the other callers have. Default: they are refused.
	DefaultProfile string `key:"default_profile" is:"word" also:"profile"`
	// Labels that the runs of a caller get, from claims that are texts, numbers, `true` or `false`. Requests cannot
	// set them.
	Labels map[string]string `key:"labels" names:"rule" per:"label to claim"`
	// Client id with which the console signs users in at the issuer. Default: users sign in with keys. Register
	// `PUBLIC_URL/api/session/oidc/callback` as its redirect URI; see docs/gateway.md.
	ClientID string `key:"client_id" also:"client"`
	// Secret of the client, as a reference: `${NAME}` or `${file:path}`. Default: a public client, which PKCE protects.
	ClientSecret Ref `key:"client_secret" is:"key" also:"secret"`
	// Scopes that are requested at the sign-in besides `openid`, such as the one that puts groups into the token.
	Scopes []string `key:"scopes" also:"scope"`
}

// IsSet reports whether an issuer is configured.
func (o *OIDC) IsSet() bool { return !o.Issuer.IsZero() }

// ProfileOf splits an entry VALUE=KEY of Profiles at its last "=". It panics if entry has no "="; the entries of a loaded configuration
// have one.
func ProfileOf(entry string) (value, key string) {
	i := strings.LastIndexByte(entry, '=')
	return entry[:i], entry[i+1:]
}

func isProfile(s string) error {
	if i := strings.LastIndexByte(s, '='); i <= 0 || len(s) > 512 || isRuleName(s[i+1:]) != nil {
		return errors.New(quote(s) + " is no profile: want VALUE=KEY, such as engineering=developer")
	}
	return nil
}

// checkCallers checks the settings of keys and of token issuers that depend on each other.
func (l *loader) checkCallers() {
	profiles := l.checkIssuer()
	for name, k := range text.ByName(l.cfg.Keys) {
		hasKey, hasHash := !k.Key.IsZero(), k.SHA256 != ""
		switch {
		case hasKey && hasHash:
			l.at("keys."+name+".sha256", "key and sha256 are one setting: set one of them")
		case !hasKey && !hasHash && !profiles[name] && l.cfg.Serve.KeysFile == "": // with a file, removing its last line for an entry must not fail
			l.at("keys."+name, "no key: set key to a reference, or sha256, which `lathe keys new` prints")
		}
	}
	if t := l.cfg.Serve.TLS; (t.Cert == "") != (t.Key == "") {
		l.at("serve.tls", "a certificate needs its key: set cert and key")
	}
}

// checkIssuer checks the settings of the token issuer. It returns the keys whose rights its tokens can give.
func (l *loader) checkIssuer() map[string]bool {
	o, keys := &l.cfg.Serve.OIDC, slices.Sorted(maps.Keys(l.cfg.Keys))
	const base = "serve.oidc"
	profiles := map[string]bool{}
	for _, entry := range o.Profiles {
		_, key := ProfileOf(entry)
		profiles[key] = true
		l.known(base+".profiles", "key", key, keys)
	}
	if key := o.DefaultProfile; key != "" {
		profiles[key] = true
		l.known(base+".default_profile", "key", key, keys)
	}
	if !o.IsSet() {
		if len(o.Audience)+len(o.Profiles)+len(o.Labels) > 0 || o.DefaultProfile+o.ProfileClaim+o.ClientID != "" || !o.JWKSURL.IsZero() || !o.ClientSecret.IsZero() {
			l.at(base+".issuer", "no issuer: set the issuer whose tokens identify callers")
		}
		return nil
	}
	switch {
	case len(o.Audience) == 0:
		l.at(base+".audience", "no audience: tokens that the issuer made for other servers would be accepted")
	case len(profiles) == 0:
		l.at(base+".profiles", "no profiles: every caller would be refused; set serve.oidc.profiles or serve.oidc.default_profile")
	case len(o.Profiles) > 0 && o.ProfileClaim == "":
		l.at(base+".profile_claim", "no claim: set the claim whose values serve.oidc.profiles maps")
	case o.ClientID == "" && (!o.ClientSecret.IsZero() || len(o.Scopes) > 0):
		l.at(base+".client_id", "no client: set the client of the issuer as which users sign in")
	case len(o.Algorithms) == 0:
		l.at(base+".algorithms", "no algorithm: every token would be refused")
	}
	return profiles
}
