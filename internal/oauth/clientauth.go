package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // by crypto.SHA256
	_ "crypto/sha512" // by crypto.SHA384 and crypto.SHA512
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"time"
)

// assertionLifetime is the validity of an assertion of the client.
const assertionLifetime = time.Minute

// assertion returns a signed assertion of the client's identity for one authorization server (RFC 7523).
func (c *Client) assertion(id string, as *authServer) (string, error) {
	key, err := c.conf.key()
	if err != nil {
		return "", err
	}
	alg, hash := algorithm(key)
	if len(as.TokenEndpointAuthSigningAlgValuesSupported) > 0 && !slices.Contains(as.TokenEndpointAuthSigningAlgValuesSupported, alg) {
		return "", errors.New("the authorization server does not take signatures of a key of this kind")
	}
	now := c.now()
	claims := map[string]any{"iss": id, "sub": id, "aud": as.Issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLifetime).Unix()}
	return sign(key, hash, map[string]any{"alg": alg, "typ": "JWT"}, claims)
}

// key returns the private key of the configuration, or nil.
func (c *Config) key() (crypto.Signer, error) {
	if c.PrivateKey.IsZero() {
		return nil, nil
	}
	bad := errors.New("private_key is not the PEM text of an RSA (2048 bits or more), P-256, P-384, P-521 or Ed25519 key")
	block, _ := pem.Decode([]byte(c.PrivateKey.Reveal()))
	if block == nil {
		return nil, bad
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, bad
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, bad
	}
	if alg, _ := algorithm(signer); alg == "" {
		return nil, bad
	}
	return signer, nil
}

// algorithm returns the JWS algorithm and the hash for a key, or "" for an unsupported key.
func algorithm(key crypto.Signer) (string, crypto.Hash) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return "ES256", crypto.SHA256
		case elliptic.P384():
			return "ES384", crypto.SHA384
		case elliptic.P521():
			return "ES512", crypto.SHA512
		}
	case *rsa.PrivateKey:
		if k.N.BitLen() >= 2048 {
			return "RS256", crypto.SHA256
		}
	case ed25519.PrivateKey:
		return "EdDSA", 0
	}
	return "", 0
}

// sign returns a JWT.
func sign(key crypto.Signer, hash crypto.Hash, header, claims map[string]any) (string, error) {
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic("oauth: a claim that is no JSON") // they are made here
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(header) + "." + part(claims)
	digest := []byte(text)
	if hash != 0 {
		h := hash.New()
		h.Write(digest)
		digest = h.Sum(nil)
	}
	var sig []byte
	var err error
	if k, ok := key.(*ecdsa.PrivateKey); ok {
		size := (k.Params().BitSize + 7) / 8
		r, s, signErr := ecdsa.Sign(rand.Reader, k, digest)
		if err = signErr; err == nil {
			sig = append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
		}
	} else {
		sig, err = key.Sign(rand.Reader, digest, hash)
	}
	if err != nil {
		return "", errors.New("signing failed")
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig), nil
}
