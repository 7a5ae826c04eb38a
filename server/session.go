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

// A session stands for a key in the requests of a browser, so that pages do not hold the key. The browser sends the random
// id of the session as a cookie that scripts cannot read. Requests that change something also carry the CSRF token of the
// session in a header, which pages of other origins, other ports of the same host included, do not know. Sessions are held
// in memory by the hash of their id: they end with the process.

// csrfHeader carries the CSRF token of a session.
const csrfHeader = "X-Lathe-Csrf"

// Limits of sessions.
const (
	maxSessions    = 10_000           // of all keys
	maxKeySessions = 32               // of one key; beyond it the oldest ends
	maxLinks       = 16               // of one key that were not used; beyond it the oldest ends
	linkLife       = 10 * time.Minute // of a sign-in link
)

// A session is one that a key signed in to.
type session struct {
	principal string
	secret    [sha256.Size]byte // of the key: a session ends if the key is removed or gets another secret
	identity  *Identity         // of an identified caller, who has no secret: a session ends if the profile is removed
	settings  [sha256.Size]byte // of the identity provider then: a session ends if the provider is removed or gets others
	csrf      string
	began     time.Time
	expires   time.Time
}

// An idHash is the hash of the id of a session or of the token of a sign-in link.
type idHash [sha256.Size]byte

func hashOf(id string) idHash { return sha256.Sum256([]byte(id)) }

// sessions are the sessions and the unused sign-in links of a server. They outlive a reload.
type sessions struct {
	now  func() time.Time
	life time.Duration

	mu    sync.Mutex
	of    map[idHash]*session
	links map[idHash]*session // a link is the session that it begins
}

func newSessions(now func() time.Time, life time.Duration) *sessions {
	return &sessions{now: now, life: life, of: map[idHash]*session{}, links: map[idHash]*session{}}
}

// randomID returns 32 random bytes as text.
func randomID() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// begin begins a session of the key and returns its id. It returns a problem if the server holds [maxSessions].
func (s *sessions) begin(k *Key) (id string, one *session, p *problem) {
	return s.add(s.of, k, s.life, maxKeySessions, "sessions")
}

// link makes a token that begins one session of the key within [linkLife]. It returns a problem if the server holds
// [maxSessions] links that were not used.
func (s *sessions) link(k *Key) (token string, one *session, p *problem) {
	return s.add(s.links, k, linkLife, maxLinks, "sign-in links")
}

