// Package oidc verifies the tokens that an OpenID Connect issuer signs: JSON Web Tokens in compact form, under the keys
// that the issuer publishes.
//
// A [Provider] fetches the issuer's keys when it first needs them. It fetches them again if a token names a key that it
// does not have, and in the background if the keys are an hour old. While the issuer cannot be reached, the keys that it has
// published are used for a day. All requests to the issuer have bounds on their number, time and size.
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

// Limits on tokens and on what an issuer publishes.
const (
	MaxToken    = 16 << 10 // bytes of a token
	maxSubject  = 255      // bytes of a subject, as OpenID Connect has it
	maxDocument = 1 << 20  // bytes of a document of the issuer
	maxKeys     = 64       // keys of an issuer; more are refused
	maxWaiters  = 256      // tokens that wait for keys at a time; further ones are answered with Unavailable
	minRSA      = 2048     // bits of an RSA key; shorter keys are not used
	maxSkew     = 5 * time.Minute
)

// How often, and for how long.
const (
	fetchTimeout  = 10 * time.Second // for all requests of one fetch
	unknownEvery  = 10 * time.Second // between two fetches, whatever tokens name
	refreshAfter  = time.Hour        // the age of keys after which they are fetched again
	refreshEvery  = time.Minute      // between two attempts to do so
	keysHoldUntil = 24 * time.Hour   // the age of keys after which they are not used
)

// A Kind says why a token is refused.
type Kind string

// The kinds of [Error].
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
	// Code is the kind of an error of [Provider.Exchange]: the issuer refuses the code, or its token is of another sign-in.
	Code Kind = "code"
	// Unavailable is the kind of an error that says nothing about the token: the keys of the issuer could not be fetched.
	Unavailable Kind = "unavailable"
)

// An Error says why a token is refused. Its text has nothing of the token.
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

// KindOf returns the kind of an error of [Provider.Verify]; "" for another error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Algorithms returns the names of the algorithms that a provider can accept. All of them are asymmetric.
func Algorithms() []string {
	return []string{string(jose.RS256), string(jose.ES256), string(jose.EdDSA)}
}

// Options are the options of [New].
type Options struct {
	Issuer string // required; equal to `iss` of tokens and to `issuer` of the discovery document, byte for byte
	// Audience lists the values of which `aud` of a token must have one; required.
	Audience []string
	// KeysURL is the address of the issuer's JWKS; "": `jwks_uri` of its discovery document.
	KeysURL string
	// Algorithms are some of [Algorithms]; nil: all.
	Algorithms []string
	// Skew is by how much the clocks of issuer and server may differ, 5 min at most.
	Skew   time.Duration
	Client *http.Client     // nil: one of its own, without redirects
	Now    func() time.Time // nil: time.Now
}

// A Provider verifies the tokens of one issuer. It may be used by several goroutines at once.
type Provider struct {
	opts       Options
	algorithms []jose.SignatureAlgorithm

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time          // when keys were published; zero: there are none
	tried   time.Time          // when the last fetch began
	failure error              // of the last fetch
	flight  chan struct{}      // closed at the end of the fetch that is in progress; nil: none is
	waiters int                // for it
	cancel  context.CancelFunc // ends that fetch
	closed  bool

	fetching sync.WaitGroup // the goroutine of the fetch

	discovering chan struct{} // has an element while discovered is used
	discovered  discovery
}

