package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sort"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/gateway/middleware"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/store"
)

// A Key authenticates callers and says what they may do. Its Name is the principal of their runs. A caller sees only the runs of its own
// key unless Admin is set.
type Key struct {
	Name string
	// Secret is the text that callers send as their API key. Alternatively, Hash is the SHA-256 of that text; a key with both is an error.
	// A key with neither is a profile: callers whom [Setup].Identity assigns to it have its rights and limits. If Identity is nil, such a
	// key is an error.
	Secret secret.Secret
	Hash   [sha256.Size]byte
	Models []string // names of the models that requests with the key may use; nil: every model; empty: none
	Tools  []string // names of the server's tools that runs of the key may use; nil: every tool; empty: none
	// Approve lists the owners of the runs in which the key may approve and deny calls and supply results: [ApproveOwn], [ApproveOthers] or
	// names of keys. nil: its own runs only; empty: none.
	Approve []string
	// Admin lets the key see the runs of all keys, decide about all calls, and see and change the state of the server.
	Admin bool
	// Metrics lets the key read /metrics, which shows the usage of all keys.
	Metrics bool
	// VendorObjects lists the objects in the account at the model vendor that requests with the key may name: kinds such as "file", ids, or
	// "*" for all. Objects that earlier answers to the key have named are always allowed. nil: no others.
	VendorObjects []string
	// VendorTools lists the types of tools that the model vendor may execute for requests with the key, such as "web_search". nil: all.
	VendorTools []string
	// Limits lower the limits of the models for runs of the key. A zero field lowers nothing.
	Limits            lathe.Limits
	RequestsPerMinute int // maximum number of requests per minute; 0: no limit
	Concurrency       int // maximum number of concurrent requests; 0: no limit
	// Profile and Labels are set by the server in the key of a caller that [Setup].Identity has identified: Profile is the name of the key
	// that is the caller's profile, and Labels are the labels of the caller's runs. Name is then [Identity.Principal]. They must not be set
	// in [Setup].Keys.
	Profile string
	Labels  map[string]string

	identity *Identity
	settings [sha256.Size]byte // hash of [IdentityProvider].Settings when identity was found
	// Group, Budget and GroupBudget are only shown in lists; [loop.Options].Meter must enforce the budgets. nil: no budget.
	Group               string
	Budget, GroupBudget *store.Budget
}

// A setup is a checked [Setup] with the data derived from it.
type setup struct {
	Setup
	tokens  middleware.Tokens
	holders []int  // for each token, the index of its key in Keys
	byName  []*Key // the elements of Keys, sorted by name
	hosts   map[string]bool
	origins *http.CrossOriginProtection
	waiting *approval.Sentence
	log     *slog.Logger  // the log of the server; nil while a setup is only checked
	users   int           // number of requests and runs that use the setup; guarded by the mutex of work, as unused is
	unused  chan struct{} // closed when the setup was replaced and users is 0
}

// Check returns an error if [New] or [Server.Reload] would refuse the setup.
func (s *Setup) Check() error {
	if _, err := newSetup(s); err != nil {
		return invalid("setup", err)
	}
	return nil
}

// newSetup checks a Setup and returns it with the data that requests need: tokens, hosts, origins and the waiting sentence.
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
	named := map[string]bool{}
	for i := range out.Keys {
		out.byName = append(out.byName, &out.Keys[i])
		if err := out.addKey(i, named); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out.byName, func(a, b *Key) int { return strings.Compare(a.Name, b.Name) })
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

// anyone is the key of every caller if no key is required.
var anyone = &Key{}

// addKey checks the key with index i and adds its token. named contains the names of the keys before it; addKey adds its
// name.
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

func (s *setup) keyNamed(name string) *Key {
	i, found := slices.BinarySearchFunc(s.byName, name, func(k *Key, name string) int { return strings.Compare(k.Name, name) })
	if !found {
		return nil
	}
	return s.byName[i]
}