// add adds a session of the key, or a link, under a random id. The key has at most that many.
func (s *sessions) add(of map[idHash]*session, k *Key, life time.Duration, most int, what string) (id string, one *session, p *problem) {
	id = randomID()
	now := s.now()
	one = &session{principal: k.Name, secret: k.hash(), identity: k.identity, settings: k.settings, csrf: randomID(), began: now, expires: k.until(now.Add(life))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !put(of, hashOf(id), one, most, now) {
		return "", nil, unavailable("too_many_sessions", time.Minute,
			"The server holds %d %s, and takes no more until one ends: try again later, or send the API key with each request.", maxSessions, what)
	}
	return id, one, nil
}

// put adds an entry and reports whether there was room for it. It removes those that have expired, and the oldest of the
// same key if it has most of them.
func put(of map[idHash]*session, at idHash, one *session, most int, now time.Time) bool {
	n := 0
	var oldest idHash
	var since time.Time
	for h, o := range of {
		switch {
		case !now.Before(o.expires):
			delete(of, h)
		case o.principal == one.principal:
			if n++; since.IsZero() || o.began.Before(since) {
				oldest, since = h, o.began
			}
		}
	}
	if n >= most {
		delete(of, oldest)
	}
	if len(of) >= maxSessions {
		return false
	}
	of[at] = one
	return true
}

// redeem returns the key of a sign-in link and ends the link; nil if the token is none.
func (s *sessions) redeem(setup *setup, token string) *Key {
	s.mu.Lock()
	one := s.links[hashOf(token)]
	delete(s.links, hashOf(token))
	s.mu.Unlock()
	if one == nil || !s.now().Before(one.expires) {
		return nil
	}
	return setup.keyOf(one)
}

// until returns t, or the end of the caller's token if that is earlier.
func (k *Key) until(t time.Time) time.Time {
	if k.identity != nil && !k.identity.Expires.IsZero() && k.identity.Expires.Before(t) {
		return k.identity.Expires
	}
	return t
}

// find returns the session with that id and its key, as it is configured now; nil if there is none, or not any more.
func (s *sessions) find(setup *setup, id string) (*session, *Key) {
	s.mu.Lock()
	one := s.of[hashOf(id)]
	s.mu.Unlock()
	if one == nil || !s.now().Before(one.expires) {
		return nil, nil
	}
	k := setup.keyOf(one)
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

// keyOf returns the key of a session; nil if it was removed or has another secret, or if the identity provider of its caller
// was removed or has other settings.
func (s *setup) keyOf(one *session) *Key {
	if one.identity != nil {
		if k := s.keyOfIdentity(one.identity); k != nil && k.settings == one.settings {
			return k
		}
		return nil
	}
	for i := range s.Keys {
		if k := &s.Keys[i]; k.Name == one.principal {
			now := k.hash()
			if subtle.ConstantTimeCompare(now[:], one.secret[:]) == 1 {
				return k
			}
		}
	}
	return nil
}

// takesSession reports whether the route accepts the cookie of a session in place of a key: the paths that the console
// calls do, and those of programs do not.
func (rt *route) takesSession() bool {
	_, path, _ := strings.Cut(rt.pattern, " ")
	return rt.credential == apiKey && (strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/v1/"))
}

// signIns are the sessions of browsers that have signed in to the console, and the sign-ins at an issuer.
type signIns struct {
	*core
	sessions *sessions
	waiting  chan struct{} // has an element for each sign-in that waits for the issuer
}

// signedIn returns the session of a request without a key, and its key. It returns no problem and no key for a request
// without the cookie.
func (g *signIns) signedIn(r *http.Request, c *caller, rt *route) (*session, *Key, *problem) {
	id := cookieOf(r)
	if id == "" || !c.console || !rt.takesSession() {
		return nil, nil, nil
	}
	one, k := g.sessions.find(c.setup, id)
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site != "" && site != "same-origin" && site != "none":
		return nil, nil, forbidden("unknown_origin", "A session is for the pages of this server only: send an API key.")
	case k == nil:
		return nil, nil, unauthorized("session_expired", "The session has ended: sign in again.")
	case !safeMethod(r.Method) && subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(one.csrf)) != 1:
		return nil, nil, forbidden("csrf_token_required", "A request of a session that changes something needs the header %s with the csrf_token of GET /api/session.", csrfHeader)
	}
	return one, k, nil
}

func safeMethod(m string) bool {
	return m == http.MethodGet || m == http.MethodHead || m == http.MethodOptions
}

// cookieName is the name of the cookie of sessions.
func cookieName(r *http.Request) string { return portCookie("lathe_session", r) }

// portCookie adds the port of the request to the name of a cookie. Browsers send cookies to all ports of a host: the port in the
// name lets a browser have sessions of several servers on one host. On a connection with TLS the name has the prefix __Host-: browsers
// then take the cookie from this host alone, over TLS, and no other host or port without TLS can set it. Such a cookie has the path /.
func portCookie(name string, r *http.Request) string {
	if r.TLS != nil {
		name = "__Host-" + name
	}
	if u, err := url.Parse("//" + r.Host); err == nil && u.Port() != "" {
		name += "_" + u.Port()
	}
	return name
}

// cookieOf returns the id of the session that the request names; "" if it has no such cookie or several.
func cookieOf(r *http.Request) string {
	if all := r.CookiesNamed(cookieName(r)); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// setCookie sets or, with an empty id, removes the cookie of a session. The cookie is Secure if the page was loaded over
// TLS, which the browser itself says in the Origin header, also behind a proxy that terminates TLS, or if secure is set.
func setCookie(w http.ResponseWriter, r *http.Request, id string, expires time.Time, secure bool) {
	ck := &http.Cookie{Name: cookieName(r), Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: secure || r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")}
	if id == "" {
		ck.MaxAge = -1
	} else {
		ck.Expires = expires.UTC()
	}
	http.SetCookie(w, ck)
}

// SignInLink returns the fragment of an address that signs a browser in as the key of that name: "signin=TOKEN", for a URL
// such as http://127.0.0.1:8700/#signin=TOKEN. It begins one session, until the returned time. It returns an error if there
// is no such key, or if the server holds 10,000 links that were not used.
func (g *Server) SignInLink(key string) (fragment string, expires time.Time, err error) {
	setup := g.work.begin()
	defer g.work.end(setup)
	for i := range setup.Keys {
		if setup.Keys[i].Name == key {
			token, link, p := g.browsers.sessions.link(&setup.Keys[i])
			if p != nil {
				return "", time.Time{}, invalid("sign in", errors.New(p.Message))
			}
			return signInFragment(token), link.expires, nil
		}
	}
	return "", time.Time{}, invalid("sign in", fmt.Errorf("there is no key %q", key))
}

func signInFragment(token string) string { return "signin=" + token }

// Console returns the handler of a listener of its own for the console, with the API that its pages call. Then
// [Options].SeparateConsole leaves the pages and their sessions out of the server itself.
func (g *Server) Console() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.gate.serve(w, r, g.consoleMux, true) })
}
