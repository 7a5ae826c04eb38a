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

// A challenge is a parsed WWW-Authenticate header that requests a token.
type challenge struct {
	bearer   bool
	bound    bool   // the scheme is DPoP: the server requires tokens that are bound to a key
	metadata string // URL of the resource metadata of the server
	scopes   []string
	code     string // error parameter
}

// maxChallengeBytes limits the total size of the parsed header fields: the parser takes quadratic time.
const maxChallengeBytes = 4 << 10

// readChallenge returns the first challenge of the scheme Bearer, or else of DPoP. A field that cannot be parsed but contains Bearer counts
// as a challenge without parameters.
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
			bearer, bound := one.Scheme == "bearer", one.Scheme == "dpop"
			better := bearer && !c.bearer || bound && !c.bearer && !c.bound
			if !better {
				continue
			}
			c = challenge{bearer: bearer, bound: bound, metadata: one.Params["resource_metadata"], code: one.Params["error"]}
			if s := strings.Fields(one.Params["scope"]); checkScopes(s) == nil {
				c.scopes = slices.Compact(s)
			}
		}
	}
	return c
}
