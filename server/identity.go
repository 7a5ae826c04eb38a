package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/secret"
)

// An IdentityProvider identifies callers by tokens that another server has signed, such as tokens of OpenID Connect. The methods may be
// called from several goroutines at once.
type IdentityProvider interface {
	// Issuer returns the issuer URL of all tokens that Identify accepts.
	Issuer() string
	// Settings returns a hash of the configuration on which Identify depends. If the hash changes at a reload, the sessions and sign-in
	// links of identified callers end.
	Settings() [sha256.Size]byte
	// Identify verifies a token and returns the identity of its holder. If it returns an error, the response has status 403 for
	// [ErrNoProfile], 503 for [ErrNoIssuer], and 401 otherwise. Clients receive the text of the error, which must not contain any part of
	// the token.
	Identify(ctx context.Context, token string) (*Identity, error)
}

// Errors that the Identify method of an [IdentityProvider] returns for a token that may be valid.
var (
	ErrNoProfile = errors.New("no key of the configuration is a profile for this caller")
	ErrNoIssuer  = errors.New("the token could not be verified, since its issuer could not be reached")
)

// An Identity describes the caller whom a verified token identifies.
type Identity struct {
	Issuer  string // URL of the issuer: see [IdentityProvider]
	Subject string // id that the issuer has given the caller
	// Key is the name of that key in [Setup].Keys whose rights and limits the caller has. If there is no such key, the response has status
	// 403.
	Key     string
	Labels  map[string]string // labels of the caller's runs; a request cannot change them
	Expires time.Time         // when the token expires; zero: never
}

// Principal returns the principal of the caller's runs, in the form ISSUER#SUBJECT. It cannot be the name of a key.
func (i *Identity) Principal() string { return i.Issuer + "#" + i.Subject }

// isSigned reports whether a credential has the form of a signed token (RFC 7515, compact serialization): three parts, the
// first of which is an encoded JSON object.
func isSigned(s string) bool { return strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2 }

// identify verifies a token and returns the key with the rights of its holder.
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

// codeInvalidToken is the error code for a refused token. RFC 6750 defines the same word.
const codeInvalidToken = "invalid_token"

// identityRetry is the time, sent as Retry-After, after which a client may send a token again whose issuer could not be
// reached.
const identityRetry = 10 * time.Second

func noProfile() *problem {
	return forbidden("unknown_profile", "The token is valid, and no key of the configuration is its profile: serve.oidc.profiles says which are.")
}

// keyOfIdentity returns a copy of the profile key of the identity, with its principal and labels. It returns nil if there
// is no such key, or if the setup has another issuer.
func (s *setup) keyOfIdentity(id *Identity) *Key {
	if s.Identity == nil || s.Identity.Issuer() != id.Issuer {
		return nil
	}
	profile := s.keyNamed(id.Key)
	if profile == nil {
		return nil
	}
	k := *profile
	k.Secret, k.Hash = secret.Secret{}, [sha256.Size]byte{}
	k.Name, k.Profile, k.Labels, k.identity, k.settings = id.Principal(), id.Key, id.Labels, id, s.Identity.Settings()
	return &k
}

// withOwn returns a copy of labels with those in own added; own replaces labels with the same name.
func withOwn(labels, own map[string]string) map[string]string {
	if len(own) == 0 {
		return labels
	}
	out := map[string]string{}
	maps.Copy(out, labels)
	maps.Copy(out, own)
	return out
}

// CheckIdentityLabels returns an error if the labels cannot be the Labels of an [Identity], because the gateway sets one of them itself or
// one is not valid.
func CheckIdentityLabels(labels map[string]string) error {
	for name := range labels {
		if hiddenLabel(name) {
			return fmt.Errorf("the gateway sets the label %s itself", name)
		}
	}
	return loop.CheckLabels(labels)
}

// run returns the RunInfo for runs of the caller.
func (c *caller) run() *lathe.RunInfo {
	return &lathe.RunInfo{Principal: c.key.Name, Profile: c.key.Profile, Labels: c.key.Labels}
}

// admitted is the context key for the *Key of the caller.
type admitted struct{}

// CallerOf returns the key of the caller of a request to the handler [Options].MCP, without its secret. ctx must be the context of the
// request; for any other context, ok is false. If the setup has no keys, the name of the key is "".
func CallerOf(ctx context.Context) (k Key, ok bool) {
	p, ok := ctx.Value(admitted{}).(*Key)
	if ok {
		k = *p
		k.Secret, k.Hash = secret.Secret{}, [sha256.Size]byte{}
	}
	return k, ok
}
