package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A session represents a key in the requests of a browser, so that pages do not store the key. The browser sends the random
// id of the session as a cookie that scripts cannot read. Requests that change something also send the CSRF token of the
// session in a header; pages of other origins, including other ports of the same host, do not have that token. Sessions are
// stored in memory by the hash of their id, and end with the process.

// csrfHeader is the request header for the CSRF token of a session.
const csrfHeader = "X-Lathe-Csrf"

// Limits of sessions and sign-in links.
const (
	maxSessions    = 10_000           // sessions of all keys, and likewise links
	maxKeySessions = 32               // sessions of one key; a further one ends the oldest
	maxLinks       = 16               // unused sign-in links of one key; a further one ends the oldest
	linkLife       = 10 * time.Minute // lifetime of a sign-in link
)

// A session is a session of the console that was begun with a key, or an unused sign-in link for one.
type session struct {
	principal string
	secret    [sha256.Size]byte // hash of the key's secret: the session ends if the key is removed or its secret changes
	identity  *Identity         // of a caller with a signed token, who has no secret: the session ends if the profile is removed
	settings  [sha256.Size]byte // hash of the settings of the identity provider at sign-in: the session ends if they change or the provider is removed
	csrf      string
	began     time.Time
	expires   time.Time
}

// An idHash is the hash of the id of a session or of the token of a sign-in link.
type idHash [sha256.Size]byte

func hashOf(id string) idHash { return sha256.Sum256([]byte(id)) }

// sessions contains the sessions and the unused sign-in links of a server. A reload does not end them.
type sessions struct {
	now  func() time.Time
	life time.Duration

	mu    sync.Mutex
	of    map[idHash]*session
	links map[idHash]*session // unused links by the hash of their token, each with the session that it begins
}

func newSessions(now func() time.Time, life time.Duration) *sessions {
	return &sessions{now: now, life: life, of: map[idHash]*session{}, links: map[idHash]*session{}}
}

func randomID() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// begin begins a session of the key and returns its id. It returns a problem if there are [maxSessions] sessions.
func (s *sessions) begin(k *Key) (id string, one *session, p *problem) {
	return s.add(s.of, k, s.life, maxKeySessions, "sessions")
}

// link returns a token that begins one session of the key within [linkLife]. It returns a problem if there are
// [maxSessions] unused links.
func (s *sessions) link(k *Key) (token string, one *session, p *problem) {
	return s.add(s.links, k, linkLife, maxLinks, "sign-in links")
}

// add adds a session, or a link, of the key to the entries under a random id. It removes expired entries and, if the key has
// most entries, its oldest one.
func (s *sessions) add(entries map[idHash]*session, k *Key, life time.Duration, most int, what string) (id string, added *session, p *problem) {
	id = randomID()
	now := s.now()
	added = &session{principal: k.Name, secret: k.hash(), identity: k.identity, settings: k.settings, csrf: randomID(), began: now, expires: k.until(now.Add(life))}
	s.mu.Lock()
	defer s.mu.Unlock()
	ofKey := 0
	var oldest idHash
	for hash, entry := range entries {
		switch {
		case !now.Before(entry.expires):
			delete(entries, hash)
		case entry.principal == k.Name:
			if ofKey == 0 || entry.began.Before(entries[oldest].began) {
				oldest = hash
			}
			ofKey++
		}
	}
	if ofKey >= most {
		delete(entries, oldest)
	}
	if len(entries) >= maxSessions {
		return "", nil, unavailable("too_many_sessions", time.Minute,
			"The gateway holds %d %s, and takes no more until one ends: try again later, or send the API key with each request.", maxSessions, what)
	}
	entries[hashOf(id)] = added
	return id, added, nil
}

// redeem ends the sign-in link with the token and returns its key; nil if there is no such link, or it or its key is no
// longer valid.
func (s *sessions) redeem(setup *setup, token string) *Key {
	s.mu.Lock()
	one := s.links[hashOf(token)]
	delete(s.links, hashOf(token))
	s.mu.Unlock()
	return s.keyOf(setup, one)
}

// keyOf returns the key of a session or link in the setup; nil if one is nil or has expired, or its key is no longer valid.
func (s *sessions) keyOf(setup *setup, one *session) *Key {
	if one == nil || !s.now().Before(one.expires) {
		return nil
	}
	return setup.keyOf(one)
}

// until returns t, or the time at which the token of the caller expires if that is earlier.
func (k *Key) until(t time.Time) time.Time {
	if k.identity != nil && !k.identity.Expires.IsZero() && k.identity.Expires.Before(t) {
		return k.identity.Expires
	}
	return t
}

