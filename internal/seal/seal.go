// Package seal encrypts and authenticates data that a gateway sends to its clients and receives back from them. Only holders of a key can
// create or read a sealed text. A [Ring] seals with its first key and opens with all of its keys, so that keys can be rotated while clients
// still have texts that were sealed with the previous key.
//
// A sealed text is "lathe1." followed by the unpadded base64url form of
//
//	4 bytes   id of the key: the first bytes of HMAC-SHA256(key, "lathe seal id")
//	16 bytes  random salt
//	n bytes   AES-256-GCM of the content, with key and nonce derived by HKDF-SHA256 from key and salt
//
// Each text has its own encryption key, so that the number of texts for a key of the ring is not limited in practice. The binding (the
// caller, the session and the position in the conversation) is the additional authenticated data of AES-GCM: the text does not contain it,
// and Open succeeds only with the same binding. The length of a text reveals the length of its content, which is not compressed.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/secret"
)

// Prefix begins every sealed text.
const Prefix = "lathe1."

// KeySize is the minimum size of a key, and the size of the keys of newKey, in bytes.
const KeySize = 32

const (
	idSize    = 4
	saltSize  = 16
	nonceSize = 12
	tagSize   = 16
)

// Errors of [Ring.Open] and [NewRing]. Their messages contain no part of the sealed text.
var (
	// ErrNotSealed is returned for a text that does not have the form of a sealed text.
	ErrNotSealed = errors.New("seal: not a sealed text")
	// ErrUnknownKey is returned for a text that was sealed with a key that the ring does not have.
	ErrUnknownKey = errors.New("seal: sealed with another key")
	// ErrRefused is returned for a text that was changed or was sealed with another binding.
	ErrRefused = errors.New("seal: changed, or bound to something else")
	// ErrShortKey is returned by NewRing for a key of less than [KeySize] bytes, and if there is no key.
	ErrShortKey = errors.New("seal: a key needs at least 32 bytes")
)

// A Ring is an ordered list of keys. It may be used from several goroutines at once. Formatting a Ring does not print its keys.
type Ring struct{ keys []key }

type key struct {
	id  [idSize]byte
	raw secret.Secret
}

// NewRing returns a ring that seals with the first key and opens with all keys. Its only error is [ErrShortKey].
func NewRing(keys ...secret.Secret) (*Ring, error) {
	if len(keys) == 0 {
		return nil, ErrShortKey
	}
	r := &Ring{}
	for _, k := range keys {
		raw := k.Reveal()
		if len(raw) < KeySize {
			return nil, ErrShortKey
		}
		mac := hmac.New(sha256.New, []byte(raw))
		mac.Write([]byte("lathe seal id"))
		next := key{raw: k}
		copy(next.id[:], mac.Sum(nil))
		r.keys = append(r.keys, next)
	}
	return r, nil
}

// newKey returns a random key of [KeySize] bytes.
func newKey() []byte {
	b := make([]byte, KeySize)
	_, _ = rand.Read(b) // never fails: see crypto/rand
	return b
}

// Seal returns content as a sealed text. Open requires the same binding.
func (r *Ring) Seal(content []byte, binding ...string) string {
	k := &r.keys[0]
	b := make([]byte, idSize+saltSize, idSize+saltSize+len(content)+tagSize)
	copy(b, k.id[:])
	_, _ = rand.Read(b[idSize:])
	aead, nonce := k.derive(b[idSize:])
	b = aead.Seal(b, nonce, content, additional(binding))
	return Prefix + base64.RawURLEncoding.EncodeToString(b)
}

// Sealed reports whether text begins with [Prefix].
func Sealed(text string) bool { return strings.HasPrefix(text, Prefix) }

// Open returns the content of a sealed text. The error is [ErrNotSealed], [ErrUnknownKey] or [ErrRefused].
func (r *Ring) Open(text string, binding ...string) ([]byte, error) {
	body, ok := strings.CutPrefix(text, Prefix)
	if !ok || strings.ContainsAny(body, "\r\n") { // the decoder would ignore line ends
		return nil, ErrNotSealed
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(b) < idSize+saltSize+tagSize {
		return nil, ErrNotSealed
	}
	known := false
	for i := range r.keys {
		k := &r.keys[i]
		if string(k.id[:]) != string(b[:idSize]) {
			continue
		}
		known = true
		aead, nonce := k.derive(b[idSize : idSize+saltSize])
		if content, err := aead.Open(nil, nonce, b[idSize+saltSize:], additional(binding)); err == nil {
			return content, nil
		}
	}
	if !known {
		return nil, ErrUnknownKey
	}
	return nil, ErrRefused
}

// derive returns the cipher and the nonce of the text with this salt.
func (k *key) derive(salt []byte) (cipher.AEAD, []byte) {
	b, err := hkdf.Key(sha256.New, []byte(k.raw.Reveal()), salt, "lathe seal v1", KeySize+nonceSize)
	if err != nil {
		panic(err) // cannot happen: the length is a constant below HKDF's limit
	}
	block, err := aes.NewCipher(b[:KeySize])
	if err != nil {
		panic(err) // cannot happen: the size is that of AES-256
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead, b[KeySize:]
}

// additional encodes the binding: each part follows its length, so that different bindings have different bytes.
func additional(binding []string) []byte {
	var b []byte
	for _, s := range binding {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// MarkSize is the length of a mark in bytes.
const MarkSize = 12

// Mark returns a mark of the content: [MarkSize] bytes of HMAC-SHA256 with the first key, which only holders of the key can compute. The
// same key, content and binding always have the same mark.
func (r *Ring) Mark(content []byte, binding ...string) []byte {
	return r.keys[0].mark(content, binding)
}

// Marked reports whether mark is the mark of the content and binding under any key of the ring.
func (r *Ring) Marked(mark, content []byte, binding ...string) bool {
	return slices.ContainsFunc(r.keys, func(k key) bool { return hmac.Equal(mark, k.mark(content, binding)) })
}

func (k *key) mark(content []byte, binding []string) []byte {
	mac := hmac.New(sha256.New, []byte(k.raw.Reveal()))
	mac.Write([]byte("lathe seal mark v1"))
	mac.Write(additional(append([]string{string(content)}, binding...)))
	return mac.Sum(nil)[:MarkSize]
}
