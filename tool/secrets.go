package tool

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
	maxToken     = 256
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
	v := &secretStore{finder: secret.NewFinder(s.Known, s.Patterns), values: map[string]secret.Secret{}, granted: s.Granted}
	for name, value := range s.Known {
		if !validSecretName(name) {
			return nil, fmt.Errorf("the name %.80q of a secret is not 1 to 128 of the characters A-Z, a-z, 0-9, _ . and -, or is the reserved name %s", name, secret.Found)
		}
		v.values[name] = value
	}
	if v.finder == nil {
		return nil, nil // no values and no patterns
	}
	_, _ = rand.Read(v.key[:]) // never fails
	return v, nil
}

var secretName = lazy.Regexp(`^[A-Za-z0-9_.-]{1,128}$`)

func validSecretName(s string) bool { return secretName().MatchString(s) && s != secret.Found }

// runSecrets are the secrets of one run: those of the runner, and found keys by token.
type runSecrets struct {
	store  *secretStore // nil: no secrets
	mu     sync.Mutex
	values map[string]string
}

func (k *runSecrets) put(token string, value []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil {
		k.values = map[string]string{}
	}
	if len(k.values) < maxFoundKeys {
		k.values[token] = string(value)
	}
}

func (k *runSecrets) get(token string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.values[token]
	return v, ok
}

// token returns the token of a secret. That of a known secret is the same in every process, so that a run which another process resumes can
// still use it.
func (v *secretStore) token(name string, value []byte) string {
	var sum []byte
	if name == secret.Found {
		mac := hmac.New(sha256.New, v.key[:])
		mac.Write(value)
		sum = mac.Sum(nil)
	} else {
		s := sha256.Sum256([]byte("lathe/secret/1\x00" + name))
		sum = s[:]
	}
	return tokenHead + name + ":" + hex.EncodeToString(sum[:4]) + "]]"
}

// hide replaces secrets in JSON, or in members of an object, by their tokens. It returns json itself if it contains no secret.
func (k *runSecrets) hide(c *call, json []byte) []byte {
	v := k.store
	if len(json) == 0 || bytes.IndexByte(json, '\\') < 0 && !v.finder.Has(json) {
		return json
	}
	return rewrite(json, func(text []byte) ([]byte, bool) {
		if !v.finder.Has(text) {
			return nil, false
		}
		return k.hideText(c, text), true
	})
}

// hideText replaces secrets in a text by their tokens.
func (k *runSecrets) hideText(c *call, text []byte) []byte {
	return k.store.finder.Append(nil, text, func(dst []byte, name string, found []byte) []byte {
		token := k.store.token(name, found)
		if name == secret.Found {
			c.hidden = true
			k.put(token, found)
		}
		return append(dst, token...)
	})
}

