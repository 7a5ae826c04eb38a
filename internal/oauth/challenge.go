package oauth

// This file reads the answer of a server to a request without an accepted token, such as
//
//	WWW-Authenticate: Bearer resource_metadata="https://x.example/meta", scope="read write", error="insufficient_scope"

import (
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A scheme is a kind of token that a server requests. A higher one is preferred.
type scheme int

const (
	noScheme scheme = iota // no token is requested
	dpop                   // a token that is bound to a key, which this package does not support
	bearer
)

// A challenge is a parsed WWW-Authenticate header that requests a token.
type challenge struct {
	scheme   scheme
	metadata string // URL of the resource metadata of the server
	scopes   []string
	code     string // error parameter
}

// schemes are the schemes by their names in lower case.
var schemes = map[string]scheme{"bearer": bearer, "dpop": dpop}

// maxChallengeBytes limits the total size of the parsed header fields: the parser takes quadratic time.
const maxChallengeBytes = 4 << 10

// readChallenge returns the first challenge of the preferred scheme. A field that cannot be parsed but contains Bearer counts as a challenge
// without parameters.
func readChallenge(h http.Header) challenge {
	var c challenge
	left := maxChallengeBytes
	for _, field := range h.Values("WWW-Authenticate") {
		if len(field) > left {
			continue
		}
		left -= len(field)
		list, err := oauthex.ParseWWWAuthenticate([]string{field})
		if err != nil && strings.Contains(strings.ToLower(field), "bearer") {
			list = []oauthex.Challenge{{Scheme: "bearer"}}
		}
		for _, one := range list {
			kind := schemes[one.Scheme]
			if kind <= c.scheme {
				continue
			}
			c = challenge{scheme: kind, metadata: one.Params["resource_metadata"], code: one.Params["error"]}
			if s := strings.Fields(one.Params["scope"]); checkScopes(s) == nil {
				c.scopes = slices.Compact(s)
			}
		}
	}
	return c
}
