package mcpserve

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/secret"
)

// A Caller is who calls tools, as policies and events are told.
type Caller struct {
	Principal string
	Labels    map[string]string
	// Allow, when not nil, names the only tools that the caller may use.
	Allow []string
	// Limits, when not nil, are those of the caller's calls in place of the runner's.
	Limits *lathe.Limits
}

// key is the same for callers who may do the same.
func (c *Caller) key() string {
	allow := c.Allow
	if allow != nil {
		allow = slices.Sorted(slices.Values(allow))
	}
	limits := lathe.Limits{}
	if c.Limits != nil {
		limits = *c.Limits
	}
	return fmt.Sprintf("%q %q %t %q %t %+v", c.Principal, c.Labels, allow != nil, allow, c.Limits != nil, limits)
}

// owner is the same for who is the same, whatever it may do.
func (c *Caller) owner() string { return fmt.Sprintf("%q %q", c.Principal, c.Labels) }

func (c *Caller) clone() Caller {
	own := Caller{Principal: c.Principal, Labels: maps.Clone(c.Labels), Allow: slices.Clone(c.Allow)}
	if c.Limits != nil {
		limits := *c.Limits
		own.Limits = &limits
	}
	return own
}

// A Key lets whoever shows it call tools as a caller.
type Key struct {
	Secret secret.Secret
	Caller Caller
}

// Keys identifies callers by the key in `Authorization: Bearer …`. Whoever shows none of them is
// nobody. The time that it takes does not tell how much of a key is right.
func Keys(keys ...Key) func(*http.Request) (Caller, bool) {
	own := make([]Key, 0, len(keys))
	for _, k := range keys {
		if !k.Secret.IsZero() {
			own = append(own, Key{k.Secret, k.Caller.clone()})
		}
	}
	return func(r *http.Request) (found Caller, ok bool) {
		scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || shown == "" || len(r.Header.Values("Authorization")) != 1 {
			return Caller{}, false
		}
		given := secret.New(shown)
		for i := range own {
			if own[i].Secret.Equal(given) && !ok {
				found, ok = own[i].Caller, true
			}
		}
		return found, ok
	}
}
