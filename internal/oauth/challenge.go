package oauth

import (
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A challenge is the content of a server's WWW-Authenticate header about tokens.
type challenge struct {
	bearer   bool
	bound    bool   // the scheme is DPoP: the server requires tokens that are bound to a key
	metadata string // URL of the server's metadata
	scopes   []string
	code     string // error
}

// maxChallengeBytes bounds the header fields that are read, together: the parser takes quadratic time.
const maxChallengeBytes = 4 << 10

// readChallenge reads the first challenge of the Bearer scheme, or else of DPoP. A field that the parser refuses
// and that names Bearer counts as a challenge without parameters.
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
			if c.bearer || !bearer && (!bound || c.bound) {
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
