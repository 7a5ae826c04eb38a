package server

import (
	"net/http"
	"time"
)

// A role classifies the rights of a caller, apart from the models and tools of its key.
type role string

const (
	roleUser     role = "user"     // sees only its own runs, and may decide about their calls or none
	roleApprover role = "approver" // may also decide about calls in runs of other keys
	roleAdmin    role = "admin"    // sees all runs and the state of the server, and decides about all calls
)

// isAdmin reports whether the key may see the runs of all keys and the state of the server. Without keys every caller may.
func (k *Key) isAdmin() bool { return k.Name == "" || k.Admin }

// role returns the role of the key.
func (k *Key) role() role {
	switch {
	case k.isAdmin():
		return roleAdmin
	case !k.ownOnly():
		return roleApprover
	}
	return roleUser
}

// A sessionBody is the JSON that describes the caller.
type sessionBody struct {
	SignedIn     bool      `json:"signed_in"`     // whether the server admits requests of this caller
	KeysRequired bool      `json:"keys_required"` // false: the server has no keys, and every caller is the same
	Name         string    `json:"name,omitempty"`
	Role         role      `json:"role,omitempty"`
	Approve      []string  `json:"approve,omitempty"`
	CSRFToken    string    `json:"csrf_token,omitempty"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
	SignInURL    string    `json:"sign_in_url,omitempty"` // the path at which a browser signs in with the identity provider
	Issuer       string    `json:"issuer,omitempty"`      // the issuer of the identity provider
}

// sessionBody describes the caller: the holder of the session one or of the key k, each of which may be nil.
func (c *caller) sessionBody(one *session, k *Key) *sessionBody {
	b := &sessionBody{SignedIn: k != nil, KeysRequired: c.setup.needsKey()}
	if sp := c.setup.signInProvider(); sp != nil && k == nil && c.console {
		b.SignInURL, b.Issuer = signInPath, sp.Issuer()
	}
	if k != nil {
		b.Name, b.Role, b.Approve = k.Name, k.role(), k.Approve
	}
	if one != nil {
		b.CSRFToken, b.ExpiresAt = one.csrf, one.expires
	}
	return b
}

// showSession handles GET /api/session: it describes the caller, which is the holder of a session or of a key, or an
// anonymous client.
func (g *signIns) showSession(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if k, p := c.setup.authenticate(r); p == nil {
		return answer(w, c.sessionBody(nil, k))
	}
	if id := cookieOf(r); id != "" && c.console {
		if one, k := g.sessions.find(c.setup, id); k != nil {
			return answer(w, c.sessionBody(one, k))
		}
		removeCookie(w, r)
	}
	return answer(w, c.sessionBody(nil, nil))
}

// maxSignIn is the maximum size in bytes of the body of a request that signs in.
const maxSignIn = 32 << 10

// signIn handles POST /api/session: it begins a session for a key, or for the token of a sign-in link. A former session of
// the browser ends.
func (g *signIns) signIn(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var given struct {
		Key   string `json:"key"`
		Token string `json:"link_token"`
	}
	if p := readObject(c.body, &given, `{"key":"…"}`); p != nil {
		return p
	}
	var k *Key
	var p *problem
	switch {
	case !c.setup.needsKey():
		return noKeys()
	case (given.Key == "") == (given.Token == ""):
		return badRequest("key", "Send either key or link_token.")
	case given.Token == "":
		k, p = c.setup.holder(r.Context(), given.Key)
	default:
		if k = g.sessions.redeem(c.setup, given.Token); k == nil {
			p = unauthorized("invalid_link", "The link was used or has expired: open a new one, or sign in with a key.")
		}
	}
	if p != nil {
		return p
	}
	if old := cookieOf(r); old != "" {
		g.sessions.end(old)
	}
	cookie, one, p := g.begin(r, c, k)
	if p != nil {
		return p
	}
	http.SetCookie(w, cookie)
	return answer(w, c.sessionBody(one, k))
}

// begin begins a session of the key, and returns its cookie.
func (g *signIns) begin(r *http.Request, c *caller, k *Key) (*http.Cookie, *session, *problem) {
	id, one, p := g.sessions.begin(k)
	if p != nil {
		return nil, nil, p
	}
	c.key = k // the request log shows the key
	cookie := sessionCookie(r, id)
	cookie.Expires = one.expires.UTC()
	return cookie, one, nil
}

func noKeys() *problem {
	return conflict("no_keys", "This gateway has no keys, so signing in is not needed.")
}

// signOut handles DELETE /api/session: it ends the session of the request.
func (g *signIns) signOut(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if id := cookieOf(r); id != "" {
		g.sessions.end(id)
		removeCookie(w, r)
	}
	return answerNothing(w)
}

// makeLink handles POST /api/session/links: it makes a link that signs a browser in as the key of the request.
func (g *signIns) makeLink(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	switch {
	case !c.setup.needsKey():
		return noKeys()
	case c.session:
		return forbidden("key_required", "A session makes no links: send the API key itself.")
	}
	token, link, p := g.sessions.link(c.key)
	if p != nil {
		return p
	}
	return answerAs(w, http.StatusCreated, struct {
		Fragment  string    `json:"fragment"` // the fragment of the URL of the console
		ExpiresAt time.Time `json:"expires_at"`
	}{signInFragment(token), link.expires})
}
