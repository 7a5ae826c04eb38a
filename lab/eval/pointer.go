package eval

import (
	"errors"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// checkPointer returns an error if a JSON pointer (RFC 6901) is not valid.
func checkPointer(p string) error {
	if p != "" && p[0] != '/' {
		return errors.New("a JSON pointer starts with /")
	}
	for i := range len(p) {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return errors.New("in a JSON pointer ~ is written ~0 and / is written ~1")
		}
	}
	return nil
}

// valueAt returns the value at the pointer in a JSON text. found is false if none exists, or the text is not JSON.
func valueAt(text []byte, pointer string) ([]byte, bool) {
	if rawjson.Check(text, rawjson.Limits{}) != nil {
		return nil, false
	}
	at := text[rawjson.SkipSpace(text, 0):]
	if pointer == "" {
		return at, true
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		found := false
		switch at[0] {
		case '{':
			at, found = rawjson.Get(at, token)
		case '[':
			at, found = element(at, token)
		}
		if !found {
			return nil, false
		}
	}
	return at, true
}

// element returns the array element whose decimal index is token, without leading zeros.
func element(arr []byte, token string) ([]byte, bool) {
	i := 0
	for raw := range rawjson.Elements(arr) {
		if strconv.Itoa(i) == token {
			return raw, true
		}
		i++
	}
	return nil, false
}

// escapeToken escapes a key for use in a JSON pointer.
func escapeToken(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
