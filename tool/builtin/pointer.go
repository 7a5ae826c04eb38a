package builtin

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// maxPointer is the maximum length of a JSON pointer, in bytes.
const maxPointer = 1_000

// withoutEscapes removes the escapes of a reference token.
var withoutEscapes = strings.NewReplacer("~0", "", "~1", "")

// parsePointer splits a JSON pointer (RFC 6901) into its reference tokens.
func parsePointer(p string) ([]string, error) {
	if p == "" {
		return nil, nil
	}
	if p[0] != '/' {
		return nil, errors.New("a path starts with /")
	}
	if len(p) > maxPointer {
		return nil, errors.New("a path is too long")
	}
	tokens := strings.Split(p[1:], "/")
	for i, t := range tokens {
		if strings.Contains(withoutEscapes.Replace(t), "~") {
			return nil, errors.New("in a path ~ is written ~0 and / is written ~1")
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// lookup returns the value at the reference tokens.
func lookup(v any, tokens []string) (any, bool) {
	for _, t := range tokens {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[t]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, ok := index(t, len(at))
			if !ok {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// absent is the value at a pointer to nothing.
var absent any = struct{ absent bool }{}

// change replaces the value at the tokens by the result of f, and creates missing objects on the way. f receives absent if the value does not
// exist, and returns absent to remove it. change returns the changed v.
func change(v any, tokens []string, f func(old any) (any, error)) (any, error) {
	if len(tokens) == 0 {
		return f(v)
	}
	if v == nil || v == absent {
		v = map[string]any{}
	}
	switch at := v.(type) {
	case map[string]any:
		old, ok := at[tokens[0]]
		if !ok {
			old = absent
		}
		next, err := change(old, tokens[1:], f)
		if err != nil {
			return nil, err
		}
		at[tokens[0]] = next
		if next == absent {
			delete(at, tokens[0])
		}
		return at, nil
	case []any:
		i, ok := index(tokens[0], len(at))
		if !ok {
			return nil, errors.New("a path names an array element that is not there")
		}
		next, err := change(at[i], tokens[1:], f)
		if err != nil {
			return nil, err
		}
		if next == absent {
			return slices.Delete(at, i, i+1), nil
		}
		at[i] = next
		return at, nil
	}
	return nil, errors.New("a path goes through a value that is no object and no array")
}

// index parses an array index: digits without a leading zero, below n.
func index(t string, n int) (int, bool) {
	hasLeadingZero := len(t) > 1 && t[0] == '0'
	if t == "" || hasLeadingZero || strings.TrimLeft(t, "0123456789") != "" {
		return 0, false
	}
	i, err := strconv.Atoi(t)
	return i, err == nil && i < n
}

// clone returns a deep copy of a JSON value.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}
