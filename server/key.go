package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/gateway/middleware"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/store"
)

// A Key authenticates callers and bounds their rights. Its name is the principal of their runs and restricts every query
// of the store.
type Key struct {
	Name string
	// Secret is what callers send, and Hash its SHA-256, for a secret that the configuration does not have. A key with
	// neither is a profile of [Setup].Identity: callers whom that identifies have its rights and limits.
	Secret secret.Secret
	Hash   [sha256.Size]byte
	Models []string // nil: every model
	Tools  []string // nil: every tool of this server
	// Approve lists the owners of the runs whose calls the key may approve, deny and answer: [ApproveOwn],
	// [ApproveOthers] and names of keys. nil: its own runs; empty: none.
	Approve []string
	// Admin lets the key see the runs of all keys, decide about all calls, and see and change the state of the server.
	Admin bool
	// Metrics lets the key read /metrics, which shows the use of all keys.
	Metrics bool
	// VendorObjects are the objects of the account at the model's vendor that requests may name besides those that answers to the key
	// had: kinds of objects, such as "file", ids, or "*" for all. nil: none.
	VendorObjects []string
	// VendorTools are the tools that the vendor may execute for requests, such as "web_search". nil: all.
	VendorTools []string
	// Limits narrow those of the models; a zero field does not narrow.
	Limits            lathe.Limits
	RequestsPerMinute int // 0: no bound
	Concurrency       int // requests at once; 0: no bound
	// Profile and Labels are set for a caller whom [Setup].Identity has identified: the name of the key in [Setup].Keys
	// that it has the rights of, and the labels of its runs. Name is [Identity.Principal] then. [New] and [Server.Reload]
	// refuse a setup that has them.
	Profile string
	Labels  map[string]string

	identity *Identity
	settings [sha256.Size]byte // [IdentityProvider].Settings of the setup that identity was found in
	// Group and the budgets of the key and of the group are what listings show: [loop.Options].Meter enforces them. nil: none.
	Group               string
	Budget, GroupBudget *store.Budget
}

// A setup is a [Setup] that was checked.
type setup struct {
	Setup
	tokens  middleware.Tokens
	holders []int        // the index in Keys of each token
	byName  func() []int // the indexes of Keys in the order of their names; made at the first use, since there may be many keys
	hosts   map[string]bool
	origins *http.CrossOriginProtection
	waiting *approval.Sentence
	log     *slog.Logger  // of the server; nil while a setup is only checked
	users   int           // requests and runs that use it; guarded by the mutex of work, as unused is
	unused  chan struct{} // closed when it was replaced and nothing uses it any more
}