// New returns a provider. It returns an error for invalid options and connects to nothing.
func New(opts *Options) (*Provider, error) {
	p := &Provider{opts: *opts, discovering: make(chan struct{}, 1)}
	o := &p.opts
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	issuer, err := CheckURL(o.Issuer)
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
		if _, err := CheckURL(o.KeysURL); err != nil {
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

// CheckURL parses an address that keys or metadata may come from: https, or http on this machine.
func CheckURL(s string) (*url.URL, error) {
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

// Close ends the fetch that is in progress and closes the idle connections to the issuer. Afterwards no keys are fetched.
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

// Verify checks a token and returns what it says: the form, algorithm and size; that the issuer has signed it; `iss`,
// `aud`, `exp`, `nbf` and `sub`. The error is an [*Error].
func (p *Provider) Verify(ctx context.Context, token string) (*Token, error) {
	return p.verifyFor(ctx, token, p.opts.Audience)
}

// verifyFor verifies a token for one of the audiences.
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
	// Before the keys: no token of another issuer makes the provider ask for keys.
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

// isSubject takes what OpenID Connect allows as a subject, without control characters.
func isSubject(s string) bool {
	return s != "" && len(s) <= maxSubject && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// verify checks the signature under a key of the issuer.
func (p *Provider) verify(ctx context.Context, signed *jose.JSONWebSignature) error {
	head := signed.Signatures[0].Header
	for fetch := range 2 {
		wait := refreshEvery
		if fetch > 0 {
			wait = unknownEvery
		}
		keys, err := p.keysOf(ctx, head.KeyID, jose.SignatureAlgorithm(head.Algorithm), wait, fetch > 0)
		if err != nil {
			return err
		}
		for i := range keys {
			if _, err := signed.Verify(keys[i].Key); err == nil {
				return nil
			}
		}
		if len(keys) > 0 && head.KeyID != "" {
			break
		}
	}
	if head.KeyID == "" {
		return refuse(Signature, "no key of the issuer fits the token's signature")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.matching(head.KeyID, jose.SignatureAlgorithm(head.Algorithm))) > 0 {
		return refuse(Signature, "the token's signature is wrong")
	}
	if p.failure != nil {
		return &Error{Unavailable, "the issuer's keys could not be fetched", p.failure}
	}
	return refuse(UnknownKey, "the issuer does not publish the key of the token")
}

// keysOf returns the keys that a token may be signed with. It fetches keys first if there are none that may be used, or if fetch is
// set, unless the last fetch began less than wait ago. If the keys are old, it starts a fetch and does not wait for it.
func (p *Provider) keysOf(ctx context.Context, id string, alg jose.SignatureAlgorithm, wait time.Duration, fetch bool) ([]jose.JSONWebKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opts.Now()
	if p.fetched.IsZero() {
		fetch, wait = true, unknownEvery
	}
	age := now.Sub(p.fetched)
	switch {
	case fetch || age >= keysHoldUntil:
		if err := p.refresh(ctx, wait); err != nil {
			return nil, err
		}
	case age >= refreshAfter:
		p.start(wait)
	}
	switch {
	case p.fetched.IsZero():
		return nil, &Error{Unavailable, "the issuer's keys could not be fetched", p.failure}
	case now.Sub(p.fetched) >= keysHoldUntil:
		return nil, &Error{Unavailable, fmt.Sprintf("the issuer's keys are older than %s and could not be fetched again", keysHoldUntil), p.failure}
	}
	return p.matching(id, alg), nil
}

// matching returns the keys with the id, or, without an id, those of the algorithm. p.mu is held.
func (p *Provider) matching(id string, alg jose.SignatureAlgorithm) (out []jose.JSONWebKey) {
	for i := range p.keys {
		if k := &p.keys[i]; (id == "" || k.KeyID == id) && fits(k, alg) {
			out = append(out, *k)
		}
	}
	return out
}

// Refresh fetches the keys of the issuer, unless a fetch began less than 10 s ago. It returns the error of the last fetch, or
// that of ctx if it is done before; the fetch then continues.
func (p *Provider) Refresh(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refresh(ctx, unknownEvery); err != nil {
		return err
	}
	return p.failure
}

// refresh waits for the fetch that is in progress, or for a new one unless the last began less than wait ago. It returns an error
// if ctx is done meanwhile, or if too many callers wait. p.mu is held, and released meanwhile.
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

// start starts a fetch, unless one is in progress or the last began less than wait ago. p.mu is held.
func (p *Provider) start(wait time.Duration) {
	now := p.opts.Now()
	if p.flight != nil || p.closed || !p.tried.IsZero() && now.Sub(p.tried) < wait {
		return
	}
	// It serves several requests, and does not end with one of them.
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	flight := make(chan struct{})
	p.tried, p.flight, p.cancel = now, flight, cancel
	p.fetching.Go(func() {
		defer cancel()
		keys, err := p.fetch(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.flight = nil
		if p.failure = err; err == nil {
			p.keys, p.fetched = keys, now
		}
		close(flight)
	})
}

// fits reports whether a key may verify signatures of the algorithm.
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

// checkJSON refuses documents that readers could read in different ways.
func checkJSON(b []byte, v any) error {
	if err := rawjson.Check(b, rawjson.Limits{}); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
