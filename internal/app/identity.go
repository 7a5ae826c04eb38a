package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/oidc"
	"github.com/lathe-run/lathe/server"
)

// An identityProvider identifies callers by tokens of the issuer in serve.oidc.
type identityProvider struct {
	tokens *oidc.Provider
	conf   config.OIDC

	settings [sha256.Size]byte // hash of conf
}

// Issuer implements [server.IdentityProvider].
func (p *identityProvider) Issuer() string { return p.tokens.Issuer() }

// Settings implements [server.IdentityProvider].
func (p *identityProvider) Settings() [sha256.Size]byte { return p.settings }

// Identify implements [server.IdentityProvider].
func (p *identityProvider) Identify(ctx context.Context, token string) (*server.Identity, error) {
	t, err := p.tokens.Verify(ctx, token)
	if err != nil {
		return nil, issuerError(err)
	}
	return p.identity(t)
}

// issuerError wraps err in [server.ErrNoIssuer] if the issuer is unavailable.
func issuerError(err error) error {
	if oidc.KindOf(err) == oidc.Unavailable {
		return fmt.Errorf("%w: %w", server.ErrNoIssuer, err)
	}
	return err
}

// identity returns the identity of the holder of a token that was verified.
func (p *identityProvider) identity(t *oidc.Token) (*server.Identity, error) {
	id := &server.Identity{Issuer: t.Issuer, Subject: t.Subject, Key: p.profile(t), Expires: t.Expires.Add(p.conf.ClockSkew), Labels: map[string]string{}}
	if id.Key == "" {
		return nil, server.ErrNoProfile
	}
	for label, claim := range p.conf.Labels {
		if text, ok := t.Text(claim); ok {
			id.Labels[label] = text
		}
	}
	if err := server.CheckIdentityLabels(id.Labels); err != nil {
		return nil, fmt.Errorf("its claims make no labels: %w", err)
	}
	return id, nil
}

// A signInProvider is an identityProvider that also signs users in.
type signInProvider struct {
	*identityProvider
	client oidc.Client
}

// SignInURL implements [server.SignInProvider].
func (p *signInProvider) SignInURL(ctx context.Context, s *server.SignIn) (string, error) {
	address, err := p.tokens.AuthorizeURL(ctx, &p.client, (*oidc.Login)(s))
	return address, issuerError(err)
}

// FinishSignIn implements [server.SignInProvider].
func (p *signInProvider) FinishSignIn(ctx context.Context, s *server.SignIn, code string) (*server.Identity, error) {
	t, err := p.tokens.Exchange(ctx, &p.client, (*oidc.Login)(s), code)
	if err != nil {
		return nil, issuerError(err)
	}
	id, err := p.identity(t)
	if err != nil {
		return nil, err
	}
	id.Expires = time.Time{} // the token is not used again: the session has its own expiry
	return id, nil
}

// profile returns the name of the key whose rights the holder of the token gets, or "" if none exists.
func (p *identityProvider) profile(t *oidc.Token) string {
	if p.conf.ProfileClaim != "" {
		values := t.Texts(p.conf.ProfileClaim)
		for _, entry := range p.conf.Profiles {
			if value, key := config.ProfileOf(entry); slices.Contains(values, value) {
				return key
			}
		}
	}
	return p.conf.DefaultProfile
}

// identities makes the identity provider of a configuration. The fetched keys of the issuer are reused after a reload that does not change
// the issuer.
type identities struct {
	mu     sync.Mutex
	tokens *oidc.Provider
	made   string // settings with which tokens was made
}

func (i *identities) of(cfg *config.Config) (server.IdentityProvider, error) {
	o := cfg.Serve.OIDC
	for label := range o.Labels {
		if err := server.CheckIdentityLabels(map[string]string{label: ""}); err != nil {
			return nil, fmt.Errorf("serve.oidc.labels: %w", err)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	made := fmt.Sprintf("%q", []any{o.Issuer.Reveal(), o.Audience, o.JWKSURL.Reveal(), o.Algorithms, o.ClockSkew})
	if i.tokens == nil || i.made != made {
		p, err := oidc.New(&oidc.Options{Issuer: o.Issuer.Reveal(), Audience: o.Audience, KeysURL: o.JWKSURL.Reveal(), Algorithms: o.Algorithms, Skew: o.ClockSkew})
		if err != nil {
			return nil, fmt.Errorf("serve.oidc: %w", err)
		}
		i.tokens, i.made = p, made
	}
	// The hash is that of the settings that determine which tokens are accepted and which rights and labels they give.
	p := &identityProvider{i.tokens, o, sha256.Sum256(fmt.Appendf(nil, "%q", []any{o.Issuer.Reveal(), o.Audience, o.JWKSURL.Reveal(), o.Algorithms, o.ProfileClaim,
		o.Profiles, o.DefaultProfile, o.Labels, o.ClientID}))} // maps are printed in key order
	if o.ClientID == "" {
		return p, nil
	}
	return &signInProvider{p, oidc.Client{ID: o.ClientID, Secret: o.ClientSecret.Reveal(), Scopes: o.Scopes}}, nil
}

// prepare fetches the keys of the issuer, so that the first caller does not have to wait. It logs an error.
func (i *identities) prepare(ctx context.Context, log *slog.Logger) {
	i.mu.Lock()
	tokens := i.tokens
	i.mu.Unlock()
	if tokens == nil {
		return
	}
	if err := tokens.Refresh(ctx); err != nil {
		log.Warn("the keys of the issuer cannot be fetched: callers with its tokens get 503 until they can", "issuer", tokens.Issuer(), "error", err)
	}
}

// close closes the connections to the issuer.
func (i *identities) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.tokens != nil {
		i.tokens.Close()
	}
}
