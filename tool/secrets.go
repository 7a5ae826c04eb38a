package tool

// This file replaces secrets by tokens, and tokens by secrets. With the secret "s3cr3t-key" of the name "db":
//
//	result {"dsn":"u:s3cr3t-key@host"}             the model receives {"dsn":"u:[[secret:db:1a2b3c4d]]@host"}
//	call   {"dsn":"u:[[secret:db:1a2b3c4d]]@host"}  a tool that is granted db receives {"dsn":"u:s3cr3t-key@host"}

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/secret"
)

// Secrets hides values from models and tools. In results and in arguments, the runner replaces each value by a token
// [[secret:NAME:xxxxxxxx]] before validation, policy, approval and events. Right before it calls a tool that is granted the secret, it
// replaces the token by the value. A call with a token that the tool is not granted, or that the runner did not issue, is denied.
type Secrets struct {
	// Known are the values by name. A name has 1 to 128 of the characters A-Z, a-z, 0-9, _ . and -. Values shorter than 8 bytes are not
	// hidden.
	Known map[string]secret.Secret
	// Patterns says that text that looks like a key of a known format is hidden, too. The token of such a key is valid only in the run in
	// which it was found.
	Patterns bool
	// Granted reports whether the tool may receive the secret of this name; nil: no tool may receive any. It may be called from several
	// goroutines at once.
	Granted func(tool, name string) bool
}

// The rules of verdicts on tokens.
const (
	ruleSecretUnknown   = "secret.unknown"
	ruleSecretUngranted = "secret.ungranted"
)

const (
	tokenHead    = "[[secret:"
	maxToken     = 256   // maximum length of a token in bytes
	maxFoundKeys = 1_000 // maximum number per run; the tokens of further ones are not valid
)

// secretStore is the compiled form of Secrets.
type secretStore struct {
	finder  *secret.Finder
	values  map[string]secret.Secret // by name
	granted func(tool, name string) bool
	key     [32]byte // key of the tokens of found keys
}

// newSecretStore returns nil if there is no secret to find.
func newSecretStore(s *Secrets) (*secretStore, error) {
	if s == nil {
		return nil, nil
	}
	store := &secretStore{finder: secret.NewFinder(s.Known, s.Patterns), values: map[string]secret.Secret{}, granted: s.Granted}
	for name, value := range s.Known {
		if !secretName().MatchString(name) || name == secret.Found {
			return nil, fmt.Errorf("the name %.80q of a secret is not 1 to 128 of the characters A-Z, a-z, 0-9, _ . and -, or is the reserved name %s", name, secret.Found)
		}
		store.values[name] = value
	}
	if store.finder == nil {
		return nil, nil // no values and no patterns
	}
	_, _ = rand.Read(store.key[:]) // never fails
	return store, nil
}

var secretName = lazy.Regexp(`^[A-Za-z0-9_.-]{1,128}$`)

// runSecrets are the secrets of one run: those of the runner, and the keys that were found in it.
type runSecrets struct {
	store *secretStore // nil: no secrets
	mu    sync.Mutex
	found map[string]string // values of found keys, by token
}

func (s *runSecrets) putFound(token string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		s.found = map[string]string{}
	}
	if len(s.found) < maxFoundKeys {
		s.found[token] = string(value)
	}
}

// knownToken returns the token of a known secret. It is the same in every process, so that a run which another process resumes can still use
// it.
func knownToken(name string) string {
	sum := sha256.Sum256([]byte("lathe/secret/1\x00" + name))
	return newToken(name, sum[:])
}

// foundToken returns the token of a found key.
func (s *secretStore) foundToken(value []byte) string {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(value)
	return newToken(secret.Found, mac.Sum(nil))
}

func newToken(name string, sum []byte) string {
	return tokenHead + name + ":" + hex.EncodeToString(sum[:4]) + "]]"
}

// hide replaces secrets in JSON, or in members of an object, by their tokens. It returns json itself if it contains no secret.
func (s *runSecrets) hide(c *call, json []byte) []byte {
	finder := s.store.finder
	escaped := bytes.IndexByte(json, '\\') >= 0 // an escape could hide a secret
	if len(json) == 0 || !escaped && !finder.Has(json) {
		return json
	}
	return rewrite(json, func(text []byte) ([]byte, bool) {
		if !finder.Has(text) {
			return nil, false
		}
		return s.hideText(c, text), true
	})
}

// hideText replaces secrets in a text by their tokens.
func (s *runSecrets) hideText(c *call, text []byte) []byte {
	return s.store.finder.Append(nil, text, func(dst []byte, name string, value []byte) []byte {
		if name != secret.Found {
			return append(dst, knownToken(name)...)
		}
		token := s.store.foundToken(value)
		c.hidden = true
		s.putFound(token, value)
		return append(dst, token...)
	})
}

// rewrite calls fn with the text of each string and number in JSON. If fn returns true, its result replaces the value as a string.
func rewrite(json []byte, fn func(text []byte) ([]byte, bool)) []byte {
	out := make([]byte, 0, len(json)+64)
	changed := false
	for i := 0; i < len(json); {
		text, end := scalarAt(json, i)
		if end == i {
			out = append(out, json[i])
			i++
			continue
		}
		if next, ok := fn(text); ok {
			out, changed = rawjson.AppendQuote(out, string(next)), true
		} else {
			out = append(out, json[i:end]...)
		}
		i = end
	}
	if !changed {
		return json
	}
	return out
}

