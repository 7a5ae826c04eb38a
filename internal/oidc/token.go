package oidc

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Token has the claims of a verified token.
type Token struct {
	Issuer  string
	Subject string
	Expires time.Time

	notBefore time.Time
	audience  []string
	claims    map[string]json.RawMessage
}

// parseToken decodes the payload of a token. It compares names of claims exactly: encoding/json would accept Sub for sub.
func parseToken(payload []byte) (*Token, error) {
	t := &Token{}
	if checkJSON(payload, &t.claims) != nil || t.claims == nil {
		return nil, refuse(Malformed, "the token's payload is not a JSON object")
	}
	t.Issuer, t.Subject = rawjson.Text(t.claims["iss"]), rawjson.Text(t.claims["sub"])
	t.audience = textsOf(t.claims["aud"])
	var ok bool
	if t.Expires, ok = timeOf(t.claims["exp"]); !ok {
		return nil, refuse(Malformed, "the token's exp is not a time")
	}
	if t.notBefore, ok = timeOf(t.claims["nbf"]); !ok {
		return nil, refuse(Malformed, "the token's nbf is not a time")
	}
	return t, nil
}

// maxSeconds is the largest time of a token: the end of the year 9999.
const maxSeconds = 253402300799

// timeOf returns the time of a claim in seconds since 1970, or the zero time if raw is nil. ok is false if raw is not a number.
func timeOf(raw json.RawMessage) (t time.Time, ok bool) {
	if raw == nil {
		return time.Time{}, true
	}
	var seconds *float64
	if json.Unmarshal(raw, &seconds) != nil || seconds == nil {
		return time.Time{}, false
	}
	whole, part := math.Modf(min(max(*seconds, 1), maxSeconds)) // at least 1, because the zero time means that there is no claim
	return time.Unix(int64(whole), int64(part*1e9)), true
}

// claim returns the claim with this name or, if none exists, the value at this path through objects, separated by dots.
func (t *Token) claim(name string) json.RawMessage {
	if raw, ok := t.claims[name]; ok {
		return raw
	}
	path := strings.Split(name, ".")
	return rawjson.At(t.claims[path[0]], path[1:]...)
}

// Has reports whether the token has a claim. name has the format of [Token.Texts].
func (t *Token) Has(name string) bool { return t.claim(name) != nil }

// Texts returns the strings of a claim that is a string or a list of strings, or nil for any other claim. name is the name of a claim, or a
// path through objects separated by dots, such as realm_access.roles.
func (t *Token) Texts(name string) []string { return textsOf(t.claim(name)) }

// Text returns a claim that is a string, a number, true or false as text. ok is false for any other claim.
func (t *Token) Text(name string) (text string, ok bool) {
	raw := t.claim(name)
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return "", false
	case raw[0] == '"':
		return rawjson.Text(raw), true
	}
	return string(raw), true
}

// textsOf returns the strings of a JSON string or of a list of strings, or nil for anything else.
func textsOf(raw json.RawMessage) []string {
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '"' {
		return []string{rawjson.Text(raw)}
	}
	var list []*string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s == nil {
			return nil
		}
		out = append(out, *s)
	}
	return out
}
