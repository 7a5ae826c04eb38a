package rules

import (
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/text"
)

// conditionVariables are the names of the variables of a condition.
var conditionVariables = []string{"args", "tool", "effect", "origin", "principal", "session", "depth", "turn", "seq", "labels", "used"}

// The messages of the CEL library that explain rewrites.
var (
	unknownToken = lazy.Regexp(`^Syntax error: token recognition error at: '(.*)'$`)
	leftOver     = lazy.Regexp(`^Syntax error: (?:extraneous|mismatched) input (.*) expecting <EOF>$`)
	unknownName  = lazy.Regexp(`^undeclared reference to '([^']*)'(?:.*\(did you mean '([^']*)'\?\))?`)
	wrongTypes   = lazy.Regexp(`^found no matching overload for '([^']*)' applied to '(.*)'$`)
)

// explain returns what an error message of the CEL library means and how to correct the condition. It returns unknown messages unchanged.
func explain(message string) string {
	message = text.FirstLine(message)
	if m := unknownToken().FindStringSubmatch(message); m != nil {
		for _, operator := range []string{"=", "&", "|"} {
			if strings.HasPrefix(m[1], operator) {
				return "a single " + operator + " is no operator: write " + operator + operator
			}
		}
		return "the character here begins no expression: remove it, or put quotation marks around a text"
	}
	if m := leftOver().FindStringSubmatch(message); m != nil {
		return "the condition ends before " + m[1] + ": join two conditions with && or ||"
	}
	if m := unknownName().FindStringSubmatch(message); m != nil {
		if m[2] != "" {
			return "no variable or function is called " + m[1] + ": did you mean " + m[2] + "?"
		}
		return "no variable or function is called " + m[1] + ": a condition has " + strings.Join(conditionVariables, ", ") +
			" and the functions of CEL; a text stands in quotation marks"
	}
	if m := wrongTypes().FindStringSubmatch(message); m != nil {
		return strings.Trim(m[1], "_") + " does not take the types " + m[2] + ": compare and combine values of one type; string(…), int(…) and double(…) convert"
	}
	if rest, ok := strings.CutPrefix(message, "Syntax error: "); ok {
		return "the condition cannot be parsed here (" + rest + "): docs/policy.md has examples of conditions"
	}
	return message
}
