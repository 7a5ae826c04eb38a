// Package middleware holds the checks that every HTTP listener of Lathe makes before a handler sees a request: bearer
// tokens, host names, origins and bodies. [github.com/lathe-run/lathe/server] applies them to all its routes, and
// [github.com/lathe-run/lathe/internal/gateway/mcp] to the one route that it serves where no server stands in front of it.
package middleware

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/secret"
)

// MinToken is the least length of a configured token in bytes. Shorter ones can be guessed.
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

// Tokens is a list of bearer tokens, held as hashes. The zero value is an empty list. It may be read by several
// goroutines at once.
type Tokens struct {
	short []bool                    // by index: the token may be shorter than MinToken
	named map[string]bool           // the names of the holders
	held  map[[sha256.Size]byte]int // the index of each hash
}

// Add appends a token, with the name of its holder. kind is the word for such tokens in errors. It returns an error if the
// name is empty or taken, or if the token is shorter than [MinToken] or in the list already.
func (t *Tokens) Add(kind, name string, token secret.Secret) error {
	if name != "" && len(token.Reveal()) < MinToken {
		return fmt.Errorf("the %s %s is shorter than %d characters", kind, name, MinToken)
	}
	return t.AddHash(kind, name, sha256.Sum256([]byte(token.Reveal())))
}

// AddHash appends a token of which only the SHA-256 is known. The errors are those of [Tokens.Add], but for the length: a
// token that is shorter than [MinToken] is never found by its hash.
func (t *Tokens) AddHash(kind, name string, hash [sha256.Size]byte) error {
	switch {
	case name == "":
		return fmt.Errorf("a %s has no name", kind)
	case t.named[name]:
		return fmt.Errorf("two %ss are named %s", kind, name)
	case t.holds(hash):
		return fmt.Errorf("the %s %s is the same as another", kind, name)
	}
	t.add(name, hash, false)
	return nil
}

func (t *Tokens) holds(hash [sha256.Size]byte) bool {
	_, held := t.held[hash]
	return held
}

func (t *Tokens) add(name string, hash [sha256.Size]byte, short bool) {
	if t.named == nil {
		t.named, t.held = map[string]bool{}, map[[sha256.Size]byte]int{}
	}
	t.named[name] = true
	if !t.holds(hash) { // of equal tokens the first one is found
		t.held[hash] = len(t.short)
	}
	t.short = append(t.short, short)
}

// AddUnchecked appends a token without the checks of [Tokens.Add]: an operator who starts one server for one token chooses
// its length. An empty one is never found.
func (t *Tokens) AddUnchecked(name string, token secret.Secret) {
	t.add(name, sha256.Sum256([]byte(token.Reveal())), token.Reveal() != "")
}

// Find returns the index of the token that the request has; -1 if it has none of the list. shown reports whether it has
// a bearer token at all.
func (t *Tokens) Find(r *http.Request) (index int, shown bool) {
	token, shown := Bearer(r)
	if !shown || token == "" {
		return -1, shown
	}
	return t.FindToken(token), true
}

// FindToken returns the index of a token; -1 if it is none of the list. Its cost does not depend on the number of tokens. What
// is looked up is the SHA-256 of the token, so that the time it takes says nothing about how much of a token is right.
func (t *Tokens) FindToken(token string) (index int) {
	index, held := t.held[sha256.Sum256([]byte(token))]
	if !held || len(token) < MinToken && !t.short[index] {
		return -1
	}
	return index
}
