// Package rules is a policy of rules that are data: each says allow, ask or deny of the calls that
// fit its tool pattern, effect, principal, run labels and a condition on the arguments, written in
// CEL. A rule that denies wins over one that asks, and one that asks over one that allows, whatever
// their order. What no rule fits goes to another policy, or is denied.
//
// A condition that cannot be evaluated (a missing field, a value of another type, the cost limit)
// fails closed: a rule that allows does not fit then, and one that asks or denies does.
package rules
