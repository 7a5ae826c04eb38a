package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// assertionLifetime is the validity of a client assertion.
const assertionLifetime = time.Minute

// assertion returns a signed client assertion for one authorization server (RFC 7523).
func (c *Client) assertion(id string, as *authServer) (string, error) {
	key, err := c.conf.key()
	if err != nil {
		return "", err
	}
	alg := algorithm(key)
	if len(as.TokenEndpointAuthSigningAlgValuesSupported) > 0 && !slices.Contains(as.TokenEndpointAuthSigningAlgValuesSupported, string(alg)) {
		return "", errors.New("the authorization server does not take signatures of a key of this kind")
	}
	now := c.now()
	claims := map[string]any{"iss": id, "sub": id, "aud": as.Issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLifetime).Unix()}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", errors.New("signing failed")
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return "", errors.New("signing failed")
	}
	return token, nil
}

// key returns the private key of the configuration, or nil if none is set.
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
	if err != nil || !ok || algorithm(signer) == "" {
		return nil, bad
	}
	return signer, nil
}

// algorithm returns the JWS algorithm for a key, or "" for an unsupported key.
func algorithm(key crypto.Signer) jose.SignatureAlgorithm {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256
		case elliptic.P384():
			return jose.ES384
		case elliptic.P521():
			return jose.ES512
		}
	case *rsa.PrivateKey:
		if k.N.BitLen() >= 2048 {
			return jose.RS256
		}
	case ed25519.PrivateKey:
		return jose.EdDSA
	}
	return ""
}
