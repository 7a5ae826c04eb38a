// Package oidc verifies the tokens that an OpenID Connect issuer signs: JSON Web Tokens in compact form, verified with the keys that the
// issuer publishes.
//
// A [Provider] fetches the keys of the issuer when it first needs them. It fetches them again if a token names an unknown key, and in the
// background if the keys are an hour old. If the issuer cannot be reached, the last published keys are used for a day. The number, time and
// size of all requests to the issuer are limited.
package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Limits of tokens and of documents of an issuer.
const (
	MaxToken    = 16 << 10 // bytes of a token
	maxSubject  = 255      // bytes of a subject, according to OpenID Connect
	maxDocument = 1 << 20  // bytes of a document of the issuer
	maxKeys     = 64       // keys of an issuer; more are an error
	maxWaiters  = 256      // tokens that wait for keys at a time; further tokens are refused with Unavailable
	minRSA      = 2048     // bits of an RSA key; shorter keys are not used
	maxSkew     = 5 * time.Minute
)

// Timeouts and intervals of fetching keys.
const (
	fetchTimeout  = 10 * time.Second // timeout of all requests of one fetch
	unknownEvery  = 10 * time.Second // shortest time between two fetches for unknown keys
	refreshAfter  = time.Hour        // age at which keys are fetched again
	refreshEvery  = time.Minute      // shortest time between two attempts to fetch old keys again
	keysHoldUntil = 24 * time.Hour   // age at which keys are no longer used
)

// A Kind is the reason why a token is refused.
type Kind string

// Kinds of [Error].
const (
	Malformed   Kind = "malformed"
	TooLarge    Kind = "too_large"
	Algorithm   Kind = "algorithm"
	UnknownKey  Kind = "unknown_key"
	Signature   Kind = "signature"
	Expired     Kind = "expired"
	NotYetValid Kind = "not_yet_valid"
	Issuer      Kind = "issuer"
	Audience    Kind = "audience"
	Subject     Kind = "subject"
	// Code is a kind of error of [Provider.Exchange]: the issuer refuses the code, or its token belongs to another sign-in.
	Code Kind = "code"
	// Unavailable means that the keys of the issuer could not be fetched, so that the token was not checked.
	Unavailable Kind = "unavailable"
)

// An Error is the reason why a token is refused. Its text contains nothing of the token.
type Error struct {
	Kind Kind
	text string
	err  error
}

