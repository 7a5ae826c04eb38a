package wire

import (
	"errors"
	"net/url"
	"strings"

	"github.com/lathe-run/lathe"
)

// BaseURL parses the address of a model server for use with [CallURL] and [ModelsURL]. It removes the path of a model call, such as
// /chat/completions, from the end. If the address has no path, or on the Gemini wire no API version, it appends the path of the vendor's
// base URL. Errors do not contain the address, which may include a password.
func BaseURL(address string, codec Upstream, model string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("base URL is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("base URL must start with http:// or https:// and name a host")
	}
	if u.User != nil {
		return nil, errors.New("base URL holds a user or password: use the key or a header")
	}
	u.Fragment, u.RawFragment = "", ""
	tail, _, _ := strings.Cut(codec.Path(escaped(model), true), "?")
	path := strings.TrimRight(u.EscapedPath(), "/")
	bare := path == ""
	path = strings.TrimSuffix(path, tail[len(versionOf(tail)):])
	if bare || codec.Wire() == lathe.WireGemini && !endsInVersion(path) {
		if vendor, err := url.Parse(codec.Vendor().BaseURL); err == nil {
			path += vendor.EscapedPath()
		}
	}
	if u.Path, err = url.PathUnescape(path); err != nil {
		return nil, errors.New("base URL has a bad path")
	}
	u.RawPath = path
	return u, nil
}

// CallURL returns the URL of a model call.
func CallURL(base *url.URL, codec Upstream, model string, stream bool) (*url.URL, error) {
	return under(base, codec.Path(escaped(model), stream))
}

// ModelsURL returns the URL of the list of models.
func ModelsURL(base *url.URL, codec Upstream) (*url.URL, error) {
	return under(base, versionOf(codec.Path("m", false))+"/models")
}

// under returns the URL of path below base. path may have a query. If both have an API version, only that of base is used.
func under(base *url.URL, path string) (*url.URL, error) {
	path, query, _ := strings.Cut(path, "?")
	u, root := *base, base.EscapedPath()
	if endsInVersion(root) {
		path = path[len(versionOf(path)):]
	}
	u.RawPath = root + path
	var err error
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, errors.New("the model's name cannot stand in an address")
	}
	if query != "" && u.RawQuery != "" {
		query += "&"
	}
	u.RawQuery = query + u.RawQuery
	return &u, nil
}

// versionOf returns the first segment of a path with its leading slash, such as /v1 or /v1beta, if it is an API version;
// otherwise "".
func versionOf(path string) string {
	if len(path) < 3 || path[:2] != "/v" || path[2] < '0' || path[2] > '9' {
		return ""
	}
	if end := strings.IndexByte(path[1:], '/'); end >= 0 {
		return path[:end+1]
	}
	return path
}

func endsInVersion(path string) bool {
	last := strings.LastIndexByte(path, '/')
	return last >= 0 && versionOf(path[last:]) != ""
}

// escaped returns the name of a model escaped for a URL path. Slashes in the name are kept as separators.
func escaped(model string) string {
	segments := strings.Split(model, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
