package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe/internal/gateway/runlog"
)

// A key decides about the calls of its own runs, unless its configuration (Approve) names the keys in whose runs it decides.

// Values of [Key.Approve] that are not names of keys.
const (
	ApproveOwn    = "own"    // the key may decide about calls in its own runs
	ApproveOthers = "others" // the key may decide about calls in the runs of all other keys
)

// mayDecide reports whether the key may decide about calls in the runs of the principal.
func (k *Key) mayDecide(principal string) bool {
	switch {
	case k.isAdmin():
		return true
	case k.Approve == nil:
		return principal == k.Name
	case principal == k.Name:
		return slices.Contains(k.Approve, ApproveOwn)
	}
	return slices.Contains(k.Approve, ApproveOthers) || slices.Contains(k.Approve, principal)
}

// ownOnly reports whether the key may decide at most about calls in its own runs.
func (k *Key) ownOnly() bool {
	return !k.isAdmin() && !slices.ContainsFunc(k.Approve, func(word string) bool { return word != ApproveOwn && word != k.Name })
}

// checkApprove returns an error if an element of Approve is not ApproveOwn, ApproveOthers or the name of a key with a
// secret.
func (s *setup) checkApprove() error {
	for _, key := range s.Keys {
		for _, word := range key.Approve {
			if word == ApproveOwn || word == ApproveOthers {
				continue
			}
			k := s.keyNamed(word)
			if k == nil {
				return fmt.Errorf("approve of the key %s: %s is not %s, %s or the name of a key", key.Name, word, ApproveOwn, ApproveOthers)
			}
			if k.hash() == [sha256.Size]byte{} {
				return fmt.Errorf("approve of the key %s: %s is a profile, and the runs of its callers are their own: name %s or %s", key.Name, word, ApproveOwn, ApproveOthers)
			}
		}
	}
	return nil
}

// mayNotDecide returns the problem of a key that may see a run but not decide about its calls.
func mayNotDecide() *problem {
	return forbidden("approval_forbidden", "This key may not decide about the calls of this run; keys.NAME.approve in the configuration says which keys may.")
}

// viewToDecide reads a run that the caller owns or may decide about. Any other run is reported as not found.
func (rv *runViews) viewToDecide(ctx context.Context, c *caller, id string) (*runlog.View, *problem) {
	return rv.viewAs(ctx, c, id, func(principal string) bool { return c.owns(principal) || c.key.mayDecide(principal) })
}

// acting returns the caller under which a run of the principal is resumed after a decision of c. The log of the run has the
// rights of the key that started it. So if c does not own the run, its own rights do not limit the run: the returned caller
// has the key anyone, which limits nothing.
func (c *caller) acting(principal string) *caller {
	acting := *c
	if !c.owns(principal) {
		acting.key = anyone
	}
	return &acting
}

// decider returns the name of the caller in the log of decisions: the name of its key, or "http" if it has none.
func (c *caller) decider() string { return cmp.Or(c.key.Name, "http") }
