// Package rules is a policy of rules that are data: each allows, asks about or denies the calls that
// match its tool pattern, effect, principal, run labels and a condition on the arguments, written in
// CEL. A rule that denies takes precedence over one that asks, and one that asks over one that allows,
// regardless of their order. Calls that no rule matches go to another policy, or are denied.
//
// A condition that cannot be evaluated (a missing field, a value of another type, the cost limit)
// fails closed: a rule that allows does not match, and one that asks or denies matches.
package rules
