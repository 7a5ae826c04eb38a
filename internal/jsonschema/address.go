package jsonschema

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// escapeToken writes a token of a JSON pointer.
func escapeToken(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// unescapeToken returns what a token of a JSON pointer stands for.
func unescapeToken(token string) (string, bool) {
	for i := 0; i < len(token); i++ {
		if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
			return "", false
		}
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token), true
}

// lookUp returns the value at a JSON pointer.
func lookUp(v any, at place) (any, error) {
	if at.pointer == "" {
		return v, nil
	}
	for token := range strings.SplitSeq(at.pointer[1:], "/") {
		token, ok := unescapeToken(token)
		if !ok {
			return nil, fmt.Errorf("invalid json-pointer %q", at)
		}
		found := false
		switch in := v.(type) {
		case map[string]any:
			v, found = in[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(in) {
				v, found = in[i], true
			}
		}
		if !found {
			return nil, fmt.Errorf("json-pointer in %q not found", at)
		}
	}
	return v, nil
}

// encodeFragment writes a fragment, its slashes as they are.
func encodeFragment(fragment string) string {
	parts := strings.Split(fragment, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// splitFragment returns a reference without its fragment, and the fragment decoded.
func splitFragment(ref string) (address, fragment string, err error) {
	address, encoded, _ := strings.Cut(ref, "#")
	if fragment, err = url.PathUnescape(encoded); err != nil {
		return "", "", fmt.Errorf("error in parsing %q: %w", ref, err)
	}
	return address, fragment, nil
}

// resolve returns the address that a reference within a resource leads to, and its fragment.
func resolve(base, ref string) (address, fragment string, err error) {
	from, err := url.Parse(base)
	if err != nil {
		return "", "", fmt.Errorf("error in parsing %q: %w", base, err)
	}
	ref, fragment, err = splitFragment(ref)
	if err != nil {
		return "", "", err
	}
	if ref == "" {
		return base, fragment, nil
	}
	to, err := url.Parse(ref)
	if err != nil {
		return "", "", fmt.Errorf("error in parsing %q: %w", ref, err)
	}
	resolved := from.ResolveReference(to)
	if from.Opaque != "" && !to.IsAbs() { // ResolveReference ignores it
		resolved.Opaque = from.Opaque
	}
	return resolved.String(), fragment, nil
}

// isAnchor reports whether a fragment is a name and not a JSON pointer.
func isAnchor(fragment string) bool { return fragment != "" && fragment[0] != '/' }

// isURIReference reports whether the text has the format uri-reference, and isURI the format uri.
func isURIReference(s string) bool {
	return !strings.Contains(s, `\`) && parses(s) != nil
}

func isURI(s string) bool {
	u := parses(s)
	return u != nil && u.IsAbs()
}

// parses returns the parts of a URI reference; nil if it is none.
func parses(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		return nil
	}
	if host := u.Hostname(); strings.Contains(host, ":") {
		if a, err := netip.ParseAddr(host); err != nil || a.Zone() != "" || !strings.HasPrefix(u.Host, "[") {
			return nil
		}
	}
	return u
}
