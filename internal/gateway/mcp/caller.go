package mcp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/middleware"
	"github.com/lathe-run/lathe/secret"
)

// A Caller is the identity of a client. It is passed to policies and events with each call.
type Caller struct {
	Principal string
	Profile   string // profile in [lathe.RunInfo]
	Labels    map[string]string
	// Allow, when not nil, names the only tools that the caller may use.
	Allow []string
	// Limits, when not nil, replace the runner's limits for the calls of this caller.
	Limits *lathe.Limits
}

// key returns a string that is equal for callers with the same principal, profile, labels, allowed tools and limits.
func (c *Caller) key() string {
	allow := c.Allow
	if allow != nil {
		allow = slices.Sorted(slices.Values(allow))
	}
	limits := lathe.Limits{}
	if c.Limits != nil {
		limits = *c.Limits
	}
	return fmt.Sprintf("%q %q %q %t %q %t %+v", c.Principal, c.Profile, c.Labels, allow != nil, allow, c.Limits != nil, limits)
}

// owner returns a string that is equal for callers with the same principal and labels. It does not depend on their rights.
func (c *Caller) owner() string { return fmt.Sprintf("%q %q", c.Principal, c.Labels) }

func (c *Caller) clone() Caller {
	own := Caller{Principal: c.Principal, Profile: c.Profile, Labels: maps.Clone(c.Labels), Allow: slices.Clone(c.Allow)}
	if c.Limits != nil {
		own.Limits = new(*c.Limits)
	}
	return own
}

// A Key is a secret and the caller that it identifies.
type Key struct {
	Secret secret.Secret
	Caller Caller
}

// Keys returns an Identify function that finds the caller by the key in `Authorization: Bearer KEY`. If two keys are equal
// the first one is used. Empty keys are ignored.
func Keys(keys ...Key) func(*http.Request) (Caller, bool) {
	var tokens middleware.Tokens
	var callers []Caller
	for _, k := range keys {
		if !k.Secret.IsZero() {
			tokens.AddUnchecked(k.Caller.Principal, k.Secret)
			callers = append(callers, k.Caller.clone())
		}
	}
	return func(r *http.Request) (Caller, bool) {
		i, _ := tokens.Find(r)
		if i < 0 {
			return Caller{}, false
		}
		return callers[i], true
	}
}