// Check returns an error if [New] or [Server.Reload] would refuse the setup.
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
	out.byName = sync.OnceValue(out.sortKeys)
	named := make(map[string]bool, len(out.Keys))
	for i := range out.Keys {
		if err := out.addKey(i, named); err != nil {
			return nil, err
		}
	}
	if s.Identity != nil && len(s.Keys) == 0 {
		return nil, errors.New("an identity provider needs keys, which are the profiles of callers")
	}
	if err := out.checkApprove(); err != nil {
		return nil, err
	}
	if err := checkPublicURL(s.PublicURL); err != nil {
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

// needsKey reports whether requests without a key or a token are refused.
func (s *setup) needsKey() bool { return s.RequireKey || len(s.Keys) > 0 }

// anyone is the key of every caller where no key is required.
var anyone = &Key{}

// addKey adds the token of a key. named has the names of the keys before it, and gets its name.
func (s *setup) addKey(i int, named map[string]bool) error {
	k := &s.Keys[i]
	taken := named[k.Name]
	named[k.Name] = true
	var err error
	switch {
	case taken:
		return fmt.Errorf("two keys are named %s", k.Name)
	case k.Profile != "" || k.Labels != nil:
		return fmt.Errorf("the key %s has a profile or labels, which are those of identified callers", k.Name)
	case !k.Secret.IsZero() && k.Hash != [sha256.Size]byte{}:
		return fmt.Errorf("the key %s has a secret and a hash: one of them is enough", k.Name)
	case k.Hash != [sha256.Size]byte{}:
		err = s.tokens.AddHash("key", k.Name, k.Hash)
	case k.Secret.IsZero() && s.Identity != nil:
		if k.Name == "" {
			err = errors.New("a key has no name")
		}
		return err
	default:
		err = s.tokens.Add("key", k.Name, k.Secret)
	}
	s.holders = append(s.holders, i)
	return err
}

func (s *setup) sortKeys() []int {
	order := make([]int, len(s.Keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(s.Keys[a].Name, s.Keys[b].Name) })
	return order
}

// keysAfter returns the indexes of at most limit keys that the caller sees, all for an admin key and else its own, in the order of
// their names, which come after that name; next is the last name if there are more.
func (c *caller) keysAfter(after string, limit int) (page []int, next string) {
	name := func(i int) string { return c.setup.Keys[i].Name }
	order := c.setup.byName()
	from := sort.Search(len(order), func(i int) bool { return name(order[i]) > after })
	for _, i := range order[from:] {
		if name(i) != c.key.configured() && !c.key.isAdmin() {
			continue
		}
		if len(page) == limit {
			return page, name(page[limit-1])
		}
		page = append(page, i)
	}
	return page, ""
}

// hash is the SHA-256 of the secret of a configured key.
func (k *Key) hash() [sha256.Size]byte {
	if k.Secret.IsZero() {
		return k.Hash
	}
	return sha256.Sum256([]byte(k.Secret.Reveal()))
}

// configured is the name in the configuration of the key that the caller has the rights of.
func (k *Key) configured() string {
	if k.Profile != "" {
		return k.Profile
	}
	return k.Name
}

// authenticate returns the key that the request has.
func (s *setup) authenticate(r *http.Request) (*Key, *problem) {
	if !s.needsKey() {
		return anyone, nil
	}
	bearer, shown := middleware.Bearer(r)
	given := foreignKeys(r)
	if shown {
		given = append([]string{bearer}, given...)
	}
	if len(given) == 0 {
		return nil, noKey(r)
	}
	found, refused := s.holder(r.Context(), given[0])
	if found == nil {
		return nil, refused
	}
	for _, text := range given[1:] {
		if text == given[0] {
			continue
		}
		if other, _ := s.holder(r.Context(), text); other != nil && other.Name != found.Name {
			return nil, twoKeys()
		}
	}
	return found, nil
}

// holder returns the holder of a key, or of a token of the identity provider.
func (s *setup) holder(ctx context.Context, text string) (*Key, *problem) {
	if i := s.tokens.FindToken(text); i >= 0 {
		return &s.Keys[s.holders[i]], nil
	}
	if s.Identity == nil || !isSigned(text) {
		return nil, unknownKey()
	}
	return s.identify(ctx, text)
}

func unknownKey() *problem {
	return unauthorized("invalid_api_key", "The API key is not known here.")
}

// foreignKeyHeaders are headers in which clients of Anthropic's and Google's APIs send their key.
var foreignKeyHeaders = []string{"X-Api-Key", "X-Goog-Api-Key"}

// foreignKeys returns the keys of a request besides its bearer token: those of the headers, and, on Google's paths, that of the
// query parameter `key`. A header or parameter that is empty or given more than once has none. If the request has no bearer
// token, the first of them is its key.
func foreignKeys(r *http.Request) (keys []string) {
	for _, name := range foreignKeyHeaders {
		if given := r.Header[name]; len(given) == 1 && given[0] != "" {
			keys = append(keys, given[0])
		}
	}
	if !isGemini(r) {
		return keys
	}
	if given := r.URL.Query()["key"]; len(given) == 1 && given[0] != "" {
		keys = append(keys, given[0])
	}
	return keys
}

// twoKeys refuses a request that has keys of two callers: the rights of which of them it has would depend on the place of a key.
func twoKeys() *problem {
	return badRequest("", "The request has two different API keys of this server, in Authorization, x-api-key, x-goog-api-key or ?key=: send one.").WithCode("conflicting_api_keys")
}

// codeNoKey is the code of the answer to a request without a key.
const codeNoKey = "missing_api_key"

// noKey is the answer to a request without a key. It names Azure's header if that has the key.
func noKey(r *http.Request) *problem {
	p := unauthorized(codeNoKey, "Send an API key: Authorization: Bearer KEY.")
	if r.Header["Api-Key"] != nil {
		p.Message = "This server reads no key from the header api-key. " + p.Message
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