// visibleKeys returns the keys that the caller may see, sorted by name: all for an admin key, else its own key.
func (c *caller) visibleKeys() []*Key {
	if c.key.isAdmin() {
		return c.setup.byName
	}
	return slices.DeleteFunc(slices.Clone(c.setup.byName), func(k *Key) bool { return k.Name != c.key.configured() })
}

// keysAfter returns at most limit keys that the caller may see, in the order of their names, beginning after the name after.
// next is the last name of the page if there are more.
func (c *caller) keysAfter(after string, limit int) (page []*Key, next string) {
	keys := c.visibleKeys()
	keys = keys[sort.Search(len(keys), func(i int) bool { return keys[i].Name > after }):]
	if len(keys) > limit {
		return keys[:limit], keys[limit-1].Name
	}
	return keys, ""
}

func (k *Key) hash() [sha256.Size]byte {
	if k.Secret.IsZero() {
		return k.Hash
	}
	return sha256.Sum256([]byte(k.Secret.Reveal()))
}

// configured returns the name of the configured key whose rights the caller has, and to which its calls are charged.
func (k *Key) configured() string { return cmp.Or(k.Profile, k.Name) }

// authenticate returns the key of the request. It returns a problem if the request has no key, an unknown one, or the keys of
// two callers, because its rights would then depend on which key is read first.
func (s *setup) authenticate(r *http.Request) (*Key, *problem) {
	if !s.needsKey() {
		return anyone, nil
	}
	given := givenKeys(r)
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
			return nil, badRequest("", "The request has two different API keys of this gateway, in Authorization, x-api-key, x-goog-api-key or ?key=: send one.").WithCode("conflicting_api_keys")
		}
	}
	return found, nil
}

// holder returns the key to which text belongs: an API key, or a signed token of the identity provider.
func (s *setup) holder(ctx context.Context, text string) (*Key, *problem) {
	if i := s.tokens.FindToken(text); i >= 0 {
		return &s.Keys[s.holders[i]], nil
	}
	if s.Identity == nil || !isSigned(text) {
		return nil, unauthorized("invalid_api_key", "The API key is not known here.")
	}
	return s.identify(ctx, text)
}

// foreignKeyHeaders are the headers in which clients of the APIs of Anthropic and Google send their key.
var foreignKeyHeaders = []string{"X-Api-Key", "X-Goog-Api-Key"}

// givenKeys returns the keys of a request: its bearer token, those of foreignKeyHeaders and, on the paths of Google's API, that
// of the query parameter `key`. Of these, a header or parameter that is empty or repeated is ignored. The first key is used.
func givenKeys(r *http.Request) (keys []string) {
	if bearer, shown := middleware.Bearer(r); shown {
		keys = append(keys, bearer)
	}
	var given [][]string
	for _, name := range foreignKeyHeaders {
		given = append(given, r.Header[name])
	}
	if isGemini(r) {
		given = append(given, r.URL.Query()["key"])
	}
	for _, values := range given {
		if len(values) == 1 && values[0] != "" {
			keys = append(keys, values[0])
		}
	}
	return keys
}

// codeNoKey is the error code for a request without a key.
const codeNoKey = "missing_api_key"

// noKey is the problem of a request without a key. If the request has the header api-key of Azure, the message says that
// this header is not read.
func noKey(r *http.Request) *problem {
	p := unauthorized(codeNoKey, "Send an API key: Authorization: Bearer KEY.")
	if r.Header["Api-Key"] != nil {
		p.Message = "This gateway reads no key from the header api-key. " + p.Message
	}
	return p
}

func (k *Key) mayModel(name string) bool { return k.Models == nil || slices.Contains(k.Models, name) }
func (k *Key) mayTool(name string) bool  { return k.Tools == nil || slices.Contains(k.Tools, name) }

// Narrowed returns limits with each field lowered to that of k.Limits, as [lathe.Limits.Narrow] does. A zero field of k.Limits lowers
// nothing; a zero field of limits counts as its default.
func (k *Key) Narrowed(limits lathe.Limits) lathe.Limits {
	limits, _ = limits.Narrow(k.Limits)
	return limits
}