// Error implements error.
func (e *Error) Error() string {
	if e.err != nil {
		return e.text + ": " + e.err.Error()
	}
	return e.text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

func refuse(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, text: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of an error of [Provider.Verify], or "" for another error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Algorithms returns the names of the signature algorithms that a provider supports. All of them are asymmetric.
func Algorithms() []string {
	return []string{string(jose.RS256), string(jose.ES256), string(jose.EdDSA)}
}

// Options are the options of [New].
type Options struct {
	Issuer string // required; must equal `iss` of tokens and `issuer` of the discovery document exactly
	// Audience lists the accepted values of `aud`, of which a token must have one; required.
	Audience []string
	// KeysURL is the URL of the JWKS of the issuer; "": `jwks_uri` of its discovery document.
	KeysURL string
	// Algorithms are the accepted algorithms, a subset of [Algorithms]; nil: all.
	Algorithms []string
	// Skew is the accepted difference between the clocks of issuer and gateway, at most 5 min.
	Skew   time.Duration
	Client *http.Client     // nil: a new client that does not follow redirects
	Now    func() time.Time // nil: time.Now
}

// A Provider verifies the tokens of one issuer. It may be used from several goroutines at once.
type Provider struct {
	opts       Options
	algorithms []jose.SignatureAlgorithm

	mu      sync.Mutex // guards the fields below, up to closed
	keys    []jose.JSONWebKey
	fetched time.Time          // start of the last successful fetch; zero: there are no keys
	tried   time.Time          // start of the last fetch
	failure error              // error of the last fetch
	flight  chan struct{}      // closed at the end of the fetch in progress; nil if none exists
	waiters int                // callers that wait for the fetch
	cancel  context.CancelFunc // cancels the fetch in progress
	closed  bool

	fetching sync.WaitGroup // waits for the goroutine of the fetch

	discovering chan struct{} // semaphore: has an element while discovered is in use
	discovered  discovery
}

// New returns a provider, or an error if the options are not valid. It makes no connection.
func New(opts *Options) (*Provider, error) {
	p := &Provider{opts: *opts, discovering: make(chan struct{}, 1)}
	o := &p.opts
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	issuer, err := checkURL(o.Issuer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the issuer %w", err)
	case issuer.RawQuery != "" || issuer.ForceQuery:
		return nil, errors.New("the issuer has a query in it")
	case len(o.Audience) == 0:
		return nil, errors.New("no audience: tokens that the issuer made for other servers would be accepted")
	case o.Skew < 0 || o.Skew > maxSkew:
		return nil, fmt.Errorf("the clock skew is not between 0 and %s", maxSkew)
	}
	if o.KeysURL != "" {
		if _, err := checkURL(o.KeysURL); err != nil {
			return nil, fmt.Errorf("the address of the keys %w", err)
		}
	}
	if o.Algorithms == nil {
		o.Algorithms = Algorithms()
	}
	for _, name := range o.Algorithms {
		if !slices.Contains(Algorithms(), name) {
			return nil, fmt.Errorf("the algorithm %q is none of %s", name, strings.Join(Algorithms(), ", "))
		}
		p.algorithms = append(p.algorithms, jose.SignatureAlgorithm(name))
	}
	if len(p.algorithms) == 0 {
		return nil, errors.New("no algorithm is allowed")
	}
	return p, nil
}

// Issuer returns the issuer whose tokens the provider verifies.
func (p *Provider) Issuer() string { return p.opts.Issuer }

// checkURL parses the URL of keys or metadata: https, or http to this machine.
func checkURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, errors.New("is not a whole address")
	case u.User != nil || strings.Contains(s, "#"):
		return nil, errors.New("has a user or a fragment in it")
	case u.Scheme == "https", u.Scheme == "http" && httpname.IsLoopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("is neither https nor on this machine")
}

func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Close cancels the fetch in progress and closes the idle connections to the issuer. No keys are fetched afterwards.
func (p *Provider) Close() {
	p.mu.Lock()
	p.closed = true
	if p.flight != nil {
		p.cancel()
	}
	p.mu.Unlock()
	p.fetching.Wait()
	p.opts.Client.CloseIdleConnections()
}

// Verify checks a token and returns its claims. It checks the format, algorithm and size; the signature of the issuer; and `iss`, `aud`,
// `exp`, `nbf` and `sub`. The error is an [*Error].
func (p *Provider) Verify(ctx context.Context, token string) (*Token, error) {
	return p.verifyFor(ctx, token, p.opts.Audience)
}

// verifyFor does the same as Verify, for a token that must have one of the audiences.
func (p *Provider) verifyFor(ctx context.Context, token string, audience []string) (*Token, error) {
	if len(token) > MaxToken {
		return nil, refuse(TooLarge, "the token is longer than %d bytes", MaxToken)
	}
	signed, err := jose.ParseSignedCompact(token, p.algorithms)
	if err != nil {
		var other *jose.ErrUnexpectedSignatureAlgorithm
		if errors.As(err, &other) {
			return nil, refuse(Algorithm, "the token is not signed with %s", strings.Join(p.opts.Algorithms, " or "))
		}
		return nil, refuse(Malformed, "the token is not a signed JSON Web Token")
	}
	t, err := parseToken(signed.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	// Before the signature: a token of another issuer must not cause a fetch of keys.
	if t.Issuer != p.opts.Issuer {
		return nil, refuse(Issuer, "the token is from another issuer")
	}
	if err := p.verify(ctx, signed); err != nil {
		return nil, err
	}
	return t, p.check(t, audience)
}

// check checks the claims of a token whose signature is valid.
func (p *Provider) check(t *Token, audience []string) error {
	now := p.opts.Now()
	switch {
	case !slices.ContainsFunc(t.audience, func(a string) bool { return slices.Contains(audience, a) }):
		return refuse(Audience, "the token is for another audience")
	case t.Expires.IsZero():
		return refuse(Malformed, "the token has no exp")
	case !now.Before(t.Expires.Add(p.opts.Skew)):
		return refuse(Expired, "the token has expired")
	case now.Add(p.opts.Skew).Before(t.notBefore):
		return refuse(NotYetValid, "the token is not valid yet")
	case !isSubject(t.Subject):
		return refuse(Subject, "the token's sub is not 1 to %d printable ASCII characters", maxSubject)
	}
	return nil
}

// isSubject reports whether s is a subject that OpenID Connect allows, without control characters.
func isSubject(s string) bool {
	return s != "" && len(s) <= maxSubject && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// verify checks the signature of a token with the keys of the issuer. It fetches them again if the token names an unknown key.
func (p *Provider) verify(ctx context.Context, signed *jose.JSONWebSignature) error {
	head := signed.Signatures[0].Header
	algorithm := jose.SignatureAlgorithm(head.Algorithm)
	for _, when := range []fetchTime{whenOld, atOnce} {
		keys, err := p.keysOf(ctx, head.KeyID, algorithm, when)
		if err != nil {
			return err
		}
		for i := range keys {
			if _, err := signed.Verify(keys[i].Key); err == nil {
				return nil
			}
		}
		if len(keys) > 0 && head.KeyID != "" {
			break // the issuer publishes the key with this id, and the signature is wrong
		}
	}
	if head.KeyID == "" {
		return refuse(Signature, "no key of the issuer fits the token's signature")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.matching(head.KeyID, algorithm)) > 0 {
		return refuse(Signature, "the token's signature is wrong")
	}
	if p.failure != nil {
		return &Error{Unavailable, "the issuer's keys could not be fetched", p.failure}
	}
	return refuse(UnknownKey, "the issuer does not publish the key of the token")
}

// A fetchTime says when keys are fetched again.
type fetchTime int

const (
	whenOld fetchTime = iota // at refreshAfter; the old keys are used in the meantime
	atOnce
)

// keysOf returns the keys that may have signed a token. It first fetches keys if none are valid or when is atOnce, unless the last fetch
// began less than refreshEvery (whenOld) or unknownEvery (atOnce) ago.
func (p *Provider) keysOf(ctx context.Context, id string, alg jose.SignatureAlgorithm, when fetchTime) ([]jose.JSONWebKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opts.Now()
	age := now.Sub(p.fetched)
	var err error
	switch {
	case when == atOnce || p.fetched.IsZero():
		err = p.refresh(ctx, unknownEvery)
	case age >= keysHoldUntil:
		err = p.refresh(ctx, refreshEvery)
	case age >= refreshAfter:
		p.start(refreshEvery)
	}
	switch {
	case err != nil:
		return nil, err
	case p.fetched.IsZero():
		return nil, &Error{Unavailable, "the issuer's keys could not be fetched", p.failure}
	case now.Sub(p.fetched) >= keysHoldUntil:
		return nil, &Error{Unavailable, fmt.Sprintf("the issuer's keys are older than %s and could not be fetched again", keysHoldUntil), p.failure}
	}
	return p.matching(id, alg), nil
}

// matching returns the keys with the id or, if id is "", all keys for the algorithm. The caller must have locked p.mu.
func (p *Provider) matching(id string, alg jose.SignatureAlgorithm) (out []jose.JSONWebKey) {
	for i := range p.keys {
		if k := &p.keys[i]; (id == "" || k.KeyID == id) && fits(k, alg) {
			out = append(out, *k)
		}
	}
	return out
}

// Refresh fetches the keys of the issuer, unless a fetch began less than 10 s ago. It returns the error of the last fetch, or of ctx if ctx
// ends first; the fetch then continues.
func (p *Provider) Refresh(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refresh(ctx, unknownEvery); err != nil {
		return err
	}
	return p.failure
}

// refresh waits for the fetch in progress, or for a new one unless the last one began less than wait ago. It returns an error if ctx ends
// first, or if too many callers wait. The caller must have locked p.mu, which is unlocked during the wait.
func (p *Provider) refresh(ctx context.Context, wait time.Duration) error {
	p.start(wait)
	flight := p.flight
	switch {
	case flight == nil:
		return nil
	case p.waiters >= maxWaiters:
		return refuse(Unavailable, "%d tokens wait for the issuer's keys", p.waiters)
	}
	p.waiters++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.waiters--
	}()
	select {
	case <-flight:
		return nil
	case <-ctx.Done():
		return &Error{Unavailable, "the issuer's keys could not be fetched", ctx.Err()}
	}
}

// start starts a fetch, unless one is in progress or the last one began less than wait ago. The caller must have locked p.mu.
func (p *Provider) start(wait time.Duration) {
	now := p.opts.Now()
	if p.flight != nil || p.closed || !p.tried.IsZero() && now.Sub(p.tried) < wait {
		return
	}
	// The fetch serves several requests, and must not end with one of them.
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	flight := make(chan struct{})
	p.tried, p.flight, p.cancel = now, flight, cancel
	p.fetching.Go(func() {
		defer cancel()
		keys, err := p.fetch(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.flight, p.failure = nil, err
		if err == nil {
			p.keys, p.fetched = keys, now
		}
		close(flight)
	})
}

// fits reports whether a key can verify signatures of the algorithm.
func fits(k *jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if k.Algorithm != "" && k.Algorithm != string(alg) || k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return alg == jose.RS256 && key.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		return alg == jose.ES256 && key.Curve.Params().BitSize == 256
	case ed25519.PublicKey:
		return alg == jose.EdDSA
	}
	return false
}

// checkJSON decodes b into v. It returns an error for documents that parsers could interpret in different ways.
func checkJSON(b []byte, v any) error {
	if err := rawjson.Check(b, rawjson.Limits{}); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
