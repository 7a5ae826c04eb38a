package tool

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/secret"
)

// A Secret is a value that does not print.
type Secret = secret.Secret

// NewSecret returns a Secret that holds s.
func NewSecret(s string) Secret { return secret.New(s) }

// SecretFound is the name under which what looked like a key is granted.
const SecretFound = secret.Found

// Secrets keeps values from models and from tools. In results and in arguments a token of the form
// [[secret:NAME:xxxxxxxx]] takes the place of each, before validation, policy, approval and events; only the
// runner puts the value back, right before the tool is called, and only for a tool that is granted
// it. A call with a token that the tool is not granted, or that nobody has given out, is denied.
type Secrets struct {
	// Known are values by name; a name has the characters A-Z, a-z, 0-9, _ . and -. Values shorter than 8 bytes are not looked for.
	Known map[string]Secret
	// Patterns also takes out what looks like a key of a known kind, for the run in which it was found.
	Patterns bool
	// Granted says whether a tool may be given the secret of a name; nil grants none.
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
	maxFoundKeys = 1_000 // of a run; further ones get a token that nothing resolves
)

// vault is Secrets, compiled.
type vault struct {
	finder  *secret.Finder
	values  map[string]Secret // by name
	granted func(tool, name string) bool
	key     [32]byte // of the tokens of what was found
}

// newVault returns nil where there is nothing to keep.
func newVault(s *Secrets) *vault {
	if s == nil {
		return nil
	}
	v := &vault{finder: secret.NewFinder(s.Known, s.Patterns), values: map[string]Secret{}, granted: s.Granted}
	if v.finder == nil {
		return nil
	}
	for name, value := range s.Known {
		if !validSecretName(name) {
			panic("tool: the name of a secret has other characters than A-Z, a-z, 0-9, _ . and -")
		}
		v.values[name] = value
	}
	_, _ = rand.Read(v.key[:]) // it never fails
	return v
}

func validSecretName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '.' && !validName(s[i:i+1]) {
			return false
		}
	}
	return s != "" && len(s) <= 128 && s != SecretFound
}

// foundKeys are the keys that one run has come upon, by token.
type foundKeys struct {
	mu     sync.Mutex
	values map[string]string
}

func (k *foundKeys) put(token string, value []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil {
		k.values = map[string]string{}
	}
	if len(k.values) < maxFoundKeys {
		k.values[token] = string(value)
	}
}

func (k *foundKeys) get(token string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.values[token]
	return v, ok
}

// token returns what stands for a secret. That of a known one is the same in every process, so that
// a run which goes on elsewhere can still use it.
func (v *vault) token(name string, value []byte) string {
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

// hide replaces secrets in JSON, or in members of an object, by their tokens. What it returns is
// json itself where there is none.
func (w *Work) hide(c *call, json []byte) []byte {
	v := w.r.vault
	if len(json) == 0 || bytes.IndexByte(json, '\\') < 0 && !v.finder.Has(json) {
		return json
	}
	return rewrite(json, func(text []byte) ([]byte, bool) {
		if !v.finder.Has(text) {
			return nil, false
		}
		return w.hideText(c, text), true
	})
}

// hideText replaces secrets in a text by their tokens.
func (w *Work) hideText(c *call, text []byte) []byte {
	return w.r.vault.finder.Append(nil, text, func(dst []byte, name string, found []byte) []byte {
		token := w.r.vault.token(name, found)
		if name == secret.Found {
			c.found = true
			w.found.put(token, found)
		}
		return append(dst, token...)
	})
}

// rewrite passes each string and number of JSON through fn. What fn changes becomes a string.
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

// stringEnd returns the end of the string literal that begins at i.
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

// conceal is between parsing and validation: from here on the arguments hold tokens for secrets.
func (w *Work) conceal(c *call) {
	if w.r.vault != nil {
		c.args = w.hide(c, c.args)
	}
}

// ungranted ends a call whose arguments hold a token that its tool may not have. It stands with the policy.
func (w *Work) ungranted(c *call) (ended bool) {
	v := w.r.vault
	if v == nil || !mayHoldToken(c.args) {
		return false
	}
	rule := ""
	rewrite(c.args, func(text []byte) ([]byte, bool) {
		eachToken(text, func(token, name string) {
			switch _, known := w.lookUpSecret(token, name); {
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
		return false
	}
	c.verdict, c.judged = lathe.Verdict{Decision: lathe.Deny, Rule: rule, Reason: "the tool may not be given this secret"}, true
	c.detailString("reason", c.verdict.Reason)
	return c.end(lathe.CodePolicyDenied)
}

// reveal returns the arguments with the values in the place of their tokens.
func (w *Work) reveal(c *call) []byte {
	if !c.tokens {
		return c.args
	}
	return rewrite(c.args, func(text []byte) ([]byte, bool) {
		var out []byte
		done := 0
		at := 0
		eachToken(text, func(token, name string) {
			at = done + bytes.Index(text[done:], []byte(token))
			if value, ok := w.lookUpSecret(token, name); ok {
				out = append(append(out, text[done:at]...), value...)
				done = at + len(token)
			}
		})
		return append(out, text[done:]...), done > 0
	})
}

func (w *Work) lookUpSecret(token, name string) (string, bool) {
	v := w.r.vault
	if name == secret.Found {
		return w.found.get(token)
	}
	value, ok := v.values[name]
	if !ok || v.token(name, nil) != token {
		return "", false
	}
	return value.Reveal(), true
}

// mayHoldToken also holds where an escape could hide one.
func mayHoldToken(json []byte) bool {
	return bytes.IndexByte(json, '\\') >= 0 || bytes.Contains(json, []byte(tokenHead))
}

// eachToken calls fn for what looks like a token. One that is not whole has an empty name.
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

// screen is the end of stage 12: no secret is left in what the model may see. What is no text is
// searched, too, byte by byte, and left out where it holds one; with nothing left, the call fails.
func (w *Work) screen(c *call) (ended bool) {
	if w.r.vault == nil {
		return false
	}
	c.data = w.hide(c, c.data)
	if len(c.blobs) == 0 || tooManyBytes(c.blobs) {
		return false // the next stage refuses them
	}
	kept := w.screenBlobs(c)
	bare := len(kept) == 0 && len(c.blobs) > 0 && (len(c.data) == 0 || holdsNothing(c.data))
	c.blobs = kept
	return bare && c.toolCode == "" && c.end(lathe.CodeRedactionFailed)
}

// screenBlobs returns the blobs as they may be shown. Those of the tool are not changed: it may keep them.
func (w *Work) screenBlobs(c *call) []lathe.Blob {
	f := w.r.vault.finder
	kept := make([]lathe.Blob, 0, len(c.blobs))
	for _, b := range c.blobs {
		switch {
		case f.Has([]byte(b.URL)), f.Has([]byte(b.Name)), len(b.Raw) > 0 && f.Has(b.Raw):
			continue
		case !f.Has(b.Data):
		case isPlain(b.Data):
			b.Data = w.hideText(c, b.Data)
		default:
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// isPlain reports whether bytes are text, in which a token may stand.
func isPlain(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }
