package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A browser signs in with the identity provider by the authorization code flow of OpenID Connect with PKCE:
//
//	GET /api/session/oidc           sets a cookie with state, nonce and verifier, and sends the browser to the issuer
//	GET /api/session/oidc/callback  compares the state with that of the cookie, exchanges the code for a token, begins a
//	                                session, and sends the browser to the console
//
// The server stores nothing for a sign-in in progress: its state is in the cookie, which scripts cannot read and which binds the
// sign-in to the browser.

const (
	signInPath     = "/api/session/oidc"
	signInCallback = signInPath + "/callback"
	signInLife     = 10 * time.Minute // lifetime of the cookie of a sign-in
	maxSignIns     = 16               // number of sign-ins that may wait for the issuer at the same time
	maxCode        = 4096             // maximum length of a code in bytes
)

// A SignInProvider is an [IdentityProvider] at which users can sign in with a browser (OAuth 2 authorization code flow with PKCE).
type SignInProvider interface {
	IdentityProvider
	// SignInURL returns the URL of the issuer to which the browser is redirected.
	SignInURL(ctx context.Context, s *SignIn) (string, error)
	// FinishSignIn exchanges the authorization code, with which the issuer has sent the browser back, for a token, and returns the identity
	// of the user. Its errors are those of Identify.
	FinishSignIn(ctx context.Context, s *SignIn, code string) (*Identity, error)
}

// A SignIn is a browser sign-in in progress. State, Nonce and Verifier are random strings of 43 characters a-z, A-Z, 0-9, - and _.
type SignIn struct {
	State, Nonce, Verifier string
	Redirect               string // URL to which the issuer redirects the browser after the sign-in
}

// signInProvider returns the identity provider of the setup if users can sign in at it; else nil.
func (s *setup) signInProvider() SignInProvider {
	p, _ := s.Identity.(SignInProvider)
	return p
}

func noSignIn() *problem {
	return notFound("not_found", "Sign in with a key: no sign-in with an identity provider is configured (serve.oidc.client_id).")
}

// waitForIssuer takes one of [maxSignIns] places, or returns a problem if all are in use. The caller must call release.
func (g *signIns) waitForIssuer() (release func(), p *problem) {
	select {
	case g.waiting <- struct{}{}:
		return func() { <-g.waiting }, nil
	default:
		return nil, unavailable("overloaded", time.Second, "Too many users sign in at this time: try again.")
	}
}

// signInFailed converts an error of a SignInProvider to a problem.
func signInFailed(err error) *problem {
	switch {
	case errors.Is(err, ErrNoProfile):
		return noProfile()
	case errors.Is(err, ErrNoIssuer):
		return unavailable("issuer_unavailable", identityRetry, "The identity provider cannot be reached: try again, or sign in with a key.")
	}
	return unauthorized(codeInvalidToken, "The sign-in failed: %v.", err)
}

// beginSignIn handles GET /api/session/oidc: it redirects the browser to the issuer.
func (g *signIns) beginSignIn(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	provider := c.setup.signInProvider()
	if provider == nil {
		return noSignIn()
	}
	release, p := g.waitForIssuer()
	if p != nil {
		return p
	}
	defer release()
	s := &SignIn{State: randomID(), Nonce: randomID(), Verifier: randomID(), Redirect: c.setup.address(r) + signInCallback}
	address, err := provider.SignInURL(r.Context(), s)
	if err != nil {
		return signInFailed(err)
	}
	setSignInCookie(w, r, c, strings.Join([]string{s.State, s.Nonce, s.Verifier}, "."))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

// finishSignIn handles GET /api/session/oidc/callback: it begins the session of a user whom the issuer has redirected back.
func (g *signIns) finishSignIn(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	k, p := g.signedInAt(r, c)
	if len(r.CookiesNamed(signInCookie(r))) > 0 { // the cookie is valid for one attempt
		setSignInCookie(w, r, c, "")
	}
	if p != nil {
		return p
	}
	cookie, _, p := g.begin(r, c, k)
	if p != nil {
		return p
	}
	cookie.Secure = cookie.Secure || c.secure(r) // the request of a redirect has no Origin
	http.SetCookie(w, cookie)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address contains the code
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// signedInAt verifies the state and the code of the callback and returns the key of the user.
func (g *signIns) signedInAt(r *http.Request, c *caller) (*Key, *problem) {
	provider := c.setup.signInProvider()
	if provider == nil {
		return nil, noSignIn()
	}
	s, q := signInOf(r), r.URL.Query()
	code, state, issuer := q.Get("code"), q.Get("state"), q.Get("iss")
	switch {
	case s == nil, subtle.ConstantTimeCompare([]byte(state), []byte(s.State)) != 1:
		return nil, unauthorized("invalid_link", "This browser has not begun this sign-in, or began it more than 10 minutes ago: sign in again.")
	case issuer != "" && issuer != provider.Issuer():
		return nil, signInFailed(errors.New("the answer is from another issuer"))
	case q.Get("error") != "":
		return nil, signInFailed(errors.New("the identity provider refused it"))
	case code == "" || len(code) > maxCode || len(q["code"]) > 1 || len(q["state"]) > 1:
		return nil, badRequest("code", "The answer of the identity provider has no code.")
	}
	release, p := g.waitForIssuer()
	if p != nil {
		return nil, p
	}
	defer release()
	s.Redirect = c.setup.address(r) + signInCallback
	id, err := provider.FinishSignIn(r.Context(), s, code)
	if err != nil {
		return nil, signInFailed(err)
	}
	if k := c.setup.keyOfIdentity(id); k != nil {
		return k, nil
	}
	return nil, noProfile()
}

// signInOf returns the sign-in that the browser has begun, from its cookie, which has the form STATE.NONCE.VERIFIER. It
// returns nil if there is no such cookie.
func signInOf(r *http.Request) *SignIn {
	all := r.CookiesNamed(signInCookie(r))
	if len(all) != 1 {
		return nil
	}
	parts := strings.Split(all[0].Value, ".")
	length := len(randomID()) // of each part
	if len(parts) != 3 || slices.ContainsFunc(parts, func(part string) bool { return len(part) != length }) {
		return nil
	}
	return &SignIn{State: parts[0], Nonce: parts[1], Verifier: parts[2]}
}

// secure reports whether browsers reach the server over TLS.
func (c *caller) secure(r *http.Request) bool {
	return strings.HasPrefix(c.setup.address(r), "https://")
}

func signInCookie(r *http.Request) string { return portCookie("lathe_signin", r) }

// setSignInCookie sets the cookie of a sign-in, or removes it if value is "". It is SameSite=Lax, since the redirect from
// the issuer's page must send it.
func setSignInCookie(w http.ResponseWriter, r *http.Request, c *caller, value string) {
	ck := &http.Cookie{Name: signInCookie(r), Value: value, Path: signInPath, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(signInLife.Seconds()), Secure: c.secure(r)}
	if r.TLS != nil { // the prefix __Host- of the name requires both
		ck.Path, ck.Secure = "/", true
	}
	if value == "" {
		ck.MaxAge = -1
	}
	http.SetCookie(w, ck)
}
