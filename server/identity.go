package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/secret"
)

// An IdentityProvider identifies callers by tokens that another server has signed. Its methods may be called from several
// goroutines at once.
type IdentityProvider interface {
	// Issuer is the issuer of all tokens that Identify accepts.
	Issuer() string
	// Settings is a hash of everything that the result of Identify depends on besides the token: sessions and sign-in
	// links of identified callers end when a reload changes it.
	Settings() [sha256.Size]byte
	// Identify verifies a token and returns its holder. Clients get the text of the error, which must have nothing of the
	// token: with status 403 if it is [ErrNoProfile], 503 if it is [ErrNoIssuer], and 401 otherwise.
	Identify(ctx context.Context, token string) (*Identity, error)
}

// The errors of [IdentityProvider] that are not about the token.
var (
	ErrNoProfile = errors.New("no key of the configuration is a profile for this caller")
	ErrNoIssuer  = errors.New("the token could not be verified, since its issuer could not be reached")
)

// An Identity is the holder of a token.
type Identity struct {
	Issuer  string
	Subject string
	// Key is the name of the key in [Setup].Keys that the caller has the rights and limits of.
	Key     string
	Labels  map[string]string // of the caller's runs; requests cannot set them
	Expires time.Time         // of the token; zero: it does not expire
}

// Principal is the owner of the runs of the caller: the issuer and the subject, with # between. It is the name of no key, and
// an issuer has no # in it.
func (i *Identity) Principal() string { return i.Issuer + "#" + i.Subject }

// isSigned reports whether a credential has the form of a signed token (RFC 7515, compact serialization), whose first part
// is an encoded JSON object.
func isSigned(s string) bool { return strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2 }

// identify returns the key of the holder of a token.
func (s *setup) identify(ctx context.Context, token string) (*Key, *problem) {
	id, err := s.Identity.Identify(ctx, token)
	switch {
	case errors.Is(err, ErrNoProfile):
		return nil, noProfile()
	case errors.Is(err, ErrNoIssuer):
		return nil, unavailable("issuer_unavailable", identityRetry, "The token cannot be verified now, since its issuer cannot be reached; try again.")
	case err != nil:
		return nil, unauthorized(codeInvalidToken, "The token is refused: %v.", err)
	}
	if k := s.keyOfIdentity(id); k != nil {
		return k, nil
	}
	return nil, noProfile()
}

// codeInvalidToken is the code of an answer to a request whose token was refused. RFC 6750 has the same word.
const codeInvalidToken = "invalid_token"

// identityRetry is the time after which a client may send a token again whose issuer could not be reached.
const identityRetry = 10 * time.Second

func noProfile() *problem {
	return forbidden("unknown_profile", "The token is valid, and no key of the configuration is its profile: serve.oidc.profiles says which are.")
}

// keyOfIdentity returns the key of an identified caller; nil if its profile is no key, or if its issuer is not that of the
// setup.
func (s *setup) keyOfIdentity(id *Identity) *Key {
	if s.Identity == nil || s.Identity.Issuer() != id.Issuer {
		return nil
	}
	i := slices.IndexFunc(s.Keys, func(k Key) bool { return k.Name == id.Key })
	if i < 0 {
		return nil
	}
	k := s.Keys[i]
	k.Secret, k.Hash = secret.Secret{}, [sha256.Size]byte{}
	k.Name, k.Profile, k.Labels, k.identity, k.settings = id.Principal(), id.Key, id.Labels, id, s.Identity.Settings()
	return &k
}

// withOwn returns labels with those of the caller, which win.
func withOwn(labels, own map[string]string) map[string]string {
	if len(own) == 0 {
		return labels
	}
	out := maps.Clone(labels)
	if out == nil {
		out = make(map[string]string, len(own))
	}
	maps.Copy(out, own)
	return out
}

// CheckIdentityLabels returns an error if runs cannot have the labels of [Identity].
func CheckIdentityLabels(labels map[string]string) error {
	for name := range labels {
		if hiddenLabel(name) {
			return fmt.Errorf("the server sets the label %s itself", name)
		}
	}
	return loop.CheckLabels(labels)
}

// run describes the runs of the caller.
func (c *caller) run() *lathe.RunInfo {
	return &lathe.RunInfo{Principal: c.key.Name, Profile: c.key.Profile, Labels: c.key.Labels}
}

// admitted is the context key of the caller's *Key.
type admitted struct{}

// CallerOf returns the key of the caller of a request to [Options].MCP whose context is ctx, without its secret. The key has
// no name if the setup has no keys. ok is false for any other context.
func CallerOf(ctx context.Context) (k Key, ok bool) {
	p, ok := ctx.Value(admitted{}).(*Key)
	if ok {
		k = *p
		k.Secret, k.Hash = secret.Secret{}, [sha256.Size]byte{}
	}
	return k, ok
}
