// Package middleware contains the checks that every HTTP listener of Lathe makes before a handler is called: bearer tokens, host names,
// origins and bodies. [github.com/lathe-run/lathe/server] applies them to all its routes, and
// [github.com/lathe-run/lathe/internal/gateway/mcp] to its one route if it is served without that server.
package middleware

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/secret"
)

// MinToken is the smallest length of a configured token in bytes. Shorter tokens can be guessed.
const MinToken = 16

// Bearer returns the token of the request's Authorization header. The scheme is matched without regard to case
// (RFC 9110, 11.1). ok is false if the request has no such header, more than one, or another scheme.
func Bearer(r *http.Request) (token string, ok bool) {
	all := r.Header["Authorization"]
	if len(all) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(all[0], " ")
	return strings.TrimSpace(token), found && strings.EqualFold(scheme, "Bearer")
}

// Tokens is a list of bearer tokens, of which it stores only hashes. The zero value is an empty list. Several goroutines may read it at
// once.
type Tokens struct {
	least []int                     // least length of each token, by index
	named map[string]bool           // names of the holders
	held  map[[sha256.Size]byte]int // index of each token by its hash
}

// Add appends a token with the name of its holder. kind is the word for such tokens in errors. It returns an error if the name is empty or
// already in the list, or if the token is shorter than [MinToken] or already in the list.
func (t *Tokens) Add(kind, name string, token secret.Secret) error {
	if name != "" && len(token.Reveal()) < MinToken {
		return fmt.Errorf("the %s %s is shorter than %d characters", kind, name, MinToken)
	}
	return t.AddHash(kind, name, sha256.Sum256([]byte(token.Reveal())))
}

// AddHash appends a token of which only the SHA-256 is known. It returns the errors of [Tokens.Add], except for the length: Find never
// accepts a token shorter than [MinToken] that was added by its hash.
func (t *Tokens) AddHash(kind, name string, hash [sha256.Size]byte) error {
	switch {
	case name == "":
		return fmt.Errorf("a %s has no name", kind)
	case t.named[name]:
		return fmt.Errorf("two %ss are named %s", kind, name)
	case t.holds(hash):
		return fmt.Errorf("the %s %s is the same as another", kind, name)
	}
	t.add(name, hash, MinToken)
	return nil
}

func (t *Tokens) holds(hash [sha256.Size]byte) bool {
	_, held := t.held[hash]
	return held
}

func (t *Tokens) add(name string, hash [sha256.Size]byte, least int) {
	if t.named == nil {
		t.named, t.held = map[string]bool{}, map[[sha256.Size]byte]int{}
	}
	t.named[name] = true
	if !t.holds(hash) { // of equal tokens, the first one is found
		t.held[hash] = len(t.least)
	}
	t.least = append(t.least, least)
}

// AddUnchecked appends a token without the checks of [Tokens.Add], for an operator that starts a server with a single token of any length.
// An empty token is never found.
func (t *Tokens) AddUnchecked(name string, token secret.Secret) {
	t.add(name, sha256.Sum256([]byte(token.Reveal())), 1)
}

// Find returns the index of the bearer token of the request, or -1 if the list does not contain it. shown reports whether the request has a
// bearer token at all.
func (t *Tokens) Find(r *http.Request) (index int, shown bool) {
	token, shown := Bearer(r)
	if !shown || token == "" {
		return -1, shown
	}
	return t.FindToken(token), true
}

// FindToken returns the index of a token, or -1 if the list does not contain it. The time it takes depends neither on the number of tokens
// nor, because the SHA-256 of the token is looked up, on how many bytes of a token are right.
func (t *Tokens) FindToken(token string) (index int) {
	index, held := t.held[sha256.Sum256([]byte(token))]
	if !held || len(token) < t.least[index] {
		return -1
	}
	return index
}
