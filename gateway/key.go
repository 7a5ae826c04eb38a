package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/secret"
)

// A Key is who may call. Its name is the principal of every run and of every query of the store.
type Key struct {
	Name   string
	Secret secret.Secret
	Models []string // nil: every model
	Tools  []string // nil: every tool of this server
	// Approve says whose runs' calls the key may approve, deny and answer: [ApproveOwn], [ApproveOthers] and names of
	// keys. nil: its own; empty: none.
	Approve []string
	// Limits narrow those of the models; zero fields say nothing.
	Limits            lathe.Limits
	RequestsPerMinute int // 0: no bound
	Concurrency       int // requests at once; 0: no bound
}

// minSecret is the shortest key that is taken: shorter ones can be guessed.
const minSecret = 16

// A setup is a [Setup] that was checked.
type setup struct {
	Setup
	hashes  [][sha256.Size]byte // of the keys' secrets
	hosts   map[string]bool
	origins *http.CrossOriginProtection
	waiting *approval.Sentence
	users   int           // of work; so is unused
	unused  chan struct{} // closed when it was replaced and nothing uses it any more
}

// Check returns an error if [New] or [Gateway.Reload] would refuse the setup.
func (s *Setup) Check() error {
	if _, err := newSetup(s); err != nil {
		return invalid("setup", err)
	}
	return nil
}

func newSetup(s *Setup) (*setup, error) {
	out := &setup{Setup: *s, hosts: map[string]bool{}, origins: http.NewCrossOriginProtection()}
	if s.Models == nil {
		return nil, errors.New("models are required")
	}
	out.Keys, out.Origins = slices.Clone(s.Keys), slices.Clone(s.Origins)
	var err error
	if out.waiting, err = approval.NewSentence(s.WaitingText); err != nil {
		return nil, fmt.Errorf("waiting text: %w", err)
	}
	names := map[string]bool{}
	for i := range out.Keys {
		k := &out.Keys[i]
		text := k.Secret.Reveal()
		switch {
		case k.Name == "":
			return nil, errors.New("a key has no name")
		case names[k.Name]:
			return nil, fmt.Errorf("two keys are named %s", k.Name)
		case len(text) < minSecret:
			return nil, fmt.Errorf("the key %s is shorter than %d characters", k.Name, minSecret)
		}
		hash := sha256.Sum256([]byte(text))
		if slices.Contains(out.hashes, hash) {
			return nil, fmt.Errorf("the key %s is the same as another", k.Name)
		}
		names[k.Name] = true
		out.hashes = append(out.hashes, hash)
	}
	if err := out.checkApprove(); err != nil {
		return nil, err
	}
	for _, h := range s.Hosts {
		out.hosts[strings.ToLower(h)] = true
	}
	for _, o := range s.Origins {
		if err := out.origins.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("origin %q: %w", o, err)
		}
	}
	return out, nil
}

// anyone is the key of every caller where there are no keys.
var anyone = &Key{}

// key returns the key that the request shows. All keys are compared, in a time that says nothing of
// them.
func (s *setup) key(r *http.Request) (*Key, *problem) {
	if len(s.Keys) == 0 {
		return anyone, nil
	}
	shown, ok := bearer(r)
	if !ok {
		return nil, noKey(r)
	}
	hash := sha256.Sum256([]byte(shown))
	found := -1
	for i := range s.hashes {
		if subtle.ConstantTimeCompare(hash[:], s.hashes[i][:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return nil, &problem{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "The API key is not known here."}
	}
	return &s.Keys[found], nil
}

// bearer returns the token of the request's Authorization header. The scheme is matched without regard to case
// (RFC 9110, 11.1). ok is false if the request has no such header or more than one.
func bearer(r *http.Request) (token string, ok bool) {
	all := r.Header["Authorization"]
	if len(all) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(all[0], " ")
	return strings.TrimSpace(token), found && strings.EqualFold(scheme, "Bearer")
}

// foreignKeys are headers in which clients of other APIs send their key.
var foreignKeys = []string{"Api-Key", "X-Api-Key", "X-Goog-Api-Key"}

// noKey is the answer to a request without a bearer token. It names the header that holds the key instead, if one does.
func noKey(r *http.Request) *problem {
	p := &problem{Status: http.StatusUnauthorized, Code: "missing_api_key", Message: "Send an API key: Authorization: Bearer KEY."}
	for _, name := range foreignKeys {
		if r.Header[name] != nil {
			p.Message = "This server reads no key from the header " + strings.ToLower(name) + ". " + p.Message
		}
	}
	return p
}

func (k *Key) mayModel(name string) bool { return k.Models == nil || slices.Contains(k.Models, name) }
func (k *Key) mayTool(name string) bool  { return k.Tools == nil || slices.Contains(k.Tools, name) }

// Narrowed returns limits narrowed by those of the key.
func (k *Key) Narrowed(limits lathe.Limits) lathe.Limits {
	limits, _ = limits.Narrow(k.Limits)
	return limits
}
