package httptool

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// A template is a URL with placeholders for parameters in its path.
type template struct {
	base    string   // scheme and host
	literal []string // parts of the escaped path between the names; one more than names
	names   []string
}

func parseTemplate(s string) (*template, error) {
	scheme, address, found := strings.Cut(s, "://")
	isHTTP := scheme == "https" || scheme == "http"
	if !found || !isHTTP {
		return nil, errors.New("the address begins with https:// or http://")
	}
	host, path, _ := strings.Cut(address, "/")
	base, path := scheme+"://"+host, "/"+path
	if strings.ContainsAny(base, "{}?#") || strings.ContainsAny(path, "?#") {
		return nil, errors.New("parameters stand in the path of an address, and it has no query of its own")
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, errors.New("the address has a host, and no user or password")
	}
	t := &template{base: base}
	rest := path
	for {
		before, after, found := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return nil, errors.New("a } in the path has no {")
		}
		t.literal = append(t.literal, before)
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.ContainsAny(name, "{/") {
			return nil, errors.New("a { in the path has no name and }")
		}
		t.names = append(t.names, name)
		rest = tail
	}
	plain := strings.Join(t.literal, "x")
	if p, err := url.Parse(base + plain); err != nil || p.Host != u.Host || hasDotSegment(plain) {
		return nil, fmt.Errorf("the path is not one of a URL")
	}
	return t, nil
}

// fill returns the URL with the values, which must be escaped, in place of the names.
func (t *template) fill(values map[string]string) (string, error) {
	var b strings.Builder
	for i, l := range t.literal {
		b.WriteString(l)
		if i < len(t.names) {
			v := values[t.names[i]]
			if v == "" {
				return "", badArgument(t.names[i], "must not be empty: it is part of the path")
			}
			b.WriteString(v)
		}
	}
	path := b.String()
	if hasDotSegment(path) {
		return "", badArgument(strings.Join(t.names, ", "), "must not make a part of the path that is only dots")
	}
	return t.base + path, nil
}

// pathUnescaped unescapes separators of path segments, and dots. It is a variable because a Replacer builds its tables once.
var pathUnescaped = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", "\\", "/", "%3b", ";", "%3B", ";")

// hasDotSegment reports whether a segment of an escaped path is . or .., in any spelling: servers and proxies remove such segments, some of
// them after they have decoded %2F.
func hasDotSegment(path string) bool {
	path = pathUnescaped.Replace(path)
	for plain := range strings.SplitSeq(path, "/") {
		if name, _, ok := strings.Cut(plain, ";"); ok {
			plain = name // a path parameter for servers
		}
		if plain == "." || plain == ".." {
			return true
		}
	}
	return false
}
