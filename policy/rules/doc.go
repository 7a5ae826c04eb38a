// Package rules is a policy that is configured as a list of rules. Each rule allows, denies or requires an approval for the calls that
// match it. A rule may match calls by a pattern of tool names, by effect, principal and run labels, and by a condition on the arguments,
// which is written in CEL. A rule that denies takes precedence over one that requires an approval, and that one over a rule that allows,
// regardless of their order. Calls that no rule matches are decided by another policy, or denied.
//
// If a condition cannot be evaluated (a missing field, a value of another type, the cost limit), it fails closed: a rule that allows does
// not match, and a rule that denies or requires an approval matches.
package rules