// rewrite calls fn with the text of each string and number in JSON. A result of fn replaces the value as a string.
func rewrite(json []byte, fn func(text []byte) ([]byte, bool)) []byte {
	out := make([]byte, 0, len(json)+64)
	changed := false
	for i := 0; i < len(json); {
		start := i
		var text []byte
		switch c := json[i]; {
		case c == '"':
			i = stringEnd(json, i)
			text = json[start:i]
			if bytes.IndexByte(text, '\\') >= 0 {
				text = rawjson.AppendUnquoteLossy(nil, text)
			} else {
				text = bytes.Trim(text, `"`)
			}
		case c == '-' || c >= '0' && c <= '9':
			for i < len(json) && bytes.IndexByte([]byte("+-.0123456789eE"), json[i]) >= 0 {
				i++
			}
			text = json[start:i]
		default:
			out = append(out, c)
			i++
			continue
		}
		if next, ok := fn(text); ok {
			out, changed = rawjson.AppendQuote(out, string(next)), true
		} else {
			out = append(out, json[start:i]...)
		}
	}
	if !changed {
		return json
	}
	return out
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

// conceal replaces secrets in the arguments by tokens. It is called between parsing and validation.
func conceal(c *call) {
	if secrets := &c.w.secrets; secrets.store != nil {
		c.args = secrets.hide(c, c.args)
	}
}

// checkTokens denies a call whose arguments contain a token that its tool may not have.
func checkTokens(c *call) ending {
	v := c.w.secrets.store
	if v == nil || !mayHoldToken(c.args) {
		return proceed
	}
	rule := ""
	rewrite(c.args, func(text []byte) ([]byte, bool) {
		eachToken(text, func(token, name string) {
			switch _, known := c.w.secrets.reveal(token, name); {
			case !known:
				rule = ruleSecretUnknown
			case (v.granted == nil || !v.granted(c.tool, name)) && rule == "":
				rule = ruleSecretUngranted
			default:
				c.tokens = true
			}
		})
		return nil, false
	})
	if rule == "" {
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
		done := 0
		at := 0
		eachToken(text, func(token, name string) {
			at = done + bytes.Index(text[done:], []byte(token))
			if value, ok := c.w.secrets.reveal(token, name); ok {
				out = append(append(out, text[done:at]...), value...)
				done = at + len(token)
			}
		})
		return append(out, text[done:]...), done > 0
	})
}

// reveal returns the value of a token. ok is false if the token is not valid.
func (k *runSecrets) reveal(token, name string) (string, bool) {
	v := k.store
	if name == secret.Found {
		return k.get(token)
	}
	value, ok := v.values[name]
	if !ok || v.token(name, nil) != token {
		return "", false
	}
	return value.Reveal(), true
}

// mayHoldToken reports whether JSON may contain a token. It returns true if an escape could hide one.
func mayHoldToken(json []byte) bool {
	return bytes.IndexByte(json, '\\') >= 0 || bytes.Contains(json, []byte(tokenHead))
}

// eachToken calls fn for each text that looks like a token. name is "" for an incomplete one.
func eachToken(text []byte, fn func(token, name string)) {
	for {
		i := bytes.Index(text, []byte(tokenHead))
		if i < 0 {
			return
		}
		text = text[i:]
		end := bytes.Index(text[:min(len(text), maxToken)], []byte("]]"))
		if end < 0 {
			fn(string(text[:len(tokenHead)]), "")
			return
		}
		token := text[:end+2]
		name, _, _ := bytes.Cut(token[len(tokenHead):], []byte(":"))
		fn(string(token), string(name))
		text = text[end+2:]
	}
}

// screen is the end of stage 12. It replaces secrets in what the model may receive. Blobs that are not text are searched byte by byte and
// removed if they contain a secret; if nothing remains then, the call fails.
func screen(c *call) ending {
	secrets := &c.w.secrets
	if secrets.store == nil {
		return proceed
	}
	c.data = secrets.hide(c, c.data)
	if len(c.blobs) == 0 || tooManyBytes(c.blobs) {
		return proceed // boundOutput refuses them
	}
	kept := screenBlobs(c)
	bare := len(kept) == 0 && len(c.blobs) > 0 && (len(c.data) == 0 || isEmpty(c.data))
	c.blobs = kept
	if bare {
		return c.failUnlessFailed(lathe.CodeRedactionFailed)
	}
	return proceed
}

// screenBlobs returns the blobs that may be shown. It does not change the tool's slice, which the tool may retain.
func screenBlobs(c *call) []lathe.Blob {
	f := c.w.secrets.store.finder
	kept := make([]lathe.Blob, 0, len(c.blobs))
	for _, b := range c.blobs {
		switch {
		case f.Has([]byte(b.URL)), f.Has([]byte(b.Name)), len(b.Raw) > 0 && f.Has(b.Raw):
			continue
		case !f.Has(b.Data):
		case isPlain(b.Data):
			b.Data = c.w.secrets.hideText(c, b.Data)
		default:
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// isPlain reports whether bytes are text, so that a token can replace a secret in them.
func isPlain(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }
