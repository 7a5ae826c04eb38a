// Package rules is a policy that is configured as a list of rules. Each rule allows, denies or requires an approval for the calls that
// match its tool pattern, effect, principal, run labels and condition on the arguments, which is written in CEL. A rule that denies takes
// precedence over one that asks, and one that asks over one that allows, regardless of their order. Calls that no rule matches are decided
// by another policy, or denied.
//
// If a condition cannot be evaluated (a missing field, a value of another type, the cost limit), it fails closed: a rule that allows does
// not match, and a rule that asks or denies matches.
package rules
