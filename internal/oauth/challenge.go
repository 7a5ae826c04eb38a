package oauth

import (
	"net/http"
	"slices"
	"strings"
)

// A challenge is what a server's WWW-Authenticate says of tokens.
type challenge struct {
	bearer   bool
	bound    bool   // by the DPoP scheme: of tokens that are bound to a key
	metadata string // URL of the server's metadata
	scopes   []string
	code     string // error
}

// maxChallengeBytes bounds the header fields that are read.
const maxChallengeBytes = 16 << 10

// readChallenge reads the first challenge of the Bearer scheme, or of DPoP where there is none. What
// cannot be read ends there.
func readChallenge(h http.Header) challenge {
	var c challenge
	for _, field := range h.Values("WWW-Authenticate") {
		if len(field) > maxChallengeBytes {
			continue
		}
		for scheme, params := range schemes(field) {
			bearer, bound := strings.EqualFold(scheme, "Bearer"), strings.EqualFold(scheme, "DPoP")
			if c.bearer || !bearer && (!bound || c.bound) {
				continue
			}
			c = challenge{bearer: bearer, bound: bound, metadata: params["resource_metadata"], code: params["error"]}
			if s := strings.Fields(params["scope"]); checkScopes(s) == nil {
				c.scopes = slices.Compact(s)
			}
		}
	}
	return c
}

// schemes yields the challenges of a field: scheme, and parameters by their names in lower case.
func schemes(field string) func(func(string, map[string]string) bool) {
	return func(yield func(string, map[string]string) bool) {
		rest := field
		for {
			rest = strings.TrimLeft(rest, " \t,=") // what is left of a token68, too
			scheme, more := token(rest)
			if scheme == "" {
				return
			}
			rest = strings.TrimLeft(more, " \t")
			params := map[string]string{}
			for {
				name, value, more, ok := param(rest)
				if !ok {
					break
				}
				if _, twice := params[name]; !twice {
					params[name] = value
				}
				rest = strings.TrimLeft(more, " \t")
				next, found := strings.CutPrefix(rest, ",")
				if !found {
					break
				}
				rest = strings.TrimLeft(next, " \t,")
			}
			if !yield(scheme, params) || rest == field {
				return
			}
			field = rest
		}
	}
}

// param reads NAME=VALUE, whose value may stand in quotes.
func param(s string) (name, value, rest string, ok bool) {
	name, rest = token(s)
	rest = strings.TrimLeft(rest, " \t")
	if name == "" || !strings.HasPrefix(rest, "=") {
		return "", "", s, false
	}
	rest = strings.TrimLeft(rest[1:], " \t")
	name = strings.ToLower(name)
	if !strings.HasPrefix(rest, `"`) {
		value, rest = token(rest)
		return name, value, rest, true
	}
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			if i++; i < len(rest) {
				b.WriteByte(rest[i])
			}
		case '"':
			return name, b.String(), rest[i+1:], true
		default:
			b.WriteByte(rest[i])
		}
	}
	return "", "", s, false // the quote is not closed
}

// token reads a token of RFC 9110, or what is written without quotes in its place.
func token(s string) (word, rest string) {
	i := strings.IndexAny(s, " \t,=\"")
	if i < 0 {
		i = len(s)
	}
	return s[:i], s[i:]
}