// find returns the session with the id and its key in the setup. It returns nil if there is no session, or it or its key is
// no longer valid.
func (s *sessions) find(setup *setup, id string) (*session, *Key) {
	s.mu.Lock()
	one := s.of[hashOf(id)]
	s.mu.Unlock()
	k := s.keyOf(setup, one)
	if k == nil {
		s.end(id)
		return nil, nil
	}
	return one, k
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, hashOf(id))
}

// keyOf returns the key of a session. It returns nil if the key was removed or its secret changed, or if the identity
// provider of the caller was removed or its settings changed.
func (s *setup) keyOf(one *session) *Key {
	if one.identity != nil {
		if k := s.keyOfIdentity(one.identity); k != nil && k.settings == one.settings {
			return k
		}
		return nil
	}
	k := s.keyNamed(one.principal)
	if k == nil {
		return nil
	}
	now := k.hash()
	if subtle.ConstantTimeCompare(now[:], one.secret[:]) != 1 {
		return nil
	}
	return k
}

// takesSession reports whether the route accepts the cookie of a session instead of a key: the routes that the console
// calls do.
func (rt *route) takesSession() bool {
	_, path, _ := strings.Cut(rt.pattern, " ")
	return rt.credential == apiKey && (strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/v1/"))
}

// signIns contains the sessions of browsers that have signed in to the console, and limits the sign-ins at an issuer.
type signIns struct {
	*core
	sessions *sessions
	waiting  chan struct{} // contains one element for each sign-in that waits for the issuer
}

// signedIn returns the key of the session of a request without a key. Both results are nil if the request has no cookie of a
// session or the route accepts none.
func (g *signIns) signedIn(r *http.Request, c *caller, rt *route) (*Key, *problem) {
	id := cookieOf(r)
	if id == "" || !c.console || !rt.takesSession() {
		return nil, nil
	}
	one, k := g.sessions.find(c.setup, id)
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site != "" && site != "same-origin" && site != "none":
		return nil, forbidden("unknown_origin", "A session is for the pages of this gateway only: send an API key.")
	case k == nil:
		return nil, unauthorized("session_expired", "The session has ended: sign in again.")
	case !safeMethod(r.Method) && subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(one.csrf)) != 1:
		return nil, forbidden("csrf_token_required", "A request of a session that changes something needs the header %s with the csrf_token of GET /api/session.", csrfHeader)
	}
	return k, nil
}

func safeMethod(m string) bool {
	return m == http.MethodGet || m == http.MethodHead || m == http.MethodOptions
}

func cookieName(r *http.Request) string { return portCookie("lathe_session", r) }

// portCookie appends the port of the request to the name of a cookie. Browsers send cookies to all ports of a host: the
// port in the name lets one browser have sessions of several servers on one host. On a TLS connection the name has the
// prefix __Host-. Then browsers accept the cookie only from this host over TLS, so no other host, and no port without TLS,
// can set it. Such a cookie must have the path /.
func portCookie(name string, r *http.Request) string {
	if r.TLS != nil {
		name = "__Host-" + name
	}
	if u, err := url.Parse("//" + r.Host); err == nil && u.Port() != "" {
		name += "_" + u.Port()
	}
	return name
}

// cookieOf returns the session id in the cookie of the request; "" if there is no such cookie, or more than one.
func cookieOf(r *http.Request) string {
	if all := r.CookiesNamed(cookieName(r)); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// sessionCookie returns the cookie of a session. It is Secure if the page was loaded over TLS, also through a proxy that
// terminates TLS: the browser reports that in the Origin header.
func sessionCookie(r *http.Request, id string) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")}
}

// removeCookie makes the browser remove the cookie of its session.
func removeCookie(w http.ResponseWriter, r *http.Request) {
	cookie := sessionCookie(r, "")
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
}

// SignInLink returns a URL fragment of the form "signin=TOKEN", which signs a browser in to the console as the key with this name, for a
// URL such as http://127.0.0.1:8700/#signin=TOKEN. The link can be used once, and not after expires, which is 10 min from now. A key has at
// most 16 unused links: a further one invalidates the oldest. The error has the code invalid_config if there is no such key, or if 10,000
// links of all keys are unused.
func (g *Server) SignInLink(key string) (fragment string, expires time.Time, err error) {
	setup := g.work.begin()
	defer g.work.end(setup)
	k := setup.keyNamed(key)
	if k == nil {
		return "", time.Time{}, invalid("sign in", fmt.Errorf("there is no key %q", key))
	}
	token, link, p := g.browsers.sessions.link(k)
	if p != nil {
		return "", time.Time{}, invalid("sign in", errors.New(p.Message))
	}
	return signInFragment(token), link.expires, nil
}

func signInFragment(token string) string { return "signin=" + token }

// Console returns a handler of the console's pages and API for a separate listener. [Options].SeparateConsole removes the pages from the
// main handler.
func (g *Server) Console() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.gate.serve(w, r, g.consoleMux, true) })
}
