package oidctest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// A Client is the registration of a client at the issuer, and the claims of the user who signs in.
type Client struct {
	ID, Secret string // Secret "": a public client
	Redirect   string // the only accepted redirect URI
	// Claims are added to iss, aud, exp and nonce of the tokens, and may replace them.
	Claims map[string]any
}

// SignIn serves the authorization endpoint and the token endpoint for a client. Every user counts as signed in. A code can be exchanged
// once, with the verifier of its challenge.
func (i *Issuer) SignIn(c *Client) {
	var mu sync.Mutex
	codes := map[string]url.Values{} // code → query of the authorization request
	i.Handle("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("response_type") != "code" || q.Get("client_id") != c.ID || q.Get("redirect_uri") != c.Redirect || q.Get("code_challenge_method") != "S256" ||
			q.Get("state") == "" || q.Get("nonce") == "" || len(q.Get("code_challenge")) != 43 {
			http.Error(w, "this is no request of the client", http.StatusBadRequest)
			return
		}
		code := rand.Text()
		mu.Lock()
		codes[code] = q
		mu.Unlock()
		http.Redirect(w, r, c.Redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode(), http.StatusFound)
	})
	i.Handle("/token", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		q, ok := codes[r.PostFormValue("code")]
		delete(codes, r.PostFormValue("code"))
		mu.Unlock()
		id, secret, basic := r.BasicAuth()
		if !basic {
			id = r.PostFormValue("client_id")
		}
		if s, err := url.QueryUnescape(secret); err == nil && basic { // RFC 6749, section 2.3.1 requires this encoding
			secret = s
		}
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || r.Method != http.MethodPost || id != c.ID || secret != c.Secret || basic != (c.Secret != "") || r.PostFormValue("grant_type") != "authorization_code" ||
			r.PostFormValue("redirect_uri") != c.Redirect || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") {
			w.WriteHeader(http.StatusBadRequest)
			i.write(w, map[string]string{"error": "invalid_grant"})
			return
		}
		claims := map[string]any{"iss": i.URL, "aud": c.ID, "exp": time.Now().Add(time.Hour).Unix(), "nonce": q.Get("nonce")}
		for name, value := range c.Claims {
			claims[name] = value
		}
		i.write(w, map[string]any{"token_type": "Bearer", "access_token": rand.Text(), "id_token": i.Sign(claims)})
	})
}
