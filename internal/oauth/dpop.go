package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"sync"
)

// Tokens that are bound to a key (DPoP, RFC 9449) are of no use to who sees them without it. They are
// got where the server wants them; each request then carries a proof that the client has the key.

const (
	dpopAlg       = "ES256"
	dpopNonce     = "DPoP-Nonce"
	useNonce      = "use_dpop_nonce"
	maxNonceBytes = 256
)

// nonces are the values that servers want in proofs, by origin.
type nonces struct {
	mu sync.Mutex
	by map[string]string
}

// take keeps the nonce of an answer, and reports whether there was one.
func (n *nonces) take(u *url.URL, h http.Header) bool {
	v := h.Get(dpopNonce)
	if !isToken(v) || len(v) > maxNonceBytes {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil || len(n.by) > maxServers {
		n.by = map[string]string{}
	}
	n.by[originOf(u)] = v
	return true
}

func (n *nonces) of(u *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[originOf(u)]
}

// newKey returns the stored form of a new key.
func newKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", errors.New("a key cannot be made")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", errors.New("a key cannot be made")
	}
	return base64.RawStdEncoding.EncodeToString(der), nil
}

// readKey reads the stored form of a key; nil for none.
func readKey(s string) (*ecdsa.PrivateKey, error) {
	if s == "" {
		return nil, nil
	}
	der, err := base64.RawStdEncoding.DecodeString(s)
	if err == nil {
		if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
			if k, ok := key.(*ecdsa.PrivateKey); ok && k.Curve == elliptic.P256() {
				return k, nil
			}
		}
	}
	return nil, errors.New("the key of the token is damaged: log in again")
}

// proof says that who sends a request has the key, for that request alone. token is that of the
// request, "" at the token endpoint.
func (c *Client) proof(key *ecdsa.PrivateKey, method string, u *url.URL, token string) (string, error) {
	public, err := key.PublicKey.ECDH()
	if err != nil {
		return "", errors.New("the key of the token is damaged: log in again")
	}
	point, part := public.Bytes(), base64.RawURLEncoding.EncodeToString
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": at.String(), "iat": c.now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = part(sum[:])
	}
	if nonce := c.nonces.of(u); nonce != "" {
		claims["nonce"] = nonce
	}
	jwk := map[string]any{"kty": "EC", "crv": "P-256", "x": part(point[1:33]), "y": part(point[33:65])}
	return sign(key, crypto.SHA256, map[string]any{"typ": "dpop+jwt", "alg": dpopAlg, "jwk": jwk}, claims)
}

// A held is a token and the key that it is bound to; nil: none.
type held struct {
	token string
	key   *ecdsa.PrivateKey
}

// held returns the token that the client has.
func (c *Client) held() (held, error) {
	h := held{token: c.has.AccessToken}
	var err error
	if c.has.Bound {
		h.key, err = readKey(c.has.Key)
	}
	return h, err
}