// scalarAt returns the text of the string or number that begins at i, and its end. end is i if neither begins there.
func scalarAt(json []byte, i int) (text []byte, end int) {
	switch c := json[i]; {
	case c == '"':
		end = stringEnd(json, i)
		literal := json[i:end]
		if bytes.IndexByte(literal, '\\') < 0 {
			return bytes.Trim(literal, `"`), end
		}
		return rawjson.AppendUnquoteLossy(nil, literal), end
	case c == '-' || c >= '0' && c <= '9':
		end = i
		for end < len(json) && bytes.IndexByte([]byte("+-.0123456789eE"), json[end]) >= 0 {
			end++
		}
		return json[i:end], end
	}
	return nil, i
}

// stringEnd returns the index behind the string literal that begins at i.
func stringEnd(json []byte, i int) int {
	for i++; i < len(json); i++ {
		switch json[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(json)
}

// checkTokens denies a call whose arguments contain a token that its tool may not have.
func checkTokens(c *call) ending {
	store := c.w.secrets.store
	if store == nil || !mayContainToken(c.args) {
		return proceed
	}
	hasUnknown, hasUngranted := false, false
	rewrite(c.args, func(text []byte) ([]byte, bool) {
		for _, token := range tokensIn(text) {
			_, known := c.w.secrets.reveal(token)
			switch {
			case !known:
				hasUnknown = true
			case store.granted != nil && store.granted(c.tool, token.name):
				c.tokens = true
			default:
				hasUngranted = true
			}
		}
		return nil, false
	})
	var rule string
	switch {
	case hasUnknown:
		rule = ruleSecretUnknown
	case hasUngranted:
		rule = ruleSecretUngranted
	default:
		return proceed
	}
	c.verdict, c.judged = lathe.Verdict{Decision: lathe.Deny, Rule: rule, Reason: "the tool may not be given this secret"}, true
	c.detailString("reason", c.verdict.Reason)
	return fail(lathe.CodePolicyDenied)
}

// revealTokens returns the arguments with the tokens replaced by their values.
func revealTokens(c *call) []byte {
	if !c.tokens {
		return c.args
	}
	return rewrite(c.args, func(text []byte) ([]byte, bool) {
		var out []byte
		done := 0 // text[:done] is in out
		for _, token := range tokensIn(text) {
			if value, ok := c.w.secrets.reveal(token); ok {
				out = append(append(out, text[done:token.start]...), value...)
				done = token.start + len(token.text)
			}
		}
		return append(out, text[done:]...), done > 0
	})
}

// reveal returns the value of a token. ok is false if the token is not valid.
func (s *runSecrets) reveal(token secretToken) (value string, ok bool) {
	if token.name == secret.Found {
		s.mu.Lock()
		defer s.mu.Unlock()
		value, ok = s.found[token.text]
		return value, ok
	}
	known, ok := s.store.values[token.name]
	if !ok || knownToken(token.name) != token.text {
		return "", false
	}
	return known.Reveal(), true
}

// mayContainToken reports whether JSON may contain a token. It returns true if an escape could hide one.
func mayContainToken(json []byte) bool {
	return bytes.IndexByte(json, '\\') >= 0 || bytes.Contains(json, []byte(tokenHead))
}

// A secretToken is a part of a text that looks like the token of a secret.
type secretToken struct {
	start int // index in the text
	text  string
	name  string // of the secret; "" if the token is incomplete
}

// tokensIn returns the tokens in a text.
func tokensIn(text []byte) (tokens []secretToken) {
	for done := 0; ; {
		i := bytes.Index(text[done:], []byte(tokenHead))
		if i < 0 {
			return tokens
		}
		start := done + i
		end := bytes.Index(text[start:min(len(text), start+maxToken)], []byte("]]"))
		if end < 0 {
			return append(tokens, secretToken{start: start, text: tokenHead})
		}
		done = start + end + len("]]")
		name, _, _ := bytes.Cut(text[start+len(tokenHead):done], []byte(":"))
		tokens = append(tokens, secretToken{start, string(text[start:done]), string(name)})
	}
}

// screen ends stage 12. It replaces secrets in what the model may receive. Blobs that are not text are searched byte by byte and removed if
// they contain a secret; if nothing remains then, the call fails.
func screen(c *call) ending {
	secrets := &c.w.secrets
	if secrets.store == nil {
		return proceed
	}
	c.data = secrets.hide(c, c.data)
	if len(c.blobs) == 0 || blobBytes(c.blobs) > maxBlobBytes {
		return proceed // boundOutput refuses them
	}
	c.blobs = screenBlobs(c)
	if len(c.blobs) == 0 && (len(c.data) == 0 || isEmpty(c.data)) {
		return c.failUnlessFailed(lathe.CodeRedactionFailed)
	}
	return proceed
}

// screenBlobs returns the blobs that may be shown. It does not change the tool's slice, which the tool may retain.
func screenBlobs(c *call) []lathe.Blob {
	finder := c.w.secrets.store.finder
	kept := make([]lathe.Blob, 0, len(c.blobs))
	for _, b := range c.blobs {
		switch {
		case finder.Has([]byte(b.URL)), finder.Has([]byte(b.Name)), len(b.Raw) > 0 && finder.Has(b.Raw):
			continue
		case !finder.Has(b.Data):
		case isText(b.Data):
			b.Data = c.w.secrets.hideText(c, b.Data)
		default:
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// isText reports whether bytes are text, so that a token can replace a secret in them.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }
