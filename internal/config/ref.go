package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/lathe-run/lathe/internal/regular"
	"github.com/lathe-run/lathe/secret"
)

// A Ref is a value, usually a secret, that may be stored outside of the configuration file: ${NAME} in the environment, ${file:path} in
// another file. It is shown as the reference or, if the configuration contains the value itself, as "[redacted]"; values that are URLs are
// shown.
type Ref struct {
	shown string // what the file says, where that may be shown
	value secret.Secret
	file  string // where the value is all of a file: its path
}

// Secret returns the value as it was read with the configuration.
func (r Ref) Secret() secret.Secret { return r.value }

// Mark returns a text that differs between different Refs without revealing the value: the reference or URL as the file has it, or a
// SHA-256 in hexadecimal of a value that may not be shown; "" if the value is empty. It does not change when the content of a referenced
// file does.
func (r Ref) Mark() string {
	if r.shown != "" || r.value.IsZero() {
		return r.shown
	}
	sum := sha256.Sum256([]byte(r.value.Reveal()))
	return hex.EncodeToString(sum[:])
}

// Fresh returns the current value: it reads the file of ${file:path} again. Any other value is the one that was read with the
// configuration.
func (r Ref) Fresh() (secret.Secret, error) {
	if r.file == "" {
		return r.value, nil
	}
	v, err := readSecret(r.file, r.shown)
	return secret.New(v), err
}

// Reveal returns the value as plain text. It must not be logged.
func (r Ref) Reveal() string { return r.value.Reveal() }

// IsZero reports whether the value is empty.
func (r Ref) IsZero() bool { return r.value.IsZero() }

// String returns the value as it may be shown: see [Ref].
func (r Ref) String() string {
	if r.shown != "" {
		return r.shown
	}
	return r.value.String()
}

// Format implements fmt.Formatter: it writes what String returns, whatever the verb.
func (r Ref) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.String()) }

// MarshalText returns what String returns.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// maxSecretBytes bounds a file that ${file:…} names.
const maxSecretBytes = 64 << 10

// A resolver replaces references by their values.
type resolver struct {
	env map[string]string
	dir string // folder of relative paths
}

// refChecks are the checks of resolved values, by the value of the tag `is`.
var refChecks = map[string]func(*Ref) error{
	"header": isHeaderValue, "key": isKey, "reference": isReference, "shown": showText, "store": isStore, "url": showURL,
}

// resolve replaces the references in ref and checks the resulting value.
func (r *resolver) resolve(ref *Ref, check func(*Ref) error) error {
	written := ref.Reveal()
	if written == "" {
		return nil
	}
	value, hasReference, err := r.expand(written)
	if err != nil {
		return err
	}
	ref.value = secret.New(value)
	if hasReference {
		ref.shown = written
	}
	path, isFile := strings.CutPrefix(strings.TrimSuffix(written, "}"), "${file:")
	if isFile && !strings.ContainsAny(path, "${}") { // written is one reference and nothing else
		ref.file = absolute(r.dir, path)
	}
	return check(ref)
}

// expand replaces the references in s and reports whether there were any. $${ is an escaped ${.
func (r *resolver) expand(s string) (out string, found bool, err error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		if !ok {
			b.WriteString(s)
			return b.String(), found, nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(plain + "${")
			s = rest
			continue
		}
		b.WriteString(before)
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return "", false, errors.New("a reference ${ has no }")
		}
		v, err := r.lookUp(name)
		if err != nil {
			return "", false, err
		}
		b.WriteString(v)
		s, found = after, true
	}
}

func (r *resolver) lookUp(name string) (string, error) {
	if path, ok := strings.CutPrefix(name, "file:"); ok {
		return readSecret(absolute(r.dir, path), "${file:"+path+"}")
	}
	if isVariable(name) != nil {
		return "", errors.New("a reference is ${NAME} or ${file:path}, and $${ is the text ${")
	}
	v, ok := r.env[name]
	switch {
	case !ok:
		return "", fmt.Errorf("${%s} is not set", name)
	case v == "":
		return "", fmt.Errorf("${%s} is empty", name)
	}
	return v, nil
}

// absolute returns a path in the configuration as it is from the working folder; "" stays "".
func absolute(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// readSecret reads the file full. Errors name it as written, the text in the configuration.
func readSecret(full, written string) (string, error) {
	b, err := regular.Read(full, maxSecretBytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", written, withoutPath(err))
	}
	if len(b) > maxSecretBytes {
		return "", fmt.Errorf("%s: larger than %s", written, formatSize(maxSecretBytes))
	}
	v := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if v == "" {
		return "", fmt.Errorf("%s: the file is empty", written)
	}
	return v, nil
}

// withoutPath returns the cause of a path error, because the message already contains the path.
func withoutPath(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// isKey requires a reference, because a key in the file itself could end up in a repository.
func isKey(r *Ref) error {
	return cmp.Or(isReference(r), isHeaderValue(r))
}

func isHeaderValue(r *Ref) error {
	if strings.ContainsAny(r.Reveal(), "\r\n\x00") {
		return errors.New("the value has a line break in it")
	}
	return nil
}

// showURL accepts a URL without credentials, or a reference to one. It lets the URL be shown.
func showURL(r *Ref) error {
	u, err := url.Parse(r.Reveal())
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("an address begins with http:// or https:// and a host")
	}
	if u.User != nil {
		return errors.New("an address has no user or password in it: use key or headers")
	}
	r.show()
	return nil
}

// show lets the value be shown, unless a reference is shown in its place.
func (r *Ref) show() {
	if r.shown == "" {
		r.shown = r.Reveal()
	}
}
